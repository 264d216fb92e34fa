"""Everything a pipeline says, as one frozen value, and the rules its parts must keep together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from beamish.accumulations.accumulation import Accumulation
from beamish.accumulations.adapters.one_input import OfInput, OfInputs
from beamish.durations import Duration
from beamish.errors import PipelineError
from beamish.modes import AccumulationMode, ClosingBehavior, OnTimeBehavior, RetractMerged, TimestampCombiner
from beamish.triggers.default import Default
from beamish.triggers.trigger import Trigger
from beamish.watermarks import Watermark
from beamish.windows.option import WindowOption
from beamish.windows.windowings import WINDOWING, Windowings

RESERVED_COLUMNS = ("window", "pane", "timestamp", "dropped")
"""Columns of the output beside the keys and the values."""


class NamedAccumulations(dict[str, Accumulation]):
    """Accumulations by the name of their output column; hashable, since nothing changes it."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))


@attrs.frozen
class Input:
    """An input of a merge: what it is called, and its own columns and watermark."""

    name: str
    event_time: Any
    watermark: Watermark
    keys: tuple[Any, ...] = ()


@attrs.frozen
class Options:
    """What the calls on a Pipeline have said so far; None where nothing was said.

    A merge has ``inputs``, no event time and no watermark; its keys are those of the first input.
    """

    event_time: Any = None
    watermark: Watermark | None = None
    keys: tuple[Any, ...] = ()
    window: WindowOption | None = None
    trigger: Trigger = Default()
    allow_data_loss: bool = False
    allowed_lateness: Duration = Duration(0)
    mode: AccumulationMode | None = None
    on_time: OnTimeBehavior = OnTimeBehavior.FIRE_ALWAYS
    closing: ClosingBehavior = ClosingBehavior.FIRE_IF_NON_EMPTY
    combiner: TimestampCombiner = TimestampCombiner.END_OF_WINDOW
    retract_merged: RetractMerged | None = None
    only_updated: bool = False
    with_dropped: bool = False
    accumulations: Mapping[str, Accumulation] = attrs.field(factory=dict, converter=NamedAccumulations)
    inputs: tuple[Input, ...] = ()

    @property
    def discards(self) -> bool:
        """Whether a pane holds only what came since the last one."""
        return self.mode in (None, AccumulationMode.DISCARDING)

    @property
    def retracts(self) -> bool:
        """Whether panes are taken back."""
        return self.mode is AccumulationMode.ACCUMULATING_AND_RETRACTING

    @property
    def retracts_at_merge(self) -> bool:
        """Whether windows that vanish are retracted at once."""
        return self.retracts and self.retract_merged is not RetractMerged.WITH_NEXT_PANE

    @property
    def gives_empty_panes(self) -> bool:
        """Whether a firing may give a pane in which no row is new (RULES.md 7)."""
        return self.on_time is OnTimeBehavior.FIRE_ALWAYS or self.closing is ClosingBehavior.FIRE_ALWAYS

    @property
    def needs_clock(self) -> bool:
        """Whether anything depends on the processing-time clock."""
        return self.trigger.needs_clock or any(policy.needs_clock for policy in self.watermarks)

    @property
    def watermarks(self) -> tuple[Watermark, ...]:
        """The watermark's policy; of a merge those of its inputs."""
        return tuple(one.watermark for one in self.inputs) or (() if self.watermark is None else (self.watermark,))

    @property
    def windowings(self) -> dict[str, Options]:
        """The pipeline of each of several windowings, by name; none where there is one windowing without a name."""
        if not isinstance(self.window, Windowings):
            return {}
        return {
            name: attrs.evolve(self, window=option, retract_merged=self.retract_merged if option.merging else None)
            for name, option in self.window.options.items()
        }

    def check(self) -> None:
        """Check the pipeline as a whole, before it is applied, run or explained.

        Raises:
            PipelineError: something is missing, or options do not go together.
        """
        if self.event_time is None and not self.inputs:
            raise PipelineError(
                "no event time: say .event_time(column, bm.BoundedOutOfOrderness('30 seconds')); without a watermark "
                "no window would ever close"
            )
        if self.window is None:
            raise PipelineError(
                "no window: say .window(bm.FixedWindows('1 minute')), or bm.GlobalWindow() for all of time"
            )
        if not self.accumulations:
            raise PipelineError("nothing to accumulate: say .accumulate(count=Count())")
        if self.mode is None and not (self.trigger == Default() and not self.allowed_lateness):
            raise PipelineError(
                f"trigger {self.trigger!r} with allowed lateness {str(self.allowed_lateness)!r} may give a window several "
                "panes: say .discarding(), .accumulating() or .accumulating_and_retracting()"
            )
        if self.only_updated and self.discards:
            raise PipelineError(
                "only_updated_panes with discarding: a discarding pane holds only what is new, so equal panes do not "
                "mean that nothing changed; use accumulating() or accumulating_and_retracting()"
            )
        if self.retract_merged is not None and not self.retracts:
            raise PipelineError(f"retract_merged({self.retract_merged!r}) needs accumulating_and_retracting()")
        if self.retract_merged is not None and not self.window.merging:
            raise PipelineError(
                f"retract_merged({self.retract_merged!r}) with {self.window!r}: only windows that merge, such as "
                "bm.Sessions, vanish into others; leave it out"
            )
        if self.trigger.may_lose_rows(self.allowed_lateness.us) and not self.allow_data_loss:
            raise PipelineError(
                f"trigger {self.trigger!r} may finish while rows can still come (allowed lateness "
                f"{str(self.allowed_lateness)!r}), and they would be dropped: wrap it in Repeatedly(...), give AfterWatermark "
                "a late trigger, or say .trigger(..., allow_data_loss=True)"
            )
        taken = [name for name in (*self.keys, *self.accumulations) if name in RESERVED_COLUMNS]
        if taken:
            raise PipelineError(f"column {taken[0]!r}: the output has columns {RESERVED_COLUMNS}; choose another name")
        both = [name for name in self.accumulations if name in self.keys]
        if both:
            raise PipelineError(f"accumulate({both[0]}=...): {both[0]!r} is a key column too; choose another name")
        if isinstance(self.window, Windowings) and WINDOWING in (*self.keys, *self.accumulations):
            raise PipelineError(
                f"column {WINDOWING!r}: with several windowings the output has a column of this name; choose another"
            )
        for name, accumulation in self.accumulations.items():
            accumulation.check(name, merging=self.window.merging)
            self._check_inputs(name, accumulation)
        for name, one in self.windowings.items():
            try:
                one.check()
            except PipelineError as error:
                raise PipelineError(f"windowing {name!r}: {error}") from None

    def _check_inputs(self, name: str, accumulation: Accumulation) -> None:
        where = f"accumulate({name}={accumulation!r})"
        names = [one.name for one in self.inputs]
        if not isinstance(accumulation, OfInputs):
            if names and accumulation.inputs != ():
                raise PipelineError(
                    f"{where}: a merge has columns of {', '.join(names)}; say whose: {OfInput(accumulation, names[0])!r}"
                )
            return
        if not names:
            raise PipelineError(
                f"{where}: this pipeline has one input without a name; inputs are named by bm.merge(orders=..., clicks=...)"
            )
        for of in accumulation.names_of_inputs:
            if of not in names:
                raise PipelineError(f"{where}: there is no input {of!r}; the merge has {', '.join(names)}")
        if accumulation.explodes and len(self.accumulations) > 1:
            raise PipelineError(
                f"{where}: a join gives a row for each pair, so it must be the only accumulation; use CoGroup beside others, "
                "or a second pipeline"
            )
