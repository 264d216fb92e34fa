"""The windows in a checkpoint are those that the script keeps (rules/running.md#kept-windows)."""

from __future__ import annotations

import pytest

import beamish as bm
from beamish.accumulations import Collect, Count, Sum
from beamish.testing import TestStream
from beamish.triggers import AfterCount, Always

SOURCE = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("k")
TOTALS = (
    SOURCE.window(bm.FixedWindows(10))
    .trigger(Always())
    .allowed_lateness(1000)
    .accumulating()
    .accumulate(n=Count(), vs=Collect("v"))
)
TWO = (
    SOURCE.window({"ten": bm.FixedWindows(10), "visit": bm.Sessions(5)})
    .trigger(AfterCount(2), allow_data_loss=True)
    .accumulating()
    .accumulate(n=Count())
    .suppress(bm.UntilTimeLimit(5, clock="event"))
    .then(
        bm.Pipeline()
        .key_by("n")
        .window(bm.FixedWindows(60))
        .allowed_lateness(20)
        .accumulating()
        .accumulate(total=Sum("n"))
    )
)


def row(k, v, ts):
    return {"k": k, "v": v, "ts": ts}


SCRIPT = (
    TestStream()
    .add([row("a", 1, 1), row("b", 2, 12), row(None, 3, 14), row("a", 4, 25)])
    .advance_watermark_to(18)
    .add([row("a", 5, 2), row("c", 6, 26)])
)


def asked(state, **question):
    """The answers of a script, or of a checkpoint, in one form."""
    found = state.windows(**question)
    if isinstance(found, list):
        rows = [
            {**one.key, "window": one.window, **(one.values or {}), "about": (one.new_rows, one.panes, one.closed)}
            for one in found
        ]
    else:
        rows = []
        for one in found.collect():
            values = one.asDict(recursive=True)
            about = tuple(values.pop(name) for name in ("new_rows", "panes", "closed"))
            bounds = bm.Window(*(bound.astimezone() for bound in one.window))
            rows.append({**values, "window": bounds, "about": about})
    return sorted(
        (
            sorted((name, repr(value)) for name, value in row.items() if name != "window" and value is not None),
            row["window"],
        )
        for row in rows
    )


def test_a_checkpoint_answers_as_the_script_does_by_time_key_and_batch(spark, tmp_path):
    SCRIPT.trace_on_spark(spark, TOTALS, shards=8, checkpoint=tmp_path)  # whose ids are not their numbers
    on_script, on_spark = TOTALS.state(SCRIPT), TOTALS.state(spark, tmp_path / "checkpoint")
    keys: list[dict[str, object]] = [{"key": {"k": k}} for k in ("a", "b", "c")]
    for question in ({}, {"start": 5, "end": 15}, *keys, {"key": {"k": None}, "start": 12}, {"end": 0}):
        assert asked(on_spark, **question) == asked(on_script, **question), question
    assert len(asked(on_spark)) == 5
    first = TestStream(SCRIPT.events[:1])
    assert asked(TOTALS.state(spark, tmp_path / "checkpoint", batch=0)) == asked(TOTALS.state(first))
    with pytest.raises(bm.OptionError, match=r"key=\{'v': 1\}.*'v' is not a key column.*\['k'\]"):
        on_spark.windows(key={"v": 1})
    with pytest.raises(bm.StateError):
        TOTALS.accumulate(other=Sum("v")).key_by("v").state(spark, tmp_path / "checkpoint").windows()


@pytest.mark.deep
def test_equal_stages_are_selected_by_number(spark, tmp_path):
    again = (
        bm.Pipeline().key_by("k").window(bm.FixedWindows(60)).trigger(Always()).accumulating().accumulate(n=Sum("n"))
    )
    chain = TOTALS.accumulate(n=Count()).then(again).then(again)
    SCRIPT.trace_on_spark(spark, chain, shards=2, checkpoint=tmp_path)
    first, second = (asked(chain.state(spark, tmp_path / "checkpoint"), stage=stage) for stage in (2, 3))
    assert first != second
    assert [first, second] == [asked(chain.state(SCRIPT), stage=stage) for stage in (2, 3)]


@pytest.mark.deep
def test_a_stage_of_a_chain_is_found_by_its_number(spark, tmp_path):
    SCRIPT.trace_on_spark(spark, TWO, shards=2, checkpoint=tmp_path)
    for stage in (1, 2):
        on_spark = asked(TWO.state(spark, tmp_path / "checkpoint"), stage=stage)
        assert on_spark == asked(TWO.state(SCRIPT), stage=stage) != []
    # inspect finds the stages without the pipeline, and what it says of their windows is what the script's are
    found = bm.inspect(spark, tmp_path / "checkpoint")
    first, second = found.stages().collect()
    assert first.windows.startswith("ten: fixed, 10 seconds long; visit: sessions")
    assert second.fires == "when the watermark reaches its end, then with every bundle of late rows"
    assert [(one.stage, one.of_stage) for one in found.inputs().collect()] == [(1, None), (2, 1)]
    assert "by the suppress 'suppress'" in str(found)
    for key in ({"k": "a", "windowing": "visit"}, {"k": None}):
        said, known = (
            one.partition(" The watermark is")[0]
            for one in (found.why(key=key, stage=1), TWO.why(SCRIPT, key=key, stage=1))
        )
        assert said == known
        assert "is open" in said or "is finished" in said
    with pytest.raises(bm.PipelineError, match="stages with windows are 1, 2"):
        found.why(key="a")
