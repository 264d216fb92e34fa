"""The clock as rows: a streaming source with one row per batch, the batch's clock.

Its value is in the query's offset log, so a replayed batch sees the same clock. ``machine_clock.py`` derives it from the
machine's clock. A continuous query has at most one heartbeat per second. Under ``Trigger.AvailableNow`` there are two, in the
run's first two batches, so that the run ends: two because idle_timeout uses the clock of the step before
(docs/rules/time.md#idle-timeout), so that windows of an idle stream close in the next run without rows.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from typing import Any

import attrs
import pyarrow as pa
from pyspark import serializers
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from beamish.spark.runtime.worker_sockets import Acknowledged
from beamish.spark.sources.available_now import SupportsTriggerAvailableNow
from beamish.spark.sources.machine_clock import Heartbeat, Reading

TICKS = t.StructType([t.StructField("clock_us", t.LongType())])
_EVERY_US = 1_000_000
_TICKS_PER_RUN = 2
_pickling: Any = vars(serializers)["cloudpickle"]  # it has no types


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
    """Offsets are those of ``Heartbeat``."""

    def __init__(self) -> None:
        self._available_now = False
        self._last_tick: int | None = None
        self._before = Heartbeat()
        self._jumped = False

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        return Heartbeat().offset

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._available_now = True

    def latestOffset(self, start: dict[str, Any] | None = None, limit: Any = None) -> dict[str, Any]:  # noqa: N802
        # Before Spark 4.2 there are no arguments; the tick is then 0 and offsets differ by the clock only.
        before = self._before if start is None else Heartbeat(**start)
        now = Reading.now()
        if not self._is_due(before, now, counted=start is not None):
            return before.offset if start is None else start
        self._warn(before.jump(now))
        self._before = before.next(now) if start is not None else attrs.evolve(before.next(now), tick=0)
        return self._before.offset

    def _is_due(self, before: Heartbeat, now: Reading, *, counted: bool) -> bool:
        """Whether a heartbeat is due; ``counted``: whether offsets are numbered."""
        if self._available_now and counted:
            if self._last_tick is None:
                self._last_tick = before.tick + _TICKS_PER_RUN
            return before.tick < self._last_tick
        elapsed_us = before.elapsed_us(now)
        return elapsed_us is None or elapsed_us >= _EVERY_US

    def _warn(self, jump: str | None) -> None:
        """Warn about a changed clock, once until it is correct again."""
        if jump is not None and not self._jumped:
            warnings.warn(jump, stacklevel=2)
        self._jumped = jump is not None

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        if start["clock_us"] > self._before.clock_us:  # unknown earlier before Spark 4.2
            self._before = attrs.evolve(self._before, clock_us=start["clock_us"])
        return [InputPartition(end["clock_us"])]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        yield pa.record_batch([pa.array([partition.value], pa.int64())], names=["clock_us"])


def register(spark: SparkSession) -> None:
    """Register the source in a session.

    Its classes are pickled by value: Spark runs it on the driver's machine, in a Python without the files of ``--py-files`` and
    ``addPyFile`` (docs/spark-notes.md#shipped-files).
    """
    modules = [
        sys.modules[one.__module__] for one in (HeartbeatSource, Heartbeat, Acknowledged, SupportsTriggerAvailableNow)
    ]
    ours = [module for module in modules if module.__name__.startswith("beamish.")]
    for module in ours:
        _pickling.register_pickle_by_value(module)
    try:
        spark.dataSource.register(HeartbeatSource)
    finally:
        for module in ours:
            _pickling.unregister_pickle_by_value(module)


def heartbeats(spark: SparkSession) -> DataFrame:
    """A streaming DataFrame of heartbeats: ``clock_us``; registers the source."""
    return spark.readStream.format(HeartbeatSource.name()).load()
