"""The state of a shard: slices of rows by time, and the totals and the emitted rows of each key.

columns of slices (one entry per key and slice; ``_us``: int64, microseconds since the epoch):
    start_us            where it starts
    rows                int64: number of its rows
cells: the key columns as ``key.<name>``, accumulators as ``state.<name>.<number>``.

columns of rows (one entry per key, with ``keep="history"`` per key and boundary):
    time_us             its boundary
    panes               int64: how many panes were emitted; 0: none, it only asks
    later_panes         int64: how many of them were not EARLY
    timing              int8: of the last pane
    live                bool: whether the last pane is neither retracted nor removed
    is_last             bool: whether the key had no rows there
    ask_us              the boundary at which the key must be looked at; NEVER_US: none
cells: the key columns, the values of the last pane as ``value.<name>``.

columns of totals (one entry per key that has a slice within the reach at the watermark): none.
cells: the key columns; ``totals``, a list of int64: the number of slices within the reach, and for each span the totals of the accumulations that have
them (totals.py).

columns of the past (with a span without a beginning, one entry per key that has slices folded, or may be dropped for want of rows):
    rows                int64: number of the rows of the slices that are folded
    last_us             where its latest slice starts, folded or not if keys are dropped for want of rows
cells: the key columns; ``totals``, a list of int64: the totals of the slices that are folded; accumulators as ``state.<name>.<number>``.

Rows, totals and the past of a key are in segments by a hash of the key. Slices are in segments by time, so that a step writes only those of new rows, and reads only
those at the ends of spans, unless an accumulation is recombined from slices.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Generic, TypeVar

import attrs
import numpy as np
import pyarrow as pa

from beamish.contract.stored import Layout, Store
from beamish.contract.updates import EARLY
from beamish.kernels.buffers import Flags, Ints, column_of, numbers
from beamish.kernels.codes import factorize_rows, hash_rows
from beamish.kernels.groups import Groups
from beamish.kinds.rolling.plan import STATE, TOTALS, RollingPlan
from beamish.tables.records import (
    DUE,
    Records,
    RecordTable,
    SegmentedRecords,
    keyed_layout,
    record_table,
)
from beamish.tables.segments import Runs, SegmentStore
from beamish.tables.timed_records import SpanPolicy, Timed, TimedRecords, timed_table
from beamish.triggers.trigger import NEVER_US
from beamish.watermarks import NO_WATERMARK_US

DEFAULT_POLICY = SpanPolicy()
SLICES, ROWS, PAST = "slices", "rows", "past"
"""The names of the tables."""


@attrs.frozen(eq=False)
class Slices(Timed):
    """Slices."""

    TIME = "start_us"
    COLUMNS: ClassVar[dict[str, tuple[str, Any]]] = {"start_us": ("int64", 0), "rows": ("int64", 0)}

    @property
    def keys(self) -> list[pa.Array]:
        """The key columns; without any a constant one."""
        return key_columns(self.cells)

    @property
    def state(self) -> pa.Table:
        """The accumulators."""
        return _accumulators(self.cells)


@attrs.frozen(eq=False)
class Past(Records):
    """The slices of keys that are folded."""

    COLUMNS: ClassVar[dict[str, tuple[str, Any]]] = {"rows": ("int64", 0), "last_us": ("int64", NO_WATERMARK_US)}

    @property
    def keys(self) -> list[pa.Array]:
        return key_columns(self.cells)

    @property
    def state(self) -> pa.Table:
        """The accumulators."""
        return _accumulators(self.cells)

    @property
    def totals(self) -> Ints:
        """int64[n, width]."""
        return totals_of(self.cells)


@attrs.frozen(eq=False)
class Rows(Records):
    """Emitted rows."""

    COLUMNS: ClassVar[dict[str, tuple[str, Any]]] = {
        "time_us": ("int64", NO_WATERMARK_US),
        "panes": ("int64", 0),
        "later_panes": ("int64", 0),
        "timing": ("int8", EARLY),
        "live": ("bool", False),
        "is_last": ("bool", True),
        "ask_us": ("int64", NEVER_US),
    }

    @property
    def keys(self) -> list[pa.Array]:
        return key_columns(self.cells)

    @property
    def values(self) -> pa.Table:
        """The values of the last pane."""
        names = [name for name in self.cells.schema.names if name.startswith("value.")]
        return self.cells.select(names).rename_columns([name.removeprefix("value.") for name in names])


def _accumulators(cells: pa.Table) -> pa.Table:
    """The accumulators among cells."""
    names = [name for name in cells.schema.names if name.startswith(STATE)]
    return cells.select(names).rename_columns([name.removeprefix(STATE) for name in names])


def totals_of(cells: pa.Table) -> Ints:
    """The totals among cells: int64[n, width]."""
    if TOTALS not in cells.schema.names:
        return np.zeros((cells.num_rows, 0), np.int64)
    column = cells[TOTALS].combine_chunks()
    return numbers(column.flatten()).reshape(cells.num_rows, column.type.list_size)


def totals_column(totals: Ints) -> pa.Array:
    """Totals as cells."""
    width = totals.shape[1]
    return pa.FixedSizeListArray.from_arrays(column_of(totals.ravel()), type=pa.list_(pa.int64(), width))


def key_columns(cells: pa.Table) -> list[pa.Array]:
    """The key columns among cells; without any a constant one."""
    names = [name for name in cells.schema.names if name == "key" or name.startswith("key.")]
    return [cells[name].combine_chunks() for name in names]


@attrs.frozen(eq=False)
class Standing(Records):
    """The totals of keys at the watermark."""

    @property
    def keys(self) -> list[pa.Array]:
        return key_columns(self.cells)

    @property
    def totals(self) -> Ints:
        """int64[n, width]."""
        return totals_of(self.cells)


B = TypeVar("B", bound=Records)


class BucketedRecords(SegmentedRecords[B], Generic[B]):
    """Records by key, in segments by a hash of the key: more of them as there are more keys.

    Args:
        store: the shard's.
        layout: of the table.
        none: an empty table of these records.
    """

    def __init__(self, store: Store, layout: Layout, none: B) -> None:
        super().__init__(SegmentStore(store, layout), none)
        self._buckets: int = self.segments.about.get("buckets", 1)

    def load_keys(self, keys: pa.Table) -> None:
        """Load the segments of keys."""
        self.load(np.unique(self._parts(keys.columns, keys.num_rows)).tolist())

    def find(self, plan: RollingPlan, keys: pa.Table) -> Ints:
        """The record of each of some distinct keys; -1: none."""
        self.load_keys(keys)
        known = np.flatnonzero(self.alive)
        names = plan.key_cells.names
        both = pa.concat_tables([keys, self.records.cells.select(names).take(pa.array(known))])
        code = factorize_rows(both.columns, both.num_rows).of
        place = np.full(both.num_rows, -1)
        place[code[keys.num_rows :]] = known
        return place[code[: keys.num_rows]]

    def _parts(self, keys: Sequence[pa.Array | pa.ChunkedArray], rows: int) -> Ints:
        return (hash_rows(keys, rows) % np.uint64(self._buckets)).astype(np.int64)

    def write_buckets(self, kept: Callable[[B], Flags], entries: Callable[[Any, Runs], Mapping[str, Ints]]) -> None:
        """Write the changes of the step, over more segments if these have become long."""
        rows = self.segments.rows + int(self.is_new.sum())
        if rows > 2 * _ROWS * self._buckets:
            self._buckets = 1 << (rows // _ROWS).bit_length()
            self.load_all()
            self.touch(np.flatnonzero(self.alive))
        self.segments.about = {"buckets": self._buckets}
        self.write_back(lambda of: self._parts(of.keys, len(of)), kept, entries)


_ROWS = 4_096
"""Approximate number of records of a segment."""


class StandingTotals(BucketedRecords[Standing]):
    """The totals of the keys of a shard.

    Args:
        plan: of the stage.
        store: the shard's.
    """

    def __init__(self, plan: RollingPlan, store: Store) -> None:
        super().__init__(store, Layout(TOTALS), Standing.none(plan.standing_cells))
        self._plan = plan

    def of(self, keys: pa.Table) -> Ints:
        """The totals of distinct keys: int64[n, width]; 0 for unknown ones."""
        at = self.find(self._plan, keys)
        found = np.zeros((len(at), self._plan.totals_width), np.int64)
        found[at >= 0] = self.records.take(at[at >= 0]).totals
        return found

    def replace(self, keys: pa.Table, totals: Ints) -> None:
        """Replace the totals of distinct keys."""
        at = self.find(self._plan, keys)
        self.remove(at[at >= 0])
        some = np.flatnonzero(totals[:, 0])
        cells = [*keys.take(pa.array(some)).columns, totals_column(self._plan.carried(totals[some]))]
        self.add(Standing.new(pa.table(cells, schema=self._plan.standing_cells).combine_chunks()))

    def save(self, watermark_us: int = NO_WATERMARK_US) -> None:
        self.write_buckets(lambda of: np.ones(len(of), bool), lambda *_: {})


class EmittedRows(BucketedRecords[Rows]):
    """The emitted rows of a shard.

    Args:
        plan: of the stage.
        store: the shard's.
    """

    def __init__(self, plan: RollingPlan, store: Store) -> None:
        super().__init__(store, keyed_layout(ROWS), Rows.none(plan.row_cells))
        self._plan = plan

    @property
    def next_due_us(self) -> int | None:
        """The least watermark at which a row asks, or its key expires."""
        due = min(self.segments.index[DUE].tolist(), default=NEVER_US)
        return None if due == NEVER_US else due

    def load_due(self, watermark_us: int) -> None:
        """Load the segments in which something is due."""
        self.load_where(self.segments.index[DUE] <= watermark_us)

    def save(self, watermark_us: int) -> None:
        self.write_buckets(
            lambda rows: needed_rows(self._plan, rows, self.alive, watermark_us),
            lambda columns, runs: {DUE: runs.least(due_us(self._plan, columns))},
        )


def needed_rows(plan: RollingPlan, rows: Rows, alive: Flags, watermark_us: int) -> Flags:
    """Which rows may still be corrected, retracted or compared with: bool, one each."""
    frozen = plan.is_frozen(rows["time_us"], watermark_us)
    asks = rows["ask_us"] != NEVER_US
    needed: Flags = alive & (~frozen | asks | (rows["live"] & ~rows["is_last"]))
    if plan.history and len(rows):
        # The latest final row of each key is what its next one is compared with.
        code = factorize_rows(rows.keys, len(rows))
        at = np.flatnonzero(alive & frozen & rows["live"])
        latest = Groups(code.of[at], code.count).greatest(rows["time_us"][at])
        needed &= ~frozen | asks | (rows["time_us"] == latest[code.of])
    return needed


def due_us(plan: RollingPlan, columns: Any) -> Ints:
    """The watermark at which each row must be looked at again: int64, one each; NEVER_US: none."""
    ends = columns["is_last"] | ~columns["live"]
    ends &= columns["panes"] > 0
    forgets = np.where(ends, np.minimum(columns["time_us"], NEVER_US - plan.lateness_us) + plan.lateness_us, NEVER_US)
    due: Ints = np.minimum(forgets, columns["ask_us"])
    return due


def slices_table(plan: RollingPlan, policy: SpanPolicy) -> RecordTable[TimedRecords[Slices]]:
    """Declare the table of slices."""
    return timed_table(SLICES, Slices.none(plan.slice_cells), plan.key_cells.names, policy)


def rows_table(plan: RollingPlan) -> RecordTable[EmittedRows]:
    """Declare the table of emitted rows."""
    names = plan.key_cells.names
    return record_table(keyed_layout(ROWS), Rows.none(plan.row_cells), names, lambda store: EmittedRows(plan, store))


def totals_table(plan: RollingPlan) -> RecordTable[StandingTotals]:
    """Declare the table of totals."""
    names = plan.key_cells.names
    return record_table(
        Layout(TOTALS), Standing.none(plan.standing_cells), names, lambda store: StandingTotals(plan, store)
    )
