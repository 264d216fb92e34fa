"""Floors: rows taken through Python stages like ours whose functions do nothing. What is left is Spark's own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

SHARDS = 2
_NOTHING = b"0" * 1000


def packed_and_counted(df: DataFrame) -> DataFrame:
    """Two stages that only count their rows: the floor of large batches."""

    def total(_key: Any, frames: Iterator[Any], _state: Any) -> Iterator[Any]:
        yield from frames

    packed = _rows(df).mapInArrow(_count, "shard int, payload binary")
    return packed.groupBy("shard").applyInPandasWithState(
        total, "shard int, payload binary", "n int", "append", "NoTimeout"
    )


def three_stages(df: DataFrame) -> DataFrame:
    """A ``transformWithState`` between two maps, with one get and one put per shard: the floor of small batches."""
    packed = _rows(df).mapInArrow(_count, "shard int, payload binary")
    called = packed.groupBy("shard").transformWithStateInPandas(
        _OneGetOnePut(), outputStructType="panes binary", outputMode="Append", timeMode="EventTime"
    )
    return called.mapInArrow(_panes, "n bigint")


def _rows(df: DataFrame) -> DataFrame:
    return df.withWatermark("ts", "1 minute").select("k", F.unix_micros("ts").alias("us"), "x")


def _count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    rows = sum(batch.num_rows for batch in batches)
    payloads = pa.array([str(rows).encode()] * SHARDS, pa.binary())
    yield pa.record_batch({"shard": pa.array(range(SHARDS), pa.int32()), "payload": payloads})


class _OneGetOnePut(StatefulProcessor):
    def init(self, handle: StatefulProcessorHandle) -> None:
        self._shard = handle.getMapState("shard", "name string", "value binary")

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N802, N803
        for _ in rows:
            pass
        self._shard.getValue(("index",))
        self._shard.updateValue(("index",), (_NOTHING,))
        yield pd.DataFrame({"panes": [b"0"]})


def _panes(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield pa.record_batch({"n": pa.array([1] * batch.num_rows, pa.int64())})
