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

from typing import Any, ClassVar

import attrs
import numpy as np
import pyarrow as pa

from beamish.contract.stored import Layout, Store
from beamish.contract.updates import EARLY
from beamish.kernels.buffers import Flags, Ints, column_of, numbers
from beamish.kernels.codes import factorize_rows
from beamish.kernels.groups import Groups
from beamish.kinds.rolling.plan import STATE, TOTALS, RollingPlan
from beamish.tables.buckets import BucketedRecords
from beamish.tables.records import (
    DUE,
    Records,
    RecordTable,
    keyed_layout,
    record_table,
)
from beamish.tables.timed_records import SpanPolicy, Timed, TimedRecords, timed_table
from beamish.triggers.trigger import NEVER_US
from beamish.watermarks import NO_WATERMARK_US

DEFAULT_POLICY = SpanPolicy()
SLICES, ROWS, PAST = "slices", "rows", "past"
"""The names of the tables."""


class _Cells:
    """Parts of a cell besides its values."""

    cells: pa.Table

    @property
    def keys(self) -> list[pa.Array]:
        """The key columns; without any a constant one."""
        return key_columns(self.cells)

    @property
    def state(self) -> pa.Table:
        """The accumulators."""
        names = [name for name in self.cells.schema.names if name.startswith(STATE)]
        return self.cells.select(names).rename_columns([name.removeprefix(STATE) for name in names])

    @property
    def totals(self) -> Ints:
        """int64[n, width]."""
        return totals_of(self.cells)


@attrs.frozen(eq=False)
class Slices(_Cells, Timed):
    """Slices."""

    TIME = "start_us"
    COLUMNS: ClassVar[dict[str, tuple[str, Any]]] = {"start_us": ("int64", 0), "rows": ("int64", 0)}


@attrs.frozen(eq=False)
class Past(_Cells, Records):
    """The slices of keys that are folded."""

    COLUMNS: ClassVar[dict[str, tuple[str, Any]]] = {"rows": ("int64", 0), "last_us": ("int64", NO_WATERMARK_US)}


@attrs.frozen(eq=False)
class Standing(_Cells, Records):
    """The totals of keys at the watermark."""


@attrs.frozen(eq=False)
class Rows(_Cells, Records):
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
    def values(self) -> pa.Table:
        """The values of the last pane."""
        names = [name for name in self.cells.schema.names if name.startswith("value.")]
        return self.cells.select(names).rename_columns([name.removeprefix("value.") for name in names])


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


class StandingTotals(BucketedRecords[Standing]):
    """The totals of the keys of a shard.

    Args:
        plan: of the stage.
        store: the shard's.
    """

    def __init__(self, plan: RollingPlan, store: Store) -> None:
        super().__init__(store, Layout(TOTALS), Standing.none(plan.standing_cells), plan.key_cells.names)
        self._plan = plan

    def of(self, keys: pa.Table) -> Ints:
        """The totals of distinct keys: int64[n, width]; 0 for unknown ones."""
        at = self.find(keys)
        found = np.zeros((len(at), self._plan.totals_width), np.int64)
        found[at >= 0] = self.records.take(at[at >= 0]).totals
        return found

    def replace(self, keys: pa.Table, totals: Ints) -> None:
        """Replace the totals of distinct keys."""
        at = self.find(keys)
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
        super().__init__(store, keyed_layout(ROWS), Rows.none(plan.row_cells), plan.key_cells.names)
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
