"""Floors: rows through Python stages like beamish's, whose functions do nothing. The rest is Spark's own cost.

Their workers spend as little on memory as ours (``beamish/spark/runtime/workers.py``), and wait as little
(``beamish/spark/runtime/workers.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame, GroupedData
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

import beamish as bm
from beamish.contract.stored import DictStore
from beamish.kernels.buffers import from_bytes, to_bytes
from beamish.kernels.column_names import EVENT_TIME
from beamish.spark.operator.heartbeats import heartbeats, register
from beamish.spark.operator.panes import panes_to_rows, plain_schema
from beamish.spark.operator.travelling import state_of
from beamish.spark.rows.pack import shard_ids
from beamish.spark.rows.schemas import arrow_type, spark_schema
from beamish.spark.runtime.workers import Acknowledged, AcknowledgedFunction, spare_memory

_NOTHING = b"0" * 1000


def packed_and_counted(df: DataFrame) -> DataFrame:
    """Two stages that only count their rows: the floor of large batches."""

    def total(_key: Any, frames: Iterator[Any], _state: Any) -> Iterator[Any]:
        yield from frames

    packed = _rows(df).mapInArrow(_counted(_shards(df)), "shard int, payload binary")
    return packed.groupBy("shard").applyInPandasWithState(
        total, "shard int, payload binary", "n int", "append", "NoTimeout"
    )


def two_stages(df: DataFrame) -> DataFrame:
    """A map, then a ``transformWithState`` with one get and one put per shard: the floor of small batches."""
    return _called(_rows(df).mapInArrow(_counted(_shards(df)), "shard int, payload binary").groupBy("shard"))


def with_heartbeats(df: DataFrame) -> DataFrame:
    """The two stages, where each shard also receives clock heartbeats."""
    register(df.sparkSession)
    each = F.explode(F.array(*map(F.lit, shard_ids(_shards(df)))))
    ticks = heartbeats(df.sparkSession).select(each.alias("shard"), F.lit(None).cast("binary").alias("payload"))
    packed = _rows(df).mapInArrow(_counted(_shards(df)), "shard int, payload binary")
    return _called(packed.unionByName(ticks).groupBy("shard"))


def three_pairs(df: DataFrame) -> DataFrame:
    """The same three times in a row: the floor of three stages."""
    rows = _rows(df)
    for _ in range(3):
        rows = _called(rows.mapInArrow(_counted(_shards(df)), "shard int, payload binary").groupBy("shard"))
    return rows


def answered(df: DataFrame, pipeline: bm.Pipeline, panes: int, segments: Sequence[int]) -> DataFrame:
    """The two stages, with an answer as large as ours in each batch.

    Args:
        df: the rows.
        pipeline: whose panes they are.
        panes: how many leave in a batch, all alike.
        segments: how many bytes each value has that a shard reads and writes in a batch.
    """
    schema = pa.schema([(field.name, arrow_type(field.dataType)) for field in df.schema])
    operator = pipeline.flow.bind({None: schema}, shards=1).operator
    row = {"ts": datetime(2026, 1, 1, tzinfo=UTC), "k": "key1000", "x": 1, EVENT_TIME: 0}
    rows = pa.Table.from_pylist([row], schema.append(pa.field(EVENT_TIME, pa.int64())))
    pane = operator.open(DictStore()).step([None], None, [payload for _, payload in operator.pack(0, rows)])
    answer = _Answer(to_bytes(pane), panes // _shards(df), [b"0" * size for size in segments])
    packed = _rows(df).mapInArrow(_counted(_shards(df)), "shard int, payload binary")
    return packed.groupBy("shard").transformWithStateInPandas(
        answer, outputStructType=spark_schema(plain_schema(pane.schema)), outputMode="Append", timeMode="EventTime"
    )


def one_stage(df: DataFrame) -> DataFrame:
    """The same right after Spark's shuffle of the rows, without the map: the cost of that one stage."""
    ids = shard_ids(_shards(df))
    return _called(
        _rows(df).withColumn("shard", F.array(*map(F.lit, ids))[F.pmod(F.hash("k"), F.lit(len(ids)))]).groupBy("shard")
    )


def _called(by_shard: GroupedData) -> DataFrame:
    return by_shard.transformWithStateInPandas(
        _OneGetOnePut(), outputStructType="n bigint", outputMode="Append", timeMode="EventTime"
    )


def _rows(df: DataFrame) -> DataFrame:
    return df.withWatermark("ts", "1 minute").select("k", F.unix_micros("ts").alias("us"), "x")


def _shards(df: DataFrame) -> int:
    """As many as ours has."""
    return int(str(df.sparkSession.conf.get("spark.sql.shuffle.partitions")))


def _counted(shards: int) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    ids = pa.array(shard_ids(shards), pa.int32())

    def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        spare_memory()
        rows = sum(batch.num_rows for batch in batches)
        payloads = pa.array([str(rows).encode()] * shards, pa.binary())
        yield pa.record_batch({"shard": ids, "payload": payloads})

    return AcknowledgedFunction(count)


class _OneGetOnePut(Acknowledged, StatefulProcessor):
    def __init__(self) -> None:
        self._value = _NOTHING  # a function without state is not notified of unpickling

    def init(self, handle: StatefulProcessorHandle) -> None:
        spare_memory()
        self._shard = state_of(handle)

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N802, N803
        for _ in rows:
            pass
        self._shard.getValue(("index",))
        self._shard.updateValue(("index",), (self._value,))
        yield pd.DataFrame({"n": [1]})


class _Answer(_OneGetOnePut):
    def __init__(self, pane: bytes, panes: int, segments: Sequence[bytes]) -> None:
        super().__init__()
        self._pane, self._panes, self._segments = pane, panes, segments

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N802, N803
        for _ in rows:
            pass
        for number, segment in enumerate(self._segments):
            self._shard.getValue((str(number),))
            self._shard.updateValue((str(number),), (segment,))
        pane = from_bytes(self._pane)
        yield from panes_to_rows(pane.take(np.zeros(self._panes, np.int64)))
