"""Advice leads on: each message that says how to mend a pipeline has here the mended one, which is accepted."""

import re

import attrs
import pyarrow.compute as pc
import pytest

import beamish as bm
from beamish import triggers as t
from beamish.accumulations import CoGroup, Count, Fold, FullOuterJoin, InnerJoin, Max, Sum
from beamish.testing import TestStream
from beamish.triggers import AfterAny, AfterCount, AfterValue, AfterWatermark, Always, Never, Repeatedly
from tests import refused
from tests.at_rest import test_refused as at_rest
from tests.forms import test_refused as forms
from tests.kinds.as_of import test_refused as as_of
from tests.kinds.deduplicate import test_refused as deduplicate
from tests.kinds.refine import test_refused as refine
from tests.kinds.suppress import test_refused as suppress
from tests.kinds.versions import test_refused as versions
from tests.kinds.window import test_refused as windows
from tests.kinds.window import test_refused_windows_of_rows as windows_of_rows
from tests.pipeline import test_merge as merges
from tests.pipeline import test_refused as pipelines
from tests.pipeline.test_merge import BOTH, CLICKS, LAGGING, ORDER, SCRIPT
from tests.refused import (
    CHANGE,
    CHANGES,
    COUNTED,
    MEETING,
    ONE_CHANGE,
    ONE_ORDER,
    ONE_ROW,
    ORDERS,
    PLAIN,
    RATES,
    ROW,
    START,
    TIMELESS,
    joined,
)
from tests.transcripts.reading import transcripts

ADVICE = re.compile(
    r"[:;,] (?:or |and |so |in place |of \w+ )*(?:say|use|give|wrap|leave|let|choose|rename|call|cast|key|make|name (?:each|its|one|all)|accumulate|filter|add|"
    r"deduplicate|look|join|number|advance|ask|take)\b|\b(?:Say|Give|such as) "
)
"""The form of a message with a fix."""
LATE = PLAIN.trigger(AfterWatermark(late=Always())).allowed_lateness(5)
UPDATING = LATE.accumulating_and_retracting()
LATEST = bm.TimestampCombiner.LATEST
TIMED = TIMELESS.timestamp_combiner(LATEST)
ROUNDS = bm.Pipeline().window(bm.GlobalWindow()).trigger(Always()).accumulating()
TENS = bm.FixedWindows(10)
NO_TIME = bm.Pipeline().key_by("cur").versions(5)
SOME = pc.field("score") > 3


@attrs.frozen
class OnlyOne(windows.OwnWindows):
    overlaps = False


@attrs.frozen
class OnlyOneMerging(windows.OwnMergingWindows):
    overlaps = False


@attrs.frozen
class OnlyOneFixed(windows.Twice):
    overlaps = False


@attrs.frozen
class WithResultType(windows.NoResultType):
    result_type = "bigint"


def in_time(**more):
    return bm.merge(a=START.key_by("team"), b=START.key_by("team")).window(bm.CountWindows(3, **more))


def of(join, window=TENS):
    return MEETING.window(window).discarding().accumulate(n=join)


def once(kind=FullOuterJoin):
    return kind("a", "b", once=True)


def losing(trigger, late=None):
    mended = [
        PLAIN.trigger(Repeatedly(trigger)).discarding(),
        PLAIN.trigger(trigger, allow_data_loss=True).discarding(),
    ]
    return mended if late is None else [PLAIN.trigger(late).discarding().allowed_lateness(5), mended[0]]


MODES = [PLAIN.trigger(Always()).discarding(), PLAIN.trigger(Always()).accumulating(), UPDATING]
CHANGELOG = bm.Pipeline().from_changelog().event_time("ts", bm.BoundedOutOfOrderness(0))
TABLE_OF_PANES = bm.Pipeline().key_by("team").versions(5)

# By the name of the refusal: pipelines that do what it says, or calls that run them.
FIXED = {
    "nothing said": [START.window(TENS).accumulate(n=Count())],
    "no window": [START.window(TENS).accumulate(n=Count()), START.window(bm.GlobalWindow()).accumulate(n=Count())],
    "no accumulation": [START.window(bm.GlobalWindow()).accumulate(count=Count())],
    "no mode": MODES,
    "no mode, lateness": [LATE.discarding(), LATE.accumulating(), UPDATING],
    "loses rows: count": losing(AfterCount(1)),
    "loses rows: value": losing(AfterValue("plays", at_least=2)),
    "loses rows: any": losing(AfterAny(Always())),
    "loses rows: all": losing(t.AfterAll(Always())),
    "loses rows: delay": losing(t.AfterProcessingTime(1)),
    "loses rows: each": losing(t.AfterEach(AfterCount(3), AfterCount(1))),
    "loses rows: finally": losing(t.OrFinally(Always(), AfterCount(9))),
    "loses rows: own": losing(windows.OwnTrigger()),
    "loses late rows: any": losing(AfterAny(AfterWatermark(), Never())),
    "loses late rows": losing(AfterWatermark(early=Always()), AfterWatermark(early=Always(), late=Always())),
    "only_updated, discarding": [
        PLAIN.accumulating().only_updated_panes(),
        PLAIN.accumulating_and_retracting().only_updated_panes(),
    ],
    "retract_merged, fixed windows": [
        PLAIN.accumulating_and_retracting(),
        PLAIN.window(bm.Sessions(1)).accumulating_and_retracting().retract_merged(bm.WITH_NEXT_PANE),
    ],
    "a value called window": [PLAIN.accumulate(windows=Count())],
    "a value called like the key": [PLAIN.accumulate(teams=Count())],
    "a computed column called like the key": [PLAIN.with_columns(teams=pc.field("plays"))],
    "deduplicate and where without windows": [
        START.deduplicate("id", within=1),
        START.deduplicate("id", within=1).then(
            ROUNDS.where(pc.field("id") > 1).timestamp_combiner(LATEST).accumulate(n=Count())
        ),
        START.deduplicate("id", within=1).where(pc.field("id") > 1).window(TENS).accumulate(n=Count()),
    ],
    "deduplicate without windows": [
        START.deduplicate("id", within="1 hour"),
        START.deduplicate("id").window(TENS).accumulate(n=Count()),
    ],
    "deduplicate of a changelog": [CHANGELOG.window(TENS).accumulating().accumulate(n=Count())],
    "deduplicate of a merge": [
        bm.merge(a=START.key_by("k").deduplicate("id", within="1 hour"), b=START.key_by("k"))
        .window(TENS)
        .accumulate(n=Count())
    ],
    "a count within": [of(InnerJoin("a", "b"), bm.Within(1, of="a"))],
    "within keeps both sides": [
        of(InnerJoin("a", "b"), bm.Within(1, of="a")),
        of(FullOuterJoin("a", "b")),
    ],
    "within among windowings": [of(InnerJoin("a", "b"), bm.Within(1, of="a")), of(InnerJoin("a", "b"), {"y": TENS})],
    "once, accumulating": [of(once(InnerJoin)), of(InnerJoin("a", "b")).accumulating()],
    "once, accumulating_and_retracting": [of(once(InnerJoin)), of(InnerJoin("a", "b")).accumulating_and_retracting()],
    "once, outer, sliding windows": [of(once(InnerJoin), bm.SlidingWindows(2, 1)), of(once())],
    "once, outer, within": [of(once(InnerJoin), bm.Within(1, of="a")), of(once())],
    "once, outer, among windowings": [of(once(InnerJoin), {"x": bm.SlidingWindows(2, 1)}), of(once(), {"x": TENS})],
    "once, outer, own windows": [of(once(InnerJoin), windows.OwnWindows()), of(once()), of(once(), OnlyOne())],
    "once, outer, windows that are assigned otherwise": [
        of(once(InnerJoin), windows.Twice(9)),
        of(once(), OnlyOneFixed(9)),
    ],
    "once, own windows that merge": [of(once(InnerJoin), OnlyOneMerging())],
    "once over retracted rows": [
        bm.merge(a=UPDATING, b=UPDATING).accumulate(n=InnerJoin("a", "b")),
        bm.merge(a=LATE.accumulating(), b=LATE.discarding()).accumulate(n=once(InnerJoin)),
    ],
    "no result type": [PLAIN.accumulate(n=WithResultType())],
    "fold of sessions without merge": [
        PLAIN.window(bm.Sessions(1)).accumulate(n=Fold(0, max, "score", merge=max)),
        PLAIN.accumulate(n=Fold(0, max, "score")),
    ],
    # columns
    "key is a list": [lambda: PLAIN.key_by("name").run(ONE_ROW)],
    "id is a list": [lambda: PLAIN.deduplicate("name").run(ONE_ROW)],
    "key of rows is a list": [lambda: START.key_by("name").deduplicate("score", within=1).run(ONE_ROW)],
    "where a number": [lambda: PLAIN.where(pc.field("score") > 5).run(ONE_ROW)],
    "value that is no number": [lambda: MODES[0].trigger(Repeatedly(AfterValue("plays", at_least=2))).run(ONE_ROW)],
    **{
        name: [lambda: PLAIN.accumulate(s=Sum("score")).run(ONE_ROW)]
        for name in ("sum of text", "mean of text", "stddev of a list", "quantiles of text")
    },
    # tables and joins
    "history is text": [CHANGES.versions("10 minutes"), CHANGES.versions("1 hour 30 minutes")],
    "lateness above the history": [CHANGES.versions("2 hours", allowed_lateness="2 hours")],
    "values is text": [CHANGES.versions(5, values=["rate"])],
    "values is a number": [CHANGES.versions(5, values=["rate"])],
    "value twice": [CHANGES.versions(5, values=["a"])],
    "once, suppressed": [
        of(once(InnerJoin)),
        MEETING.window(TENS).accumulate(n=InnerJoin("a", "b")),
    ],
    "grace above the history": [joined(rates=CHANGES.versions("2 days"), grace="2 days")],
    "wait_for is text": [joined(wait_for=bm.LEFT_INPUT), joined(wait_for=bm.BOTH_INPUTS)],
    "table without versions": [joined(rates=START.key_by("cur").versions("1 day"))],
    "table is a number": [joined(rates=START.key_by("cur").versions("1 day"))],
    "left is a number": [joined(bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness("30 seconds")))],
    "inputs without a name": [bm.as_of_join(orders=ORDERS, rates=RATES)],
    "merge without a name": [bm.merge(orders=ORDERS, clicks=ORDERS).window(TENS).accumulate(n=Count())],
    "where of a merge": [bm.merge(a=START.where(SOME), b=START).window(TENS).accumulate(n=Count())],
    "where of an as-of join": [
        joined(ORDERS.where(SOME)),
        joined(rates=CHANGES.where(SOME).versions("1 day")),
        joined().then(bm.Pipeline().where(SOME).window(TENS).accumulate(n=Count())),
    ],
    "having of versions": [RATES.then(ROUNDS.where(SOME).accumulate(n=Count()))],
    "having after a suppress": [UPDATING.having(pc.field("plays") > 3).suppress(bm.UntilWindowCloses())],
    "deduplicate twice": [
        PLAIN.deduplicate("a", "b"),
        START.deduplicate("a", within=9).then(bm.Pipeline().deduplicate("b", within=9)),
    ],
    "deduplicate of panes without timestamp": [
        TIMED.then(bm.Pipeline().deduplicate("plays", within=9)),
        PLAIN.then(bm.Pipeline().deduplicate("plays", within=9)),
    ],
    "deduplicate of what comes too late to be known": [
        LATE.accumulating().suppress(bm.UntilWindowCloses()).then(bm.Pipeline().deduplicate("plays", within=6))
    ],
    "deduplicate over retractions": [
        LATE.deduplicate("score").accumulating_and_retracting(),
        LATE.accumulating().then(bm.Pipeline().window(TENS).deduplicate("plays").accumulate(n=Count()).accumulating()),
    ],
    "deduplicate of versions": [
        START.deduplicate("rate", within="1 hour").then(bm.Pipeline().key_by("cur").versions("1 day"))
    ],
    "merge of one frame": [],
    "one input": [bm.as_of_join(orders=ORDERS, rates=RATES)],
    "three inputs": [
        bm.as_of_join(
            both=bm.as_of_join(a=ORDERS, b=RATES),
            c=RATES,
            on="cur",
        )
    ],
    "latest versions only": [joined(rates=CHANGES.versions(5))],
    "tolerance and only_updated": [
        joined(rates=CHANGES.versions(5), tolerance=3),
        joined(rates=CHANGES.versions(5, only_updated=True)),
    ],
    "accumulating": [joined().accumulating_and_retracting(), joined().discarding()],
    "windows before": [CHANGES.versions(5), PLAIN.then(TABLE_OF_PANES)],
    "a trigger before": [CHANGES.versions(5), PLAIN.then(TABLE_OF_PANES)],
    "a window after versions": [RATES.then(ROUNDS.accumulate(n=Count()))],
    "a trigger after a join": [joined().then(ROUNDS.accumulate(n=Count()))],
    "having of an as-of join": [joined().then(bm.Pipeline().where(SOME).window(TENS).accumulate(n=Count()))],
    "deduplicate of an as-of join": [
        joined(ORDERS.deduplicate("id", within="1 hour")),
        joined(rates=START.deduplicate("rate", within="1 hour").then(bm.Pipeline().key_by("cur").versions("1 day"))),
    ],
    "keys after a join": [joined().then(ROUNDS.key_by("cur").accumulate(n=Count()))],
    "discarding over a left that retracts": [joined(UPDATING, on={"team": "cur"}).accumulating_and_retracting()],
    "a table of panes without timestamp": [TIMED.then(TABLE_OF_PANES), PLAIN.then(TABLE_OF_PANES)],
    "a left of panes without timestamp": [joined(TIMED, on={"team": "cur"}), joined(PLAIN, on={"team": "cur"})],
    "a value with the name of an output column": [CHANGES.versions(5, values=["Pane_"])],
    "a key with the name of an output column": [START.key_by("valid").versions(5)],
    "a key among the values": [CHANGES.versions(5, values=[])],
    "a column with the name of an output column": [lambda: RATES.run(TestStream().add([{**CHANGE, "window_": 3}]))],
    "a table with the name of an output column": [bm.as_of_join(orders=ORDERS, windows=RATES)],
    "an order's column called like the table": [lambda: as_of.join_of(my_rates=3)],
    "an order's column with the name of an output column": [lambda: as_of.join_of(my_pane=3)],
    "an input called initial": [bm.as_of_join(first=ORDERS, b=RATES)],
    "versions held until windows close": [
        RATES.then(bm.Pipeline().window(TENS).accumulate(n=Count()).suppress(bm.UntilWindowCloses())),
        PLAIN.suppress(bm.UntilWindowCloses()).then(TABLE_OF_PANES),
    ],
    "joined rows held": [
        joined().then(bm.Pipeline().window(TENS).accumulate(n=Count()).suppress(bm.UntilTimeLimit(5, clock="event"))),
        joined(PLAIN.suppress(bm.UntilTimeLimit(5, clock="event")), on={"team": "cur"}).accumulating_and_retracting(),
    ],
    "versions of changes": [CHANGES.versions(5), PLAIN.then(TABLE_OF_PANES)],
    "a left with keys": [joined(START, on="cur")],
    "a left without a time": [joined(bm.Pipeline().event_time("at", bm.BoundedOutOfOrderness("30 seconds")))],
    "a left that is half a pipeline": [
        joined(CHANGES.window(TENS).accumulate(n=Count()), on="cur"),
        joined().then(bm.Pipeline().window(TENS).accumulate(n=Count())),
    ],
    "a table without a time": [joined(rates=START.key_by("cur").versions(5))],
    "a table that lists what it drops": [joined().with_dropped()],
    "on names another key": [joined(on={"my_cur": "cur"})],
    "on names too many": [joined(on={"my_cur": "cur"})],
    "on names nothing": [joined(on={"my_cur": "cur"})],
    "on is a number": [joined(on={"cur": "cur"})],
    "keys of two types": [lambda: as_of.join_of(cur="EUR")],
    "deleted is no boolean": [lambda: CHANGES.versions(5, deleted="gone").run(ONE_CHANGE)],
    "a key is a list": [lambda: START.key_by("cur").versions(5).run(ONE_CHANGE)],
    "a join after a stage": [bm.as_of_join(first=PLAIN, rates=RATES, on={"team": "cur"})],
    "discarding after versions": [
        RATES.then(refused.PLAIN_STAGE.trigger(Always()).accumulating()),
        RATES.then(refused.PLAIN_STAGE.trigger(Always()).accumulating_and_retracting()),
    ],
    "initial is a number": [
        lambda: RATES.run(ONE_CHANGE, initial=[{"ts": 1, "cur": "USD", "rate": 1, "gone": False, "tags": []}])
    ],
    "initial of no table": [
        lambda: PLAIN.run(ONE_ROW),
        lambda: START.key_by("team").versions(5).run(ONE_ROW, initial=[ROW]),
    ],
    "initial of one of two tables": [
        lambda: bm.as_of_join(priced=joined(), users=RATES).run(ONE_ORDER, initial={"rates": [CHANGE]})
    ],
    "why of another stage": [lambda: PLAIN.why(ONE_ROW, stage=1)],
    "why of no script": [lambda: PLAIN.why(TestStream().add([ROW]))],
    "versions of no table": [lambda: RATES.state(ONE_CHANGE).versions()],
    "versions of another": [lambda: RATES.state(ONE_CHANGE).versions()],
    "versions as of too early a time": [
        lambda: RATES.state(ONE_CHANGE.advance_watermark_to(10**6)).versions(as_of=10**6),
        lambda: CHANGES.versions(10**6).state(ONE_CHANGE.advance_watermark_to(10**6)).versions(as_of=5),
    ],
    # windows of rows, and others together
    "of rows 0": [COUNTED.allowed_lateness(rows=100).discarding()],
    "of rows 1": [PLAIN.allowed_lateness("1 hour").discarding()],
    "of rows 2": [
        COUNTED.event_time("ts", bm.BoundedOutOfOrderness("30 seconds")).window(bm.CountWindows(3, idle=5)),
        COUNTED,
    ],
    "of rows 3": [
        COUNTED.event_time("ts", bm.BoundedOutOfOrderness("30 seconds")).deduplicate("score", within=5),
        COUNTED,
    ],
    "of rows 4": [
        in_time().discarding().accumulate(p=InnerJoin("a", "b", once=True, keep_for={"a": 3})),
        in_time().discarding().accumulate(p=InnerJoin("a", "b", once=True)),
    ],
    "of rows 5": [COUNTED.event_time("ts", bm.BoundedOutOfOrderness("30 seconds")).timestamp_combiner(LATEST), COUNTED],
    "of rows 6": [bm.Pipeline().key_by("team").window(bm.CountSessions(3)).accumulate(n=Count())],
    "of rows 7": [in_time().accumulate(n=Count())],
    "of rows 8": [PLAIN.window({"rows": bm.CountWindows(3)}), PLAIN.window({"time": TENS})],
    "of rows 9": [COUNTED.trigger(Repeatedly(AfterCount(2))).discarding(), COUNTED.trigger(Always()).accumulating()],
    "of rows 10": [COUNTED.discarding().trigger(AfterWatermark(late=Always())).allowed_lateness(rows=3)],
    "of rows 11": [
        PLAIN.retain(windows=3),
        PLAIN.suppress(bm.UntilWindowCloses()),
        PLAIN.suppress(bm.UntilWindowCloses(), buffer=bm.Buffer(max_records=9, when_full=bm.SPILL)),
    ],
    "of rows 12": [PLAIN.window(bm.GlobalWindow()), PLAIN.retain(windows=3)],
    "of rows 13": [PLAIN],
    "of rows 14": [COUNTED.event_time("ts", bm.BoundedOutOfOrderness(0)).window(bm.CountWindows(3, idle="1 day"))],
    "of rows 15": [PLAIN.window(bm.GlobalWindow()).forget_after(5).trigger(Never()).discarding()],
    "of rows 16": [
        PLAIN.window(bm.GlobalWindow())
        .timestamp_combiner(LATEST)
        .then(bm.Pipeline().accumulate(m=Max("plays")).forget_after(5)),
        PLAIN.then(ROUNDS.accumulate(m=Max("plays")).forget_after(5)),
    ],
    "of rows 18": [
        COUNTED.then(bm.Pipeline().window(bm.CountWindows(10)).accumulate(most=Max("n"))),
        COUNTED.event_time("ts", bm.BoundedOutOfOrderness(0))
        .timestamp_combiner(LATEST)
        .then(bm.Pipeline().window(TENS).accumulate(most=Max("n"))),
    ],
    "of rows 19": [
        COUNTED.event_time("ts", bm.BoundedOutOfOrderness(0))
        .timestamp_combiner(LATEST)
        .then(bm.Pipeline().window(TENS).accumulate(most=Max("n")))
    ],
    "of rows 20": [
        COUNTED.event_time("ts", bm.BoundedOutOfOrderness(0))
        .timestamp_combiner(LATEST)
        .then(bm.Pipeline().window(bm.CountWindows(5, idle=3)).accumulate(most=Max("n")))
    ],
    "of rows 21": [
        LATE.accumulating().then(bm.Pipeline().window(bm.CountWindows(5)).accumulate(most=Max("plays"))),
        UPDATING.then(bm.Pipeline().window(TENS).accumulate(most=Max("plays"))),
    ],
    # merges
    "merge: one input": [BOTH.accumulate(n=Count())],
    "merge: no pipeline": [BOTH.accumulate(n=Count())],
    "merge: no event time": [BOTH.accumulate(n=Count())],
    "merge: an input with a window": [BOTH.accumulate(n=Count())],
    "merge: numbers of keys": [
        bm.merge(orders=merges.ORDERS, clicks=CLICKS.key_by("uid")).window(TENS).accumulate(n=Count()),
        bm.merge(
            each=CLICKS.window(TENS).accumulate(n=Count()).then(bm.Pipeline()),
            total=CLICKS.key_by().window(TENS).accumulate(n=Count()),
        ).accumulate(pair=InnerJoin("each", "total")),
    ],
    "merge: a reserved name": [bm.merge(a=merges.ORDERS, b=CLICKS).window(TENS).accumulate(n=Count())],
    "merge: event_time of a merge": [BOTH.accumulate(n=Count())],
    "merge: key_by of a merge": [BOTH.accumulate(n=Count())],
    "merge: whose": [BOTH.accumulate(s=Sum("amount").of("orders"))],
    "merge: of of": [BOTH.accumulate(n=Count().of("orders"))],
    "merge: of without a merge": [BOTH.accumulate(n=Count().of("orders"))],
    "merge: a join beside others": [
        BOTH.accumulate(n=Count(), rows=CoGroup("orders", "clicks")),
        BOTH.accumulate(n=Count()),
    ],
    "merge: CoGroup()": [BOTH.accumulate(rows=CoGroup("orders", "clicks"))],
    "merge: fold of sessions without merge": [
        BOTH.window(bm.Sessions(1)).accumulate(n=Fold(0, max, "amount", merge=max).of("orders")),
        BOTH.accumulate(n=Fold(0, max, "amount").of("orders")),
    ],
    "merge: rows of nobody": [lambda: BOTH.accumulate(n=Count()).run(TestStream().add([ORDER], input="orders"))],
    "merge: an input of a plain pipeline": [
        lambda: merges.ORDERS.window(TENS).accumulate(n=Count()).run(TestStream().add([ORDER]))
    ],
    "merge: a watermark that follows the clock": [
        lambda: LAGGING.accumulate(n=Count()).run(
            TestStream().add([ORDER], input="orders").advance_processing_time_to(9)
        )
    ],
    "merge: sum of text": [lambda: BOTH.accumulate(n=Sum("amount").of("orders")).run(SCRIPT)],
    "merge: keys of two inputs of two types": [lambda: BOTH.accumulate(n=Count()).run(SCRIPT)],
    "merge: inputs that differ in case only": [BOTH.accumulate(n=Count())],
    "merge: an input called df": [BOTH.accumulate(n=Count())],
    "merge: an input called shards": [BOTH.accumulate(n=Count())],
    "merge: an input called self": [BOTH.accumulate(n=Count())],
}
OF_SPARK = {"panes of a list", "a table of pandas", "rows of a list", "merge of one frame", "inspect with no pipeline"}
"""Messages that need a session: tests/spark."""
TRANSCRIPTS = {
    "A trigger that can lose rows: AfterCount": "loses rows: count",
    "AfterWatermark without late, if there is an allowed lateness": "loses late rows",
    "AfterEach whose parts all can": "loses rows: each",
    "OrFinally, unless finally_ waits for the end and nothing is allowed to be late": "loses rows: finally",
    "A mode must be stated, unless the trigger is Default and nothing is allowed to be late": "no mode, lateness",
    "retract_merged needs windows that merge": "retract_merged, fixed windows",
    "Fold without merge, where windows merge": "fold of sessions without merge",
}
"""Refusals of tests/transcripts, by the entry of FIXED that mends them."""
FIXED |= {f"transcript: {title}": FIXED[name] for title, name in TRANSCRIPTS.items()}
REFUSALS = {
    **{name: pipeline.explain for of in (windows, deduplicate, refine) for name, pipeline, _ in of.TOGETHER},
    **{
        name: lambda one=pipeline: one.run(ONE_ROW)
        for of in (windows, deduplicate, refine)
        for name, pipeline, _ in of.COLUMNS
    },
    **{
        name: call
        for of in (as_of, deduplicate, refine, suppress, versions, at_rest, forms, pipelines)
        for name, _, call, _ in of.REFUSED
    },
    **{f"of rows {number}": call for number, (call, _) in enumerate(windows_of_rows.COUNTED_TOGETHER)},
    **{f"merge: {name}": call for name, call, *_ in merges.REFUSED},
    **{
        f"transcript: {one.title}": lambda one=one: one.build().run(one.script())
        for one in transcripts()
        if one.file == "refusals" and one.refused
    },
}


def message(call):
    with pytest.raises(bm.BeamishError) as caught:
        call()
    return str(caught.value)


@pytest.mark.parametrize("name", REFUSALS)
def test_fixes_of_errors_work(name):
    said = message(REFUSALS[name])
    if name in OF_SPARK or not ADVICE.search(said):
        return
    assert FIXED.get(name), f"{said!r}: add what it advises to FIXED"
    for fixed in FIXED[name]:
        if isinstance(fixed, bm.Pipeline):
            assert fixed.explain()
            fixed.run(TestStream())
        else:
            fixed()


def test_every_fix_belongs_to_an_error():
    assert FIXED.keys() <= REFUSALS.keys()
