"""Buffer limits of a shard (docs/rules/suppress.md#suppress-limits)."""

from __future__ import annotations

import numpy as np

from beamish.errors import BufferFullError
from beamish.kernels.arrays import Ints
from beamish.kinds.suppress.due import Due
from beamish.kinds.suppress.held_table import HeldTable
from beamish.kinds.suppress.leaving import in_order
from beamish.kinds.suppress.option import Buffer, Suppress


def is_full(buffer: Buffer, slots: int, held_bytes: int) -> bool:
    """Whether slots or bytes exceed the limits."""
    return (buffer.max_records is not None and slots > buffer.max_records) or (
        buffer.max_bytes is not None and held_bytes > buffer.max_bytes
    )


def evicted(due: Due, held: HeldTable, slots: int, held_bytes: int) -> tuple[Ints, Ints, bool]:
    """The slots to emit early, least due first, until both limits hold.

    Args:
        due: the step's.
        held: the held table.
        slots: number of all buffered slots.
        held_bytes: their bytes.

    Returns:
        the slots, int64, in order; when each is due, int64 microseconds; and whether the rest then fits.
    """
    buffer = due.suppress.buffer
    at = np.flatnonzero(due.may_leave(held))
    due_us = due.due_us(held)[at]
    order = in_order(held, at, due_us)
    at, due_us = at[order], due_us[order]
    slots_left = slots - np.arange(len(at) + 1)
    bytes_left = held_bytes - np.concatenate([[0], np.cumsum(held["bytes"][at])])
    fits = np.ones(len(at) + 1, dtype=bool)
    if buffer.max_records is not None:
        fits &= slots_left <= buffer.max_records
    if buffer.max_bytes is not None:
        fits &= bytes_left <= buffer.max_bytes
    count = int(np.argmax(fits)) if fits.any() else len(at)
    return at[:count], due_us[:count], bool(fits.any())


def full(suppress: Suppress, slots: int, held_bytes: int, shard: int) -> BufferFullError:
    """The error of a shard that exceeds its buffer."""
    buffer = suppress.buffer
    allowed = [f"{buffer.max_records} updates"] if buffer.max_records is not None else []
    allowed += [f"{buffer.max_bytes} bytes"] if buffer.max_bytes is not None else []
    return BufferFullError(
        f"suppress {suppress.name!r}: shard {shard} would hold {slots} updates of {held_bytes} bytes, allowed are "
        f"{' and '.join(allowed)}; nothing is lost: restart from the checkpoint with a larger buffer, more shards in a new "
        "checkpoint, or when_full=bm.SPILL"
    )
