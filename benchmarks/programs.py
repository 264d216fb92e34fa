"""The programs that are timed: beamish and its peers, each for the same rows and the same windows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import attrs
import pyarrow as pa
from by_hand import apply_in_pandas_with_state, product_by_hand, transform_with_state
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import beamish as bm
from beamish.accumulations import Accumulation, ApproxCountDistinct, Count, Max, Mean, Min, StdDev, Sum
from beamish.triggers import AfterWatermark, Always

Program = Callable[[DataFrame], tuple[DataFrame, str]]
"""Rows to result and output mode."""


@attrs.frozen
class SumOfSquares(Accumulation):
    """A user's own accumulation in plain Python."""

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


def _packed_and_counted(df: DataFrame) -> tuple[DataFrame, str]:
    """The floor: rows taken through the same two stages by Python functions that only count them."""

    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = sum(batch.num_rows for batch in batches)
        yield pa.record_batch({"shard": pa.array([0], pa.int32()), "rows": pa.array([rows], pa.int64())})

    def total(_key: Any, frames: Iterator[Any], _state: Any) -> Iterator[Any]:
        yield from frames

    counted = df.withWatermark("ts", "1 minute").select("k", F.unix_micros("ts").alias("us"), "x")
    packed = counted.mapInArrow(count, "shard int, rows bigint")
    return packed.groupBy("shard").applyInPandasWithState(
        total, "shard int, rows bigint", "n int", "append", "NoTimeout"
    ), "append"


PROGRAMS: dict[str, Program] = {
    "beamish": _beamish(_EARLY.accumulating()),
    "beamish retracting": _beamish(_EARLY.accumulating_and_retracting()),
    "beamish sliding": _beamish(
        _EARLY.accumulating().window(bm.SlidingWindows("10 minutes", "1 minute")).allowed_lateness("1 minute")
    ),
    "beamish sessions": _beamish(
        _EARLY.window(bm.Sessions("30 seconds")).allowed_lateness("1 minute").accumulating_and_retracting()
    ),
    "beamish final": _beamish(_MINUTES),
    "beamish seven": _beamish(bm.Pipeline(_EARLY.accumulating().options).accumulate(**_SEVEN)),
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
    "floor": _packed_and_counted,
}
