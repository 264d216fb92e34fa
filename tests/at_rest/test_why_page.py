"""docs/why.md: each symptom of its list is played, and the answer has the words that the list quotes."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import attrs
import pyarrow.compute as pc
import pytest

import beamish as bm
from beamish.accumulations import Count
from beamish.checkpoint.inspection import Inspection
from beamish.checkpoint.question import read_question
from beamish.checkpoint.words import QueryFacts, rows_of, why
from beamish.flow import descriptions
from beamish.local import stages_after
from beamish.stage_facts import stage_facts
from beamish.testing import TestStream
from beamish.triggers import AfterCount, AfterProcessingTime, AfterWatermark

PAGE = (Path(__file__).parents[2] / "docs" / "why.md").read_text("utf-8")
LIST = PAGE.partition("## Common causes")[2].partition("\n## ")[0]
CALLS = PAGE.partition("| call | gives |")[2].partition("\n\n")[0]
SECOND, DAY = 1_000_000, 86_400
CLOCK_US = DAY * SECOND

INPUT = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness("1 minute")).key_by("k")
SOURCE = INPUT.accumulating()
MINUTES = SOURCE.window(bm.FixedWindows("2 minutes")).accumulate(n=Count())
ROW = {"k": "a", "v": 1, "ts": 5}
OPEN = TestStream().add([ROW]).advance_watermark_to(65)


@attrs.frozen
class Played:
    """A symptom: a query after a batch.

    Attributes:
        pipeline, script: what ran.
        advances_to: the watermark of the next batch, in seconds; None: the same.
        window: asked about.
    """

    pipeline: bm.Pipeline
    script: TestStream
    advances_to: float | None = None
    window: float = 5

    def answer(self) -> str:
        (*_, (bound, stores)) = stages_after(self.pipeline.flow.completed, self.script.events)
        facts = stage_facts(dict(enumerate(stores)), descriptions(bound)[-1], bound.operator)
        question = read_question(facts, "why", {"k": "a"} if facts.key_schema.names else None, self.window)
        windows = [row for store in stores for row in rows_of(facts.asked(question.asked).read(store))]
        next_us = facts.watermark_us if self.advances_to is None else int(self.advances_to * SECOND)
        return why(facts, question, windows, QueryFacts(7, CLOCK_US, next_us, is_last=True))


ORDERS = INPUT.event_time("ts", bm.BoundedOutOfOrderness(0))
MERGED = bm.merge(orders=ORDERS, payments=ORDERS).window(bm.FixedWindows(60)).accumulating().accumulate(n=Count())
EARLY = MINUTES.trigger(AfterWatermark(early=AfterCount(2)))
CLOCKED = MINUTES.trigger(AfterWatermark(early=AfterProcessingTime(20)))
ONCE = MINUTES.trigger(AfterCount(1), allow_data_loss=True)
FUTURE = 365 * DAY
PLAYED = {
    "the last window never ends": [Played(MINUTES, OPEN)],
    "no output although rows arrive": [Played(MINUTES, OPEN)],
    "rows are past the end, and still no output": [Played(MINUTES, OPEN, advances_to=130)],
    "a merge, or join, emits nothing": [
        Played(MERGED, TestStream().add([{**ROW, "ts": 90}], input="orders").add([ROW], input="payments"), window=90)
    ],
    "an early pane is missing": [Played(EARLY, OPEN), Played(CLOCKED, OPEN)],
    "one early pane, and never another": [Played(ONCE, OPEN)],
    "nothing at all from the global window": [
        Played(SOURCE.window(bm.GlobalWindow()).trigger(AfterWatermark(early=AfterCount(2))).accumulate(n=Count()), OPEN)
    ],
    "rows are missing from a pane": [Played(MINUTES, OPEN.advance_watermark_to(200).add([ROW]), window=130)],
    "suddenly all rows are late": [
        Played(MINUTES, OPEN.advance_watermark_to(FUTURE).add([ROW])),
        Played(MINUTES, OPEN, advances_to=FUTURE),
    ],
    "rows come, and no window opens for them": [Played(MINUTES.where(pc.field("v") > 1), OPEN)],
    "it fired, and emitted nothing": [
        Played(EARLY.having(pc.field("n") > 5).suppress(bm.UntilWindowCloses(), name="final"), OPEN.add([ROW]))
    ],
}  # fmt: skip


def listed():
    """Symptom, and the quoted words of ``why``, for each row of the list."""
    rows = [line.strip("| ").split(" | ") for line in LIST.splitlines() if line.startswith("| ")][1:]
    return {symptom: re.findall(r'"([^"]+)"', words) for symptom, words, _ in rows}


def test_every_symptom_of_the_list_is_played_and_quotes_its_answer():
    assert set(listed()) == set(PLAYED)
    assert [symptom for symptom, quoted in listed().items() if not quoted] == []


@pytest.mark.parametrize("symptom", PLAYED)
def test_the_answer_has_the_words_that_the_list_quotes(symptom):
    answers = "\n\n".join(played.answer() for played in PLAYED[symptom])
    for quoted in listed()[symptom]:
        for part in quoted.split("..."):
            assert part.strip() in answers


def test_the_calls_that_the_page_lists_are_those_of_an_inspection():
    calls = dict(re.findall(r"`\.(\w+)\(([^)]*)\)`", CALLS))
    own = {name: of for name, of in vars(Inspection).items() if inspect.isfunction(of) and not name.startswith("_")}
    assert set(calls) == set(own)
    for name, arguments in calls.items():
        asked = re.findall(r"(\w+)=", arguments)
        assert set(asked) == set(inspect.signature(own[name]).parameters) - {"self"}


def test_why_reports_a_missing_watermark_once():
    before = TestStream().add([ROW])
    merged = TestStream().add([{**ROW, "ts": 90}], input="orders")
    for played in (Played(MINUTES, before), Played(MERGED, merged, window=90)):
        for answer in (played.answer(), played.pipeline.why(played.script, key="a", window=played.window)):
            assert len(re.findall("no watermark yet|none yet", answer)) == 1
            assert answer.count("There is no watermark yet") == 1


def test_the_end_of_a_session_is_not_fixed():
    sessions = SOURCE.window(bm.Sessions(10)).allowed_lateness(20)
    answer = sessions.accumulate(n=Count()).why(TestStream().add([ROW]).advance_watermark_to(6), key="a")
    assert "its end, 1970-01-01 00:00:15, unless rows extend it: 9 seconds to go" in answer
    assert "the watermark reaches 1970-01-01 00:00:35, unless rows extend it: 29 seconds to go" in answer
    visits = SOURCE.window(bm.CountSessions(1)).accumulate(n=Count())
    assert "It waits for it to be full, unless rows extend it: 2 more rows." in visits.why(OPEN, key="a")
    closed = sessions.trigger(AfterCount(1), allow_data_loss=True).accumulate(n=Count())
    assert "until the watermark reaches 1970-01-01 00:00:35, unless rows extend it" in closed.why(
        TestStream().add([ROW]), key="a"
    )
    assert "unless rows extend it" not in MINUTES.why(OPEN, key="a")


def test_a_watermark_that_is_ahead_of_the_clock_says_how_far():
    already, next_batch = PLAYED["suddenly all rows are late"]
    assert "The watermark is at 1971-01-01 00:00:00 after batch 7, 364 days ahead of the clock." in already.answer()
    assert "advance it to 1971-01-01 00:00:00, 364 days ahead of the clock, from the next" in next_batch.answer()
    assert "ahead of the clock" not in Played(MINUTES, OPEN.advance_watermark_to(DAY + 0.5)).answer()
    # The clock of a script has not begun before it is moved.
    assert "ahead" not in MINUTES.why(OPEN.advance_watermark_to(FUTURE), key="a", window=5)
    moved = TestStream().advance_processing_time_to(60).add([ROW]).advance_watermark_to(90)
    assert "The watermark is at 1970-01-01 00:01:30, 30 seconds ahead of the clock." in MINUTES.why(moved, key="a")


def test_a_script_says_how_its_watermark_is_moved():
    lagging = MINUTES.event_time("ts", bm.ProcessingTimeLag(5))
    answer = lagging.why(TestStream().advance_processing_time_to(20).add([ROW]), key="a")
    assert "It follows the clock: call advance_processing_time_to(...)." in answer
    assert "advance_watermark_to" not in answer
