"""The pipeline: how a stream of rows becomes panes, as a value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, TypeVar

import attrs

from beamish.accumulations.accumulation import Accumulation
from beamish.durations import not_negative
from beamish.errors import OptionError
from beamish.modes import AccumulationMode, ClosingBehavior, OnTimeBehavior, RetractMerged, TimestampCombiner
from beamish.options import Options
from beamish.pane import Pane
from beamish.triggers.trigger import Trigger, check_trigger
from beamish.watermarks import Watermark
from beamish.windows.option import WindowOption
from beamish.windows.windowings import Windowings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from beamish.chain import Chain
    from beamish.testing import TestStream

_T = TypeVar("_T")


def _check(where: str, value: Any, kind: type[_T], example: str) -> _T:
    if not isinstance(value, kind):
        raise OptionError(f"{where}={value!r}: must be a {kind.__name__}, such as {example}")
    return value


def _check_column(where: str, value: Any) -> Any:
    if (isinstance(value, str) and value) or type(value).__module__.startswith("pyspark."):
        return value
    raise OptionError(f"{where}={value!r}: the name of a column (on Spark also a Column expression)")


@attrs.frozen(repr=False)
class Pipeline:
    """How a stream of rows becomes panes: windows, trigger, accumulations and how panes relate.

    Each call gives a new pipeline; none is changed. The same value is applied to a streaming or batch DataFrame
    (``df.transform(pipeline)``) and to a scripted test stream without Spark (``pipeline.run(script)``).

    Example:
        >>> import beamish as bm
        >>> from beamish.accumulations import Count
        >>> plays = (
        ...     bm.Pipeline()
        ...     .event_time("ts", bm.BoundedOutOfOrderness("30 seconds"))
        ...     .key_by("team")
        ...     .window(bm.FixedWindows("2 minutes"))
        ...     .accumulate(plays=Count())
        ... )
        >>> script = bm.testing.TestStream().add([{"ts": 30, "team": "red"}]).advance_watermark_to_infinity()
        >>> [pane.values for pane in plays.run(script)]
        [{'plays': 1}]
    """

    options: Options = attrs.field(factory=Options)

    def _with(self, **changes: Any) -> Self:
        return type(self)(attrs.evolve(self.options, **changes))

    def event_time(self, column: Any, watermark: Watermark) -> Self:
        """Say which column holds a row's event time (a timestamp), and how the watermark follows it.

        Raises:
            OptionError: no column, or no watermark policy.
        """
        _check_column("event_time(column)", column)
        _check("event_time(watermark)", watermark, Watermark, "bm.BoundedOutOfOrderness('30 seconds')")
        return self._with(event_time=column, watermark=watermark)

    def key_by(self, *columns: Any) -> Self:
        """Window the rows of each key by themselves; no columns: all rows are of one key. A null is a key.

        Raises:
            OptionError: something that is no column, or a column twice.
        """
        for column in columns:
            _check_column("key_by(column)", column)
        names = [column for column in columns if isinstance(column, str)]
        if len(set(names)) < len(names):
            raise OptionError(f"key_by{columns!r}: a column is named twice")
        return self._with(keys=columns)

    def window(self, option: WindowOption | Mapping[str, WindowOption]) -> Self:
        """Say which windows a row falls in.

        Args:
            option: a window option; or several by name, in one pass: the output then has a column ``windowing``,
                after the key columns, with the name (on ``Pane`` a part of the key).

        Raises:
            OptionError: no window option.
        """
        option = Windowings(option) if isinstance(option, Mapping) else option
        return self._with(window=_check("window(option)", option, WindowOption, "bm.FixedWindows('1 minute')"))

    def trigger(self, trigger: Trigger, *, allow_data_loss: bool = False) -> Self:
        """Say when a window's panes are fired; default: at its end, and for each bundle of late rows.

        Args:
            trigger: from ``beamish.triggers``, or your own.
            allow_data_loss: take a trigger that can finish while rows may still come; they are then dropped.

        Raises:
            OptionError: no trigger.
        """
        return self._with(trigger=check_trigger("trigger(trigger)", trigger), allow_data_loss=bool(allow_data_loss))

    def allowed_lateness(self, lateness: Any) -> Self:
        """Say how far past its end the watermark may be for a window still to take rows; default 0.

        Raises:
            OptionError: no duration, or a negative one.
        """
        return self._with(allowed_lateness=not_negative("allowed_lateness", lateness))

    def accumulation_mode(self, mode: AccumulationMode) -> Self:
        """Say how a pane relates to the window's last one.

        Raises:
            OptionError: no accumulation mode.
        """
        return self._with(
            mode=_check("accumulation_mode(mode)", mode, AccumulationMode, "bm.AccumulationMode.DISCARDING")
        )

    def discarding(self) -> Self:
        """A pane holds what came since the window's last pane."""
        return self.accumulation_mode(AccumulationMode.DISCARDING)

    def accumulating(self) -> Self:
        """A pane holds all that came so far."""
        return self.accumulation_mode(AccumulationMode.ACCUMULATING)

    def accumulating_and_retracting(self) -> Self:
        """A pane holds all that came so far, and a RETRACTION of the pane it replaces comes before it."""
        return self.accumulation_mode(AccumulationMode.ACCUMULATING_AND_RETRACTING)

    def on_time_behavior(self, behavior: OnTimeBehavior) -> Self:
        """Say whether an on-time firing gives a pane when nothing is new in it; default FIRE_ALWAYS.

        Raises:
            OptionError: no on-time behavior.
        """
        return self._with(
            on_time=_check("on_time_behavior", behavior, OnTimeBehavior, "bm.OnTimeBehavior.FIRE_IF_NON_EMPTY")
        )

    def closing_behavior(self, behavior: ClosingBehavior) -> Self:
        """Say whether a window's last firing gives a pane when nothing is new in it; default FIRE_IF_NON_EMPTY.

        Raises:
            OptionError: no closing behavior.
        """
        return self._with(
            closing=_check("closing_behavior", behavior, ClosingBehavior, "bm.ClosingBehavior.FIRE_ALWAYS")
        )

    def timestamp_combiner(self, combiner: TimestampCombiner) -> Self:
        """Say what a pane's timestamp is; default the window's last microsecond.

        Raises:
            OptionError: no timestamp combiner.
        """
        return self._with(
            combiner=_check("timestamp_combiner", combiner, TimestampCombiner, "bm.TimestampCombiner.EARLIEST")
        )

    def retract_merged(self, when: RetractMerged) -> Self:
        """Say when the live panes of sessions that merged away are retracted; default AT_MERGE.

        Raises:
            OptionError: neither bm.AT_MERGE nor bm.WITH_NEXT_PANE.
        """
        return self._with(
            retract_merged=_check("retract_merged", when, RetractMerged, "bm.AT_MERGE or bm.WITH_NEXT_PANE")
        )

    def only_updated_panes(self) -> Self:
        """Leave out a pane equal in all values to the window's last one, and its retraction."""
        return self._with(only_updated=True)

    def with_dropped(self) -> Self:
        """Have dropped rows come out as well, with the reason and the original row."""
        return self._with(with_dropped=True)

    def accumulate(self, **accumulations: Accumulation) -> Self:
        """Say what is accumulated, each under the name of its output column. A second call adds to the first.

        Raises:
            OptionError: something that is no accumulation.
        """
        for name, accumulation in accumulations.items():
            if isinstance(accumulation, type) and issubclass(accumulation, Accumulation):
                raise OptionError(
                    f"accumulate({name}={accumulation.__name__}): a class; write {accumulation.__name__}(...)"
                )
            _check(f"accumulate({name})", accumulation, Accumulation, "Count() or Sum('amount')")
        return self._with(accumulations={**self.options.accumulations, **accumulations})

    @property
    def stages(self) -> tuple[Pipeline, ...]:
        """Itself: a pipeline is a chain of one stage."""
        return (self,)

    def then(self, stage: Pipeline) -> Chain:
        """Chain a stage that takes this one's panes as its rows.

        Args:
            stage: a pipeline without event time; without a window it keeps the panes' windows.

        Raises:
            PipelineError: this one is ``with_dropped()``.
        """
        from beamish.chain import Chain

        return Chain((self, stage))

    def run(self, test_stream: TestStream) -> list[Pane]:
        """Run a script in process, without Spark.

        Returns:
            panes, retractions and, with ``with_dropped``, dropped rows, in the order in which they come out.

        Raises:
            PipelineError, ColumnError, ScriptError: the pipeline, its columns or the script is wrong.
        """
        from beamish.local import run

        return run([self.options], test_stream.events)

    def apply(self, df: DataFrame, *, shards: int | None = None) -> DataFrame:
        """Apply it to a streaming or batch DataFrame; lazy, output mode append.

        Args:
            df: has the event time, key and value columns.
            shards: into how many parts the keys' state is cut; default ``spark.sql.shuffle.partitions``. It is
                fixed with the checkpoint.

        Returns:
            the key columns, ``window struct<start, end>``, a column for each accumulation, ``pane struct<kind,
            timing, index, on_time_index, is_first, is_last>``, ``timestamp``; with ``with_dropped`` also ``dropped``
            (reason, late_by, row).

        Raises:
            PipelineError, ColumnError, SparkSetupError: the pipeline, its columns or the session is wrong.
        """
        from beamish.spark import apply

        return apply(self.options, df, shards)

    __call__ = apply

    def explain(self, df: DataFrame | None = None) -> str:
        """What will happen, in words: plan, clocks, watermark, what is late, what is retracted, state.

        Args:
            df: the DataFrame it would be applied to, for its column types; optional.
        """
        from beamish.explain import explain

        return explain(self.options, df)

    def __repr__(self) -> str:
        calls: list[str] = []
        default, said = Options(), self.options

        def call(name: str, *arguments: Any, **keywords: Any) -> None:
            words: Sequence[str] = [*map(repr, arguments), *(f"{key}={value!r}" for key, value in keywords.items())]
            calls.append(f".{name}({', '.join(words)})")

        if said.event_time is not None:
            call("event_time", said.event_time, said.watermark)
        if said.keys:
            call("key_by", *said.keys)
        if said.window is not None:
            call("window", said.window)
        if said.trigger != default.trigger or said.allow_data_loss:
            call("trigger", said.trigger, **({"allow_data_loss": True} if said.allow_data_loss else {}))
        for name, value, unsaid in (
            ("allowed_lateness", said.allowed_lateness, default.allowed_lateness),
            ("accumulation_mode", said.mode, None),
            ("on_time_behavior", said.on_time, default.on_time),
            ("closing_behavior", said.closing, default.closing),
            ("timestamp_combiner", said.combiner, default.combiner),
            ("retract_merged", said.retract_merged, None),
        ):
            if value != unsaid:
                call(name, value)
        if said.only_updated:
            call("only_updated_panes")
        if said.with_dropped:
            call("with_dropped")
        if said.accumulations:
            call("accumulate", **said.accumulations)
        return "Pipeline()" + "".join(calls)
