"""Pipelines whose checkpoints are kept, each with a script in two halves: what was run, and what comes after it.

``python -m tests.checkpoints.write`` writes the files of this version's state format; they are written once and never
again: every later version must read them. (Those of joins are from before ``null_keys``, when null keys paired.)
"""

from __future__ import annotations

import itertools
import operator

import attrs

import beamish as bm
from beamish import accumulations as a
from beamish import triggers as t
from beamish.fusion.groups import APART, FUSE, Fuse
from beamish.script import Bundle
from beamish.tables.segment_policy import SegmentPolicy
from beamish.testing import TestStream

EVERY = t.AfterWatermark(early=t.AfterCount(2), late=t.AfterCount(1))


@attrs.frozen
class Case:
    """A pipeline, what had been run when its checkpoint was written, and what comes next.

    Attributes:
        pipeline: the pipeline.
        before, after: the two halves of the script.
        fuse: which stages ran together.
        policy: of segments, where the default one has no such state with a few rows.
    """

    pipeline: bm.Pipeline
    before: TestStream
    after: TestStream
    fuse: Fuse = APART
    policy: SegmentPolicy | None = None

    @property
    def script(self) -> TestStream:
        """Both halves."""
        return TestStream((*self.before.events, *self.after.events))


def pipeline() -> bm.Pipeline:
    return (
        bm.Pipeline()
        .event_time("ts", bm.BoundedOutOfOrderness("0 seconds"))
        .key_by("team")
        .trigger(EVERY, allow_data_loss=True)
        .allowed_lateness("100 seconds")
        .accumulating_and_retracting()
    )


def pipeline_after() -> bm.Pipeline:
    return bm.Pipeline().key_by().trigger(t.Always()).accumulating_and_retracting()


def rows(*times: float, team: str = "red") -> list[dict[str, object]]:
    return [{"ts": time, "team": team, "score": int(time) % 7, "name": f"n{int(time)}"} for time in times]


BEFORE = (
    TestStream()
    .add([*rows(1, 3, 12), *rows(2, team="blue")])
    .advance_watermark_to(10)
    .add([*rows(4, 15, 16), *rows(31, 33, team="blue")])
)
UNTIL_20 = TestStream((*BEFORE.events, *TestStream().advance_watermark_to(20).events))
AFTER = TestStream().add([*rows(5, 17, 21), *rows(6, 30, team="blue")]).advance_watermark_to(40).add(rows(2, 41))
EVERYTHING = {
    "n": a.Count(),
    "sum": a.Sum("score"),
    "mean": a.Mean("score"),
    "least": a.Min("name"),
    "variance": a.Variance("score"),
    "first": a.First("score"),
    "all": a.Collect("name"),
    "distinct": a.CountDistinct("score"),
    "about": a.ApproxCountDistinct("name"),
    "top": a.TopN(2, "score"),
    "median": a.Median("score"),
    "bits": a.Reduce(operator.or_, "score"),
}

TABLE = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness("0 seconds"))
    .key_by("team")
    .versions("60 seconds", values=["name"], sequence_by="score", only_updated=True)
)


def of_inputs(script: TestStream) -> TestStream:
    """Each bundle as changes of a table, then as rows that meet it."""
    events = (
        [attrs.evolve(event, input=name) for name in ("names", "plays")] if isinstance(event, Bundle) else [event]
        for event in script.events
    )
    return TestStream(tuple(itertools.chain.from_iterable(events)))


def pairs(join: a.Accumulation, window: bm.WindowOption) -> Case:
    """A join of the rows with themselves."""
    source = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness("0 seconds")).key_by("team")
    joined = (
        bm.merge(names=source, plays=source).window(window).trigger(EVERY).allowed_lateness("100 seconds").discarding()
    )
    return Case(joined.accumulate(pair=join), of_inputs(BEFORE), of_inputs(AFTER))


ALIKE = (
    pipeline()
    .window(bm.FixedWindows("10 seconds"))
    .accumulate(n=a.Count(), sum=a.Sum("score"))
    .suppress(bm.UntilTimeLimit("4 seconds", clock="event"))
    .then(
        bm.Pipeline()
        .key_by("team")
        .window(bm.FixedWindows("40 seconds"))
        .trigger(t.Always())
        .allowed_lateness("100 seconds")
        .accumulating_and_retracting()
        .accumulate(total=a.Sum("sum"), each=a.Collect("n"))
    )
)
"""Windows, a suppress, and wider windows keyed alike. On Spark ``chain_apart`` was begun by a version that fused no stages."""
CASES = {
    "fixed": Case(pipeline().window(bm.FixedWindows("10 seconds")).accumulate(**EVERYTHING), BEFORE, AFTER),
    "fixed_once": Case(
        pipeline().window(bm.FixedWindows("10 seconds")).deduplicate("score").accumulate(n=a.Count()), BEFORE, AFTER
    ),
    "once_within": Case(
        pipeline().window(bm.Sessions("4 seconds")).deduplicate("score", within="9 seconds").accumulate(n=a.Count()),
        BEFORE,
        AFTER,
    ),
    "rows_once": Case(
        bm.Pipeline()
        .event_time("ts", bm.BoundedOutOfOrderness("0 seconds"))
        .key_by("team")
        .deduplicate("score", within="30 seconds")
        .with_dropped(),
        BEFORE,
        AFTER,
    ),
    "pairs_once": pairs(
        a.InnerJoin("names", "plays", once=True, null_keys="pair"), bm.SlidingWindows("20 seconds", "10 seconds")
    ),
    "pairs_kept": pairs(
        a.FullOuterJoin(
            "names", "plays", once=True, null_keys="pair", keep_rows={"names": 2}, keep_for={"plays": "15 seconds"}
        ),
        bm.GlobalWindow(),
    ),
    "sessions": Case(
        pipeline().window(bm.Sessions("4 seconds")).retract_merged(bm.WITH_NEXT_PANE).accumulate(n=a.Count()),
        BEFORE,
        AFTER,
    ),
    "global": Case(
        pipeline()
        .window(bm.GlobalWindow())
        .trigger(t.Repeatedly(t.AfterAny(t.AfterCount(3), t.AfterProcessingTime("1 minute"))))
        .accumulate(n=a.Count(), names=a.CollectSet("name")),
        BEFORE.advance_processing_time_by(30),
        TestStream((*AFTER.events, *TestStream().advance_processing_time_to(300).events)),
    ),
    "windowings": Case(
        pipeline()
        .window({"short": bm.FixedWindows("5 seconds"), "visit": bm.Sessions("4 seconds")})
        .accumulate(n=a.Count()),
        BEFORE,
        AFTER,
    ),
    "chain": Case(
        pipeline()
        .window(bm.FixedWindows("10 seconds"))
        .accumulate(sum=a.Sum("score"))
        .then(
            bm.Pipeline()
            .trigger(t.Always())
            .allowed_lateness("100 seconds")
            .accumulating_and_retracting()
            .accumulate(teams=a.CollectSet("team"), total=a.Sum("sum"))
        ),
        BEFORE,
        AFTER,
    ),
    "chain_apart": Case(ALIKE, UNTIL_20, AFTER),
    "chain_fused": Case(ALIKE, UNTIL_20, AFTER, FUSE),
    "anchored": Case(
        pipeline().window(bm.AnchoredWindows("5 seconds")).accumulate(n=a.Count(), names=a.Collect("name")),
        BEFORE,
        AFTER,
    ),
    "suppress": Case(
        pipeline()
        .window(bm.Sessions("4 seconds"))
        .trigger(t.Always())
        .accumulate(n=a.Count(), names=a.CollectSet("name"))
        .suppress(bm.UntilTimeLimit("20 seconds", clock="event"), name="held"),
        BEFORE,
        AFTER,
    ),
    "suppress_discarding": Case(
        pipeline()
        .window(bm.Sessions("4 seconds"))
        .trigger(t.Always())
        .discarding()
        .allowed_lateness("5 seconds")
        .accumulate(n=a.Count(), median=a.Median("score"))
        .suppress(bm.UntilWindowCloses()),
        BEFORE,
        AFTER,
    ),
    "changes": Case(
        bm.Pipeline()
        .event_time("ts", bm.BoundedOutOfOrderness("0 seconds"))
        .key_by("team")
        .changes(sequence_by="score")
        .suppress(bm.UntilTimeLimit("20 seconds", clock="event")),
        BEFORE,
        AFTER,
    ),
    "rolling": Case(
        bm.Pipeline()
        .event_time("ts", bm.BoundedOutOfOrderness("0 seconds"))
        .key_by("team")
        .window(bm.Rolling({"a": "4 seconds", "b": "12 seconds"}, step="2 seconds", keep="history"))
        .trigger(t.AfterWatermark(early=t.AfterCount(1), late=t.AfterCount(1)))
        .allowed_lateness("100 seconds")
        .accumulating_and_retracting()
        .accumulate(n=a.Count(), mean=a.Mean("score"), names=a.CollectSet("name")),
        BEFORE,
        AFTER,
    ),
    "rolling_current": Case(
        bm.Pipeline()
        .event_time("ts", bm.BoundedOutOfOrderness("0 seconds"))
        .key_by("team")
        .window(bm.Rolling({"a": "4 seconds", "b": bm.Span("4 seconds", offset="6 seconds")}, step="2 seconds"))
        .accumulate(n=a.Count(), most=a.Max("score")),
        BEFORE,
        AFTER,
    ),
    "rolling_lifetime": Case(
        bm.Pipeline()
        .event_time("ts", bm.BoundedOutOfOrderness("0 seconds"))
        .key_by("team")
        .window(bm.Rolling({"a": "4 seconds", "ever": bm.Lifetime()}, step="2 seconds"))
        .forget_after("40 seconds")
        .accumulate(n=a.Count(), mean=a.Mean("score"), names=a.CollectSet("name")),
        BEFORE,
        AFTER,
    ),
    "versions": Case(TABLE, BEFORE, AFTER),
    "as_of_join": Case(
        bm.as_of_join(
            plays=bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness("0 seconds")),
            names=TABLE,
            how="left",
            grace="5 seconds",
        ).accumulating_and_retracting(),
        of_inputs(BEFORE),
        of_inputs(AFTER),
    ),
    "gaps": Case(
        bm.Pipeline()
        .event_time("ts", bm.BoundedOutOfOrderness("0 seconds"))
        .key_by("team")
        .fill_gaps("2 seconds", by="linear", within="30 seconds")
        .allowed_lateness("10 seconds"),
        BEFORE,
        AFTER,
    ),
    "upserts": Case(
        bm.Pipeline()
        .event_time("ts", bm.BoundedOutOfOrderness("0 seconds"))
        .key_by("team")
        .upserts(sequence_by="score")
        .forget_after("30 seconds")
        .then(pipeline_after().window(bm.GlobalWindow()).accumulate(n=a.Count(), sum=a.Sum("ts"))),
        BEFORE,
        AFTER,
    ),
    "table_join": Case(
        bm.table_join(
            plays=bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness("0 seconds")).key_by("name").upserts(),
            names=bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness("0 seconds")),
            on={"team": "team"},
            how="outer",
        ).forget_after("60 seconds"),
        of_inputs(BEFORE),
        of_inputs(AFTER),
    ),
    "times_of_a_column": Case(
        pipeline()
        .window(bm.FixedWindows("10 seconds"))
        .accumulate(at=a.Max("ts"), all=a.Collect("score"))
        .explode("all")
        .then(
            pipeline_after()
            .event_time("at", bm.BoundedOutOfOrderness("20 seconds"))
            .window(bm.FixedWindows("20 seconds"))
            .allowed_lateness("100 seconds")
            .accumulate(n=a.Count(), sum=a.Sum("all"))
        ),
        BEFORE,
        AFTER,
    ),
    "over": Case(
        bm.Pipeline()
        .event_time("ts", bm.BoundedOutOfOrderness("0 seconds"))
        .key_by("team")
        .over(bm.Preceding("5 seconds"), order_by="score")
        .allowed_lateness("7 seconds")
        .accumulating_and_retracting()
        .accumulate(n=a.Count(), sum=a.Sum("score"), names=a.Collect("name"), least=bm.FirstValue("score")),
        BEFORE,
        AFTER,
    ),
    "over_all": Case(
        bm.Pipeline()
        .event_time("ts", bm.BoundedOutOfOrderness("0 seconds"))
        .key_by("team")
        .over(bm.Unbounded())
        .discarding()
        .accumulate(
            sum=a.Sum("score"),
            first=bm.FirstValue("name"),
            before=bm.Lag("score", 2),
            after=bm.Lead("score"),
            number=bm.RowNumber(),
            dense=bm.DenseRank(),
        ),
        TestStream(
            (*BEFORE.events, *TestStream().advance_watermark_to(40).add(rows(90)).advance_watermark_to(45).events)
        ),
        TestStream()
        .add([*rows(91, 92), *rows(92, team="blue")])
        .advance_watermark_to(99)
        .advance_watermark_to_infinity(),
    ),
    "generations": Case(
        pipeline().window(bm.GlobalWindow()).trigger(t.Always()).accumulate(n=a.Count()),
        TestStream().add([*rows(1, 3), *rows(2, team="blue"), *rows(3, team="green")]).add(rows(4, team="white")),
        TestStream().add([*rows(5), *rows(6, team="white"), *rows(7, team="grey")]).add(rows(8, team="blue")),
        policy=SegmentPolicy(recent_windows=0, recent_batches=1),
    ),
    "watermarks_per_key": Case(
        pipeline()
        .window(bm.FixedWindows("10 seconds"))
        .watermark_per_key("1 second", at_most="20 seconds")
        .accumulate(n=a.Count(), sum=a.Sum("score")),
        BEFORE,
        AFTER,
    ),
    "merge": Case(
        bm.merge(
            sums=pipeline().window(bm.FixedWindows("10 seconds")).accumulate(sum=a.Sum("score")),
            names=pipeline().window(bm.FixedWindows("10 seconds")).accumulate(names=a.CollectSet("name")),
        )
        .trigger(t.AfterWatermark(early=t.Always(), late=t.Always()))
        .allowed_lateness("100 seconds")
        .accumulating_and_retracting()
        .accumulate(pair=a.FullOuterJoin("sums", "names", null_keys="pair")),
        TestStream().add(rows(1, 3, 12), input="sums").add(rows(2, 14, 16), input="names"),
        TestStream().add(rows(4, 5), input="names").advance_watermark_to(30).add(rows(6, 7), input="sums"),
    ),
}
ON_SPARK = ("fixed", "merge", "chain_apart", "chain_fused")
