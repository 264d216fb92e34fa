"""Testing pipelines: scripts of rows and clock moves, run in process or as real micro-batches."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard

import attrs

from beamish.durations import duration
from beamish.errors import ScriptError
from beamish.flow import Flow
from beamish.instants import END_OF_TIME_US, instant_us
from beamish.local import trace
from beamish.pane import Pane
from beamish.script.events import Bundle, ClockTo, Event, Row, WatermarkTo

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Runnable(Protocol):
    """A pipeline, as far as a script needs to know it."""

    @property
    def flow(self) -> Flow: ...


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

    def add(self, rows: Iterable[Row], *, input: str | None = None) -> TestStream:  # noqa: A002
        """A bundle of rows arrives: dicts of column to value.

        Args:
            rows: the rows.
            input: whose they are, of a merge.

        Raises:
            ScriptError: something that is no dict.
        """
        if not isinstance(rows, Iterable):
            raise ScriptError(f"add({rows!r}): must be rows, dicts of column name to value, such as add([{{'ts': 1}}])")
        bundle = tuple(rows)
        for row in bundle:
            if not isinstance(row, Mapping):
                raise ScriptError(f"add({row!r}): a row is a dict of column name to value")
        return attrs.evolve(self, events=(*self.events, Bundle(bundle, input)))

    def advance_watermark_to(self, time: float | datetime, *, input: str | None = None) -> TestStream:  # noqa: A002
        """The watermark advances.

        Args:
            time: where to.
            input: whose watermark, of a merge; None: those of all inputs.

        Raises:
            ScriptError: it would go back.
        """
        if isinstance(time, float) and math.isinf(time) and time > 0:
            return self.advance_watermark_to_infinity(input=input)
        return self._advance(WatermarkTo(instant_us("advance_watermark_to", time), input))

    def advance_watermark_to_infinity(self, *, input: str | None = None) -> TestStream:  # noqa: A002
        """No row will come any more (of one input, or of all): every window ends and expires."""
        return self._advance(WatermarkTo(END_OF_TIME_US, input))

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
        return self._advance(ClockTo(clock + duration("advance_processing_time_by", delay).us))

    def _advance(self, event: WatermarkTo | ClockTo) -> TestStream:
        before = [earlier.us for earlier in self.events if _same_clock(earlier, event)]
        last = max(before) if before else 0 if isinstance(event, ClockTo) else None
        if last is not None and event.us < last:
            what = "watermark" if isinstance(event, WatermarkTo) else "clock"
            raise ScriptError(
                f"the {what} would go back from {last / 1e6} to {event.us / 1e6} seconds; time in a script moves on"
            )
        return attrs.evolve(self, events=(*self.events, event))

    def trace(self, pipeline: Runnable) -> list[tuple[Event, list[Pane]]]:
        """Run the script in process; gives each event with what came out at it.

        Raises:
            PipelineError, ColumnError, ScriptError: the pipeline, its columns or the script is wrong.

        Example:
            >>> import beamish as bm
            >>> from beamish.accumulations import Count
            >>> counts = (
            ...     bm.Pipeline()
            ...     .event_time("ts", bm.BoundedOutOfOrderness(0))
            ...     .window(bm.FixedWindows(10))
            ...     .accumulate(n=Count())
            ... )
            >>> script = TestStream().add([{"ts": 1}, {"ts": 12}]).advance_watermark_to(10).advance_watermark_to(20)
            >>> [[pane.values for pane in panes] for event, panes in script.trace(counts)]
            [[], [{'n': 1}], [{'n': 1}]]
        """
        return trace(pipeline.flow, self.events)

    def on_spark(self, spark: SparkSession, pipeline: Runnable, **options: Any) -> list[Pane]:
        """Run the script as real micro-batches, one event per batch, without sleeping.

        Args:
            spark: the session.
            pipeline: what is run.
            options: as of ``trace_on_spark``.

        Returns:
            the same list as ``pipeline.run(self)`` gives, key by key.

        Raises:
            ScriptError: a watermark that is not a whole number of milliseconds above 0.
        """
        return [pane for _, panes in self.trace_on_spark(spark, pipeline, **options) for pane in panes]

    def trace_on_spark(self, spark: SparkSession, pipeline: Runnable, **options: Any) -> list[tuple[Event, list[Pane]]]:
        """Run the script as real micro-batches; gives each event with what came out at it.

        Args:
            spark: the session.
            pipeline: what is run.
            options: ``shards``; ``partitions`` of the shuffle (2); ``restart_after``: numbers of events, from 0, after
                which the query is stopped and restarted from its checkpoint; ``heartbeats``: whether every shard
                is called in every batch (where the pipeline needs the clock); ``checkpoint``: a folder that the run
                is kept in, and goes on from.

        Raises:
            ScriptError: a watermark that is not a whole number of milliseconds above 0.
        """
        from beamish.spark.scripted import trace_on_spark

        return trace_on_spark(spark, pipeline.flow, self.events, **options)


def _same_clock(a: Event, b: Event) -> TypeGuard[WatermarkTo | ClockTo]:
    """Whether both move the clock, or the watermark of some input."""
    if isinstance(a, WatermarkTo) and isinstance(b, WatermarkTo):
        return a.input == b.input or None in (a.input, b.input)
    return isinstance(a, ClockTo) and isinstance(b, ClockTo)
