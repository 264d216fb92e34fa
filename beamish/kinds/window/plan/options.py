"""The options of a window stage: windows, trigger, lateness, modes, accumulations, as one frozen value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import attrs
import pyarrow as pa

from beamish.accumulations.base.accumulation import Accumulation
from beamish.contract.clocks import horizon_us
from beamish.contract.relation import Relation, SlotSemantics
from beamish.contract.updates import ROW_WINDOW, WINDOW
from beamish.durations import Duration, read_not_negative
from beamish.errors import OptionError
from beamish.instants import END_OF_TIME_US
from beamish.kernels.expressions import Formula
from beamish.kernels.identity import InOrder
from beamish.kinds.deduplicate.option import Deduplication
from beamish.modes import (
    BOTH_INPUTS,
    AccumulationMode,
    ClosingBehavior,
    OnTimeBehavior,
    RetractMerged,
    TimestampCombiner,
    WaitFor,
)
from beamish.triggers.default import Default, Never
from beamish.triggers.trigger import Trigger
from beamish.windows.option import Numbering, WindowOption
from beamish.windows.time_windows import InheritedWindows


@attrs.frozen
class Retention:
    """How much of its past a key may keep; None: unlimited.

    Attributes:
        windows: number of windows.
        rows: number of rows in them.
        bytes: bytes of accumulators.
    """

    windows: int | None = None
    rows: int | None = None
    bytes: int | None = None

    def __attrs_post_init__(self) -> None:
        said = attrs.asdict(self)
        if not any(value is not None for value in said.values()):
            raise OptionError("retain(): how much may a key store? Give windows, rows or bytes: .retain(windows=100)")
        for name, value in said.items():
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise OptionError(f"retain({name}={value!r}): must be a whole number of at least 1")

    @property
    def call(self) -> str:
        """The call that declares it."""
        said = attrs.asdict(self, filter=lambda _, value: value is not None)
        return f"retain({', '.join(f'{name}={value}' for name, value in said.items())})"

    def describe(self) -> str:
        """As text, for explain."""
        said = [f"{value} {name}" for name, value in attrs.asdict(self).items() if value is not None]
        return (
            f"per key the latest windows, in total at most {' and '.join(said)}; older ones are evicted: they emit their last pane, "
            "and later rows for them are dropped"
        )


@attrs.frozen
class KeyWatermark:
    """A watermark per key.

    Attributes:
        delay: how far it trails the greatest event time of its key's rows.
        at_most: how far it may be behind the stage's watermark.
    """

    delay: Duration
    at_most: Duration

    @property
    def call(self) -> str:
        """The call that declares it."""
        return f"watermark_per_key({self.delay!r}, at_most={self.at_most!r})"

    def least_us(self, watermark_us: int) -> int:
        """The least watermark of a key, at a watermark of the stage."""
        return watermark_us if watermark_us == END_OF_TIME_US else horizon_us(watermark_us, self.at_most.us)

    def describe(self) -> str:
        """As text, for explain."""
        return (
            f"per key: the maximum event time of its rows in earlier batches minus {self.delay}, but at most {self.at_most} behind that "
            "of all keys, which is "
        )


def _named(accumulations: Mapping[str, Accumulation]) -> InOrder[Accumulation]:
    return InOrder(accumulations)


def _named_formulas(formulas: Mapping[str, Formula]) -> InOrder[Formula]:
    return InOrder(formulas)


@attrs.frozen
class WindowOptions:
    """The options of a window stage; None: not set.

    The fields are the calls on a Pipeline: ``mode`` is ``accumulation_mode``, ``on_time`` ``on_time_behavior``, ``derived``
    ``with_columns``, ``late_rows`` ``allowed_lateness(rows=...)``, and so on. ``on_error`` is "count" for "drop" in a stage with
    a later stage, where dropped rows cannot be emitted.
    """

    window: WindowOption | None = None
    trigger: Trigger = Default()
    allow_data_loss: bool = False
    allowed_lateness: Duration = attrs.field(default=Duration(0), converter=read_not_negative)
    late_rows: int = 0
    mode: AccumulationMode | None = None
    on_time: OnTimeBehavior = OnTimeBehavior.FIRE_ALWAYS
    closing: ClosingBehavior = ClosingBehavior.FIRE_IF_NON_EMPTY
    combiner: TimestampCombiner = TimestampCombiner.END_OF_WINDOW
    retract_merged: RetractMerged | None = None
    only_updated: bool = False
    with_dropped: bool = False
    on_error: Literal["fail", "drop", "count"] = "fail"
    accumulations: Mapping[str, Accumulation] = attrs.field(factory=dict, converter=_named)
    where: Formula | None = None
    deduplication: Deduplication | None = None
    retention: Retention | None = None
    forget_after: Duration | None = None
    key_watermark: KeyWatermark | None = None
    derived: Mapping[str, Formula] = attrs.field(factory=dict, converter=_named_formulas)
    having: Formula | None = None
    explode: str | None = None
    wait_for: WaitFor = BOTH_INPUTS

    @property
    def by_fastest(self) -> bool:
        """Whether the watermark of several inputs is that of the fastest."""
        return self.wait_for is WaitFor.FASTEST_INPUT

    @property
    def counts_rows(self) -> bool:
        """Whether it has count windows."""
        return self.window is not None and self.window.counts_rows

    @property
    def numbering(self) -> Numbering | None:
        """How rows are numbered, for count windows."""
        return None if self.window is None else self.window.numbering

    @property
    def lateness(self) -> int:
        """How far past its end a window accepts rows: microseconds; for count windows a number of rows."""
        return self.late_rows if self.counts_rows else self.allowed_lateness.us

    @property
    def lateness_in_words(self) -> str:
        """The same as text; empty without lateness."""
        if not self.lateness:
            return ""
        return f"{self.late_rows} rows" if self.counts_rows else str(self.allowed_lateness)

    @property
    def never_ends(self) -> bool:
        """Whether a windowing is global, so that its windows do not end on an unbounded stream."""
        return any(
            window is not None and window.is_all_of_time for window in self.windowings.values() or (self.window,)
        )

    @property
    def waits_for_end_of_time(self) -> bool:
        """Whether a window may have no pane before the end of time, which an unbounded stream does not reach."""
        return self.never_ends and not self.trigger.can_fire_before_end() and self.forget_after is None

    @property
    def window_type(self) -> pa.DataType:
        """The type of the output's column ``window``."""
        return ROW_WINDOW if self.counts_rows else WINDOW

    @property
    def keeps_values(self) -> bool:
        """Whether the last emitted values are stored."""
        return self.retracts or self.only_updated

    @property
    def combines_times(self) -> bool:
        """Whether panes' timestamps depend on their rows."""
        return self.combiner is not TimestampCombiner.END_OF_WINDOW

    @property
    def id_columns(self) -> tuple[str, ...]:
        """The columns that identify a row within its key."""
        return () if self.deduplication is None else tuple(self.deduplication.columns)

    @property
    def discards(self) -> bool:
        """Whether a pane has only the rows since the last one."""
        return self.mode in (None, AccumulationMode.DISCARDING)

    @property
    def retracts(self) -> bool:
        """Whether panes are retracted."""
        return self.mode is AccumulationMode.ACCUMULATING_AND_RETRACTING

    @property
    def retracts_at_merge(self) -> bool:
        """Whether merged windows are retracted at once."""
        return self.retracts and self.retract_merged is not RetractMerged.WITH_NEXT_PANE

    @property
    def drops_errors(self) -> bool:
        """Whether rows that cause errors are dropped."""
        return self.on_error != "fail"

    @property
    def lists_dropped(self) -> bool:
        """Whether dropped rows are emitted."""
        return self.with_dropped or self.on_error == "drop"

    @property
    def as_input(self) -> WindowOptions:
        """A variant for an inner stage: dropped rows are counted, but not emitted."""
        return attrs.evolve(self, on_error="count") if self.drops_errors else self

    @property
    def gives_empty_panes(self) -> bool:
        """Whether a firing may emit a pane without new rows (docs/rules/panes.md#what-a-firing-gives)."""
        return self.on_time is OnTimeBehavior.FIRE_ALWAYS or self.closing is ClosingBehavior.FIRE_ALWAYS

    @property
    def windowings(self) -> Mapping[str, WindowOption]:
        """The window options of several windowings, by name; empty for a single, unnamed one."""
        return {} if self.window is None else self.window.windowings

    @property
    def final(self) -> WindowOptions:
        """The requirements on a batch: triggers, lateness, modes and behaviors do not apply."""
        return WindowOptions(
            window=self.window,
            combiner=self.combiner,
            with_dropped=self.with_dropped,
            on_error=self.on_error,
            accumulations=self.accumulations,
            where=self.where,
            deduplication=self.deduplication,
            derived=self.derived,
            having=self.having,
            explode=self.explode,
        )


_FOLLOWS = {
    None: SlotSemantics.ONCE,  # it need not be said where a window has one pane
    AccumulationMode.DISCARDING: SlotSemantics.ADDING,
    AccumulationMode.ACCUMULATING: SlotSemantics.REPLACING,
    AccumulationMode.ACCUMULATING_AND_RETRACTING: SlotSemantics.RETRACTING,
}


def gives(options: WindowOptions, takes: Sequence[Relation]) -> Relation:
    """The relation of a window stage's panes, known before there is data."""
    keys = takes[0].keys
    combines = options.combiner is not TimestampCombiner.END_OF_WINDOW
    return Relation(
        keys=keys,
        window=options.window and options.window.origin,
        retracts=options.retracts,
        watermarks=tuple(policy for relation in takes for policy in relation.watermarks),
        slot=None if options.explode or any(one.explodes for one in options.accumulations.values()) else keys,
        # a key that comes again after it was forgotten has another pane
        follows=SlotSemantics.ADDING if options.mode is None and options.forget_after else _FOLLOWS[options.mode],
        behind_us=_behind_us(options, takes),
        has_timestamps=not _never_ends(options) or (combines and all(relation.has_timestamps for relation in takes)),
        at_window_ends=not (combines or _never_ends(options)),
    )


def _behind_us(options: WindowOptions, takes: Sequence[Relation]) -> int:
    """How far the watermark is at least past the time of panes when they are emitted: of inherited windows, and at expiry."""
    behind_us = 0
    if isinstance(options.window, InheritedWindows):
        behind_us = min(relation.behind_us for relation in takes)
    waits_for_expiry = isinstance(options.trigger, Never) and options.retention is None and not _never_ends(options)
    return max(behind_us, options.allowed_lateness.us) if waits_for_expiry else behind_us


def _never_ends(options: WindowOptions) -> bool:
    """Whether a window of these ends at the end of time, or is of rows, so that its panes have no time of their own."""
    return options.never_ends or options.counts_rows
