"""Over: what is refused, with the value, the rule and the fix."""

import pyarrow.compute as pc

import beamish as bm
from beamish.accumulations import Count, Fold, Sum
from beamish.triggers import AfterCount, AfterProcessingTime, AfterWatermark, Always
from tests.own.accumulations import names_seen
from tests.refused import ONE_ROW, PLAIN, RETRACTING, START, TIMELESS, cases, refused

KEYED = START.key_by("team")
HOUR = KEYED.over(bm.Preceding("1 hour"))
COUNTED = HOUR.accumulate(n=Count())
EARLY = AfterWatermark(early=Always())

REFUSED = {
    "a frame is a text": lambda: KEYED.over("1 hour"),
    "a frame is a class": lambda: KEYED.over(bm.Unbounded),
    "a span below 0": lambda: bm.Preceding(-1),
    "a span of no duration": lambda: bm.Preceding("an hour"),
    "a number of rows below 0": lambda: bm.PrecedingRows(-1),
    "a number of rows as text": lambda: bm.PrecedingRows("10 rows"),
    "more rows than may be stored": lambda: bm.PrecedingRows(2**20 + 1),
    "order_by is a number": lambda: KEYED.over(bm.Unbounded(), order_by=3),
    "order_by names a column that is not there": lambda: (
        KEYED.over(bm.Unbounded(), order_by="number").accumulate(n=Count()).run(ONE_ROW)
    ),
    "lag by 0": lambda: bm.Lag("score", 0),
    "lag of no column": lambda: bm.Lag(3),
    "lag of a column that is not there": lambda: HOUR.accumulate(before=bm.Lag("points")).run(ONE_ROW),
    "a default of another type": lambda: HOUR.accumulate(before=bm.Lag("score", default="none")).run(ONE_ROW),
    "a default that is an object": lambda: bm.Lead("score", default=object()),
    "lag in a window": lambda: PLAIN.accumulate(before=bm.Lag("score")).explain(),
    "nothing to compute": HOUR.explain,
    "over after a window": lambda: PLAIN.over(bm.Unbounded()),
    "over twice": lambda: COUNTED.over(bm.Unbounded()),
    "over a merge": lambda: bm.merge(a=KEYED, b=KEYED).over(bm.Unbounded()),
    "a window after over": lambda: COUNTED.window(bm.FixedWindows(5)),
    "where after over": lambda: COUNTED.where(pc.field("score") > 1),
    "deduplicate after over": lambda: COUNTED.deduplicate("score"),
    "only updated": COUNTED.only_updated_panes,
    "over, on_error": lambda: COUNTED.on_error("drop"),
    "forget_after of rows alone": lambda: COUNTED.forget_after("1 day").explain(),
    "forget_after within the lateness": lambda: (
        KEYED.over(bm.Unbounded())
        .accumulate(n=Count())
        .allowed_lateness("1 day")
        .discarding()
        .forget_after("1 day")
        .explain()
    ),
    "a timestamp combiner": lambda: COUNTED.timestamp_combiner(bm.TimestampCombiner.LATEST),
    "lateness in rows": lambda: COUNTED.allowed_lateness(rows=3),
    "over, accumulating": COUNTED.accumulating,
    "a trigger by the clock": lambda: COUNTED.trigger(AfterProcessingTime("1 minute")).explain(),
    "early by several rows": lambda: COUNTED.trigger(AfterWatermark(early=AfterCount(2))).discarding().explain(),
    "early without a mode": lambda: COUNTED.trigger(EARLY).explain(),
    "lateness without a mode": lambda: COUNTED.allowed_lateness("1 hour").explain(),
    "discarding over a stage that retracts": lambda: (
        RETRACTING.then(bm.Pipeline().over(bm.Unbounded()))
        .accumulate(n=Count())
        .allowed_lateness(5)
        .discarding()
        .explain()
    ),
    "panes without timestamp": lambda: (
        TIMELESS.then(bm.Pipeline().over(bm.Unbounded())).accumulate(n=Count()).explain()
    ),
    "panes later than the lateness": lambda: (
        RETRACTING.suppress(bm.UntilWindowCloses())
        .then(bm.Pipeline().over(bm.Unbounded()))
        .accumulate(n=Count())
        .explain()
    ),
    "changes of a table": lambda: (
        KEYED.changes()
        .suppress(bm.UntilTimeLimit(5, clock="event"))
        .then(bm.Pipeline().over(bm.Unbounded()))
        .accumulate(n=Count())
        .explain()
    ),
    "a Fold that cannot merge": lambda: HOUR.accumulate(
        all=Fold([], names_seen, result_type="array<string>")
    ).explain(),
    "an accumulation of an input": lambda: HOUR.accumulate(n=Count().of("a")).explain(),
    "a value called pane": lambda: HOUR.accumulate(pane=Count()).explain(),
    "over, a value called like the key": lambda: HOUR.accumulate(Team=Count()).explain(),
    "a value called like a column": lambda: HOUR.accumulate(Score=Sum("score")).run(ONE_ROW),
    "a reserved name": lambda: HOUR.accumulate(__beamish_n=Count()).explain(),
    "a suppress": lambda: COUNTED.suppress(bm.UntilTimeLimit(5, clock="event")),
    "dropped rows before a stage": lambda: COUNTED.with_dropped().then(bm.Pipeline().over(bm.Unbounded())),
}


@cases(REFUSED)
def test_over_is_refused_in_words(name):
    refused(__file__, name, REFUSED[name])
