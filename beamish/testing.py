"""Testing pipelines: scripts of rows and clock moves, run in process or as real micro-batches."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

import attrs

from beamish.durations import duration
from beamish.errors import ScriptError
from beamish.instants import instant_us
from beamish.pane import Pane
from beamish.windows.option import END_OF_TIME_US

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from beamish.pipeline import Pipeline

Row = Mapping[str, Any]


@attrs.frozen
class Bundle:
    """Rows that come together."""

    rows: tuple[Row, ...]


@attrs.frozen
class WatermarkTo:
    """The watermark advances to ``us``, microseconds since the epoch; END_OF_TIME_US is the end of time."""

    us: int


@attrs.frozen
class ClockTo:
    """The processing-time clock, which begins at 0, advances to ``us``."""

    us: int


Event = Bundle | WatermarkTo | ClockTo


@attrs.frozen
class TestStream:
    """A script: bundles of rows, and moves of the watermark and the clock. Each call gives a new script.

    Times are seconds since the epoch or aware datetimes. The watermark is what the script says, whatever the
    pipeline's policy (but for ProcessingTimeLag and idle_timeout, which follow the script's clock). The end of
    the script is not the end of time: say ``advance_watermark_to_infinity()``.

    Example:
        >>> script = TestStream().add([{"ts": 1, "score": 3}]).advance_watermark_to(10)
        >>> len(script.events)
        2
    """

    __test__ = False

    events: tuple[Event, ...] = ()

    def add(self, rows: Iterable[Row]) -> TestStream:
        """A bundle of rows arrives: dicts of column to value.

        Raises:
            ScriptError: something that is no dict.
        """
        bundle = tuple(rows)
        for row in bundle:
            if not isinstance(row, Mapping):
                raise ScriptError(f"add({row!r}): a row is a dict of column name to value")
        return attrs.evolve(self, events=(*self.events, Bundle(bundle)))

    def advance_watermark_to(self, time: float | datetime) -> TestStream:
        """The watermark advances.

        Raises:
            ScriptError: it would go back.
        """
        if isinstance(time, float) and math.isinf(time) and time > 0:
            return self.advance_watermark_to_infinity()
        return self._advance(WatermarkTo(instant_us("advance_watermark_to", time)))

    def advance_watermark_to_infinity(self) -> TestStream:
        """No row will come any more: every window ends and expires."""
        return self._advance(WatermarkTo(END_OF_TIME_US))

    def advance_processing_time_to(self, time: float | datetime) -> TestStream:
        """The clock advances to a time.

        Raises:
            ScriptError: it would go back.
        """
        return self._advance(ClockTo(instant_us("advance_processing_time_to", time)))

    def advance_processing_time_by(self, delay: Any) -> TestStream:
        """The clock advances by a duration.

        Raises:
            ScriptError: it would go back.
        """
        clock = max((event.us for event in self.events if isinstance(event, ClockTo)), default=0)
        return self._advance(ClockTo(clock + duration("advance_processing_time_by", delay)))

    def _advance(self, event: WatermarkTo | ClockTo) -> TestStream:
        before = [earlier.us for earlier in self.events if type(earlier) is type(event)]
        last = before[-1] if before else 0 if isinstance(event, ClockTo) else None
        if last is not None and event.us < last:
            what = "watermark" if isinstance(event, WatermarkTo) else "clock"
            raise ScriptError(
                f"the {what} would go back from {last / 1e6} to {event.us / 1e6} seconds; time in a script moves on"
            )
        return attrs.evolve(self, events=(*self.events, event))

    def on_spark(self, spark: SparkSession, pipeline: Pipeline, **options: Any) -> list[Pane]:
        """Run the script as real micro-batches, an event a batch, without sleeping.

        Returns:
            the same list as ``pipeline.run(self)`` gives, key by key.

        Raises:
            ScriptError: a watermark that is not a whole number of milliseconds above 0.
        """
        from beamish.spark.scripted import run_on_spark

        return run_on_spark(spark, pipeline.options, self.events, **options)
