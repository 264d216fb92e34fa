"""User programs for type checkers: read by mypy, strictly, in the tree and against a built wheel, and by pyright.

A line with ``type: ignore`` must be an error, of this kind: both say so if it is none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, assert_type

import attrs

import beamish as bm
from beamish import accumulations as a
from beamish import triggers as t
from beamish.testing import TestStream

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


# Each call of a builder gives a pipeline; durations are text, timedelta or seconds.

scores = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness("30 seconds", max_future=timedelta(hours=1), idle_timeout=2.5))
    .key_by("team", "player")
    .key_by(["team", "player"])
    .window(bm.FixedWindows(timedelta(minutes=2), offset=5))
    .trigger(t.AfterWatermark(early=t.AfterProcessingTime("1 minute"), late=t.AfterCount(1)))
    .allowed_lateness("1 hour")
    .accumulating_and_retracting()
    .on_time_behavior(bm.OnTimeBehavior.FIRE_ALWAYS)
    .closing_behavior(bm.ClosingBehavior.FIRE_IF_NON_EMPTY)
    .timestamp_combiner(bm.TimestampCombiner.LATEST)
    .only_updated_panes()
    .with_dropped()
    .on_error("drop")
    .accumulate(total=a.Sum("score"), plays=a.Count(), best=a.TopN(3, "score"))
)
assert_type(scores, bm.Pipeline)
assert_type(scores.explain(), str)

visits = bm.Pipeline().event_time("ts", bm.Punctuated("mark")).window(bm.Sessions("10 minutes")).accumulate(n=a.Count())
assert_type(visits.retract_merged(bm.AT_MERGE), bm.Pipeline)
several = visits.window({"day": bm.CalendarWindows(days=1, timezone="Europe/Paris"), "all": bm.GlobalWindow()})
assert_type(several, bm.Pipeline)

# A script, and the panes it gives.

script = (
    TestStream()
    .add([{"ts": 1, "team": "red", "score": 3}, {"ts": 2.5, "team": None}])
    .add([{"ts": datetime(1970, 1, 1, tzinfo=UTC)}])
    .advance_processing_time_by("1 minute")
    .advance_watermark_to(datetime(1970, 1, 2, tzinfo=UTC))
    .advance_watermark_to_infinity()
)
assert_type(script, TestStream)
assert_type(script.step([{"ts": 2}], watermark=float("inf"), clock=datetime(1970, 1, 3, tzinfo=UTC)), TestStream)


def read(panes: list[bm.Pane]) -> Iterator[tuple[datetime, Any]]:
    """Read what a pane has."""
    for pane in panes:
        assert_type(pane.kind, bm.PaneKind)
        assert_type(pane.index, int)
        assert_type(pane.is_last, bool)
        assert_type(pane.end - pane.start, timedelta)
        if isinstance(pane.window, bm.Window) and pane.window.start is not None:
            yield pane.window.start, pane.values["total"]
        yield pane.start, pane.values["total"]


assert_type(list(read(list(scores.run(script)))), list[tuple[datetime, Any]])
panes: list[bm.Pane] = scores.run(script)
assert_type(bm.live(panes), list[bm.Pane])
assert_type(bm.plot.timeline(scores, script, key="red"), bm.plot.Figure)
assert_type(bm.plot.timeline(panes, key={"team": "red"}).html(library=False), str)

# Stages and merges.

totals = scores.then(bm.Pipeline().key_by("total").accumulate(teams=a.CollectSet("team")))
chained: list[bm.Pane] = totals.run(script)
orders = bm.Pipeline().event_time("ts", bm.ProcessingTimeLag(5)).key_by("user")
joined = (
    bm.merge(orders=orders, clicks=orders).window(bm.FixedWindows(60)).accumulate(p=a.InnerJoin("orders", "clicks"))
)
a.LeftOuterJoin("orders", "clicks", once=True, keep_rows={"orders": 3}, keep_for={"clicks": "1 day"})
merged: list[bm.Pane] = joined.run(TestStream().add([{"ts": 1}], input="orders"))


# A pipeline in SQL.

views = bm.sql(
    "SELECT region, BEST(ms) AS best FROM views WINDOW TUMBLING (SIZE 5 MINUTES) GROUP BY region EMIT FINAL",
    event_time="ts",
    watermark=bm.BoundedOutOfOrderness("30 seconds"),
    aggregates={"BEST": lambda column: a.TopN(3, column)},
    with_dropped=True,
    on_error="drop",
)
assert_type(views, bm.Query)
assert_type(views.run(script), list[bm.Pane])
assert_type(views.pipeline, bm.Pipeline)
assert_type(views.name, str | None)
assert_type(views.kind == "push", bool)
assert_type(bm.errors.of(ValueError("of Spark's")), bm.errors.BeamishError | None)


# A user's own.


@attrs.frozen
class Shifts(bm.WindowOption):
    """Windows of eight hours."""

    hours: int = 8

    def assign(self, timestamp_us: int, *values: Any) -> Iterator[tuple[int, int]]:
        size = self.hours * 3_600_000_000
        start = timestamp_us // size * size
        yield start, start + size


@attrs.frozen
class EveryOtherBundle(t.Trigger):
    """Counts bundles."""

    def create(self) -> int:
        return 0

    def on_rows(self, state: int, count: int, context: t.TriggerContext) -> int:
        return state + (context.watermark_us is None or count > 0)

    def should_fire(self, state: int, context: t.TriggerContext) -> bool:
        return state >= 2 and not context.at_end

    def on_fire(self, state: int, context: t.TriggerContext) -> tuple[int, bool]:
        return 0, False

    def on_merge(self, states: Sequence[int], context: t.TriggerContext) -> int:
        return sum(states)

    def may_lose_rows(self, allowed_lateness_us: int) -> bool:
        return False


class PerDevice(bm.WindowOption):
    """A plain class; the argument has a name of its own."""

    columns = ("gap",)

    def assign(self, at_us: int, *values: Any) -> Iterator[tuple[int, int]]:
        yield at_us, at_us + int(values[0])


@attrs.frozen
class Weighted(a.Accumulation):
    """Two columns, said more exactly than the base class does."""

    column: tuple[str, str]
    result_type = "double"

    def create(self) -> list[float]:
        return [0.0, 0.0]

    def add(self, accumulator: list[float], row: tuple[float, float]) -> list[float]:
        return [accumulator[0] + row[0] * row[1], accumulator[1] + row[1]]

    def merge(self, one: list[float], other: list[float]) -> list[float]:
        return [one[0] + other[0], one[1] + other[1]]

    def extract(self, accumulator: list[float]) -> float | None:
        return accumulator[0] / accumulator[1] if accumulator[1] else None


@attrs.frozen
class Product(a.Accumulation):
    """The product of a column."""

    column: str
    result_type = "double"

    def create(self) -> float:
        return 1.0

    def add(self, accumulator: float, value: float | None) -> float:
        return accumulator if value is None else accumulator * value

    def merge(self, a: float, b: float) -> float:
        return a * b

    def extract(self, accumulator: float) -> float:
        return accumulator

    def retract(self, accumulator: float, value: float | None) -> float:
        return accumulator if value is None else accumulator / value


own = scores.window(Shifts()).trigger(t.Repeatedly(EveryOtherBundle())).accumulate(p=Product("score"))
assert_type(own, bm.Pipeline)
assert_type(scores.window(PerDevice()).accumulate(mean=Weighted(("price", "shares"))), bm.Pipeline)
of_one: a.Accumulation = Product("amount").of("orders")
several_columns: list[a.Accumulation] = [a.CountDistinct("user", "item"), a.CoGroup("orders", "clicks")]


# A table without Spark.


def rates_of(changes: Iterator[tuple[str, float | None, datetime]]) -> float:
    """Answers are checked for None before they are looked into."""
    with bm.VersionedTable("1 day", path="rates.table", allowed_lateness=timedelta(hours=1)) as table:
        assert_type(table.load(changes), int)
        assert_type(table.put("EUR", 1.08, 10), bm.Validity | None)
        assert_type(table.delete(("EUR", 3), datetime.now(UTC)), bm.Version | None)
        assert_type(table.versions("EUR", since=10, newest_first=True), list[bm.Version])
        assert_type(table.oldest, datetime | None)
        version = table.get("EUR", as_of=10.5)
        return 0.0 if version is None else float(version.value)


# On Spark.


def on_spark(events: DataFrame, day: Column) -> DataFrame:
    """Columns may be expressions there."""
    out = events.transform(
        bm.Pipeline().event_time(day, bm.BoundedOutOfOrderness(0)).key_by(day).accumulate(n=a.Count())
    )
    changes = bm.changelog(out, "kafka", fields=["timing"], keys=["n"], value_format=lambda row: row)
    assert_type(bm.changelog(out), "DataFrame")
    assert_type(bm.live(out, keys=["n"]), "DataFrame")
    split = bm.panes(out).union(bm.dropped(scores.apply(events))).union(changes)
    return split.union(events.transform(views))


def in_steps(spark: SparkSession) -> list[bm.Pane]:
    """The options of a script on Spark have names."""
    assert_type(script.trace_on_spark(spark, scores, checkpoint="here", initial=[{"ts": 1}])[0][1], list[bm.Pane])
    return script.on_spark(spark, scores, shards=3, partitions=2, restart_after=[1], heartbeats=True)


def refused(spark: SparkSession) -> None:
    """Each line is an error; none is ever run."""
    scores.allowed_lateness(None)  # type: ignore[call-overload]
    scores.key_by(3)  # type: ignore[arg-type]
    scores.key_by(["team", 3])  # type: ignore[list-item]
    scores.event_time(3, bm.BoundedOutOfOrderness(0))  # type: ignore[arg-type]
    scores.accumulate(a.Count())  # type: ignore[arg-type]
    bm.merge(orders, orders)  # type: ignore[arg-type]
    bm.FixedWindows([5])  # type: ignore[arg-type]
    bm.BoundedOutOfOrderness("1 minute", max_future=[1])  # type: ignore[arg-type]
    script.advance_processing_time_by(None)  # type: ignore[arg-type]
    script.on_spark(spark, scores, shard=3)  # type: ignore[call-arg]
    script.on_spark(spark, scores, restart_after=1)  # type: ignore[arg-type]
    t.AfterWatermark(early=5)  # type: ignore[arg-type]
    print(panes[0].end + 3)  # type: ignore[operator]
    print(panes[0].values.total)  # type: ignore[attr-defined]
    scores.window("10 minutes")  # type: ignore[arg-type]
    scores.trigger(t.AfterCount)  # type: ignore[arg-type]
    scores.accumulate(n="score")  # type: ignore[arg-type]
    scores.then(3)  # type: ignore[arg-type]
    scores.event_time("ts", 30)  # type: ignore[arg-type]
    bm.plot.timeline(scores, script, rows=[])  # type: ignore[call-overload]
    bm.live(3)  # type: ignore[call-overload]
    scores.from_changelog(3)  # type: ignore[arg-type]
    scores.discard()  # type: ignore[attr-defined]
    bm.Pane()  # type: ignore[call-arg]
    panes[0].window.count(1)  # type: ignore[union-attr]
    panes[0].kind = bm.PaneKind.DROPPED  # type: ignore[misc]
    t.AfterCount("2")  # type: ignore[arg-type]
    t.AfterAny(3)  # type: ignore[arg-type]
    a.Sum(3)  # type: ignore[arg-type]
    bm.FixedWindows()  # type: ignore[call-arg]
    a.CoGroup(1)  # type: ignore[arg-type]
    bm.VersionedTable("1 day").get(["EUR"])  # type: ignore[arg-type]
    repr(bm.VersionedTable("1 day").get("EUR").value)  # type: ignore[union-attr]
    bm.VersionedTable("1 day", "rates.table")  # type: ignore[call-arg]
    bm.sql("SELECT 1", dialect="mysql")  # type: ignore[arg-type]
    bm.sql("SELECT 1", event_time="ts", watermark=30)  # type: ignore[arg-type]
    bm.Pipeline().on_error("skip")  # type: ignore[arg-type]
