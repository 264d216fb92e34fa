"""Testing pipelines: scripts of rows and clock moves, run in process or as real micro-batches."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import attrs

from beamish.addresses import printable
from beamish.durations import DurationLike, duration
from beamish.errors import ScriptError
from beamish.flow import Flow
from beamish.instants import END_OF_TIME_US, LATEST_US, instant_us
from beamish.local import trace
from beamish.pane import Pane, PaneList
from beamish.script import (
    Bundle,
    ClockTo,
    Event,
    MicroBatch,
    Row,
    Step,
    Trace,
    WatermarkTo,
    check_names,
    clock_of,
    steps_of,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Runnable(Protocol):
    """A pipeline, as needed by a script."""

    @property
    def flow(self) -> Flow: ...


class Scripted(Protocol):
    """A query of ``bm.sql`` on a script: ``given``, the events; ``events``, those of its pipeline; ``flow``."""

    @property
    def given(self) -> Sequence[Event]: ...
    @property
    def events(self) -> Sequence[Event]: ...
    @property
    def flow(self) -> Flow: ...
    def shown(self, panes: Sequence[Pane]) -> list[Pane]:
        """The output of the query for panes of its pipeline."""


class Statement(Protocol):
    """A query of ``bm.sql``, as needed by a script."""

    def scripted(self, test_stream: TestStream) -> Scripted:
        """The query on a script."""


@attrs.frozen
class TestStream:
    """A script: bundles of rows, watermark and clock updates, and steps of all three. Each call returns a new script.

    Each call is a step of the pipeline; ``step`` is a complete one, like a micro-batch (docs/rules/time.md#steps-and-clocks).
    Times are seconds since the epoch or aware datetimes. The script sets the watermark, whatever the pipeline's policy (except
    for ProcessingTimeLag and idle_timeout, which follow the script's clock). The end of the script is not the end of time: add
    ``advance_watermark_to_infinity()``.

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
            input: in a merge, their input.

        Raises:
            ScriptError: a row is not a dict.
        """
        return self._then(Bundle(_bundle("add", rows), input))

    def advance_watermark_to(self, time: float | datetime, *, input: str | None = None) -> TestStream:  # noqa: A002
        """Advance the watermark.

        Args:
            time: the new watermark.
            input: in a merge, the input; None: all inputs.

        Raises:
            ScriptError: it would go back.
        """
        return self._then(WatermarkTo(_watermark_us("advance_watermark_to", time), input))

    def advance_watermark_to_infinity(self, *, input: str | None = None) -> TestStream:  # noqa: A002
        """Advance the watermark (of one input, or of all) to the end of time: every window ends and expires."""
        return self._then(WatermarkTo(END_OF_TIME_US, input))

    def advance_processing_time_to(self, time: float | datetime) -> TestStream:
        """Advance the clock to a time.

        Raises:
            ScriptError: it would go back.
        """
        return self._then(ClockTo(instant_us("advance_processing_time_to", time)))

    def advance_processing_time_by(self, delay: DurationLike) -> TestStream:
        """Advance the clock by a duration.

        Raises:
            ScriptError: it would go back.
        """
        return self._then(ClockTo(self._clock_us + duration("advance_processing_time_by", delay).us))

    def step(
        self,
        rows: Iterable[Row] | Mapping[str, Iterable[Row]] = (),
        *,
        watermark: float | datetime | Mapping[str, float | datetime] | None = None,
        clock: float | datetime | None = None,
        input: str | None = None,  # noqa: A002
    ) -> TestStream:
        """Run one micro-batch: the watermark advances, then the clock, then rows arrive (docs/rules/time.md#steps-and-clocks).

        Args:
            rows: dicts of column to value; for several inputs at once a dict of input to rows.
            watermark: the new watermark; ``math.inf``: the end of time; None: unchanged; for several inputs a dict likewise.
            clock: the new clock; None: unchanged.
            input: in a merge, the input of the rows and the watermark; None: the watermarks of all inputs, without rows.

        Raises:
            ScriptError: a time would go back, or a row is not a dict.

        Example:
            The watermark advances first, so a row of the micro-batch in which its window ends is late:

            >>> import beamish as bm
            >>> from beamish.accumulations import Count
            >>> counts = (
            ...     bm.Pipeline()
            ...     .event_time("ts", bm.BoundedOutOfOrderness(0))
            ...     .window(bm.FixedWindows(10))
            ...     .accumulate(n=Count())
            ... )
            >>> script = TestStream().step([{"ts": 1}]).step([{"ts": 9}, {"ts": 12}], watermark=10, clock=60)
            >>> [pane.values for pane in counts.run(script.step(watermark=20))]
            [{'n': 1}, {'n': 1}]
        """
        clock_us = None if clock is None else instant_us("step(clock)", clock)
        if isinstance(watermark, Mapping) or _is_by_input(rows):
            return self._then(_micro_batch(rows, watermark, clock_us, input))
        watermark_us = None if watermark is None else _watermark_us("step(watermark)", watermark)
        return self._then(Step(_bundle("step", rows), input, watermark_us, clock_us))

    @property
    def _clock_us(self) -> int:
        return max((us for us in map(clock_of, self.events) if us is not None), default=0)

    def _last_watermark_us(self, of: str | None) -> int | None:
        """The watermark of an input, or the greatest of all, or None."""
        steps = [
            step for event in self.events for step in steps_of(event) if of == step.input or None in (of, step.input)
        ]
        return max((step.watermark_us for step in steps if step.watermark_us is not None), default=None)

    def _then(self, event: Event) -> TestStream:
        for step in steps_of(event):
            if step.watermark_us is not None:
                _check_moves_on("watermark", self._last_watermark_us(step.input), step.watermark_us)
        clock_us = clock_of(event)
        if clock_us is not None:
            _check_moves_on("clock", self._clock_us, clock_us)
            if clock_us > LATEST_US:
                raise ScriptError(
                    f"the clock would go to {clock_us / 1e6} seconds, beyond the year 9999; give seconds, not milliseconds"
                )
        return attrs.evolve(self, events=(*self.events, event))

    def trace(self, pipeline: Runnable | Statement, *, initial: Any = None) -> list[tuple[Event, list[Pane]]]:
        """Run the script in process; returns each event with its output, as a list of pairs (in a notebook: a table).

        Args:
            pipeline: the pipeline to run, or a query of ``bm.sql``.
            initial: initial rows of a versioned table; for several tables by the name of their input.

        Raises:
            PipelineError, ColumnError, ScriptError: the pipeline, its columns or the script is invalid.

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
        script = _on(self, "trace", pipeline)
        return _shown(script, trace(script.flow.completed, script.events, initial=initial))

    def on_spark(
        self,
        spark: SparkSession,
        pipeline: Runnable | Statement,
        *,
        shards: int | None = None,
        partitions: int = 2,
        restart_after: Sequence[int] = (),
        heartbeats: bool | None = None,
        checkpoint: str | Path | None = None,
        initial: Any = None,
    ) -> list[Pane]:
        """Run the script as real micro-batches, one event per batch, without sleeping.

        Args:
            spark: the session.
            pipeline: the pipeline to run, or a query of ``bm.sql``, whose expressions are computed in process.
            shards, partitions, restart_after, heartbeats, checkpoint, initial: as for ``trace_on_spark``.

        Returns:
            the same list as ``pipeline.run(self)``, key by key.

        Raises:
            ScriptError: not a session or pipeline, or a watermark that is not a whole number of milliseconds above 0.
        """
        trace = self.trace_on_spark(
            spark,
            pipeline,
            shards=shards,
            partitions=partitions,
            restart_after=restart_after,
            heartbeats=heartbeats,
            checkpoint=checkpoint,
            initial=initial,
        )
        return PaneList(pane for _, panes in trace for pane in panes)

    def trace_on_spark(
        self,
        spark: SparkSession,
        pipeline: Runnable | Statement,
        *,
        shards: int | None = None,
        partitions: int = 2,
        restart_after: Sequence[int] = (),
        heartbeats: bool | None = None,
        checkpoint: str | Path | None = None,
        initial: Any = None,
    ) -> list[tuple[Event, list[Pane]]]:
        """Run the script as real micro-batches; returns each event with its output.

        Args:
            spark: the session.
            pipeline: as for ``on_spark``.
            shards: number of shards of each stage, at least 1; None: one per partition.
            partitions: of the shuffle, at least 1.
            restart_after: numbers of events, from 0, after which the query is stopped and restarted from its checkpoint.
            heartbeats: whether every shard is called in every batch; None: if the pipeline needs the clock.
            checkpoint: a folder for the run, which continues an existing one; None: a temporary one.
            initial: as for ``trace``.

        Raises:
            ScriptError: not a session or pipeline, or a watermark that is not a whole number of milliseconds above 0.
        """
        from beamish.spark.scripted import trace_on_spark

        script = _on(self, "trace_on_spark", pipeline)
        if not hasattr(spark, "readStream"):
            raise ScriptError(
                f"trace_on_spark({printable(spark)}, ...): must be a SparkSession: trace_on_spark(spark, pipeline)"
            )
        traced = trace_on_spark(
            spark,
            script.flow.completed,
            script.events,
            shards=shards,
            partitions=partitions,
            restart_after=restart_after,
            heartbeats=heartbeats,
            checkpoint=checkpoint,
            initial=initial,
        )
        return _shown(script, traced)


@attrs.frozen
class _Plain:
    """A pipeline on a script."""

    flow: Flow
    events: Sequence[Event]

    @property
    def given(self) -> Sequence[Event]:
        return self.events

    def shown(self, panes: Sequence[Pane]) -> list[Pane]:
        return list(panes)


def _on(script: TestStream, call: str, pipeline: Any) -> Scripted:
    if hasattr(pipeline, "scripted"):
        made: Scripted = pipeline.scripted(script)
        return made
    if not isinstance(getattr(pipeline, "flow", None), Flow):
        raise ScriptError(f"{call}({pipeline!r}): must be a pipeline, such as bm.Pipeline()...accumulate(n=Count())")
    return _Plain(pipeline.flow, script.events)


def _shown(script: Scripted, traced: Sequence[tuple[Event, list[Pane]]]) -> Trace:
    return Trace((event, PaneList(script.shown(panes))) for event, (_, panes) in zip(script.given, traced, strict=True))


def _bundle(call: str, rows: Any) -> tuple[Row, ...]:
    if not isinstance(rows, Iterable):
        raise ScriptError(
            f"{call}({rows!r}): must be rows, dicts of column name to value, such as {call}([{{'ts': 1}}])"
        )
    if isinstance(rows, Mapping):
        raise ScriptError(f"{call}({rows!r}): rows, not one row: {call}([{rows!r}])")
    if hasattr(rows, "to_dict"):
        raise ScriptError(f"{call}(a {type(rows).__name__}): rows are dicts: {call}(df.to_dict('records'))")
    bundle = tuple(rows)
    for row in bundle:
        if not isinstance(row, Mapping):
            raise ScriptError(f"{call}({row!r}): a row is a dict of column name to value")
    check_names(f"{call}(rows)", bundle)
    return bundle


def _is_by_input(rows: Any) -> bool:
    """Whether rows are given by input: a dict of lists of rows, not one row."""
    return isinstance(rows, Mapping) and all(
        isinstance(of, Iterable)
        and not isinstance(of, (str, bytes, Mapping))
        and all(isinstance(row, Mapping) for row in of)
        for of in rows.values()
    )


def _micro_batch(rows: Any, watermark: Any, clock_us: int | None, named: str | None) -> MicroBatch:
    if named is not None:
        raise ScriptError(
            f"step({{...}}, input={named!r}): rows or watermarks by input name their inputs; leave input out"
        )
    if not isinstance(rows, Mapping):
        if tuple(rows):
            raise ScriptError(
                "step(rows, watermark={...}): give the rows by input too: step({'clicks': rows}, watermark={'clicks': 10})"
            )
        rows = {}
    moves = watermark if isinstance(watermark, Mapping) else {None: watermark}
    moved = {name: _watermark_us("step(watermark)", time) for name, time in moves.items() if time is not None}
    given = {name: _bundle("step", of) for name, of in rows.items()}
    names = dict.fromkeys([*([None] if None in moved else []), *moved, *given])
    return MicroBatch(tuple(Step(given.get(name, ()), name, moved.get(name)) for name in names), clock_us)


def _watermark_us(where: str, time: float | datetime) -> int:
    if isinstance(time, float) and math.isinf(time) and time > 0:
        return END_OF_TIME_US
    return instant_us(where, time)


def _check_moves_on(what: str, last_us: int | None, us: int) -> None:
    if last_us is not None and us < last_us:
        raise ScriptError(
            f"the {what} would go back from {last_us / 1e6} to {us / 1e6} seconds; time in a script must not go back"
        )
