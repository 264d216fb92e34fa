"""The timed programs: beamish and its peers, with the same rows and windows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import attrs
from by_hand import (
    apply_in_pandas_with_state,
    as_of_by_hand,
    as_of_in_pandas_with_state,
    limited_by_hand,
    over_by_hand,
    product_by_hand,
    rolling_by_hand,
    rows_by_hand,
    transform_with_state,
)
from floor import answered, one_stage, packed_and_counted, three_pairs, two_stages, with_heartbeats
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import beamish as bm
from beamish.accumulations import (
    Accumulation,
    ApproxCountDistinct,
    Count,
    InnerJoin,
    Max,
    Mean,
    Min,
    StdDev,
    Sum,
)
from beamish.triggers import AfterWatermark, Always, Never

Program = Callable[[DataFrame], tuple[Any, str]]
"""Rows to result (a list: of several queries) and output mode."""


@attrs.frozen
class SumOfSquares(Accumulation):
    """A custom accumulation in plain Python."""

    column: str
    result_type = "bigint"

    def create(self) -> int:
        return 0

    def add(self, accumulator: int, value: int) -> int:
        return accumulator + value * value

    def merge(self, a: int, b: int) -> int:
        return a + b

    def extract(self, accumulator: int) -> int:
        return accumulator


_ROWS = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness("1 minute")).key_by("k")
_PANES = AfterWatermark(early=Always(), late=Always())
_MINUTES = _ROWS.window(bm.FixedWindows("1 minute")).accumulate(n=Count(), s=Sum("x"))
_EARLY = _MINUTES.trigger(_PANES).allowed_lateness("10 minutes")
_COUNTED = _ROWS.accumulate(n=Count(), s=Sum("x"))
_LATEST = bm.TimestampCombiner.LATEST
_HALF_A_WINDOW = bm.UntilTimeLimit("30 seconds", clock="event")
_EVERY_BUNDLE = _MINUTES.trigger(Always()).accumulating()
_CHANGES = _ROWS.changes()
_SPANS = {"1h": "1 hour", "12h": "12 hours", "24h": "24 hours"}
_ONCE = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness("1 minute")).deduplicate("k", within="1 day")
_FINAL = "SELECT k, COUNT(*) AS n, SUM(x) AS s FROM rows WINDOW TUMBLING (SIZE 1 MINUTE) GROUP BY k EMIT FINAL"
_SEVEN = {
    "n": Count(),
    "s": Sum("x"),
    "low": Min("x"),
    "high": Max("x"),
    "mean": Mean("x"),
    "spread": StdDev("x"),
    "kinds": ApproxCountDistinct("x"),
}


def _beamish(pipeline: bm.Pipeline) -> Program:
    return lambda df: (pipeline.apply(df), "append")


def _native(window: Callable[[], Any], mode: str, *aggregates: Any) -> Program:
    def program(df: DataFrame) -> tuple[DataFrame, str]:
        wanted = [make() for make in aggregates] or [F.count("*").alias("n"), F.sum("x").alias("s")]
        return df.withWatermark("ts", "1 minute").groupBy(window(), "k").agg(*wanted), mode

    return program


def _minute() -> Any:
    return F.window("ts", "1 minute")


_LONG = _ROWS.event_time("ts", bm.BoundedOutOfOrderness("10 days")).window(bm.FixedWindows("1 minute"))
_WINDOWINGS = {
    "minute": bm.FixedWindows("1 minute"),
    "ten minutes": bm.FixedWindows("10 minutes"),
    "visit": bm.Sessions("30 seconds"),
}
_SIDES = ("even", "odd")


def _sides(df: DataFrame) -> dict[str, DataFrame]:
    return {name: df.where(F.col("x") % 2 == number) for number, name in enumerate(_SIDES)}


def _join(df: DataFrame) -> tuple[DataFrame, str]:
    """Pairs of an even and an odd row of one key and minute."""
    merged = bm.merge(**dict.fromkeys(_SIDES, _ROWS)).window(bm.FixedWindows("1 minute"))
    return merged.accumulate(pair=InnerJoin(*_SIDES)).apply(**_sides(df)), "append"


def _native_join(df: DataFrame) -> tuple[DataFrame, str]:
    even, odd = (
        side.withWatermark("ts", "1 minute").select(
            F.col("k").alias(f"{name}_k"), _minute().alias(f"{name}_window"), F.struct("ts", "x").alias(name)
        )
        for name, side in _sides(df).items()
    )
    both = (F.col("even_k") == F.col("odd_k")) & (F.col("even_window") == F.col("odd_window"))
    return even.join(odd, both, "inner"), "append"


def _join_once(window: bm.WindowOption) -> Program:
    """The same, each pair once and as early as possible."""
    merged = bm.merge(**dict.fromkeys(_SIDES, _ROWS)).window(window).trigger(Always()).discarding()
    join = merged.accumulate(pair=InnerJoin(*_SIDES, once=True))
    return lambda df: (join.apply(**_sides(df)), "append")


def _native_join_in_range(df: DataFrame) -> tuple[DataFrame, str]:
    """Pairs of an odd row and an even one of the minute before it."""
    even, odd = (side.withWatermark("ts", "1 minute").alias(name) for name, side in _sides(df).items())
    in_range = F.expr("odd.ts >= even.ts AND odd.ts <= even.ts + INTERVAL 1 MINUTE")
    joined = even.join(odd, (F.col("even.k") == F.col("odd.k")) & in_range, "inner")
    return joined.select(
        "even.k", F.struct("even.ts", "even.x").alias("even"), F.struct("odd.ts", "odd.x").alias("odd")
    ), "append"


def _rows_and_changes(df: DataFrame) -> dict[str, DataFrame]:
    """Ten rows to join per change of a table."""
    is_change = F.col("x") % 11 == 0
    changes = df.where(is_change).select(F.col("k"), F.col("ts").alias("changed"), F.col("x").alias("rate"))
    return {"rows": df.where(~is_change), "rates": changes}


def _as_of(delay: str, *, retracting: bool = False) -> Program:
    """An as-of join; with a shorter delay one change in a hundred is late."""
    policy = bm.BoundedOutOfOrderness(delay)
    table = bm.Pipeline().event_time("changed", policy).key_by("k").versions("10 minutes")
    join = bm.as_of_join(rows=bm.Pipeline().event_time("ts", policy), rates=table)
    join = join.accumulating_and_retracting() if retracting else join
    return lambda df: (join.apply(**_rows_and_changes(df)), "append")


def _range_join(df: DataFrame) -> tuple[DataFrame, str]:
    """The same by a join on key and time range, then the latest match of each row."""
    rows, rates = _rows_and_changes(df).values()
    left, right = rows.withWatermark("ts", "1 minute").alias("l"), rates.withWatermark("changed", "1 minute").alias("r")
    in_range = F.expr("r.changed <= l.ts AND r.changed > l.ts - INTERVAL 10 MINUTES")
    joined = left.join(right, (F.col("l.k") == F.col("r.k")) & in_range, "inner")
    one_row = (
        F.window("l.ts", "1 minute"),
        F.col("l.k").alias("k"),
        F.unix_micros("l.ts").alias("at_us"),
        F.col("l.x").alias("x"),
    )
    return joined.groupBy(*one_row).agg(F.max_by("r.rate", "r.changed").alias("rate")), "append"


def _chain(df: DataFrame) -> tuple[DataFrame, str]:
    """How many keys had n rows in a minute, for every ten minutes."""
    later = bm.Pipeline().key_by("n").window(bm.FixedWindows("10 minutes")).accumulate(keys=Count(), s=Sum("s"))
    return _MINUTES.then(later).apply(df), "append"


def _longer_chain(df: DataFrame) -> tuple[DataFrame, str]:
    """And in how many ten minutes that was so, per hour."""
    later = bm.Pipeline().key_by("n").window(bm.FixedWindows("10 minutes")).accumulate(keys=Count(), s=Sum("s"))
    hours = bm.Pipeline().key_by("n").window(bm.FixedWindows("1 hour")).accumulate(times=Count(), s=Sum("s"))
    return _MINUTES.then(later).then(hours).apply(df), "append"


def _alike(df: DataFrame, *, stages: int, fuse: bool = True) -> tuple[DataFrame, str]:
    """Minutes, ten minutes and hours of the same keys."""
    chain = _MINUTES
    for size in ("10 minutes", "1 hour")[: stages - 1]:
        window = bm.Pipeline().key_by("k").window(bm.FixedWindows(size))
        chain = chain.then(window.accumulate(n=Sum("n"), s=Sum("s")))
    return chain.apply(df, fuse=fuse), "append"


def _native_alike(df: DataFrame, *, stages: int) -> tuple[DataFrame, str]:
    found = (
        df.withWatermark("ts", "1 minute").groupBy(_minute(), "k").agg(F.count("*").alias("n"), F.sum("x").alias("s"))
    )
    for size in ("10 minutes", "1 hour")[: stages - 1]:
        later = found.groupBy(F.window(F.window_time("window"), size), "k")
        found = later.agg(F.sum("n").alias("n"), F.sum("s").alias("s"))
    return found, "append"


def _native_chain(df: DataFrame, *, longer: bool = False) -> tuple[DataFrame, str]:
    minutes = df.withWatermark("ts", "1 minute").groupBy(_minute(), "k")
    counted = minutes.agg(F.count("*").alias("n"), F.sum("x").alias("s"))
    later = counted.groupBy(F.window(F.window_time("window"), "10 minutes"), "n")
    tens = later.agg(F.count("*").alias("keys"), F.sum("s").alias("s"))
    if not longer:
        return tens, "append"
    hours = tens.groupBy(F.window(F.window_time("window"), "1 hour"), "n")
    return hours.agg(F.count("*").alias("times"), F.sum("s").alias("s")), "append"


def _sql(df: DataFrame) -> tuple[DataFrame, str]:
    return bm.sql(_FINAL, event_time="ts", watermark=bm.BoundedOutOfOrderness("1 minute")).apply(df), "append"


_RETRACTING = _EARLY.accumulating_and_retracting()
_FROM_CHANGELOG = (
    bm.Pipeline()
    .from_changelog("spark")
    .event_time("ts", bm.BoundedOutOfOrderness("1 minute"))
    .key_by("k")
    .window(bm.FixedWindows("1 minute"))
    .trigger(_PANES)
    .allowed_lateness("10 minutes")
    .accumulating_and_retracting()
    .accumulate(n=Count(), s=Sum("x"))
)


def _changelog(format_: Any) -> Program:
    """The panes of ``beamish retracting`` as a changelog."""
    return lambda df: (bm.changelog(_RETRACTING.apply(df), format_), "append")


def _from_changelog(df: DataFrame, *, updated: bool) -> tuple[DataFrame, str]:
    """The rows as inserts; or with one in ten deleted and inserted again."""
    once = F.array(F.lit("insert"))
    again = F.array(*map(F.lit, ("insert", "update_preimage", "update_postimage")))
    what = F.when(F.col("x") % 10 == 0, again).otherwise(once) if updated else once
    return _FROM_CHANGELOG.apply(df.withColumn("_change_type", F.explode(what))), "append"


def _brought(df: DataFrame) -> tuple[DataFrame, str]:
    """Windows of a minute over numbers that rows bring along: the milliseconds of their event times."""
    numbers = bm.CountWindows(60_000, numbered_by="i", delay=60_000)
    return _COUNTED.window(numbers).apply(df.withColumn("i", F.unix_millis("ts"))), "append"


def _answered(thousands: int) -> Program:
    """The I/O of ``beamish`` in a batch that touches this many thousand windows, without the work."""
    return lambda df: (answered(df, _EARLY.accumulating(), 1_800 * thousands, [1_650 * thousands] * 9), "append")


PROGRAMS: dict[str, Program] = {
    "beamish changelog spark": _changelog("spark"),
    "beamish changelog upsert": _changelog("upsert"),
    "beamish changelog debezium": _changelog("debezium"),
    "beamish from inserts": lambda df: _from_changelog(df, updated=False),
    "beamish from changelog": lambda df: _from_changelog(df, updated=True),
    "beamish limited": _beamish(_EARLY.accumulating().timestamp_combiner(_LATEST).suppress(_HALF_A_WINDOW)),
    "beamish limited retracting": _beamish(
        _EARLY.accumulating_and_retracting().timestamp_combiner(_LATEST).suppress(_HALF_A_WINDOW)
    ),
    "beamish until closed": _beamish(_EVERY_BUNDLE.suppress(bm.UntilWindowCloses())),
    "beamish never": _beamish(_EVERY_BUNDLE.trigger(Never())),
    "beamish sql final": _sql,
    "beamish changes held": lambda df: (
        _CHANGES.suppress(bm.UntilTimeLimit("10 days", clock="event")).apply(df, shards=16),
        "append",
    ),
    "beamish changes limited": _beamish(_CHANGES.suppress(bm.UntilTimeLimit("1 second", clock="processing"))),
    "transformWithState limited": lambda df: (limited_by_hand(df), "append"),
    "beamish once": _beamish(_ONCE),
    "Spark dropDuplicatesWithinWatermark": lambda df: (
        df.withWatermark("ts", "1 day").dropDuplicatesWithinWatermark(["k"]),
        "append",
    ),
    "beamish once per window": _beamish(_EARLY.accumulating().deduplicate("x")),
    "beamish": _beamish(_EARLY.accumulating()),
    "beamish with a clock": _beamish(
        _EARLY.accumulating().event_time("ts", bm.BoundedOutOfOrderness("1 minute", idle_timeout="10 minutes"))
    ),
    "beamish retracting": _beamish(_RETRACTING),
    "beamish sliding": _beamish(
        _EARLY.accumulating().window(bm.SlidingWindows("10 minutes", "1 minute")).allowed_lateness("1 minute")
    ),
    "beamish sessions": _beamish(
        _EARLY.window(bm.Sessions("30 seconds")).allowed_lateness("1 minute").accumulating_and_retracting()
    ),
    "beamish final": _beamish(_MINUTES),
    "beamish rolling": _beamish(_COUNTED.window(bm.Rolling(_SPANS, step="1 minute"))),
    "beamish rolling history": _beamish(_COUNTED.window(bm.Rolling(_SPANS, step="1 minute", keep="history"))),
    "beamish three sliding": _beamish(
        _COUNTED.window({name: bm.SlidingWindows(span, "1 minute") for name, span in _SPANS.items()})
    ),
    "applyInPandasWithState rolling": lambda df: (rolling_by_hand(df), "append"),
    "beamish over": _beamish(_ROWS.over(bm.Preceding("1 hour")).accumulate(total=Sum("x"), before=bm.Lag("x"))),
    "applyInPandasWithState over": lambda df: (over_by_hand(df), "append"),
    "beamish rows": _beamish(_COUNTED.window(bm.CountWindows(100))),
    "beamish rows over the stream": _beamish(_COUNTED.window(bm.CountWindows(100_000, over="stream"))),
    "beamish rows brought": _brought,
    "beamish rows hopping": _beamish(_COUNTED.window(bm.CountWindows(10, 1))),
    "applyInPandasWithState rows": lambda df: (rows_by_hand(df), "append"),
    "beamish retained": _beamish(_EARLY.allowed_lateness("10 days").accumulating()),
    "beamish state": _beamish(_LONG.accumulate(n=Count(), s=Sum("x"))),
    "Spark state": lambda df: (
        df.withWatermark("ts", "10 days").groupBy(_minute(), "k").agg(F.count("*").alias("n"), F.sum("x").alias("s")),
        "update",
    ),
    "beamish three windowings": _beamish(_EARLY.accumulating().window(_WINDOWINGS)),
    "beamish three queries": lambda df: (
        [_EARLY.accumulating().window(window).apply(df) for window in _WINDOWINGS.values()],
        "append",
    ),
    "beamish join": _join,
    "beamish join once": _join_once(bm.FixedWindows("1 minute")),
    "beamish join once in range": _join_once(bm.Within("1 minute", of="even")),
    "Spark join": _native_join,
    "Spark join in range": _native_join_in_range,
    "beamish as of": _as_of("1 minute"),
    "beamish as of retracting": _as_of("57 seconds", retracting=True),
    "Spark range join": _range_join,
    "transformWithState as of": lambda df: (as_of_by_hand(**_rows_and_changes(df)), "append"),
    "applyInPandasWithState as of": lambda df: (as_of_in_pandas_with_state(**_rows_and_changes(df)), "append"),
    "beamish versions": _beamish(_ROWS.versions("10 minutes")),
    "beamish chain": _chain,
    "beamish longer chain": _longer_chain,
    "beamish two alike": partial(_alike, stages=2),
    "beamish three alike": partial(_alike, stages=3),
    "beamish two alike, apart": partial(_alike, stages=2, fuse=False),
    "beamish three alike, apart": partial(_alike, stages=3, fuse=False),
    "Spark two alike": partial(_native_alike, stages=2),
    "Spark three alike": partial(_native_alike, stages=3),
    "Spark chain": _native_chain,
    "Spark longer chain": lambda df: _native_chain(df, longer=True),
    "beamish seven": _beamish(_EARLY.accumulating().accumulate(**_SEVEN)),
    "beamish own python": _beamish(_EARLY.accumulating().accumulate(squares=SumOfSquares("x"))),
    "Spark update": _native(_minute, "update"),
    "Spark append": _native(_minute, "append"),
    "Spark sliding update": _native(lambda: F.window("ts", "10 minutes", "1 minute"), "update"),
    "Spark session_window append": _native(lambda: F.session_window("ts", "30 seconds"), "append"),
    "Spark seven update": _native(
        _minute,
        "update",
        lambda: F.count("*").alias("n"),
        lambda: F.sum("x").alias("s"),
        lambda: F.min("x").alias("low"),
        lambda: F.max("x").alias("high"),
        lambda: F.avg("x").alias("mean"),
        lambda: F.stddev("x").alias("spread"),
        lambda: F.approx_count_distinct("x").alias("kinds"),
    ),
    "applyInPandasWithState": lambda df: (apply_in_pandas_with_state(df), "append"),
    "applyInPandasWithState own python": lambda df: (product_by_hand(df), "append"),
    "transformWithState": lambda df: (transform_with_state(df), "append"),
    "floor": lambda df: (packed_and_counted(df), "append"),
    "floor of two stages": lambda df: (two_stages(df), "append"),
    "floor of two stages with a clock": lambda df: (with_heartbeats(df), "append"),
    "floor of three pairs of stages": lambda df: (three_pairs(df), "append"),
    "floor with X1's answer": _answered(1),
    "floor with X2's answer": _answered(10),
    "floor with X3's answer": _answered(20),
    "floor of one stage": lambda df: (one_stage(df), "append"),
}
