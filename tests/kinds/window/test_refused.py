"""Windows: options that are wrong, or do not go together, are refused, with the value, the rule and the fix."""

import pyarrow as pa
import pytest

import beamish as bm
from beamish.accumulations import (
    Accumulation,
    Count,
    Fold,
    FullOuterJoin,
    InnerJoin,
    LeftOuterJoin,
    Max,
    Mean,
    Quantiles,
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
)
from tests.own.accumulations import Range
from tests.own.partial import NoResultType, OwnMergingWindows, OwnTrigger, OwnWindows, Twice
from tests.own.windows import PlainWindows
from tests.refused import MEETING, ONE_ROW, PLAIN, ROW, START, cases, refused

OF_K = (
    START.key_by("k").window(bm.FixedWindows(1)).trigger(Always()).accumulating_and_retracting().accumulate(n=Count())
)

ANCHORED = START.window(bm.AnchoredWindows(5)).allowed_lateness(10).accumulating().accumulate(n=Count())


AT_ONCE = {
    "negative lateness": lambda: START.allowed_lateness("-1 hour"),
    "mode text": lambda: START.accumulation_mode("discarding"),
    "on_error": lambda: START.on_error("ignore"),
    "on_error, none": lambda: START.on_error(None),
    "on-time text": lambda: START.on_time_behavior("x"),
    "closing text": lambda: START.closing_behavior("x"),
    "combiner text": lambda: START.timestamp_combiner("x"),
    "retract_merged text": lambda: START.retract_merged("now"),
    "a watermark per key that leads": lambda: PLAIN.watermark_per_key(-1, at_most=60),
    "a watermark per key without a bound": lambda: PLAIN.watermark_per_key(5, at_most=None),
    "a watermark per key over a stage": lambda: PLAIN.then(
        bm.Pipeline()
        .key_by("team")
        .window(bm.FixedWindows("1 hour"))
        .watermark_per_key(5, at_most=60)
        .accumulate(n=Count())
    ),
    "a watermark per key and a suppress": lambda: PLAIN.watermark_per_key(5, at_most=60).suppress(
        bm.UntilWindowCloses()
    ),
    "a watermark per key of versions": lambda: START.key_by("team").versions("1 day").watermark_per_key(5, at_most=60),
    "anchored windows over a stage that retracts": lambda: OF_K.then(
        bm.Pipeline().window(bm.AnchoredWindows(5)).accumulate(m=Count())
    ),
}


# Pipelines whose parts are fine but do not go together: refused when run, applied or explained.
TOGETHER = {
    "nothing said": bm.Pipeline(),
    "anchored windows of a merge": bm.merge(a=START.key_by("k"), b=START.key_by("k"))
    .window(bm.AnchoredWindows(5))
    .accumulate(n=Count()),
    "anchored windows, several": START.window({"a": bm.AnchoredWindows(5), "b": bm.FixedWindows(5)}).accumulate(
        n=Count()
    ),
    "anchored windows, duplicates": START.window(bm.AnchoredWindows(5)).deduplicate("id").accumulate(n=Count()),
    "anchored windows, retention": START.window(bm.AnchoredWindows(5)).retain(windows=2).accumulate(n=Count()),
    "anchored windows, errors": START.window(bm.AnchoredWindows(5)).on_error("drop").accumulate(n=Count()),
    "a watermark per key without keys": PLAIN.key_by().watermark_per_key(5, at_most=60),
    "a watermark per key of a merge": MEETING.window(bm.FixedWindows(1))
    .watermark_per_key(5, at_most=60)
    .accumulate(n=Count()),
    "a watermark per key in count windows": PLAIN.window(bm.CountWindows(3)).watermark_per_key(5, at_most=60),
    "a watermark per key in the global window": PLAIN.window(bm.GlobalWindow())
    .trigger(Always())
    .discarding()
    .watermark_per_key(5, at_most=60),
    "a watermark per key by the clock": PLAIN.event_time("ts", bm.ProcessingTimeLag(0)).watermark_per_key(
        5, at_most=60
    ),
    "a watermark per key of rolling spans": PLAIN.window(
        bm.Rolling({"5m": "5 minutes"}, step="1 minute")
    ).watermark_per_key(5, at_most=60),
    "no window": START.accumulate(n=Count()),
    "no accumulation": START.window(bm.GlobalWindow()),
    "no mode": PLAIN.trigger(Always()),
    "no mode, lateness": PLAIN.allowed_lateness(5),
    "loses rows: count": PLAIN.trigger(AfterCount(1)).discarding(),
    "loses rows: value": PLAIN.trigger(AfterValue("plays", at_least=2)).discarding(),
    "value of no accumulation": PLAIN.trigger(Repeatedly(AfterValue("n", at_least=2))).discarding(),
    "loses rows: any": PLAIN.trigger(AfterAny(Always())).discarding(),
    "loses rows: all": PLAIN.trigger(AfterAll(Always())).discarding(),
    "loses rows: delay": PLAIN.trigger(AfterProcessingTime(1)).discarding(),
    "loses rows: each": PLAIN.trigger(AfterEach(AfterCount(3), AfterCount(1))).discarding(),
    "loses late rows: any": PLAIN.trigger(AfterAny(AfterWatermark(), Never())).allowed_lateness(1).discarding(),
    "loses rows: finally": PLAIN.trigger(OrFinally(Always(), AfterCount(9))).discarding(),
    "loses rows: own": PLAIN.trigger(OwnTrigger()).discarding(),
    "loses late rows": PLAIN.trigger(AfterWatermark(early=Always())).discarding().allowed_lateness(5),
    "only_updated, discarding": PLAIN.discarding().only_updated_panes(),
    "retract_merged, discarding": PLAIN.discarding().retract_merged(bm.AT_MERGE),
    "retract_merged, fixed windows": PLAIN.accumulating_and_retracting().retract_merged(bm.WITH_NEXT_PANE),
    "a value called window": PLAIN.accumulate(window=Count()),
    "a value called like the key": PLAIN.accumulate(team=Count()),
    "a count within": MEETING.window(bm.Within(1, of="a")).accumulate(n=Count()),
    "within keeps the other side": MEETING.window(bm.Within(1, of="a")).accumulate(n=LeftOuterJoin("a", "b")),
    "full within, retain": MEETING.window(bm.Within(1, of="a")).retain(windows=3).accumulate(n=FullOuterJoin("a", "b")),
    "full within, keep_rows": MEETING.window(bm.Within(1, of="a"))
    .discarding()
    .accumulate(n=FullOuterJoin("a", "b", once=True, keep_rows={"a": 3})),
    "within among windowings": MEETING.window({"x": bm.Within(1, of="a"), "y": bm.FixedWindows(1)}).accumulate(
        n=InnerJoin("a", "b")
    ),
    **{
        f"once, {mode.value}": MEETING.window(bm.FixedWindows(1))
        .accumulation_mode(mode)
        .accumulate(n=InnerJoin("a", "b", once=True))
        for mode in (bm.AccumulationMode.ACCUMULATING, bm.AccumulationMode.ACCUMULATING_AND_RETRACTING)
    },
    "once, outer, sliding windows": MEETING.window(bm.SlidingWindows(2, 1))
    .discarding()
    .accumulate(n=FullOuterJoin("a", "b", once=True)),
    "once, outer, within": MEETING.window(bm.Within(1, of="a"))
    .discarding()
    .accumulate(n=LeftOuterJoin("a", "b", once=True)),
    "once, outer, among windowings": MEETING.window({"x": bm.SlidingWindows(2, 1), "y": bm.FixedWindows(1)})
    .discarding()
    .accumulate(n=FullOuterJoin("a", "b", once=True)),
    "once, outer, own windows": MEETING.window(OwnWindows())
    .discarding()
    .accumulate(n=FullOuterJoin("a", "b", once=True)),
    "once, outer, windows that are assigned otherwise": MEETING.window(Twice(9))
    .discarding()
    .accumulate(n=FullOuterJoin("a", "b", once=True)),
    "once, own windows that merge": MEETING.window(OwnMergingWindows())
    .discarding()
    .accumulate(n=InnerJoin("a", "b", once=True)),
    "once over retracted rows": bm.merge(a=OF_K, b=OF_K).accumulate(n=InnerJoin("a", "b", once=True)),
    "no column": PLAIN.accumulate(n=Range(())),
    "columns 3": PLAIN.accumulate(n=Range(("a", 3))),
    "column 3": PLAIN.accumulate(n=Range(3)),
    "columns ''": PLAIN.accumulate(n=Range(("a", ""))),
    "no result type": PLAIN.accumulate(n=NoResultType()),
    "fold of sessions without merge": PLAIN.window(bm.Sessions(1)).accumulate(n=Fold(0, max, "score")),
}


INPUTS = {
    "full join of the 65th input": lambda: (
        bm.merge(**{f"i{n}": START.key_by("k") for n in range(65)})
        .window(bm.FixedWindows(1))
        .accumulate(n=FullOuterJoin("i0", "i64"))
    ),
    "within, alone": lambda: PLAIN.window(bm.Within(1, of="a")),
    "within": lambda: MEETING.window(bm.Within(1, of="c")),
    "a join": lambda: MEETING.accumulate(j=InnerJoin("a", "c")),
    "a join, alone": lambda: PLAIN.accumulate(j=InnerJoin("a", "b")),
    "a value": lambda: MEETING.accumulate(j=Sum("x").of("c")),
}


# Errors that depend on the columns.
COLUMNS = {
    "key missing": PLAIN.key_by("player"),
    "value missing": PLAIN.accumulate(s=Sum("points")),
    "event time missing": PLAIN.event_time("when", bm.BoundedOutOfOrderness(0)),
    "key is a list": PLAIN.key_by("tags"),
    "value that is no number": PLAIN.accumulate(m=Max("name"))
    .trigger(Repeatedly(AfterValue("m", at_least=2)))
    .discarding(),
    "sum of text": PLAIN.accumulate(s=Sum("name")),
    "mean of text": PLAIN.accumulate(s=Mean("name")),
    "stddev of a list": PLAIN.accumulate(s=StdDev("tags")),
    "quantiles of text": PLAIN.accumulate(s=Quantiles("name")),
}


@cases(AT_ONCE)
def test_an_invalid_option_is_rejected_at_its_call(name):
    refused(__file__, name, AT_ONCE[name])


@cases(TOGETHER)
def test_incompatible_options_are_rejected_before_anything_runs(name):
    refused(__file__, name, TOGETHER[name].explain)
    refused(__file__, name, lambda: TOGETHER[name].run(TestStream()))


@cases(INPUTS)
def test_an_unknown_input_is_rejected_at_its_call(name):
    refused(__file__, name, INPUTS[name])


@cases(COLUMNS)
def test_a_missing_or_mistyped_column_is_rejected(name):
    refused(__file__, name, lambda: COLUMNS[name].run(ONE_ROW))


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
    refused(__file__, f"a checkpoint of plain classes, now {second}", lambda: opened(**second))


@pytest.mark.parametrize(
    ("what", "now"),
    [
        ("lateness", lambda: ANCHORED.allowed_lateness(20)),
        ("an added accumulation", lambda: ANCHORED.accumulate(m=Max("v"))),
        ("another difference", lambda: ANCHORED.window(bm.AnchoredWindows(6))),
    ],
)
def test_a_checkpoint_of_anchored_windows_with_other_options_is_rejected(what, now):
    columns = {None: pa.schema([("ts", pa.timestamp("us")), ("v", pa.int64())])}

    def opened(pipeline, store):
        return pipeline.flow.bind(columns, shards=1).operator.open(store)

    store = DictStore()
    opened(ANCHORED, store).step([None], None, [])
    opened(ANCHORED.trigger(Always()), DictStore(store))
    refused(__file__, f"a checkpoint of anchored windows, {what}", lambda: opened(now(), store))


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
