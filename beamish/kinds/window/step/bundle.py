"""The input rows of one step: rows, or slices of rows (packing.py), not yet assigned to windows (entries.py)."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from beamish.accumulations.base.gathered import marked
from beamish.contract.clocks import in_range
from beamish.instants import NO_TIME_US
from beamish.kernels.buffers import NO_VALUE, Flags, Ints
from beamish.kernels.codes import normalise
from beamish.kernels.column_names import EVENT_TIME, FIRST, INPUT, LAST, ROWS, SIGN, SLICE, WINDOW_START
from beamish.kernels.groups import Groups
from beamish.kernels.order import Key
from beamish.kinds.deduplicate.remembered import first_come
from beamish.kinds.window.plan.plan import WindowPlan
from beamish.kinds.window.step.packing import unpack
from beamish.windows.within import WithinInput


@attrs.define
class Bundle:
    """The input of one step, before it is assigned to windows.

    Attributes:
        plan: the stage's plan.
        table: n rows or slices (see packing.py); rows only with event time.
        keys: the key columns, normalised, one row per row of ``table``.
        time_us: int64[n], microseconds since the epoch: event time of the row, or start of the slice; NO_VALUE for a numbered row
            without one.
        place: int64[n]: the position that determines windows: ``time_us``, or the row number (row_windows.py).
        group: int64[n]: for count windows the group (row_windows.py) of each, for a watermark per key the record (key_watermarks.py) of
            its key; else unset.
        apart: bool[n]: which rows have no match in a join, where some have none; else unset.
        rows: int64[n], number of rows represented by each.
        key_at: int64[n]: the position of each key in the window table's pool; set on arrival.
        signs: int64[n], the change in its window's number of rows: ``rows``, or -1 for a removal.
        first_us, last_us: int64[n], microseconds since the epoch: their earliest and latest event time.
        untimed: rows without event time (empty if only counted).
        untimed_rows: number of rows without event time.
        out_of_range_rows: number of rows left out of ``table``, with an event time out of range.
    """

    plan: WindowPlan
    table: pa.Table
    keys: pa.Table
    time_us: Ints
    rows: Ints
    signs: Ints
    first_us: Ints
    last_us: Ints
    untimed: pa.Table
    untimed_rows: int
    out_of_range_rows: int = 0
    place: Ints = attrs.field(default=attrs.Factory(lambda bundle: bundle.time_us, takes_self=True))
    key_at: Ints = attrs.field(factory=lambda: np.empty(0, dtype=np.int64))
    group: Ints = attrs.field(factory=lambda: np.empty(0, dtype=np.int64))
    apart: Flags | None = None

    @classmethod
    def read(cls, plan: WindowPlan, payloads: Sequence[bytes]) -> Bundle:
        """Decode the payloads of a step."""
        table, untimed_rows, out_of_range = unpack(payloads)
        if plan.preaggregates:
            time = table[SLICE].to_numpy()
            first, last = (table[name].to_numpy() if plan.carries_times else time for name in (FIRST, LAST))
            keys = table.select(plan.key_schema.names)
            rows = table[ROWS].to_numpy()
            return cls(plan, table, keys, time, rows, rows, first, last, table.slice(0, 0), untimed_rows, out_of_range)
        if not plan.progress.by_watermark:  # with or without an event time
            untimed, time = table.slice(0, 0), _times_of_counted(table)
        else:
            without = _untimed(plan, table)
            untimed = table.filter(without)
            table = table.filter(pc.invert(without)).combine_chunks() if untimed.num_rows else table
            time = table[EVENT_TIME].to_numpy()
        one = np.ones(len(time), dtype=np.int64)
        signs = table[SIGN].to_numpy().astype(np.int64) if plan.signed else one
        return cls(plan, table, plan_keys(plan, table), time, one, signs, time, time, untimed, untimed.num_rows)

    @property
    def timed(self) -> Flags:
        """Which rows have an event time that is in range: bool, one per row.

        All slices do (packing.py leaves the others out), and windows that panes bring along need no time. Nor does the global window.
        """
        if self.plan.preaggregates or WINDOW_START in self.plan.schema.names:
            return np.ones(len(self.time_us), dtype=bool)
        timed = in_range(self.time_us)
        all_of_time = self.plan.window.is_all_of_time and self.plan.takes_panes
        return timed | (self.time_us == NO_TIME_US) if all_of_time else timed

    @property
    def times(self) -> list[Ints]:
        """The keys by which rows come first: their event times, and before these the numbers that they bring."""
        numbering = self.plan.window.numbering
        brought = numbering is not None and numbering.numbered_by is not None
        return [self.place, self.time_us] if brought else [self.time_us]

    def first_come(self, at: Ints, by: Sequence[Key]) -> Ints:
        """Some rows in the order in which they count, by keys and then by their columns: their places in ``at``."""
        read = {*self.plan.options.id_columns, *(name for bound in self.plan.accumulations for name in bound.columns)}
        return first_come(at, by, self.table.select(self.plan.schema.names), read)

    def rows_of(self, entry: Ints, start_us: Ints | None) -> pa.Table:
        """The rows or slices of entries; in a join those that have no match, or visit a window, are marked.

        Args:
            entry: int64, their indices.
            start_us: int64, the start of the window of each; None: not an interval join.
        """
        everything = len(entry) == self.table.num_rows and bool((entry == np.arange(len(entry))).all())
        table = self.table if everything else self.table.take(pa.array(entry))
        window, none = self.plan.window, np.zeros(len(entry), dtype=bool)
        within = window if isinstance(window, WithinInput) and window.beside is not None else None
        if (within is None or start_us is None) and self.apart is None:
            return table
        which = table[INPUT].to_numpy()
        visits = none if within is None or start_us is None else within.visits(self.place[entry], which, start_us)
        apart = none if self.apart is None else self.apart[entry]
        of_inputs = pa.array(marked(which, visits=visits, apart=apart), table[INPUT].type)
        return table.set_column(table.schema.get_field_index(INPUT), INPUT, of_inputs)

    def accumulate(
        self, entry: Ints, groups: Groups, before: pa.Table | None, start_us: Ints | None = None
    ) -> pa.Table:
        """Add entries to accumulators, group by group.

        Args:
            entry: int64, indices of rows or slices.
            groups: of the entries.
            before: the accumulators so far, one per group; None: new ones.
            start_us: int64, the start of the window of each entry, for interval joins; None: not one.
        """
        table = self.rows_of(entry, start_us)
        columns: list[pa.Array] = []
        for bound in self.plan.in_state:
            accumulation = bound.accumulation
            old = None if before is None else bound.state_of(before)
            if self.plan.preaggregates:
                new = bound.state_in(table)
                if old is None:
                    columns.extend(accumulation.combine(groups, new))
                else:
                    both = [pa.concat_arrays(pair) for pair in zip(old, new, strict=True)]
                    columns.extend(accumulation.combine(Groups.each(groups.count).followed_by(groups), both))
            else:
                inputs = bound.inputs(table)
                time = self.place[entry]
                if old is None:
                    columns.extend(accumulation.reduce(inputs, time, groups))
                else:
                    columns.extend(accumulation.add_rows(old, inputs, time, groups))
        return pa.table(columns, schema=self.plan.state_schema)


def _untimed(plan: WindowPlan, table: pa.Table) -> pa.ChunkedArray:
    """Which rows have no event time: bool. Panes without a timestamp have one only in the global window (packing.py)."""
    time = table[EVENT_TIME]
    if plan.window.is_all_of_time or not plan.takes_panes:
        return time.is_null()
    return pc.or_(time.is_null(), pc.fill_null(pc.equal(time, NO_TIME_US), False))  # noqa: FBT003


def _times_of_counted(table: pa.Table) -> Ints:
    """The event times of counted rows; NO_VALUE for those without, or out of range."""
    time = pc.fill_null(table[EVENT_TIME], NO_VALUE).to_numpy()
    return np.where(in_range(time), time, NO_VALUE)


def plan_keys(plan: WindowPlan, table: pa.Table) -> pa.Table:
    """The key columns of rows, normalised."""
    columns = [normalise(table[name].combine_chunks()) for name in plan.key_schema.names]
    return pa.table(columns, schema=plan.key_schema) if columns else table.select([])
