"""Windows: options that are wrong, or do not go together, are refused, with the value, the rule and the fix."""

import attrs
import pyarrow as pa
import pytest

import beamish as bm
from beamish.accumulations import (
    Accumulation,
    Count,
    Fold,
    FullOuterJoin,
    InnerJoin,
    Max,
    Mean,
    Quantiles,
    RightOuterJoin,
    StdDev,
    Sum,
)
from beamish.contract.stored import DictStore
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
    Default,
    Never,
    OrFinally,
    Repeatedly,
    Trigger,
)
from tests.own.accumulations import Range
from tests.own.windows import PlainWindows
from tests.refused import MEETING, ONE_ROW, PLAIN, ROW, START, cases, refused

OF_K = (
    START.key_by("k").window(bm.FixedWindows(1)).trigger(Always()).accumulating_and_retracting().accumulate(n=Count())
)


@attrs.frozen
class NoResultType(Accumulation):
    column: str = "score"

    def create(self):
        return 0

    def add(self, accumulator, value):
        return accumulator + value

    def merge(self, a, b):
        return a + b

    def extract(self, accumulator):
        return accumulator


@attrs.frozen
class OwnTrigger(Trigger):
    def should_fire(self, state, context):
        return True


@attrs.frozen
class OwnWindows(bm.WindowOption):
    def assign(self, timestamp_us):
        yield timestamp_us, timestamp_us + 1


@attrs.frozen
class OwnMergingWindows(OwnWindows):
    merging = True


@attrs.frozen
class Twice(bm.FixedWindows):
    def assign(self, timestamp_us):
        yield timestamp_us, timestamp_us + 1
        yield timestamp_us, timestamp_us + 2


# The call, and fragments of the message: value, rule, fix.
AT_ONCE = [
    ("negative lateness", lambda: START.allowed_lateness("-1 hour"), ["'-1 hour'", "not be negative"]),
    ("mode text", lambda: START.accumulation_mode("discarding"), ["'discarding'", "AccumulationMode.DISCARDING"]),
    ("on_error", lambda: START.on_error("ignore"), ["on_error('ignore')", "'fail'", "'drop'"]),
    ("on_error, none", lambda: START.on_error(None), ["on_error(None)", "'fail'", "'drop'"]),
    ("on-time text", lambda: START.on_time_behavior("x"), ["'x'", "OnTimeBehavior"]),
    ("closing text", lambda: START.closing_behavior("x"), ["'x'", "ClosingBehavior"]),
    ("combiner text", lambda: START.timestamp_combiner("x"), ["'x'", "TimestampCombiner"]),
    ("retract_merged text", lambda: START.retract_merged("now"), ["'now'", "bm.AT_MERGE"]),
]


# Pipelines whose parts are fine but do not go together: refused when run, applied or explained.
TOGETHER = [
    ("nothing said", bm.Pipeline(), ["no event time", ".event_time("]),
    ("no window", START.accumulate(n=Count()), ["no window", "bm.GlobalWindow()"]),
    ("no accumulation", START.window(bm.GlobalWindow()), ["nothing to accumulate", "Count()"]),
    ("no mode", PLAIN.trigger(Always()), ["Always()", ".discarding()"]),
    ("no mode, lateness", PLAIN.allowed_lateness(5), ["5 seconds", ".accumulating()"]),
    ("loses rows: count", PLAIN.trigger(AfterCount(1)).discarding(), ["AfterCount(n=1)", "Repeatedly(...)"]),
    ("loses rows: value", PLAIN.trigger(AfterValue("plays", at_least=2)).discarding(), ["AfterValue(", "may finish"]),
    (
        "value of no accumulation",
        PLAIN.trigger(Repeatedly(AfterValue("n", at_least=2))).discarding(),
        ["reads the value of 'n'", "the accumulations are ['plays']"],
    ),
    ("loses rows: any", PLAIN.trigger(AfterAny(Always())).discarding(), ["may finish", "allow_data_loss=True"]),
    ("loses rows: all", PLAIN.trigger(AfterAll(Always())).discarding(), ["may finish"]),
    ("loses rows: delay", PLAIN.trigger(AfterProcessingTime(1)).discarding(), ["may finish"]),
    ("loses rows: each", PLAIN.trigger(AfterEach(AfterCount(3), AfterCount(1))).discarding(), ["may finish"]),
    (
        "loses late rows: any",
        PLAIN.trigger(AfterAny(AfterWatermark(), Never())).allowed_lateness(1).discarding(),
        ["may finish"],
    ),
    ("loses rows: finally", PLAIN.trigger(OrFinally(Always(), AfterCount(9))).discarding(), ["may finish"]),
    ("loses rows: own", PLAIN.trigger(OwnTrigger()).discarding(), ["may finish"]),
    (
        "loses late rows",
        PLAIN.trigger(AfterWatermark(early=Always())).discarding().allowed_lateness(5),
        ["a late trigger", "5 seconds"],
    ),
    ("only_updated, discarding", PLAIN.discarding().only_updated_panes(), ["only_updated_panes", "accumulating()"]),
    ("retract_merged, discarding", PLAIN.discarding().retract_merged(bm.AT_MERGE), ["accumulating_and_retracting()"]),
    (
        "retract_merged, fixed windows",
        PLAIN.accumulating_and_retracting().retract_merged(bm.WITH_NEXT_PANE),
        ["FixedWindows", "bm.Sessions"],
    ),
    (
        "a value called window",
        PLAIN.accumulate(window=Count()),
        ["'window'", "the output has a column of this name", "choose another"],
    ),
    (
        "a value called like the key",
        PLAIN.accumulate(team=Count()),
        ["accumulate(team=...)", "is a key column too", "choose another"],
    ),
    (
        "a count within",
        MEETING.window(bm.Within(1, of="a")).accumulate(n=Count()),
        ["accumulate(n=Count(column=None)) in Within(", "accumulate a join of a", "InnerJoin('a', 'b')"],
    ),
    (
        "within keeps both sides",
        MEETING.window(bm.Within(1, of="a")).accumulate(n=FullOuterJoin("a", "b")),
        ["a row of a is in two windows", "window(Within(before='0 seconds', of='b', after='1 second'))"],
    ),
    (
        "within among windowings",
        MEETING.window({"x": bm.Within(1, of="a"), "y": bm.FixedWindows(1)}).accumulate(n=InnerJoin("a", "b")),
        ["cannot be one of several windowings", "merge of its own"],
    ),
    *[
        (
            f"once, {mode.value}",
            MEETING.window(bm.FixedWindows(1)).accumulation_mode(mode).accumulate(n=InnerJoin("a", "b", once=True)),
            ["InnerJoin(left='a', right='b', once=True)", repr(mode), "use .discarding()"],
        )
        for mode in (bm.AccumulationMode.ACCUMULATING, bm.AccumulationMode.ACCUMULATING_AND_RETRACTING)
    ],
    (
        "once, outer, sliding windows",
        MEETING.window(bm.SlidingWindows(2, 1)).discarding().accumulate(n=FullOuterJoin("a", "b", once=True)),
        ["FullOuterJoin(", "SlidingWindows(", "several windows", "use InnerJoin, or windows that do not overlap"],
    ),
    (
        "once, outer, within",
        MEETING.window(bm.Within(1, of="a")).discarding().accumulate(n=RightOuterJoin("a", "b", once=True)),
        ["RightOuterJoin(", "Within(", "several windows", "use InnerJoin"],
    ),
    (
        "once, outer, among windowings",
        MEETING.window({"x": bm.SlidingWindows(2, 1), "y": bm.FixedWindows(1)})
        .discarding()
        .accumulate(n=FullOuterJoin("a", "b", once=True)),
        ["windowing 'x'", "FullOuterJoin(", "several windows"],
    ),
    (
        "once, outer, own windows",
        MEETING.window(OwnWindows()).discarding().accumulate(n=FullOuterJoin("a", "b", once=True)),
        ["several windows", "set overlaps = False in OwnWindows"],
    ),
    (
        "once, outer, windows that are assigned otherwise",
        MEETING.window(Twice(9)).discarding().accumulate(n=FullOuterJoin("a", "b", once=True)),
        ["several windows", "set overlaps = False in Twice"],
    ),
    (
        "once, own windows that merge",
        MEETING.window(OwnMergingWindows()).discarding().accumulate(n=InnerJoin("a", "b", once=True)),
        ["several windows that merge", "set overlaps = False in OwnMergingWindows"],
    ),
    (
        "once over retracted rows",
        bm.merge(a=OF_K, b=OF_K).accumulate(n=InnerJoin("a", "b", once=True)),
        ["InnerJoin(", "over rows that are retracted", "leave once=True out"],
    ),
    ("no column", PLAIN.accumulate(n=Range(())), ["Range(column=())", "column is ()", "None for the whole row"]),
    ("columns 3", PLAIN.accumulate(n=Range(("a", 3))), ["column is ('a', 3)", "several names"]),
    ("column 3", PLAIN.accumulate(n=Range(3)), ["Range(column=3)", "column is 3", "name of a column"]),
    ("columns ''", PLAIN.accumulate(n=Range(("a", ""))), ["column is ('a', '')", "several names"]),
    ("no result type", PLAIN.accumulate(n=NoResultType()), ["NoResultType", "result_type"]),
    (
        "fold of sessions without merge",
        PLAIN.window(bm.Sessions(1)).accumulate(n=Fold(0, max, "score")),
        ["Fold", "merge="],
    ),
]


# Errors that depend on the columns.
COLUMNS = [
    ("key missing", PLAIN.key_by("player"), ["key_by('player')", "'team'"]),
    ("value missing", PLAIN.accumulate(s=Sum("points")), ["Sum", "'points'", "'score'"]),
    ("event time missing", PLAIN.event_time("when", bm.BoundedOutOfOrderness(0)), ["'when'", "'ts'"]),
    ("key is a list", PLAIN.key_by("tags"), ["key_by('tags')", "cast"]),
    (
        "value that is no number",
        PLAIN.accumulate(m=Max("name")).trigger(Repeatedly(AfterValue("m", at_least=2))).discarding(),
        ["m=Max(column='name')", "string", "must be a number"],
    ),
    ("sum of text", PLAIN.accumulate(s=Sum("name")), ["Sum", "name", "string"]),
    ("mean of text", PLAIN.accumulate(s=Mean("name")), ["Mean", "string"]),
    ("stddev of a list", PLAIN.accumulate(s=StdDev("tags")), ["StdDev", "list"]),
    ("quantiles of text", PLAIN.accumulate(s=Quantiles("name")), ["Quantiles", "string"]),
]


@cases(AT_ONCE, "call", "fragments")
def test_an_invalid_option_is_rejected_at_its_call(call, fragments):
    refused((bm.OptionError, bm.ScriptError), call, fragments)


@cases(TOGETHER, "pipeline", "fragments")
def test_incompatible_options_are_rejected_before_anything_runs(pipeline, fragments):
    refused(bm.PipelineError, pipeline.explain, fragments)
    refused(bm.PipelineError, lambda: pipeline.run(TestStream()), fragments)


@cases(
    [
        ("within, alone", lambda: PLAIN.window(bm.Within(1, of="a")), ["no input 'a'", "one input", "bm.merge(...)"]),
        ("within", lambda: MEETING.window(bm.Within(1, of="c")), ["there is no input 'c'", "the merge has a, b"]),
        (
            "a join",
            lambda: MEETING.accumulate(j=InnerJoin("a", "c")),
            ["InnerJoin(left='a', right='c')", "the merge has a, b"],
        ),
        ("a join, alone", lambda: PLAIN.accumulate(j=InnerJoin("a", "b")), ["one unnamed input; bm.merge("]),
        ("a value", lambda: MEETING.accumulate(j=Sum("x").of("c")), ["there is no input 'c'; the merge has a, b"]),
    ],
    "call",
    "fragments",
)
def test_an_unknown_input_is_rejected_at_its_call(call, fragments):
    refused(bm.PipelineError, call, fragments)


@cases(COLUMNS, "pipeline", "fragments")
def test_a_missing_or_mistyped_column_is_rejected(pipeline, fragments):
    refused(bm.ColumnError, lambda: pipeline.run(ONE_ROW), fragments)


class Times(Accumulation):
    column = "score"
    result_type = "bigint"

    def __init__(self, by):
        self.by = by

    def create(self):
        return 0

    def add(self, accumulator, value):
        return accumulator + value * self.by

    def merge(self, a, b):
        return a + b

    def extract(self, accumulator):
        return accumulator


@pytest.mark.parametrize("second", [{"by": 3, "seconds": 20}, {"by": 2, "seconds": 30}], ids=repr)
def test_options_of_plain_classes_go_on_from_a_checkpoint_unless_an_argument_changed(second):
    store = DictStore()
    columns = {None: pa.schema([("ts", pa.timestamp("us")), ("score", pa.int64())])}

    def opened(by, seconds):
        pipeline = START.window(PlainWindows(seconds)).accumulate(n=Times(by))
        return pipeline.flow.bind(columns, shards=1).operator.open(store)

    opened(2, 20).step([None], None, [])
    opened(2, 20).step([None], None, [])
    refused(bm.StateError, lambda: opened(**second), ["now has Times(by=3)" if second["by"] == 3 else "size=30000000"])


def test_a_trigger_that_cannot_lose_rows_is_accepted():
    harmless = [
        Default(),
        Never(),
        Always(),
        Repeatedly(AfterCount(2)),
        AfterWatermark(),
        AfterEach(AfterCount(2), Always()),
        AfterEach(Repeatedly(AfterCount(3)), AfterCount(2)),
        AfterEach(AfterCount(3), AfterWatermark(), AfterCount(2)),
        AfterAny(AfterWatermark(), Never()),
        AfterAll(AfterWatermark(), AfterCount(3)),
        OrFinally(Always(), AfterWatermark(late=Always())),
        OrFinally(Always(), AfterAll(AfterWatermark(), AfterCount(3))),
        OrFinally(Always(), AfterWatermark()),
        OrFinally(Always(), Never()),
    ]
    for trigger in harmless:
        assert PLAIN.trigger(trigger).discarding().run(ONE_ROW) is not None


def test_data_loss_is_accepted_when_allowed():
    pipeline = PLAIN.trigger(AfterCount(1), allow_data_loss=True).discarding().with_dropped()
    panes = pipeline.run(ONE_ROW.add([ROW]))
    assert [pane.kind for pane in panes] == ["PANE", "DROPPED"]
    assert panes[1].reason == "window_finished"
