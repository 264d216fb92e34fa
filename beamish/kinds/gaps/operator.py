"""The operator of a stage that fills gaps, and its shards.

The state of a shard is the cells of the grid that have rows (cells.py), and one entry, ``gaps``: JSON with the clocks and the number of
dropped rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from beamish.contract.drops import EXPIRED, TAKEN, Counts, Drops, structs, why_dropped
from beamish.contract.keys import from_shards
from beamish.contract.operator import Operator, Shard
from beamish.contract.stored import KeyedTable, Note, Store
from beamish.contract.stored_keys import StoredPart
from beamish.contract.updates import PANE_KIND, RETRACTION_KIND, UNKNOWN, Updates, make_block
from beamish.instants import END_OF_TIME_US
from beamish.kernels.buffers import Flags, Ints, cast
from beamish.kernels.codes import factorize_rows, normalise
from beamish.kernels.column_names import EVENT_TIME
from beamish.kernels.order import sort_order, value_keys
from beamish.kinds.gaps.cells import (
    Cells,
    Filled,
    cells_of_rows,
    cells_table,
    changes,
    due_us,
    ends_of,
    gaps,
    merge,
    net,
    outlived,
    values_of,
)
from beamish.kinds.gaps.plan import FILLED, GapsPlan
from beamish.tables.notes import GAPS, NotedShard
from beamish.tables.records import cells_of_keys
from beamish.watermarks import NO_WATERMARK_US


class GapsShard(NotedShard):
    """Some of the keys of such a stage (see ``contract/operator.py``)."""

    ENTRY, HOLDS, BY = GAPS, "cells of rows", "fill_gaps()"

    def __init__(self, operator: Operator, plan: GapsPlan, store: Store) -> None:
        super().__init__(operator, store)
        self._plan, self._cells = plan, cells_table(plan).open(store)

    @property
    def watermark_us(self) -> int | None:
        return self._plan.forwarded_us(super().watermark_us)

    @property
    def next_due_us(self) -> int | None:
        return self._cells.next_due_us

    def updates(
        self, sources_us: Sequence[int | None], clock_us: int | None, payloads: Sequence[bytes]
    ) -> Sequence[Updates]:
        takes, cells = self._plan.takes, self._cells
        before_us, _ = self.clocks.step([takes.policy], sources_us, clock_us)
        watermark_us, self._counts = self.clocks.watermark_us, Counts(0)
        out, rows = list[Updates](), None
        if payloads:
            rows, dropped = self._admit(from_shards(payloads)[0], before_us if takes.is_panes else watermark_us)
            out += dropped
            if len(rows[1]):
                out.append(self._as_updates(*rows))
                cells.load_keys(self._key_cells(rows[0]))
        cells.load_due(watermark_us)
        return [*out, *self._fill(rows, before_us)]

    def save(self) -> None:
        self._cells.save(self.clocks.watermark_us)
        super().save()

    def _admit(self, rows: pa.Table, watermark_us: int) -> tuple[tuple[pa.Table, Ints], list[Updates]]:
        """The rows of output with their times, in order of time and values; and the dropped rows, if they are listed."""
        plan = self._plan
        why = why_dropped(rows[EVENT_TIME], None, NO_WATERMARK_US)
        time_us = pc.fill_null(rows[EVENT_TIME], 0).to_numpy()
        timed = np.flatnonzero(why == TAKEN)
        late = np.zeros(len(timed), dtype=bool)
        if watermark_us != NO_WATERMARK_US:
            late = plan.settled_us(plan.options.cell_us(time_us[timed])) <= watermark_us
        why[timed[late]] = EXPIRED
        drops = Drops(plan.gives.schema, self.dropped)
        keys = {name: rows[name].combine_chunks() for name in plan.gives.keys}
        drops.add(why, time_us, watermark_us, keys, structs(rows, plan.takes.own_columns) if drops.lists else None)
        at = np.flatnonzero(why == TAKEN)
        columns = [cast(rows[field.name].combine_chunks(), field.type).take(pa.array(at)) for field in plan.row_schema]
        order = sort_order([time_us[at], *value_keys(columns)])
        kept = pa.table(columns, schema=plan.row_schema).take(pa.array(order))
        late_by_us = (
            int((watermark_us - time_us[timed][late]).max()) if late.any() and watermark_us != END_OF_TIME_US else None
        )
        self._counts = Counts(len(at), late_by_us)
        return (kept, time_us[at][order]), drops.updates

    def _as_updates(self, rows: pa.Table, time_us: Ints) -> Updates:
        block = make_block(len(time_us), windowless=True, is_first=True, is_last=True, pane_time_us=time_us)
        return self._updates(block, rows, filled=False)

    def _updates(self, block: dict[str, np.ndarray], rows: pa.Table, *, filled: bool) -> Updates:
        keys = list(self._plan.gives.keys)
        values = rows.drop_columns(keys).append_column(FILLED, pa.array(np.full(rows.num_rows, filled)))
        return Updates(block, rows.select(keys), values)

    def _key_cells(self, rows: pa.Table) -> pa.Table:
        """The keys of rows, as in the table of cells."""
        schema = cells_of_keys(self._plan.key_schema)
        if not self._plan.key_schema.names:
            return pa.table([pa.array(np.zeros(rows.num_rows, np.int8))], schema=schema)
        return pa.table([normalise(rows[name].combine_chunks()) for name in self._plan.key_schema.names], schema=schema)

    def _fill(self, rows: tuple[pa.Table, Ints] | None, before_us: int) -> Iterator[Updates]:
        """Add rows to their cells; gives the filled rows that come and go by it, and by the watermark."""
        plan, cells, watermark_us = self._plan, self._cells, self.clocks.watermark_us
        was_there = cells.alive.copy()
        if rows is not None and len(rows[1]):
            self._add(cells_of_rows(plan, self._key_cells(rows[0]), *rows))
        records, alive = cells.records, cells.alive
        if not len(records):
            return
        was_there = np.append(was_there, np.zeros(len(records) - len(was_there), dtype=bool))
        key = factorize_rows(records.by_key.columns, len(records)).of
        old = gaps(plan, records, key, was_there, before_us)
        new = gaps(plan, records, key, alive, watermark_us)
        yield from self._changed(records, *changes(old, new, plan.options.step.us))
        due = due_us(plan, new, records, watermark_us)
        cells.touch(new.at[records["due_us"][new.at] != due])
        records["due_us"][new.at] = due
        cells.remove(new.at[outlived(plan, new, records, watermark_us)])

    def _add(self, new: Cells) -> None:
        """Merge new cells with those that are stored."""
        cells = self._cells
        records, known = cells.records, np.flatnonzero(cells.alive)
        both = Cells.concat([records.take(known), new])
        columns = [*both.by_key.columns, pa.chunked_array([pa.array(both["cell_us"])])]
        of = factorize_rows(columns, len(both)).of
        again = np.isin(of[: len(known)], of[len(known) :])
        merged = merge(both.take(np.append(np.flatnonzero(again), np.arange(len(known), len(both)))))
        cells.remove(known[again])
        cells.add(merged)

    def _changed(self, records: Cells, old: Filled, new: Filled, further: Filled) -> Iterator[Updates]:
        """The rows of changed gaps, those that replace others after their retraction; and further rows of the others."""
        gone, comes, of_gone, of_comes = self._net(records, old, new)
        parts = [old.take(gone), new.take(comes), further]
        count = [len(part.key) for part in parts]
        if not sum(count):
            return
        rows = Filled(
            *(np.concatenate([getattr(part, name) for part in parts]) for name in ("key", "time_us", "after", "before"))
        )
        kind = np.repeat(np.array([RETRACTION_KIND, PANE_KIND, PANE_KIND], np.int8), count)
        replaces = np.concatenate([of_gone[gone], of_comes[comes], np.zeros(count[2], dtype=bool)])
        order = np.lexsort((kind != RETRACTION_KIND, rows.key, rows.time_us))
        rows, kind, replaces = rows.take(order), kind[order], replaces[order]
        block = make_block(
            len(kind),
            windowless=True,
            is_first=True,
            is_last=not self._plan.lateness.us,
            pane_time_us=rows.time_us,
            kind=kind,
            timing=UNKNOWN,
            replaces=replaces,
        )
        yield self._updates(block, self._rows(records, rows), filled=True)

    def _net(self, records: Cells, old: Filled, new: Filled) -> tuple[Flags, Flags, Flags, Flags]:
        each = [values_of(self._plan, records, one) for one in (old, new)]
        return net(old, new, [pa.concat_arrays([one[name] for one in each]) for name in self._plan.carried])

    def _rows(self, records: Cells, filled: Filled) -> pa.Table:
        """Filled rows as rows of output."""
        plan, own = self._plan, values_of(self._plan, records, filled)
        for name in plan.key_schema.names:
            own[name] = records.cells[f"key.{name}"].combine_chunks().take(pa.array(filled.after))
        if plan.time_column is not None:
            own[plan.time_column] = times_as(filled.time_us, plan.row_schema.field(plan.time_column).type)
        each = [
            own[field.name] if field.name in own else pa.nulls(len(filled.key), field.type) for field in plan.row_schema
        ]
        return pa.table(each, schema=plan.row_schema)


def times_as(time_us: Ints, type_: pa.DataType) -> pa.Array:
    """Times as values of an event-time column: seconds in a column of numbers, null if they are not whole there."""
    if pa.types.is_floating(type_):
        return pa.array(time_us / 1_000_000).cast(type_)
    if pa.types.is_integer(type_):
        return pa.array(time_us // 1_000_000, mask=time_us % 1_000_000 != 0).cast(type_)
    times = pa.array(time_us).cast(pa.timestamp("us", tz=getattr(type_, "tz", None)))
    return times.cast(type_, safe=False)


@attrs.define(slots=False, eq=False)
class GapsOperator(Operator):
    """Such a stage bound to its data (see ``contract/operator.py``).

    Attributes:
        plan: the stage's plan.
    """

    plan: GapsPlan
    holds_watermark = True

    def __attrs_post_init__(self) -> None:
        plan = self.plan
        self.takes, self.gives, self.shards, self.identity = (plan.takes,), plan.gives, plan.shards, plan.identity
        self.moves_by([plan.takes.policy])

    def open(self, store: Store) -> Shard:
        return GapsShard(self, self.plan, store)

    def stored(self, store: Store) -> Iterator[StoredPart]:
        plan, cells = self.plan, cells_table(self.plan).open(store).stored()
        due_us, ends_us = cells["due_us"], ends_of(plan, cells)
        yield StoredPart(
            f"cells of {plan.options.step} with rows",
            cells.keyed(plan.key_schema.names),
            cells["first_us"],
            cells["last_us"],
            due_us=due_us,
            then=np.where(
                due_us < ends_us, "a gap is filled", "it takes no more rows, and nothing is filled after it"
            ).tolist(),
            ends_us=ends_us,
        )

    def tables(self) -> Sequence[KeyedTable]:
        return [cells_table(self.plan)]

    def notes(self) -> Sequence[Note]:
        return [GapsShard.note(self.identity)]
