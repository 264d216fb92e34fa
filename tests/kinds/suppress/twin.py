"""A suppressed stage of windows (rules/suppress.md#suppress): a twin that reports its updates, and one that buffers them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import attrs

import beamish as bm
from beamish import DropReason, Pane, PaneKind
from beamish.flow import Flow
from beamish.kinds.suppress.stage import Suppressed
from beamish.script import Step
from beamish.windows.option import END_OF_TIME_US
from tests.declared_options import said
from tests.kinds.changes.twin import ChangesTwin
from tests.kinds.suppress.twin_held import Holding, Slot
from tests.twin.accumulations import Row
from tests.twin.moments import moment_us
from tests.twin.run import NO_TIME_US, Key, Twin, bounds_of_pane, with_nulls
from tests.twin.windows import Bounds


@dataclass
class PaneSlot(Slot):
    """A (key, window) of a stage of windows.

    Attributes:
        twin: the stage.
        brings: the newest pane.
        parts: with discarding panes, the rows of those it sums up.
        takes_back: its own emitted pane, retracted since.
        inherits: those of merged windows, retracted since.
        first: the timestamp of the first of all these.
    """

    twin: Telling = field(kw_only=True)
    brings: Pane | None = None
    parts: list[Row] = field(default_factory=list)
    takes_back: Pane | None = None
    inherits: list[Pane] = field(default_factory=list)
    first: int | None = None

    @property
    def back(self) -> list[Pane]:
        """All its retractions, in the order of emission."""
        own = [] if self.takes_back is None else [self.takes_back]
        return [*sorted(self.inherits, key=lambda pane: bounds_of_pane(pane)[::-1]), *own]

    @property
    def is_empty(self) -> bool:
        return self.brings is None and not self.parts and not self.back

    @property
    def waits_for_pane(self) -> bool:
        return self.brings is None and (bool(self.parts) or self.twin.retracts_with_next_pane)

    @property
    def is_final(self) -> bool:
        return self.brings is not None and self.brings.is_last

    def settle(self, watermark: float) -> None:
        """rules/suppress.md#suppress-since: an R alone."""
        if self.since is None and self.first is not None:
            self.since = max(watermark, self.first)

    def pane(self, pane: Pane, rows: Sequence[Row]) -> None:
        if self.since is None:
            self.since = time_of(pane)
        self.brings = pane
        if self.twin.options.discards:
            self.parts += rows

    def retraction(self, pane: Pane) -> None:
        """rules/suppress.md#suppress-held."""
        if self.brings:
            self.brings = None
        else:
            assert self.takes_back is None
            self.takes_back = pane
            self.first = time_of(pane) if self.first is None else self.first

    def inherit(self, other: PaneSlot) -> None:
        """A window has been merged into this one (rules/suppress.md#suppress-merging)."""
        self.inherits += [*other.inherits, *([other.takes_back] if other.takes_back else [])]
        self.first = other.first if self.first is None else self.first
        self.parts += other.parts
        if other.before:
            sinces = [one.since for one in (self, other) if one.before and one.since is not None]
            self.since = min(sinces, default=self.since)
            self.since_clock = (
                min(one.since_clock for one in (self, other) if one.before) if self.before else other.since_clock
            )
            self.before = True

    def leaving(self) -> list[Pane]:
        assert self.brings or not self.parts, "parts without a pane wait for the next one"
        return self.contents()

    def contents(self) -> list[Pane]:
        panes = self.back if self.brings is None else [*self.back, self.brought(self.brings)]
        return [row for pane in panes for row in self.twin.rows_of(pane)]

    def brought(self, pane: Pane) -> Pane:
        """The newest pane; with discarding panes, of all rows since the last emitted one."""
        if not self.twin.options.discards:
            return pane
        values = {name: self.twin.value_of(name, self.parts) for name in self.twin.options.accumulations}
        return attrs.evolve(pane, values=values)

    def add(self, more: Collection[str]) -> None:
        """Accumulations were added, which the buffer does not have."""
        self.brings = self.brings and with_nulls(more, self.brings)
        self.takes_back = self.takes_back and with_nulls(more, self.takes_back)
        self.inherits = [with_nulls(more, pane) for pane in self.inherits]


def time_of(pane: Pane) -> int:
    return NO_TIME_US if pane.timestamp is None else moment_us(pane.timestamp)


class Telling(Twin):
    """A stage of windows that reports its updates and dropped rows, in order; it emits nothing."""

    def __init__(self, flow: Flow) -> None:
        super().__init__(flow)
        self.said = self.options
        self.updates: list[tuple[Any, ...]] = []

    @property
    def retracts_with_next_pane(self) -> bool:
        return self.said.retracts and not self.said.retracts_at_merge

    def tell(self, *, at_once: bool) -> None:
        """rules/suppress.md#suppress-merging: it reports a merge at once, if updates are buffered."""
        self.options = attrs.evolve(self.said, retract_merged=None) if at_once else self.said

    def give(self, pane: Pane, rows: Sequence[Row] = ()) -> None:
        self.updates.append((pane, list(rows)))

    def drop(self, key: Key, bounds: Bounds | None, reason: DropReason, row: Row) -> None:
        super().drop(key, bounds, reason, row)
        self.updates += [(pane, []) for pane in self.out]
        self.out.clear()

    def became(self, key: Key, bounds: Bounds, into: Bounds) -> None:
        self.updates.append((key, bounds, into))


class SuppressTwin:
    """A stage of windows and its suppress."""

    def __init__(self, flow: Flow) -> None:
        assert isinstance(flow.stage, Suppressed)
        self.inner = Telling(Flow(flow.stage.of, flow.inputs))
        self.held: Holding[PaneSlot] = Holding(lambda bounds: min(bounds[1] + self.inner.lateness, END_OF_TIME_US))
        self.change(flow.stage.suppress)

    def change(self, suppress: bm.Suppress) -> None:
        """Continue with another suppress (rules/suppress.md#suppress-restart)."""
        self.held.until, self.held.buffer = suppress.until, suppress.buffer
        self.holds = suppress.holds
        self.inner.tell(at_once=suppress.holds)

    def change_stage(self, flow: Flow) -> None:
        """Continue with other options of the stage (rules/running.md#restart)."""
        assert isinstance(flow.stage, Suppressed)
        before = self.inner.said.accumulations.keys()
        self.inner.change(Flow(flow.stage.of, flow.inputs))
        self.inner.said = self.inner.options
        for slot in self.held.slots.values():
            slot.add(self.inner.said.accumulations.keys() - before)
        self.change(flow.stage.suppress)

    @property
    def watermark(self) -> float:
        return self.inner.watermark

    def step(self, step: Step) -> list[Pane]:
        """The output of a step (rules/suppress.md#suppress-step)."""
        self.inner.step(step)
        told, self.inner.updates = self.inner.updates, []
        if not self.holds:  # rules/suppress.md#suppress-zero-wait
            before = self.held.let_go(list(self.held.slots.values()))
            return [*before, *(row for pane, *_ in told if isinstance(pane, Pane) for row in self.rows_of(pane))]
        dropped: list[Pane] = []
        for update in told:
            if len(update) == 3:
                self.became(*update)
            elif update[0].kind is PaneKind.DROPPED:
                dropped.append(update[0])
            else:
                self.take(*update)
        return dropped + self.held.leave(self.inner.watermark, self.inner.clock)

    def rows_of(self, pane: Pane) -> list[Pane]:
        return [pane] if pane.kind is PaneKind.DROPPED else self.inner.rows_of(pane)

    def take(self, pane: Pane, rows: Sequence[Row]) -> None:
        slot = self.slot(pane.key, bounds_of_pane(pane))
        if pane.kind is PaneKind.PANE:
            slot.pane(pane, rows)
        else:
            slot.retraction(pane)

    def became(self, key: Key, bounds: Bounds, into: Bounds) -> None:
        gone = self.held.slots.pop((name_of(key.columns), bounds), None)
        if gone is not None:
            self.slot(key.columns, into).inherit(gone)

    def slot(self, key: Any, bounds: Bounds) -> PaneSlot:
        new = PaneSlot(key, bounds, self.inner.clock, twin=self.inner)
        return self.held.slots.setdefault((name_of(key), bounds), new)


def name_of(key: Any) -> Any:
    return tuple(map(repr, key.values()))


def of_suppressed(flow: Flow) -> Any:
    """The twin of a suppressed stage."""
    return ChangesTwin(flow) if said(flow).changes else SuppressTwin(flow)


TWIN = of_suppressed
