"""Keys that are looked at at boundaries, with their slices and emitted rows, under a common coding of keys."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beamish.contract.updates import EARLY, LATE, ON_TIME
from beamish.instants import END_OF_TIME_US, LATEST_US
from beamish.kernels.buffers import Ints
from beamish.kernels.codes import factorize_rows
from beamish.kernels.order import run_starts
from beamish.kinds.rolling.plan import RollingPlan
from beamish.kinds.rolling.tables import EmittedRows, Rows, Slices
from beamish.kinds.rolling.values import KeySlices
from beamish.tables.timed_records import TimedRecords
from beamish.watermarks import NO_WATERMARK_US


@attrs.frozen(eq=False)
class Asked:
    """Keys, and boundaries at which they are looked at.

    Attributes:
        keys: n rows of key cells.
        boundary_us: int64[n].
        timing: int8[n], of a row that is emitted there.
    """

    keys: pa.Table
    boundary_us: Ints
    timing: NDArray[np.int8]

    @classmethod
    def at(cls, keys: pa.Table, boundary_us: Ints | int, timing: int) -> Asked:
        """Keys with the same timing."""
        count = keys.num_rows
        return cls(keys, np.broadcast_to(np.asarray(boundary_us, np.int64), count), np.full(count, timing, np.int8))

    @classmethod
    def concat(cls, parts: Sequence[Asked]) -> Asked:
        """All of them."""
        return cls(
            pa.concat_tables([part.keys for part in parts]),
            np.concatenate([part.boundary_us for part in parts]),
            np.concatenate([part.timing for part in parts]),
        )

    def __len__(self) -> int:
        return len(self.boundary_us)


@attrs.frozen(eq=False)
class Points:
    """Keys by their codes, and boundaries.

    Attributes:
        code, boundary_us: int64[n].
        timing: int8[n], of a row that is emitted there.
    """

    code: Ints
    boundary_us: Ints
    timing: NDArray[np.int8]

    def ordered(self) -> Points:
        """By code and boundary, each pair once."""
        order = np.lexsort((self.boundary_us, self.code))
        return self.take(order[run_starts([self.code[order], self.boundary_us[order]])])

    def take(self, at: NDArray[np.int64] | NDArray[np.bool_]) -> Points:
        """A subset: indices or flags."""
        return Points(self.code[at], self.boundary_us[at], self.timing[at])


@attrs.frozen(eq=False)
class Looked:
    """The keys that are looked at, each at some boundaries.

    Attributes:
        keys: the keys, by code.
        slices: their slices.
        code, boundary_us: int64[n]: a key and a boundary, ordered, each pair once.
        timing: int8[n], of a row that is emitted there.
        of_rows: int64[m], the code of the key of each of their emitted rows.
        rows_at: int64[m], the index of each in memory.
    """

    keys: pa.Table
    slices: KeySlices
    code: Ints
    boundary_us: Ints
    timing: NDArray[np.int8]
    of_rows: Ints
    rows_at: Ints


def keys_of(plan: RollingPlan, records: Slices | Rows, at: Ints) -> pa.Table:
    """The key cells of some records."""
    return records.cells.select(plan.key_cells.names).take(pa.array(at))


def look_up(
    plan: RollingPlan, slices: TimedRecords[Slices], rows: EmittedRows, asked: Asked, watermark_us: int
) -> Looked:
    """Load the slices and the emitted rows of keys, and say at which boundaries these are looked at.

    Args:
        plan: of the stage.
        slices, rows: the tables of the shard.
        asked: the keys; in a history a ``LATE`` one at the first boundary that its new rows may have changed.
        watermark_us: of this part of the step.
    """
    until_us = int(asked.boundary_us.max())
    if plan.history:
        until_us = max(until_us, plan.next_boundary(watermark_us) or min(watermark_us, LATEST_US))
    at = slices.between(int(asked.boundary_us.min()) - plan.kept_us, until_us)
    codes = factorize_rows(asked.keys.columns, len(asked))
    keys = asked.keys.take(pa.array(codes.first())).combine_chunks()
    rows.load_keys(keys)
    rows_at = np.flatnonzero(rows.alive & (rows.records["panes"] > 0))
    both = pa.concat_tables([keys, keys_of(plan, slices.records, at), keys_of(plan, rows.records, rows_at)])
    code = factorize_rows(both.columns, both.num_rows).of[codes.count :]
    of_slices, of_rows = code[: len(at)], code[len(at) :]
    at, of_slices = at[of_slices < codes.count], of_slices[of_slices < codes.count]
    rows_at, of_rows = rows_at[of_rows < codes.count], of_rows[of_rows < codes.count]
    own = slices.records.take(at)
    key_slices = KeySlices.ordered(of_slices, own["start_us"], own.state)
    points, row_us = Points(codes.of, asked.boundary_us, asked.timing), rows.records["time_us"][rows_at]
    if plan.history:
        points = _and_later(plan, points, key_slices, of_rows, row_us, watermark_us).ordered()
    else:
        latest_us = np.full(codes.count, NO_WATERMARK_US)
        latest_us[of_rows] = row_us
        points = points.ordered()
        points = points.take(points.boundary_us >= latest_us[points.code])  # an early row is ahead, and stays
    return Looked(keys, key_slices, points.code, points.boundary_us, points.timing, of_rows, rows_at)


def _and_later(  # noqa: PLR0917 - what may change, and where
    plan: RollingPlan, points: Points, slices: KeySlices, of_rows: Ints, row_us: Ints, watermark_us: int
) -> Points:
    """With the later boundaries at which rows of the history may change: where slices of keys with late rows change, and where rows are."""
    since_us = np.full(int(points.code.max()) + 1, END_OF_TIME_US)
    np.minimum.at(since_us, points.code, points.boundary_us)
    until_us = plan.boundary(min(watermark_us, LATEST_US))
    late = np.zeros(len(since_us), bool)
    late[points.code[points.timing == LATE]] = True
    parts = [points]
    for change_us in plan.changes_us:
        changes = slices.start_us + change_us
        inside = late[slices.code] & (changes >= since_us[slices.code]) & (changes <= until_us)
        parts.append(Points(slices.code[inside], changes[inside], np.full(int(inside.sum()), LATE, np.int8)))
    inside = row_us >= since_us[of_rows]
    of_rows, row_us = of_rows[inside], row_us[inside]
    timing = np.where(row_us > until_us, EARLY, LATE if late.any() else ON_TIME).astype(np.int8)
    parts.append(Points(of_rows, row_us, timing))
    return Points(
        *(np.concatenate([getattr(part, name) for part in parts]) for name in ("code", "boundary_us", "timing"))
    )
