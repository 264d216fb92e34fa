"""Advice leads on: each message that says how to mend a pipeline has here the mended one, which is accepted."""

import ast
import re
from collections import Counter
from pathlib import Path

import attrs
import pyarrow.compute as pc
import pytest

import beamish as bm
from beamish import triggers as t
from beamish.accumulations import (
    CoGroup,
    Collect,
    Count,
    Fold,
    FullOuterJoin,
    InnerJoin,
    Last,
    LeftOuterJoin,
    Max,
    RightOuterJoin,
    Sum,
    TopN,
    TopRows,
)
from beamish.testing import TestStream
from beamish.triggers import (
    AfterAny,
    AfterCount,
    AfterEventTime,
    AfterProcessingTime,
    AfterValue,
    AfterWatermark,
    Always,
    Never,
    Repeatedly,
)
from tests import refused
from tests.kinds.hold_back.pipelines import PIPELINES
from tests.kinds.hold_back.pipelines import SCRIPT as HELD_BACK
from tests.own.partial import NoResultType, OwnMergingWindows, OwnTrigger, OwnWindows, Twice
from tests.pipeline import merges
from tests.pipeline.merges import BOTH, CLICKS, LAGGING, ORDER, SCRIPT
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
    RETRACTING,
    ROW,
    START,
    TIMELESS,
    join_of,
    joined,
    messages,
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
class OnlyOne(OwnWindows):
    overlaps = False


@attrs.frozen
class OnlyOneMerging(OwnMergingWindows):
    overlaps = False


@attrs.frozen
class OnlyOneFixed(Twice):
    overlaps = False


@attrs.frozen
class WithResultType(NoResultType):
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

HOUR = START.key_by("team").over(bm.Preceding("1 hour"))
PER_ROW = HOUR.accumulate(n=Count())
AT_ONCE = PER_ROW.trigger(AfterWatermark(early=Always()))
OVER_ALL = bm.Pipeline().over(bm.Unbounded()).accumulate(n=Count())
ANCHORED = bm.AnchoredWindows(5)
SPANS = bm.Rolling({"5m": "5 minutes"}, step="1 minute")
ROLLING = START.key_by("team").window(SPANS).accumulate(plays=Count())
LIFETIME = ROLLING.window(bm.Rolling({"1h": "1 hour", "ever": bm.Lifetime()}, step="1 minute"))
EARLY_SPANS = ROLLING.trigger(AfterWatermark(early=AfterCount(1), late=AfterCount(1))).accumulating()
NEXT_SPANS = bm.Pipeline().window(SPANS).accumulate(n=Count())
GAPS = bm.Pipeline().fill_gaps(1, by="last", within=1)
BY_PLAYS = bm.Pipeline().event_time("plays", bm.BoundedOutOfOrderness("1 hour")).window(TENS).accumulate(n=Count())
SETS = START.key_by(bm.Rollup("country", "team")).window(TENS).accumulate(n=Count())
AT_COLUMN = PLAIN.then(BY_PLAYS)
SET = CHANGES.changes()
UPSERTS = CHANGES.upserts()


def joined_tables(orders=START, customers=None, on=None, **options):
    return bm.table_join(
        orders=orders,
        customers=UPSERTS if customers is None else customers,
        on={"buyer": "cur"} if on is None else on,
        **options,
    )


SOON = bm.UntilTimeLimit(5, clock="event")

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
    "loses rows: own": losing(OwnTrigger()),
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
    "within keeps the other side": [
        of(LeftOuterJoin("a", "b"), bm.Within(of="b", after=1)),
        of(RightOuterJoin("a", "b"), bm.Within(1, of="a")),
    ],
    "match if a condition": [lambda: InnerJoin("a", "b", match_if={"a": pc.field("amount") > 3})],
    "match if of another input": [lambda: InnerJoin("a", "b", match_if={"b": pc.field("x") > 3})],
    "match if in words": [lambda: InnerJoin("a", "b", match_if={"a": pc.field("amount") > 3})],
    "match if null": [lambda: InnerJoin("a", "b", match_if={"a": ~pc.field("x").is_null()})],
    "full join of the 65th input": [of(FullOuterJoin("b", "a"))],
    "full within, retain": [of(FullOuterJoin("a", "b"), bm.Within(1, of="a"))],
    "full within, keep_rows": [
        of(FullOuterJoin("a", "b", once=True, keep_for={"a": "1 hour"}), bm.Within(1, of="a")),
    ],
    "within among windowings": [of(InnerJoin("a", "b"), bm.Within(1, of="a")), of(InnerJoin("a", "b"), {"y": TENS})],
    "once, accumulating": [of(once(InnerJoin)), of(InnerJoin("a", "b")).accumulating()],
    "once, accumulating_and_retracting": [of(once(InnerJoin)), of(InnerJoin("a", "b")).accumulating_and_retracting()],
    "once, outer, sliding windows": [of(once(InnerJoin), bm.SlidingWindows(2, 1)), of(once())],
    "once, outer, within": [of(once(LeftOuterJoin), bm.Within(of="b", after=1))],
    "once, outer, among windowings": [of(once(InnerJoin), {"x": bm.SlidingWindows(2, 1)}), of(once(), {"x": TENS})],
    "once, outer, own windows": [of(once(InnerJoin), OwnWindows()), of(once()), of(once(), OnlyOne())],
    "once, outer, windows that are assigned otherwise": [
        of(once(InnerJoin), Twice(9)),
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
    "kinds/window: key is a list": [lambda: PLAIN.key_by("name").run(ONE_ROW)],
    "id is a list": [lambda: PLAIN.deduplicate("name").run(ONE_ROW)],
    "key of rows is a list": [lambda: START.key_by("name").deduplicate("score", within=1).run(ONE_ROW)],
    "where a number": [lambda: PLAIN.where(pc.field("score") > 5).run(ONE_ROW)],
    "value that is no number": [lambda: MODES[0].trigger(Repeatedly(AfterValue("plays", at_least=2))).run(ONE_ROW)],
    **{
        name: [lambda: PLAIN.accumulate(s=Sum("score")).run(ONE_ROW)]
        for name in ("sum of text", "mean of text", "stddev of a list", "quantiles of text")
    },
    # anchored windows
    "anchored windows over a stage that retracts": [
        UPDATING.accumulating().then(bm.Pipeline().window(ANCHORED).accumulate(n=Count()))
    ],
    "anchored windows of a merge": [MEETING.window(TENS).accumulate(n=Count())],
    "anchored windows, several": [START.window(ANCHORED).accumulate(n=Count())],
    "anchored windows, duplicates": [
        START.deduplicate("id", within="1 hour").then(bm.Pipeline().window(ANCHORED).accumulate(n=Count()))
    ],
    "anchored windows, retention": [START.window(ANCHORED).accumulate(n=Count())],
    "first rows of a merge": [
        MEETING.window(TENS)
        .accumulate(n=Count().of("a"))
        .then(bm.Pipeline().window(TENS).accumulate(top=TopRows(1, by="n")))
    ],
    "first rows beside another": [
        START.window(TENS).accumulate(n=Count(), top=TopN(1, "score")),
        PLAIN.then(bm.Pipeline().key_by("team").window(TENS).accumulate(top=TopRows(1, by="plays"))),
    ],
    # rolling spans
    "only of no accumulation": [
        START.window(bm.Rolling({"w": bm.Span(60, only=["n"])}, step=60)).accumulate(n=Count())
    ],
    "an accumulation of no span": [
        START.window(bm.Rolling({"w": bm.Span(60, only=["n", "s"])}, step=60)).accumulate(n=Count(), s=Sum("score")),
        START.window(bm.Rolling({"w": bm.Span(60, only=["n"])}, step=60)).accumulate(n=Count()),
    ],
    "idle keys of a lifetime, too soon": [LIFETIME.forget_after("1 hour"), LIFETIME],
    "idle keys of a lifetime, between boundaries": [LIFETIME.forget_after("90 minutes")],
    "discarding": [ROLLING.accumulating(), ROLLING.accumulating_and_retracting()],
    "removed without retractions": [
        START.window(attrs.evolve(SPANS, empty="remove")).accumulate(n=Count()).accumulating_and_retracting(),
        ROLLING,
    ],
    "Always": [EARLY_SPANS, ROLLING],
    "early by the clock": [EARLY_SPANS],
    "late rows without a late part": [EARLY_SPANS.allowed_lateness(5)],
    "duplicates": [START.deduplicate("id", within="1 hour").then(NEXT_SPANS)],
    "late rows by number": [ROLLING.allowed_lateness("1 hour")],
    "errors": [START.where(SOME).window(SPANS).accumulate(n=Count())],
    **{
        name: [ROLLING]
        for name in (
            "retention",
            "idle keys",
            "on time",
            "closing",
            "a combiner",
            "merged",
            "kinds/rolling: only updated",
        )
    },
    "kinds/rolling: a join": [MEETING.window(SPANS).accumulate(n=Count().of("a"))],
    "a fold without merge": [ROLLING.accumulate(all=Fold(0, max, column="score", merge=max))],
    "nothing to accumulate": [START.window(SPANS).accumulate(count=Count())],
    "a key called time": [START.key_by("cur").window(SPANS).accumulate(n=Count())],
    "two columns of a name": [START.window(SPANS).accumulate(a=Count(), a_b=Count())],
    "a computed column called time": [ROLLING.with_columns(more=pc.field("plays_5m") + 1)],
    "an accumulation called pane": [ROLLING.accumulate(panes=Count())],
    "kinds/rolling: panes without timestamp": [TIMED.then(NEXT_SPANS), PLAIN.then(NEXT_SPANS)],
    "kinds/rolling: a suppress": [ROLLING.then(bm.Pipeline().window(TENS).accumulate(n=Count()).suppress(SOON))],
    # gaps
    "gaps after windows": [PLAIN.then(GAPS)],
    "windows after gaps": [
        START.fill_gaps(1, by="last", within=1).then(bm.Pipeline().window(TENS).accumulate(n=Count()))
    ],
    "a condition after gaps": [PLAIN.where(SOME).then(GAPS)],
    "gaps, lateness in rows": [START.fill_gaps(1, by="last", within=1).allowed_lateness(5)],
    "gaps of a merge": [
        bm.merge(a=START.fill_gaps(1, by="last", within=1), b=START).window(TENS).accumulate(n=Count())
    ],
    "gaps of retractions": [UPDATING.accumulating().then(GAPS)],
    "gaps of panes without timestamp": [TIMED.then(GAPS), PLAIN.then(GAPS)],
    "gaps of versions": [UPDATING.accumulating().then(GAPS)],
    "gaps of final results": [
        UPDATING.accumulating().suppress(bm.UntilWindowCloses()).then(GAPS.allowed_lateness("5 seconds"))
    ],
    "gaps of a key that is a list": [START.key_by("name").fill_gaps(1, by="last", within=1)],
    "a column called filled": [START.key_by("is_filled").fill_gaps(1, by="last", within=1)],
    # joins of tables
    "an unknown join of tables": [joined_tables(how="outer"), joined_tables(how="right")],
    "unnamed tables": [joined_tables()],
    "three tables": [bm.table_join(pairs=joined_tables(), cities=CHANGES.upserts(), on={"customers.city": "cur"})],
    "a table called df": [joined_tables()],
    "two tables of one source": [
        bm.table_join(pairs=joined_tables(), cities=CHANGES.upserts(), on={"customers.city": "cur"})
    ],
    "a table of text": [bm.table_join(orders=START, customers=UPSERTS, on={"buyer": "cur"})],
    "a table without an event time": [bm.table_join(orders=START, customers=UPSERTS, on={"buyer": "cur"})],
    "rows that are keyed": [joined_tables(START)],
    "on of a number": [joined_tables(on="cur"), joined_tables(on=["cur"])],
    "on of nothing": [joined_tables()],
    "on omitted over rows": [joined_tables(customers=START)],
    "a table's column twice": [joined_tables()],
    "a reserved column of a table": [joined_tables()],
    "a table called pane": [joined_tables()],
    "panes that replace others": [joined_tables(UPDATING)],
    "a table of changes()": [joined_tables(UPSERTS)],
    "windows of a table join": [joined_tables().then(ROUNDS.accumulating().accumulate(n=Count()))],
    "having of a table join": [joined_tables().then(ROUNDS.where(SOME).accumulating().accumulate(n=Count()))],
    "a mode of a table join": [joined_tables().then(ROUNDS.accumulating().accumulate(n=Count()))],
    "a condition of a table join": [
        joined_tables(UPSERTS.then(bm.Pipeline().where(SOME))),
        joined_tables().then(ROUNDS.where(SOME).accumulating().accumulate(n=Count())),
    ],
    "keys of a table join": [joined_tables().then(ROUNDS.key_by("buyer").accumulating().accumulate(n=Count()))],
    "a suppress of a table join": [joined_tables(UPDATING)],
    "forget_after over panes without timestamp": [
        joined_tables(TIMED.accumulating_and_retracting()).forget_after("1 day")
    ],
    "columns of two types": [joined_tables()],
    "tables on a list": [joined_tables()],
    "a column of the name of an input": [joined_tables()],
    # upserts
    "keep_deleted without deleted": [CHANGES.upserts(deleted="gone", keep_deleted=5)],
    "upserts after windows": [PLAIN.then(bm.Pipeline().key_by("team").upserts())],
    "upserts of a merge": [
        bm.merge(a=START.key_by("team").window(TENS).accumulate(n=Count()), b=START.key_by("team"))
        .window(TENS)
        .accumulate(n=Count())
        .then(bm.Pipeline().key_by("team").upserts())
    ],
    "a condition before upserts": [
        UPSERTS.then(ROUNDS.where(SOME).accumulating_and_retracting().accumulate(n=Count()))
    ],
    "a condition after upserts": [UPSERTS.then(ROUNDS.where(SOME).accumulating_and_retracting().accumulate(n=Count()))],
    "windows after upserts": [UPSERTS.then(ROUNDS.window(TENS).accumulate(n=Count()))],
    "having after upserts": [UPSERTS.then(ROUNDS.where(SOME).accumulate(n=Count()))],
    "a mode after upserts": [UPSERTS.then(ROUNDS.accumulating().accumulate(n=Count()))],
    "a changelog before upserts": [UPSERTS, CHANGELOG.window(TENS).accumulate(n=Count())],
    "a changelog after upserts": [UPSERTS, CHANGELOG.window(TENS).accumulate(n=Count())],
    "a suppress after upserts": [SET.suppress(SOON)],
    "upserts without keys": [UPSERTS],
    "upserts of retractions": [UPDATING.accumulating().then(bm.Pipeline().key_by("team").upserts())],
    "upserts of versions": [UPDATING.discarding().then(bm.Pipeline().key_by("team").upserts())],
    "upserts of panes without timestamp": [TIMED.then(bm.Pipeline().key_by("team").upserts())],
    "a sequence that is a key": [CHANGES.upserts(sequence_by="rate")],
    "a sequence of a reserved name": [CHANGES.upserts(sequence_by="rate")],
    "upserts with a column called pane": [lambda: UPSERTS.run(TestStream().add([{**CHANGE, "my_pane": 5}]))],
    "upserts by a list": [START.key_by("name").upserts()],
    # rows of later stages
    "a lag in a later stage": [AT_COLUMN],
    "an idle timeout in a later stage": [AT_COLUMN],
    "event time after then": [AT_COLUMN, PLAIN.then(bm.Pipeline().window(TENS).accumulate(n=Count()))],
    "windows of panes at another time": [AT_COLUMN],
    "final results at a column without delay": [
        LATE.accumulating().suppress(bm.UntilWindowCloses()).then(BY_PLAYS.accumulating().allowed_lateness(5))
    ],
    "a time column that is missing": [PLAIN.then(bm.Pipeline().window(TENS).accumulate(n=Count()))],
    "a time column of text": [
        lambda: PLAIN.with_columns(at=pc.field("plays").cast("double")).then(BY_PLAYS).run(ONE_ROW)
    ],
    "explode of no array": [lambda: PLAIN.accumulate(items=Collect("score")).explode("items").run(ONE_ROW)],
    "explode of versions": [PLAIN.accumulate(items=Collect("score")).explode("items")],
    # key sets
    "no key sets": [SETS],
    "two key sets": [START.key_by(bm.GroupingSets(("a", "b"), ("a",), "b", ())).window(TENS).accumulate(n=Count())],
    "a cube of seven columns": [START.key_by(bm.GroupingSets(tuple("abcdefg"), ())).window(TENS).accumulate(n=Count())],
    "key sets in a later stage": [SETS.then(bm.Pipeline().key_by("team", "grouping_id").accumulate(n=Count()))],
    "key sets over": [SETS.window(bm.GlobalWindow()), HOUR.accumulate(n=Count())],
    "key sets of versions": [SETS.window(bm.GlobalWindow()), RATES],
    "key sets of a merge": [of(InnerJoin("a", "b"))],
    "key sets in windows over the stream": [SETS.window(bm.CountWindows(4, over="key"))],
    "key sets in sessions of a stream": [SETS.window(bm.CountWindows(4, over="key"))],
    "an expression beside key sets": [SETS],
    "a total as a value": [SETS],
    "a field of a total as a value": [SETS],
    "a field of a total as an id": [SETS],
    "key sets of a struct with the event time": [SETS],
    "key sets with an expression as event time": [SETS],
    "key sets of the event time": [SETS],
    "a condition on a total": [SETS.where(SOME)],
    "a column called grouping_id": [
        lambda: SETS.run(TestStream().add([{**ROW, "country": "NO", "my_grouping_id": 1}]))
    ],
    # over
    "a frame is a text": [START.over(bm.Preceding("1 hour")).accumulate(n=Count())],
    "a span of no duration": [lambda: bm.Preceding("10 minutes"), lambda: bm.Preceding("1 hour 30 minutes")],
    "lag of no column": [lambda: bm.Lag("score")],
    "a default of another type": [lambda: HOUR.accumulate(before=bm.Lag("score", default=0)).run(ONE_ROW)],
    "lag in a window": [
        START.over(bm.Unbounded()).accumulate(before=bm.Lag("score")),
        PLAIN.accumulate(last=Last("score")),
    ],
    "nothing to compute": [HOUR.accumulate(total=Sum("amount"), before=bm.Lag("amount"))],
    "over after a window": [UPDATING.then(OVER_ALL.allowed_lateness(5).accumulating_and_retracting())],
    "over twice": [PER_ROW.then(OVER_ALL)],
    "over a merge": [bm.merge(a=START, b=START).window(TENS).accumulate(n=Count()).then(OVER_ALL)],
    "a window after over": [PER_ROW.then(bm.Pipeline().window(TENS).accumulate(all=Sum("n")))],
    "where after over": [
        START.where(SOME).over(bm.Unbounded()).accumulate(n=Count()),
        PER_ROW.having(pc.field("n") > 1),
    ],
    "deduplicate after over": [
        START.deduplicate("score", within="1 hour")
        .then(bm.Pipeline().key_by("team").over(bm.Unbounded()))
        .accumulate(n=Count())
    ],
    "kinds/over: only updated": [PER_ROW],
    "over, on_error": [START.where(SOME).over(bm.Unbounded()).accumulate(n=Count())],
    "forget_after of rows alone": [PER_ROW],
    "forget_after within the lateness": [
        START.over(bm.Unbounded()).accumulate(n=Count()).allowed_lateness("1 day").discarding().forget_after("2 days")
    ],
    "a timestamp combiner": [PER_ROW.trigger(t.Default()).allowed_lateness(0).with_dropped().having(pc.field("n") > 1)],
    "lateness in rows": [PER_ROW.allowed_lateness("1 hour").discarding()],
    "over, accumulating": [PER_ROW.accumulating_and_retracting(), PER_ROW.discarding()],
    "a trigger by the clock": [PER_ROW, AT_ONCE.discarding()],
    "early by several rows": [PER_ROW, AT_ONCE.discarding()],
    "early without a mode": [AT_ONCE.discarding(), AT_ONCE.accumulating_and_retracting()],
    "lateness without a mode": [
        PER_ROW.allowed_lateness("1 hour").discarding(),
        PER_ROW.allowed_lateness("1 hour").accumulating_and_retracting(),
    ],
    "discarding over a stage that retracts": [
        UPDATING.then(OVER_ALL.allowed_lateness(5).accumulating_and_retracting())
    ],
    "kinds/over: panes without timestamp": [TIMED.then(OVER_ALL), PLAIN.then(OVER_ALL)],
    "panes later than the lateness": [
        LATE.accumulating().suppress(bm.UntilWindowCloses()).then(OVER_ALL.allowed_lateness("5 seconds").discarding())
    ],
    "changes of a table": [HOUR.accumulate(n=Count())],
    "a Fold that cannot merge": [HOUR.accumulate(most=Fold(0, max, "score", merge=max))],
    "an accumulation of an input": [PER_ROW],
    "a value called pane": [HOUR.accumulate(panes=Count())],
    "a value called like a column": [lambda: HOUR.accumulate(points=Sum("score")).run(ONE_ROW)],
    "over, a value called like the key": [HOUR.accumulate(teams=Count())],
    "a reserved name": [HOUR.accumulate(beamish_n=Count())],
    "kinds/over: a suppress": [
        PLAIN.suppress(SOON).then(OVER_ALL.allowed_lateness(5).discarding()),
        PER_ROW.then(bm.Pipeline().window(TENS).accumulate(all=Sum("n")).suppress(SOON)),
    ],
    "dropped rows before a stage": [PER_ROW.then(OVER_ALL.with_dropped())],
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
    "at arrival, within a tolerance": [joined(as_of="arrival"), joined(tolerance=5)],
    "at arrival, early": [joined(as_of="arrival"), joined(early=True)],
    "at arrival, retracting": [joined().accumulating_and_retracting()],
    "at arrival, over a left that retracts": [
        joined(RETRACTING, on={"team": "cur"}).accumulating_and_retracting(),
    ],
    "forward without end": [joined(direction="forward", tolerance="10 minutes")],
    "forward past the history": [
        joined(rates=CHANGES.versions("25 hours"), direction="forward", tolerance="20 hours", grace="5 hours")
    ],
    "nearest of nothing": [joined(direction="nearest", tolerance=1, allow_exact_matches=False)],
    "merge: wait_for the left input": [
        bm.merge(a=START, b=START, wait_for=bm.FASTEST_INPUT).window(TENS).accumulate(n=Count()),
        bm.merge(a=START, b=START).window(TENS).accumulate(n=Count()),
    ],
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
    "an order's column called like the table": [lambda: join_of(my_rates=3)],
    "an order's column with the name of an output column": [lambda: join_of(my_pane=3)],
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
    "keys of two types": [lambda: join_of(cur="EUR")],
    "kinds/versions: deleted is no boolean": [lambda: CHANGES.versions(5, deleted="gone").run(ONE_CHANGE)],
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
    "windows of no windows": [lambda: RATES.state(ONE_CHANGE).keys(), lambda: RATES.state(ONE_CHANGE).versions()],
    "why of a window of a stage without": [lambda: RATES.why(ONE_CHANGE, key="EUR")],
    "why of no windows": [lambda: PIPELINES["rows held back"].state(HELD_BACK).held()],
    "why of another stage": [lambda: PLAIN.why(ONE_ROW, stage=1)],
    "why of no script": [lambda: PLAIN.why(TestStream().add([ROW]))],
    "versions of no table": [lambda: RATES.state(ONE_CHANGE).versions()],
    "versions of another": [lambda: RATES.state(ONE_CHANGE).versions()],
    "versions as of too early a time": [
        lambda: RATES.state(ONE_CHANGE.advance_watermark_to(10**6)).versions(as_of=10**6),
        lambda: CHANGES.versions(10**6).state(ONE_CHANGE.advance_watermark_to(10**6)).versions(as_of=5),
    ],
    # windows of rows, and others together
    "of rows by event time": [
        COUNTED.trigger(Repeatedly(AfterCount(1))).discarding(),
        COUNTED.trigger(Repeatedly(AfterProcessingTime(1))).discarding(),
        PLAIN.trigger(Repeatedly(AfterEventTime(5))).discarding(),
    ],
    "without event time, by event time": [
        PLAIN.trigger(Repeatedly(AfterEventTime(5))).discarding(),
        bm.Pipeline()
        .window(bm.GlobalWindow())
        .trigger(Repeatedly(AfterProcessingTime(5)))
        .discarding()
        .accumulate(n=Count()),
    ],
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
    "a watermark per key without keys": [PLAIN.watermark_per_key(5, at_most=60), PLAIN.key_by()],
    "a watermark per key of a merge": [PLAIN.watermark_per_key(5, at_most=60)],
    "a watermark per key over a stage": [
        PLAIN.watermark_per_key(5, at_most=60).then(
            bm.Pipeline().window(bm.FixedWindows("1 hour")).accumulate(most=Max("plays"))
        )
    ],
    "a watermark per key in count windows": [COUNTED, PLAIN.watermark_per_key(5, at_most=60)],
    "a watermark per key in the global window": [
        TIMELESS.forget_after("30 days").watermark_per_key(5, at_most=60),
        PLAIN.watermark_per_key(5, at_most=60),
        TIMELESS,
    ],
    "a watermark per key by the clock": [
        PLAIN.watermark_per_key(5, at_most=60),
        PLAIN.event_time("ts", bm.ProcessingTimeLag(0)),
    ],
    "a watermark per key of rolling spans": [ROLLING, ROLLING.allowed_lateness(5)],
    "a watermark per key and a suppress": [
        PLAIN.watermark_per_key(5, at_most=60).trigger(Never()).discarding(),
    ],
    "a watermark per key that leads": [PLAIN.watermark_per_key(0, at_most=60)],
    "a watermark per key without a bound": [PLAIN.watermark_per_key(5, at_most="1 minute")],
    "a watermark per key of versions": [RATES],
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
    "merge: rows without an input": [lambda: BOTH.accumulate(n=Count()).run(TestStream().add([ORDER], input="orders"))],
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
FIXED |= {
    "changes without keys": [SET.suppress(SOON)],
    "changes without event time": [SET.suppress(SOON)],
    "changes of a pipeline that says more": [SET.suppress(SOON)],
    "changes until windows close, without window": [
        CHANGES.changes(window="window").suppress(bm.UntilWindowCloses("10 minutes")),
        SET.suppress(SOON),
    ],
    "changes alone": [
        SET.suppress(SOON),
        CHANGES.changes(window="window").suppress(bm.UntilWindowCloses("10 minutes")),
    ],
    "a stage after changes": [
        CHANGES.window(bm.GlobalWindow()).trigger(Always()).accumulating().accumulate(r=Last("rate"))
    ],
    "a column that the output has": [lambda: SET.suppress(SOON).run(TestStream().add([{**CHANGE, "my_pane": 5}]))],
    **{
        f"rows with a column {column}": [
            lambda: START.deduplicate("id", within=1).run(TestStream().add([{"ts": 1, "id": 1, "my_column": 2}]))
        ]
        for column in ("pane", "Window")
    },
    "grace over a pipeline": [PLAIN.allowed_lateness("1 minute").accumulating().suppress(bm.UntilWindowCloses())],
    "event wait over panes without timestamps": [
        TIMED.suppress(SOON),
        TIMELESS.suppress(bm.UntilTimeLimit(5, clock="processing")),
    ],
    "a call after it": [PLAIN.accumulate(n=Count()).suppress(bm.UntilWindowCloses())],
    "fold that cannot add up": [
        of_sessions.accumulate(n=Fold(0, max, "score", merge=max)).suppress(bm.UntilWindowCloses())
        for of_sessions in (PLAIN.window(bm.Sessions(5)).discarding(), PLAIN.discarding())
    ],
    "a next stage that comes too late": [
        LATE.accumulating()
        .suppress(bm.UntilWindowCloses())
        .then(bm.Pipeline().allowed_lateness(5).accumulating().accumulate(n=Count()))
    ],
    "a next stage after an event wait": [
        PLAIN.suppress(SOON).then(bm.Pipeline().allowed_lateness(10).accumulating().accumulate(n=Count()))
    ],
    "held without suppress": [lambda: PLAIN.suppress(bm.UntilWindowCloses()).state(ONE_ROW).held()],
    "a script with a checkpoint": [lambda: PLAIN.state(ONE_ROW)],
    "a sequence without order": [CHANGES.versions(5, sequence_by="rate")],
    "within, alone": [MEETING.window(bm.Within(1, of="a")).accumulate(n=InnerJoin("a", "b"))],
    "COUNTED.window(CountWindows(3, numbered_by='name'))": [
        lambda: COUNTED.window(bm.CountWindows(3, numbered_by="score")).run(ONE_ROW)
    ],
    "rows by a map": [lambda: COUNTED.window(bm.CountWindows(3, order_by="score")).run(ONE_ROW)],
    "a table with more lateness than history": [lambda: bm.VersionedTable("2 minutes", allowed_lateness="2 minutes")],
}
OF_SPARK = {
    "a session with what a table began with",
    "panes of a list",
    "a table of pandas",
    "rows of a list",
    "merge of one frame",
    "inspect with no pipeline",
}
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
FIXED["neither a pipeline nor a query"] = [START.window(TENS).accumulate(n=Count())]
FIXED |= {f"transcript: {title}": FIXED[name] for title, name in TRANSCRIPTS.items()}
HERE = Path(__file__).parent


def recorded():
    """The refusals of all folders, by name; of names that several folders have with the folder."""
    tables = {str(path.parent.relative_to(HERE)): messages(path) for path in sorted(HERE.rglob("refused.txt"))}
    times = Counter(name for table in tables.values() for name in table)
    return {
        name if times[name] == 1 else f"{folder}: {name}": message
        for folder, table in tables.items()
        for name, message in table.items()
    }


def message(transcript):
    with pytest.raises(bm.BeamishError) as caught:
        transcript.build().run(transcript.script())
    return f"{type(caught.value).__name__}: {caught.value}"


REFUSALS = recorded() | {
    f"transcript: {one.title}": one for one in transcripts() if one.file == "refusals" and one.refused
}
OF_OPTIONS = ("OptionError", "ScriptError", "StateError", "UserFunctionError", "NumericOverflowError")
"""Errors whose message has the right value itself, or that are not of how a pipeline is composed."""


@pytest.mark.parametrize("name", REFUSALS)
def test_fixes_of_errors_work(name):
    kind, _, said = (REFUSALS[name] if isinstance(REFUSALS[name], str) else message(REFUSALS[name])).partition(": ")
    if name in OF_SPARK or (name not in FIXED and (kind in OF_OPTIONS or not ADVICE.search(said))):
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


@pytest.mark.parametrize("path", sorted(HERE.rglob("refused.txt")), ids=lambda path: path.parent.name)
def test_every_recorded_refusal_has_a_test(path):
    """An f-string stands for any of its texts."""
    trees = [ast.parse(test.read_text("utf-8")) for test in path.parent.glob("test_*.py")]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    texts = {node.value for node in nodes if isinstance(node, ast.Constant)}
    drawn = [
        "".join(re.escape(part.value) if isinstance(part, ast.Constant) else ".*" for part in node.values)
        for node in nodes
        if isinstance(node, ast.JoinedStr)
        and sum(len(str(part.value)) for part in node.values if isinstance(part, ast.Constant)) > 4
    ]
    names = [name.removeprefix("merge: ") for name in messages(path)]
    assert [name for name in names if name not in texts and not any(re.fullmatch(one, name) for one in drawn)] == []
