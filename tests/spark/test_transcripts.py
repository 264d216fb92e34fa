"""Transcripts on Spark: each pane comes in the micro-batch of the line that gives it.

All of them in ``make test-deep``; one of each file in ``make test-versions``; in ``make test`` those that are refused, and one of each
file whose subject no other test runs on Spark.
"""

from __future__ import annotations

import re
from datetime import timedelta

import attrs
import pytest

import beamish as bm
from beamish.errors import BeamishError
from beamish.script import Step, as_step
from beamish.testing import TestStream
from beamish.windows.option import END_OF_TIME_US
from tests.budget import SECONDS, TESTS
from tests.lines import line
from tests.transcripts.cases import CASES
from tests.transcripts.cases import by_key as lines_by_key

pytestmark = pytest.mark.spark

CHOSEN = {
    "anchored": "A late row changes the windows that it is in, and anchors two; windows that have expired stay as they are",
    "as_of_joins": "A join of a join: a correction below is a correction above",
    "asking": "Closing behaviour FIRE_ALWAYS: a last pane comes though nothing is new",
    "calendar": "Days of 23 and 25 hours in Paris",
    "chains": "A retraction that is too late is dropped like a row, and what it would have removed stays",
    "changelogs": "A removal of a row that its window does not hold is dropped, and takes nothing away (rules/changelogs.md#unmatched-removals)",
    "changes": "The greatest sequence is the newest, whenever it came; null is the least (rules/suppress.md#changes-newest)",
    "clocks": "idle_timeout: the watermark moves on with the clock, a step late",
    "duplicates": "A stage after it takes them in the same step, keyed otherwise",
    "errors": "A row that would make two sessions one whose sum overflows is dropped, and both stay",
    "flows": "A side is keyed again: the orders of each team beside its visits",
    "forgetting": "A row whose end the watermark has passed already closes its window with its bundle, late; with a later one it does not",
    "gaps": "A late row corrects what was filled; a row of an expired cell is dropped",
    "key_sets": "Key sets fire, and are retracted, each by itself",
    "key_watermarks": "A session ends by the rows of its key",
    "merges": "A late match takes back the early outer row",
    "over": "With Lead a row waits until the row after it is passed, at the end of time for none",
    "pairs_once": "What the watermark lets go of without a match is new, and shown to the trigger; what comes older is dropped",
    "panes": "Dropped rows: one for each row and window, before the panes; a null event time once, without a window",
    "refusals": "Without allowed lateness OrFinally of AfterWatermark loses nothing",
    "retention": "Sessions are judged by their bounds, and a row by its own",
    "rolling": "A row where values change: a row enters both spans, leaves the short one, then the long one, and its key ends",
    "rows": "Brought numbers come in any order, with gaps; what comes late is taken within the allowed lateness, and dropped beyond",
    "rules_table": "With the next pane retractions stand right before it, after the panes of earlier windows",
    "sessions": "AfterWatermark goes back to waiting for the end: a second ON_TIME pane",
    "suppress": "A rate limit: one net change per slot and wait of the clock, each wait from its first update on",
    "ten_scores": "Sessions: 25 retracts 7 and 10; the late 9 joins 5 and 25 to 39 (the paper's figure of retractions)",
    "values": "First, Last and Collect go by event time, then by value; nulls come first",
    "within": "Early it says that nothing met so far, and takes it back",
    "table_joins": 'From the right (Kafka Streams, the same, "join from right, then delete right entity")',
    "upserts": "A row moves between the windows after it; a removal from an expired window is dropped there",
    "versions": "A stage that retracts corrects its table: the pane that is taken back is a change that never was",
}
ELSEWHERE = {
    "anchored": "kinds/window/test_on_spark_anchored.py",
    "as_of_joins": "kinds/versions/test_on_spark.py",
    "asking": "kinds/window/test_on_spark_kept_windows.py",
    "chains": "spark/test_chain.py",
    "changelogs": "spark/test_from_changelog.py",
    "changes": "kinds/changes/test_on_spark.py",
    "duplicates": "kinds/deduplicate/test_on_spark.py",
    "forgetting": "kinds/window/test_on_spark_forgetting.py",
    "gaps": "kinds/gaps/test_on_spark.py",
    "key_sets": "kinds/window/test_on_spark_key_sets.py",
    "key_watermarks": "kinds/window/test_on_spark_key_watermarks.py",
    "over": "kinds/over/test_on_spark.py",
    "rolling": "kinds/rolling/test_on_spark.py",
    "merges": "spark/test_merge.py",
    "pairs_once": "kinds/window/test_on_spark_pairs_once.py",
    "rows": "kinds/window/test_on_spark_windows_of_rows.py",
    "rules_table": "spark/test_scripted.py",
    "sessions": "spark/test_scripted.py",
    "suppress": "kinds/suppress/test_on_spark.py",
    "table_joins": "kinds/table_join/test_on_spark.py",
    "upserts": "kinds/upserts/test_on_spark.py",
    "versions": "kinds/versions/test_on_spark.py",
    "within": "spark/test_merge.py",
}
"""Files of transcripts, and the tests that run their subject on Spark in ``make test``."""
REFUSED_ON_SPARK = {
    "Classic batch: one sum at the end": (bm.PipelineError, "waits for the end of time, which a stream does not reach"),
}
"""Scripts that cannot run on a stream (rules/running.md#endless-windows), though a script in process can."""
SHIFTED = {"Nothing is late before there is a watermark": 2_000_000}
"""Scripts with watermarks at or below 0, which Spark takes for none, and by how many seconds they are moved.

See rules/time.md#spark-watermark.
"""
CHOSEN_CASES = [
    pytest.param(
        case, marks=[pytest.mark.deep, pytest.mark.versions] if case.file in ELSEWHERE and not case.refused else []
    )
    for case in CASES
    if case.refused or CHOSEN[case.file] == case.title
]


def shifted(script: TestStream, seconds: int) -> TestStream:
    """A script of rows with event times in ``ts``, shifted by this many seconds."""
    steps: list[Step] = []
    for step in map(as_step, script.events):
        rows = tuple({**row, "ts": row["ts"] + seconds} for row in step.rows)
        us = step.watermark_us
        later = None if us is None else min(us + seconds * 1_000_000, END_OF_TIME_US)
        steps.append(attrs.evolve(step, rows=rows, watermark_us=later))
    return TestStream(tuple(steps))


def shifted_back(pane: bm.Pane, seconds: int) -> bm.Pane:
    by = timedelta(seconds=seconds)
    assert pane.window
    assert pane.window.start
    assert pane.window.end
    assert pane.timestamp
    window = bm.Window(pane.window.start - by, pane.window.end - by)
    return attrs.evolve(pane, window=window, timestamp=pane.timestamp - by)


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=pytest.mark.deep) for case in CASES] if SECONDS else CHOSEN_CASES,
    ids=lambda case: f"{case.file}: {case.title}",
)
def test_transcripts_hold_on_spark(spark, case):
    if case.refused:
        _, error, *words = case.refused.split()
        refused_as_said(spark, case, getattr(bm, error), " ".join(words))
        return
    if case.title in REFUSED_ON_SPARK:
        error, words = REFUSED_ON_SPARK[case.title]
        with pytest.raises(error, match=re.escape(words)):
            case.script().on_spark(spark, case.build())
        return
    by = SHIFTED.get(case.title, 0)
    script = case.script()
    told = [step.watermark_us for step in map(as_step, script.events)]
    if any(us % 1000 for us in told if us not in (None, END_OF_TIME_US)):
        with pytest.raises(bm.ScriptError, match="a watermark is a whole number of milliseconds"):
            script.on_spark(spark, case.build())
        return
    if by:
        with pytest.raises(bm.ScriptError, match="shift a script that begins before 1970"):
            script.on_spark(spark, case.build())
        script = shifted(script, by)
    traced = script.trace_on_spark(spark, case.build(), **options_of(case))
    for step, (_, panes) in zip(case.steps, traced, strict=True):
        came = [line(shifted_back(pane, by) if by else pane) for pane in panes]
        assert lines_by_key(came) == lines_by_key(step.gives), step.line


def options_of(case):
    """The limits of a suppress are per shard. Two partitions only in the search: each takes as long as the rest of a batch."""
    return {"shards": 1 if "Buffer(" in case.pipeline else 2, "partitions": 2 if SECONDS else 1}


def refused_as_said(spark, case, error, words):
    """Refused with the error of the transcript; what a worker finds comes as Spark's error, with the same words."""
    from pyspark.errors import StreamingQueryException

    with pytest.raises((BeamishError, StreamingQueryException)) as caught:
        case.script().on_spark(spark, case.build(), **options_of(case))
    if isinstance(caught.value, StreamingQueryException):
        assert error.__name__ in str(caught.value)
    else:
        assert isinstance(caught.value, error)
    assert words in str(caught.value)


def test_the_lists_of_this_file_name_transcripts():
    titles = {case.title: case for case in CASES}
    assert {case.file for case in CASES} == CHOSEN.keys() > ELSEWHERE.keys()
    assert all((TESTS / file).is_file() for file in ELSEWHERE.values())
    assert titles.keys() >= {*CHOSEN.values(), *REFUSED_ON_SPARK, *SHIFTED}
    assert len(titles) == len(CASES), "two transcripts of one title"
    assert not any(titles[title].refused for title in [*CHOSEN.values(), *REFUSED_ON_SPARK, *SHIFTED])
