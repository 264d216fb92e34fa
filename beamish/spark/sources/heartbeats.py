"""The clock as rows: a streaming source that gives one row per batch, the batch's clock.

Its value is in the query's offset log, so a batch that is run again sees the same clock. In a continuous query a
heartbeat comes with a batch once per second at most. Under ``Trigger.AvailableNow`` it comes twice, with the
run's first two batches, and then no more, so that the run ends: twice because idle_timeout looks at the clock of the
step before (docs/semantics.md#idle-timeout), so that windows of a stream that went quiet close in the next run that
brings no rows.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from beamish.spark.sources.available_now import SupportsTriggerAvailableNow
from beamish.spark.worker_sockets import Acknowledged

TICKS = t.StructType([t.StructField("clock_us", t.LongType())])
_EVERY_US = 1_000_000
_TICKS_PER_RUN = 2


class HeartbeatSource(DataSource):
    """Spark's name for it is ``beamish_heartbeats``."""

    @classmethod
    def name(cls) -> str:
        return "beamish_heartbeats"

    def schema(self) -> t.StructType:
        return TICKS

    def streamReader(self, schema: t.StructType) -> DataSourceStreamReader:  # noqa: N802
        return HeartbeatReader()


class HeartbeatReader(Acknowledged, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Offsets are ``{"tick": number of the heartbeat, "clock_us": its clock}``."""

    def __init__(self) -> None:
        self._available_now = False
        self._last_tick: int | None = None

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"tick": 0, "clock_us": 0}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._available_now = True

    def latestOffset(self, start: Any = None, limit: Any = None) -> dict[str, int]:  # noqa: N802
        # Before Spark 4.2 there are no arguments; the tick then stays 0 and offsets differ by the clock alone.
        clock_us = time.time_ns() // 1000
        if start is None:
            return {"tick": 0, "clock_us": clock_us // _EVERY_US * _EVERY_US}
        if self._last_tick is None and self._available_now:
            self._last_tick = start["tick"] + _TICKS_PER_RUN
        due = clock_us >= start["clock_us"] + _EVERY_US if self._last_tick is None else start["tick"] < self._last_tick
        return {"tick": start["tick"] + 1, "clock_us": max(clock_us, start["clock_us"])} if due else start

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        return [InputPartition(end["clock_us"])]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        yield pa.record_batch([pa.array([partition.value], pa.int64())], names=["clock_us"])


def register(spark: SparkSession) -> None:
    """Tell a session the source."""
    spark.dataSource.register(HeartbeatSource)


def heartbeats(spark: SparkSession) -> DataFrame:
    """A streaming DataFrame of heartbeats: ``clock_us``; the session knows the source."""
    return spark.readStream.format(HeartbeatSource.name()).load()
