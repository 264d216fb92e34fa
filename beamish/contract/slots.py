"""Slots: the updates of an operator by key and window, as a stage that buffers them sees them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from beamish.contract.updates import Block
from beamish.kernels.buffers import Flags, Ints
from beamish.kernels.groups import Groups
from beamish.kernels.order import Key


def _at_end(end_us: Ints) -> Ints:
    return end_us


def _never(*_: Any) -> Any:
    raise TypeError("its updates are panes of windows, of which the last counts")


def _none(columns: Block) -> Flags:
    return np.zeros(len(columns["kind"]), dtype=bool)


@attrs.frozen(eq=False, kw_only=True)
class Slots:
    """The columns of updates, and how those of one slot, a key and a window, follow each other.

    Attributes:
        keys: their key columns.
        values: their other columns.
        combine: ``combine(values, groups)`` gives the values of each group, summed; by default a later update does not add to an
            earlier one, but replaces it.
        newest_keys: ``newest_keys(time_us, deletes, values)`` gives sort keys (``kernels/order.py``) of n changes, from int64[n] event
            times, bool[n] and n rows: those that precede the order of steps, and those that follow it. The greatest is the newest, and
            counts. By default updates are panes of windows, of which the last counts.
        waits_for_pane: whether retractions of merged windows wait for the next pane of the result.
        closes_us: the watermark at which windows with these ends close; int64, microseconds.
        replaces_unseen: whether panes may replace earlier ones that are not retracted: bool, one per row of a block.
    """

    keys: pa.Schema
    values: pa.Schema
    combine: Callable[[pa.Table, Groups], pa.Table] = _never
    newest_keys: Callable[[Ints, Flags, pa.Table], tuple[list[Key], list[Key]]] = _never
    waits_for_pane: bool = False
    closes_us: Callable[[Ints], Ints] = _at_end
    replaces_unseen: Callable[[Block], Flags] = _none

    @property
    def adds_up(self) -> bool:
        """Whether updates add up, by ``combine``."""
        return self.combine is not _never

    @property
    def keeps_newest(self) -> bool:
        """Whether updates are changes, of which the newest by ``newest_keys`` counts."""
        return self.newest_keys is not _never
