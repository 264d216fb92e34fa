"""Why a window did not fire: facts of a shard's state without its pipeline, and the words that are made of them."""

from __future__ import annotations

import json
from base64 import b64decode
from pathlib import Path

import attrs
import pyarrow.compute as pc
import pytest

import beamish as bm
from beamish.accumulations import Accumulation, Count, Sum
from beamish.checkpoint.question import read_texts, stage_meant
from beamish.checkpoint.words import QueryFacts, rows_of, stage_lines, why
from beamish.contract.at_rest import Asked, Keeps
from beamish.contract.stored import DictStore
from beamish.flow import descriptions
from beamish.local import stages_after
from beamish.script import script_rows
from beamish.stage_facts import stage_facts
from beamish.testing import TestStream
from beamish.triggers import (
    AfterAll,
    AfterAny,
    AfterCount,
    AfterEach,
    AfterProcessingTime,
    AfterValue,
    AfterWatermark,
    Always,
    Never,
    OrFinally,
    Repeatedly,
    Trigger,
)
from tests.checkpoints.cases import CASES

SOURCE = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("k")
COUNTS = SOURCE.window(bm.FixedWindows(60)).accumulating().accumulate(n=Count(), total=Sum("v"))
A, B = {"k": "a", "v": 1, "ts": 5}, {"k": "b", "v": 2, "ts": 70}
SCRIPT = TestStream().advance_processing_time_to(100).add([A, A, B]).advance_watermark_to(30)
EVERY = Asked(Keeps.WINDOWS)
KEPT = Path(__file__).parents[1] / "checkpoints" / "format3"
END = "the watermark to reach its end, 1970-01-01 00:01:00: 30 seconds to go"


def waits(trigger, script=SCRIPT):
    """The reason why the window of key a has not fired."""
    said = COUNTS.trigger(trigger, allow_data_loss=True).why(script, key="a", window=0)
    return said.partition("It waits for ")[2].partition(". Its trigger")[0]


@pytest.mark.parametrize(
    ("trigger", "words"),
    [
        (AfterWatermark(), END),
        (AfterCount(5), "3 more rows (2 of 5 have arrived since it began waiting)"),
        (AfterProcessingTime(20), "the clock to reach 1970-01-01 00:02:00: 20 seconds to go"),
        (AfterWatermark(early=AfterCount(3)), f"{END}; or, before that, for 1 more row (2 of 3 have arrived since it began waiting)"),
        (AfterAny(AfterCount(3), AfterProcessingTime(20)), "the first of (1 more row (2 of 3 have arrived since it began waiting); the clock to reach 1970-01-01 00:02:00: 20 seconds to go)"),
        (AfterAll(AfterCount(2), AfterProcessingTime(20)), "all of (nothing more: 2 of 2 rows have arrived; the clock to reach 1970-01-01 00:02:00: 20 seconds to go)"),
        (AfterEach(AfterCount(2), AfterCount(9)), "9 more rows (0 of 9 have arrived since it began waiting)"),
        (Repeatedly(AfterProcessingTime(0)), "a row, and then 0 seconds on the clock after its first row"),
        (OrFinally(Repeatedly(AfterCount(3)), AfterWatermark()), f"1 more row (2 of 3 have arrived since it began waiting); or, for the last time, for {END}"),
        (AfterValue("total", at_least=10), "a row with which total is at least 10"),
        (Never(), "nothing but its expiry"),
        (Always(), "a further row"),
    ],
)  # fmt: skip
def test_a_trigger_describes_its_wait(trigger, words):
    assert waits(trigger) == words


def test_after_the_end_it_waits_for_the_late_trigger():
    late = COUNTS.allowed_lateness(1000).trigger(AfterWatermark(late=AfterCount(4)))
    said = late.why(SCRIPT.advance_watermark_to(60).add([A]), key="a", window=0)
    assert "It waits for 3 more rows (1 of 4 have arrived since it began waiting)." in said
    assert "It has emitted 1 pane, the last one ON_TIME; 1 row is in no pane yet." in said
    assert "when the watermark reaches 1970-01-01 00:17:40: 16 minutes 40 seconds to go" in said


@attrs.frozen
class OnceTen(Trigger):
    def create(self):
        return 0

    def on_rows(self, state, count, context):
        return state + count

    def should_fire(self, state, context):
        return state >= 10

    def on_merge(self, states, context):
        return sum(states)


@attrs.frozen
class OnceTenInWords(OnceTen):
    def waits_for(self, state, context):
        return f"{10 - state} plays more"


def test_a_user_defined_trigger_shows_its_state_or_its_description():
    assert waits(OnceTen()) == "what OnceTen() decides; its state is 2"
    assert waits(OnceTenInWords()) == "8 plays more"


def test_a_window_that_is_open_closed_expired_or_was_never_there():
    assert "[1970-01-01 00:00:00, 00:01:00) of k='a' is open." in COUNTS.why(SCRIPT, key={"k": "a"}, window=(0, 60))
    assert "A pane would hold n=2, total=2 now." in COUNTS.why(SCRIPT, key="a")
    once = COUNTS.allowed_lateness(600).trigger(AfterWatermark(), allow_data_loss=True)
    passed = SCRIPT.advance_watermark_to(60).add([A, A])
    closed = once.why(passed, key="a", window=0)
    assert "is closed: its trigger has finished. It has emitted 1 pane, the last one ON_TIME." in closed
    assert "Rows dropped by this stage so far: 2 as window_finished." in closed
    expired = COUNTS.why(passed, key="a", window=0)
    assert "The window [1970-01-01 00:00:00, 00:01:00) of key k='a' has expired: the watermark" in expired
    assert "2 as expired" in expired
    assert COUNTS.why(passed, key="b").endswith("Rows dropped by this stage so far: 2 as expired.")
    unknown = COUNTS.why(SCRIPT, key="z")
    assert unknown.startswith("No window of key k='z' is stored. Either no row arrived for it")
    never = COUNTS.why(SCRIPT, key="a", window=130)
    assert "There is no window [1970-01-01 00:02:10, ...)" in never
    assert "is not open: no row has been added to it." in never
    assert COUNTS.why(TestStream(), key="a") == "No row arrived, so there is no window, and no state."


def test_rows_that_do_not_pass_where_are_not_counted_as_dropped():
    filtered = COUNTS.where(pc.field("v") > 1)
    words = "Only rows that satisfy .where(...) are added; others are not counted as dropped."
    not_open = filtered.why(SCRIPT.add([{**A, "ts": 65}]), key="a", window=60)
    assert "is not open: no row has been added to it. It starts with its first row, if that arrives before the watermark reaches " f"1970-01-01 00:02:00. {words}" in not_open  # fmt: skip
    assert words in filtered.why(SCRIPT, key="a")
    assert words in filtered.window(bm.Sessions(10)).why(SCRIPT, key="a", window=5)
    of_input = bm.merge(x=SOURCE.where(pc.field("v") > 1), y=SOURCE).window(bm.FixedWindows(60)).accumulate(n=Count())
    one = TestStream().add([A], input="x").add([B], input="y")
    assert words in of_input.why(one, key="a", window=0)
    for said in (filtered.why(SCRIPT, key="b", window=60), COUNTS.why(SCRIPT, key="z")):
        assert ".where(...)" not in said


def test_having_may_have_left_out_panes_of_a_window_that_fired():
    alarms = COUNTS.trigger(AfterWatermark(early=AfterCount(1))).having(pc.field("n") > 5)
    fired = alarms.why(SCRIPT, key="a", window=0)
    assert "It fired 1 time, the last time EARLY, and .having(...) may have filtered out its panes; no row has arrived since its last " "pane." in fired  # fmt: skip
    expired = alarms.why(SCRIPT.advance_watermark_to(60), key="a", window=0)
    assert "If it had rows, it fired, and .having(...) may have filtered out its panes (only panes with (n > 5) are emitted" in expired  # fmt: skip
    assert "then their last panes were emitted, unless .having(...) filtered them out, and" in alarms.why(
        SCRIPT, key="z"
    )


def test_no_row_has_come_since_the_last_pane():
    counted = COUNTS.trigger(AfterWatermark(early=AfterCount(2)))
    assert "It has emitted 1 pane, the last one EARLY; no row has arrived since its last pane." in counted.why(
        SCRIPT, key="a", window=0
    )
    assert "; 1 row is in no pane yet." in counted.why(SCRIPT, key="b", window=60)


def test_a_window_may_be_named_by_a_time_as_text():
    by_number = COUNTS.why(SCRIPT, key="a", window=0)
    for text in ("1970-01-01T00:00Z", "1970-01-01 00:00:00", "1970-01-01T02:00+02:00"):
        assert COUNTS.why(SCRIPT, key="a", window=text) == by_number
    assert COUNTS.why(SCRIPT, key="a", window=("1970-01-01T00:00Z", "1970-01-01T00:01Z")) == by_number


def test_windows_of_sessions_and_of_rows_are_found_by_a_time_or_a_number_in_them():
    sessions = SOURCE.window(bm.Sessions(10)).accumulate(n=Count())
    assert "[1970-01-01 00:00:05, 00:00:15) of k='a' is open" in sessions.why(SCRIPT.advance_watermark_to(30), key="b", window=72).replace("k='b'", "k='a'").replace("00:01:10, 00:01:20", "00:00:05, 00:00:15")  # fmt: skip
    assert "No window of key k='a' that contains 1970-01-01 00:03:00 is stored" in sessions.why(
        SCRIPT, key="a", window=180
    )
    counted = SOURCE.window(bm.CountWindows(5)).accumulate(n=Count())
    said = counted.why(SCRIPT, key="a", window=1)
    assert "The window [0, 5) of k='a' is open." in said
    assert "It waits for it to be full: 3 more rows." in said


def test_a_key_may_name_the_windowing():
    both = SOURCE.window({"minute": bm.FixedWindows(60), "visit": bm.Sessions(10)}).accumulate(n=Count())
    assert both.why(SCRIPT, key={"k": "b"}, window=72).count("is open") == 2
    visit = both.why(SCRIPT, key={"k": "b", "windowing": "visit"}, window=72)
    assert visit.startswith("The window [1970-01-01 00:01:10, 00:01:20) of k='b', windowing='visit' is open.")
    gone = both.why(SCRIPT, key={"k": "a", "windowing": "visit"}, window=6)
    assert gone.startswith(
        "In the windowing 'visit': No window of key k='a', windowing='visit' that contains 1970-01-01 00:00:06 is stored"
    )


def test_a_row_without_event_time_is_dropped_once_under_several_windowings():
    both = SOURCE.window({"minute": bm.FixedWindows(60), "visit": bm.Sessions(10)}).accumulate(n=Count())
    script = TestStream().add([{**A, "ts": None}, {**A, "ts": 5}]).advance_watermark_to(200).add([{**A, "ts": 6}])
    assert "Rows dropped by this stage so far: 2 as expired, 1 as null_event_time." in both.why(script, key={"k": "a"})


def test_several_windows_get_a_paragraph_each_and_the_rest_is_counted():
    rows = [{"k": "a", "v": 1, "ts": 60 * i} for i in range(6)]
    said = COUNTS.why(TestStream().add(rows), key="a")
    assert said.count("is open.") == 3
    assert said.endswith("3 more windows; narrow it down with why(key=..., window=...).")


def test_the_input_that_holds_the_watermark_back_is_named():
    payments = SOURCE.event_time("ts", bm.BoundedOutOfOrderness(10))
    both = bm.merge(orders=SOURCE, payments=payments).window(bm.FixedWindows(60)).accumulate(n=Count())
    script = TestStream().add([{**A, "ts": 800}], input="orders").add([{**A, "ts": 40}], input="payments")
    held = both.why(
        script.advance_watermark_to(30, input="payments").advance_watermark_to(800, input="orders"), key="a", window=0
    )
    assert (
        "Input `payments` holds it back: its latest row is at 1970-01-01 00:00:40, 12 minutes 40 seconds behind that of "
        "`orders`, and its watermark is 10 seconds behind its rows."
    ) in held
    none = both.why(script.advance_watermark_to(800, input="orders"), key="a", window=0)
    assert "There is no watermark yet. Input `payments` holds it back: its latest row is at" in none


def test_the_next_batch_and_the_reasons_that_hold_a_fired_pane_back():
    held = COUNTS.suppress(bm.UntilWindowCloses(), name="final")
    ((bound, stores),) = stages_after(held.flow.completed, SCRIPT.events)
    facts = stage_facts(dict(enumerate(stores)), descriptions(bound)[0], bound.operator)
    windows = rows_of(facts.asked(EVERY).read(stores[0]))
    question = read_question_of(facts, "a")
    said = why(facts, question, windows, QueryFacts(7, 0, 90_000_000, is_last=True))
    assert "advance it to 1970-01-01 00:01:30, from the next batch on: that is past this window's end" in said
    assert "Its panes are buffered by the suppress 'final'" in said


def read_question_of(facts, key):
    from beamish.checkpoint.question import read_question

    return read_question(facts, "why", key, None)


@attrs.frozen
class Longest(Accumulation):
    column: str
    result_type = "bigint"

    def create(self):
        return 0

    def add(self, accumulator, value):
        return max(accumulator, value)

    def merge(self, a, b):
        return max(a, b)

    def extract(self, accumulator):
        return accumulator


def test_unknown_facts_of_a_checkpoint_are_listed():
    own = COUNTS.trigger(OnceTen(), allow_data_loss=True).accumulate(longest=Longest("v"))
    ((bound, stores),) = stages_after(own.flow.completed, SCRIPT.events)
    notes = dict(enumerate(stores))
    facts = stage_facts(notes)
    assert facts.plan is not None
    assert facts.plan.value_schema.names == ["n", "total"]
    assert [sentence.partition(":")[0] for sentence in facts.unknown] == [
        "the trigger OnceTen()",
        "the values of longest=Longest(column='v')",
        "the checkpoint was written by a version of beamish that did not store descriptions",
    ]
    (row, *_) = rows_of(facts.asked(EVERY).read(stores[0]))
    assert row["values"] == {"n": 2, "total": 2}
    assert row["waits_for"] is None
    known = stage_facts(notes, {}, bound.operator)
    assert {"longest"} < set(known.plan.value_schema.names)


@pytest.mark.parametrize("path", sorted(KEPT.glob("*.json")), ids=lambda path: path.stem)
def test_kept_windows_of_old_state_are_the_same_without_the_pipeline(path):
    shards = [{entry: b64decode(value) for entry, value in one.items()} for one in json.loads(path.read_text("utf-8"))]
    bound = bound_as_begun(CASES[path.stem])
    for flow, own in zip(bound.flows, (shards[i : i + 2] for i in range(0, len(shards), 2)), strict=False):
        stores = [DictStore(store) for store in own]
        facts = stage_facts(dict(enumerate(stores)))
        if facts.plan is None:
            continue
        names = facts.plan.value_schema.names
        for store in stores:
            with_it = flow.operator.answer(EVERY).read(store).to_pylist()
            found = facts.asked(EVERY).read(store).to_pylist()
            assert len(with_it) == len(found)
            for known, row in zip(with_it, found, strict=True):
                values, of_it = row.pop("values", None), known.pop("values")
                assert known == {name: row[name] for name in known}
                assert (values is None) >= (of_it is None)
                assert all((values or of_it or {})[name] == of_it[name] for name in names if of_it is not None)


def bound_as_begun(case):
    """The case's flow, bound to the columns of its script."""
    flow = case.pipeline.flow.completed
    return flow.bind(script_rows(flow, case.script.events, None).schemas, shards=2)


def test_a_question_is_read_from_texts():
    ((bound, stores),) = stages_after(COUNTS.flow.completed, SCRIPT.events)
    facts = stage_facts(dict(enumerate(stores)), {}, bound.operator)
    key, window = read_texts(facts.plan, facts.key_schema, ["k=a"], "1970-01-01T00:01")
    assert key == {"k": "a"}
    assert window.timestamp() == 60
    for keys, time in ((["z=1"], None), (["a"], None), ([], "noon")):
        with pytest.raises(bm.OptionError):
            read_texts(facts.plan, facts.key_schema, keys, time)


def test_the_stage_that_is_asked_about():
    only_second = {1: [Keeps.HELD], 2: [Keeps.WINDOWS]}
    assert stage_meant("why", None, only_second, Keeps.WINDOWS) == 2
    with pytest.raises(bm.PipelineError, match="stages with windows are 1, 2"):
        stage_meant("why", None, {1: [Keeps.WINDOWS], 2: [Keeps.WINDOWS]}, Keeps.WINDOWS)
    with pytest.raises(bm.PipelineError, match="no stage has windows"):
        stage_meant("why", None, {}, Keeps.WINDOWS)


@pytest.mark.parametrize("name", CASES)
def test_every_kind_of_stage_reports_its_progress(name):
    case = CASES[name]
    stages = list(stages_after(case.pipeline.flow.completed, case.before.events))
    abouts = json.loads(json.dumps(descriptions(stages[-1][0])))
    for about, (_, stores) in zip(abouts, stages, strict=True):
        facts = stage_facts(dict(enumerate(stores)), about)
        said = dict(stage_lines(facts, 0, 0, ()))
        assert said["watermark"].startswith("at 1970-01-01 00:00:") or facts.inputs
        assert "shards" in said["state"]
        assert [one.name for one in facts.inputs] == [one["spec"].get("name") for one in about["inputs"]]
        assert "describe" not in " ".join(facts.unknown)
