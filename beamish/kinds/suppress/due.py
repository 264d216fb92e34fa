"""When buffered slots are due, at the watermark and the clock at the end of a step."""

from __future__ import annotations

import attrs
import numpy as np

from beamish.contract.clocks import Clocks
from beamish.contract.operator import Operator
from beamish.instants import END_OF_TIME_US
from beamish.kernels.arrays import Flags, Ints
from beamish.kinds.suppress.held_store import ends
from beamish.kinds.suppress.held_table import HeldTable
from beamish.kinds.suppress.option import Suppress, UntilWindowCloses
from beamish.tables.segment_store import SegmentStore
from beamish.triggers.trigger import NEVER_US


@attrs.frozen
class Due:
    """Due times of buffered slots.

    Attributes:
        suppress: its wait.
        operator: of the stage.
        clocks: as the step ends.
    """

    suppress: Suppress
    operator: Operator
    clocks: Clocks

    @property
    def now_us(self) -> int:
        """The current watermark, or clock."""
        return self.clocks.clock_us if self.suppress.until.by_clock else self.clocks.watermark_us

    @property
    def _all(self) -> bool:
        """Whether everything is due: the wait is 0, or it is the end of time."""
        return not self.suppress.holds or self.clocks.watermark_us >= END_OF_TIME_US

    def may_leave(self, held: HeldTable) -> Flags:
        """Whether a slot can be emitted by itself: bool, one per slot."""
        leaves: Flags = held["has_pane"] & ~held["gone"]
        if (not self.waits_for_pane or self._all) and not self.operator.adds_up:
            leaves |= held.takes_back & ~held["gone"]
        return leaves

    @property
    def waits_for_pane(self) -> bool:
        """Whether a slot with only retractions waits for a pane: not when waiting until windows close, nor at the end of time."""
        until = self.suppress.until
        return self.operator.waits_for_pane and until.holds and not isinstance(until, UntilWindowCloses)

    def due_us(self, held: HeldTable) -> Ints:
        """When each slot is due, int64 microseconds."""
        closes = self.operator.closes_us(ends(held))
        return self.suppress.until.due_us(held["since_us"], held["since_clock_us"], closes)

    def slots(self, held: HeldTable) -> Ints:
        """The slots that are due now, int64."""
        leaves = self.may_leave(held)
        if not self._all:
            due = self.due_us(held) <= self.now_us
            if isinstance(self.suppress.until, UntilWindowCloses):
                due |= held["is_last"] & held["has_pane"]
            leaves &= due
        return np.flatnonzero(leaves)

    def first_us(self, store: SegmentStore) -> Ints:
        """The least due time in each segment, int64 microseconds."""
        index = store.index
        closes = self.operator.closes_us(np.minimum(index["end_us"], END_OF_TIME_US))
        first = self.suppress.until.due_us(index["since_us"], index["since_clock_us"], closes)
        if isinstance(self.suppress.until, UntilWindowCloses):
            first = np.where(index["lasts"] > 0, 0, first)
        return np.where(index["since_us"] == NEVER_US, NEVER_US, first)

    def segments(self, store: SegmentStore) -> Flags:
        """Which segments have due slots: bool, one per entry of the index."""
        if self._all:
            return np.ones(len(store.index["segment"]), dtype=bool)
        due: Flags = self.first_us(store) <= self.now_us
        return due

    def next_us(self, store: SegmentStore) -> int | None:
        """The least watermark at which a slot is due; None: none by the watermark."""
        if self.suppress.until.by_clock:
            return END_OF_TIME_US if store.rows else None
        first = int(self.first_us(store).min(initial=NEVER_US))
        return None if first == NEVER_US else first
