"""The clock as rows: a streaming source that gives one row per batch, the batch's clock.

Its value is in the query's offset log, so a replayed batch sees the same clock. ``Reading`` derives it from the
machine's clock. A continuous query has at most one heartbeat per second. Under ``Trigger.AvailableNow`` there are two, in the
run's first two batches, so that the run ends: two because idle_timeout uses the clock of the step before
(docs/rules/time.md#idle-timeout), so that windows of an idle stream close in the next run without rows.

The clock of heartbeats: the machine's, with jumps smoothed (docs/rules/time.md#machine-clock). A machine's clock can be set, or be briefly
wrong; its uptime cannot. So a heartbeat advances by the elapsed uptime, and follows the clock within bounds: at least at half that pace,
and only slightly ahead, unless the clock has stayed ahead for some time. Both are in the offset, so this holds across restarts of the
query, until the machine reboots.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import attrs
import pyarrow as pa
from pyspark import serializers
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from beamish.errors import in_docs
from beamish.spark.runtime.workers import Acknowledged

try:
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
except ImportError:

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Spark 4.0 and 4.1 lack it."""


_LEAD_US = 60_000_000
"""How far a heartbeat may exceed the elapsed uptime, in microseconds; at most by that time again."""
_BELIEVED_US = 600_000_000
"""How long the machine's clock must stay further ahead to be trusted, in microseconds."""
_DOCS = in_docs("Time and watermarks", "Spark's watermark and clock")
_BOOT = Path("/proc/sys/kernel/random/boot_id")


@attrs.frozen
class Reading:
    """Readings of the machine's clocks.

    Attributes:
        wall_us: the wall clock, in microseconds since the epoch.
        up_us: the uptime, in microseconds, including suspended time if known.
        boot: identifies the origin of ``up_us``: readings of different boots cannot be compared.
    """

    wall_us: int
    up_us: int
    boot: str

    @classmethod
    def now(cls) -> Reading:
        """Read the clocks."""
        return cls(time.time_ns() // 1000, _up_ns() // 1000, _boot())


@attrs.frozen
class Heartbeat:
    """A heartbeat, as in the query's offset log.

    Attributes:
        tick: its number.
        clock_us: its clock, in microseconds since the epoch.
        up_us, boot: of its reading; None: unknown.
        ahead_since_us: the ``up_us`` since which the machine's clock has been too far ahead; None: it is not.
    """

    tick: int = 0
    clock_us: int = 0
    up_us: int | None = None
    boot: str | None = None
    ahead_since_us: int | None = None

    @property
    def offset(self) -> dict[str, Any]:
        """As JSON."""
        return {name: value for name, value in attrs.asdict(self).items() if value is not None}

    def elapsed_us(self, now: Reading) -> int | None:
        """Its age, in microseconds; None: unknown."""
        if self.up_us is None or self.boot != now.boot or self.up_us > now.up_us:
            return None
        return now.up_us - self.up_us

    def next(self, now: Reading) -> Heartbeat:
        """The next heartbeat; its clock is never behind."""
        elapsed_us = self.elapsed_us(now)
        clock_us, since_us = max(self.clock_us, now.wall_us), None
        if elapsed_us is not None:
            clock_us = max(now.wall_us, self.clock_us + elapsed_us // 2)
            latest_us = self.clock_us + elapsed_us + min(elapsed_us, _LEAD_US)
            if clock_us > latest_us:
                since_us = now.up_us if self.ahead_since_us is None else self.ahead_since_us
                if now.up_us - since_us < _BELIEVED_US:
                    clock_us = latest_us
        return Heartbeat(self.tick + 1, clock_us, now.up_us, now.boot, since_us)

    def jump(self, now: Reading) -> str | None:
        """How the next heartbeat reacts to a changed clock, as text; None: unchanged.

        Differences of up to a minute are not reported.
        """
        elapsed_us = self.elapsed_us(now)
        expected_us = self.clock_us + (elapsed_us or 0)
        off_us = now.wall_us - expected_us
        if abs(off_us) <= _LEAD_US or (elapsed_us is None and off_us > 0):
            return None
        words = "at half the pace until the clock has caught up"
        if off_us > 0:
            words = f"at most twice as fast as time passes, and with the clock when it has been ahead for {_span(_BELIEVED_US)}"
        return (
            f"the clock of this machine is at {_shown(now.wall_us)}, {_span(abs(off_us))} {'ahead of' if off_us > 0 else 'behind'} "
            f"the query's, {_shown(expected_us)}: heartbeats continue {words} ({_DOCS})"
        )


def _up_ns() -> int:
    boot_time: int | None = getattr(time, "CLOCK_BOOTTIME", None)  # Linux
    return time.monotonic_ns() if boot_time is None else time.clock_gettime_ns(boot_time)


def _boot() -> str:
    """The boot time of the machine; if unavailable, this process."""
    try:  # not cached: cloudpickle sends a cached function by name, and the source is pickled by value
        return _BOOT.read_text("utf-8").strip()
    except OSError:
        return f"process {os.getpid()}"


def _span(us: int) -> str:
    return str(timedelta(seconds=us // 1_000_000))


def _shown(us: int) -> str:
    return str(datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=us // 1_000_000))


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
    modules = {sys.modules[one.__module__] for one in (HeartbeatSource, Acknowledged, SupportsTriggerAvailableNow)}
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


__all__ = ["SupportsTriggerAvailableNow"]
