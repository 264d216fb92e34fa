"""The stored buffer of a suppress: segments of slots and their index, in the stage's store under ``held/<name>/``.

index       the segments' columns, and metadata as JSON
s<number>   a segment: slots, with their keys as ``key.<name>`` and their values as ``value.<name>``
t<number>   the retractions of a segment's slots, with values as ``value.<name>`` (omitted if empty)

columns of the index (one entry per segment, int64; ``_us``: microseconds since the epoch):
    segment                     its number
    slots, bytes                number of slots, and bytes of keys and values
    since_us, since_clock_us    the least of its emittable slots; NEVER_US: none
    end_us                      their windows' least end
    lasts                       how many of these bring a last pane
    takes_back                  1 if a slot has retractions, else 0

Due times are not stored but computed, so the wait may change between two runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from beamish.contract.kept import Layout
from beamish.contract.store import Store
from beamish.errors import StateError
from beamish.instants import END_OF_TIME_US
from beamish.kernels.arrays import Flags, Ints
from beamish.kinds.suppress.held_table import HeldTable
from beamish.tables.segment_store import SegmentStore
from beamish.tables.segmented import Runs
from beamish.triggers.trigger import NEVER_US

FORMAT = 1


def entry_name(suppress: str, name: str) -> str:
    """An entry of a suppress in its stage's store."""
    return f"held/{suppress}/{name}"


def layout_of(suppress: str) -> Layout:
    """The layout of a suppress's slots in the store of its stage."""

    def read(about: dict[str, Any]) -> dict[str, Any]:
        if about["format"] != FORMAT:
            raise StateError(
                f"the checkpoint holds updates of suppress {suppress!r} in format {about['format']}, this version of beamish "
                f"writes {FORMAT}: start from a new checkpoint, or use the version that wrote it"
            )
        return about

    columns = ("bytes", "since_us", "since_clock_us", "end_us", "lasts")
    return Layout(
        entry_name(suppress, "").rstrip("/"),
        columns,
        rows="slots",
        companion=("t", "takes_back"),
        has_metadata=True,
        read=read,
    )


def held_store(store: Store, suppress: str) -> SegmentStore:
    """The stored slots of a suppress.

    Raises:
        StateError: it has another format, or cannot be read.
    """
    held = SegmentStore(store, layout_of(suppress))
    held.about.setdefault("format", FORMAT)
    return held


def entries(held: HeldTable, may_leave: Callable[[HeldTable], Flags]) -> Callable[[Ints, Runs], Mapping[str, Ints]]:
    """A function that computes the index columns of slots; ``may_leave``: whether each slot can be emitted by itself."""

    def of(at: Ints, runs: Runs) -> Mapping[str, Ints]:
        leaves = may_leave(held)[at]
        since_us, since_clock_us, end_us = (
            runs.least(np.where(leaves, us[at], NEVER_US))
            for us in (held["since_us"], held["since_clock_us"], ends(held))
        )
        return {
            "bytes": runs.total(held["bytes"][at]),
            "since_us": since_us,
            "since_clock_us": since_clock_us,
            "end_us": end_us,
            "lasts": runs.total((leaves & held["is_last"][at] & held["has_pane"][at]).astype(np.int64)),
        }

    return of


def write_slots(
    store: SegmentStore, number: int, held: HeldTable, slots: Ints, may_leave: Callable[[HeldTable], Flags]
) -> None:
    """Write slots as a segment, replacing it; without slots it is deleted."""
    of = entries(held, may_leave)(slots, Runs(np.zeros(1, np.int64))) if len(slots) else {}
    columns = {name: int(column[0]) for name, column in of.items()}
    store.write(number, held.stored(slots), columns, held.companions(slots))


def ends(held: HeldTable) -> Ints:
    """The ends of slots' windows, int64 microseconds; the end of time without a window."""
    return np.where(held["windowless"], END_OF_TIME_US, held["end_us"])
