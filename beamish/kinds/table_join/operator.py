"""The operator of a join of tables, and its shards.

The state of a shard is the rows of both inputs and what is known of each join value (rows.py), and one entry, ``joined``: JSON with the clocks and
the number of dropped rows. A step nets the changes of each row, reads the rows of the other input with the same join values, and emits the joined
rows whose number changed (pairs.py): its cost follows them, however many rows are stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from beamish.contract.drops import TAKEN, UNMATCHED_REMOVAL, Counts, Drops, why_dropped
from beamish.contract.inputs import columns_of_where, sign_column, signs_of, wanted
from beamish.contract.keys import any_null, from_shards, times_of, to_shards
from beamish.contract.operator import Operator, Shard
from beamish.contract.stored import KeyedTable, Note, Store
from beamish.contract.stored_keys import StoredPart
from beamish.contract.updates import Updates
from beamish.instants import EARLIEST_US, NO_TIME_US
from beamish.kernels.buffers import NO_ENTRY, Flags, Ints, cast
from beamish.kernels.codes import factorize_rows, normalise
from beamish.kernels.groups import Groups
from beamish.kernels.order import ranks, value_keys
from beamish.kinds.table_join.options import LEFT, RIGHT
from beamish.kinds.table_join.pairs import Side, changed_updates
from beamish.kinds.table_join.plan import TableJoinPlan
from beamish.kinds.table_join.rows import (
    COUNTS,
    RowsPolicy,
    TableRows,
    Values,
    codes_of,
    hashes,
    no_rows,
    rows_table,
    values_table,
)
from beamish.tables.notes import TABLE_JOIN, NotedShard
from beamish.tables.records import keyed_schema
from beamish.watermarks import NO_WATERMARK_US


@attrs.frozen(eq=False)
class Changes:
    """The distinct rows of an input that a bundle adds or removes.

    Attributes:
        rows: with their ``copies`` after it.
        old: int64, one per row: how often it was there.
        at: int64, one per row: its index among the stored ones; NO_ENTRY: it was not there.
    """

    rows: TableRows
    old: Ints
    at: Ints

    def take(self, wanted: Flags) -> Changes:
        """A subset."""
        return Changes(self.rows.take(wanted), self.old[wanted], self.at[wanted])


class TableJoinShard(NotedShard):
    """Some of the join values of a join of tables (see ``contract/operator.py``)."""

    ENTRY, HOLDS, BY = TABLE_JOIN, "rows of joined tables", "table_join(...)"

    def __init__(self, operator: Operator, plan: TableJoinPlan, store: Store, policy: RowsPolicy) -> None:
        super().__init__(operator, store)
        self._plan = plan
        self._rows = [rows_table(plan, number, policy).open(store) for number in (LEFT, RIGHT)]
        self._values = values_table(plan, policy).open(store)

    @property
    def next_due_us(self) -> int | None:
        return self._values.next_due_us

    def updates(
        self, sources_us: Sequence[int | None], clock_us: int | None, payloads: Sequence[bytes]
    ) -> Sequence[Updates]:
        plan, takes = self._plan, self._plan.takes
        self.clocks.step(plan.policies, sources_us, clock_us)
        self._drops, self._counts = Drops(plan.gives.schema, self.dropped), Counts(0)
        arrived, out = from_shards(payloads), list[Updates]()
        first = {number: rows for number, rows in arrived.items() if plan.is_final or takes[number].is_panes}
        for bundles in (first, {number: rows for number, rows in arrived.items() if number not in first}):
            if bundles:
                out.append(self._take(bundles))
            self._forget(self.clocks.watermark_us)
        return [*self._drops.updates, *out]

    def save(self) -> None:
        for table in self._rows:
            table.save()
        self._values.save()
        super().save()

    def _take(self, bundles: Mapping[int, pa.Table]) -> Updates:
        """Apply the rows of a bundle; returns the joined rows that change."""
        plan = self._plan
        both = [self._net(number, bundles.get(number)) for number in (LEFT, RIGHT)]
        arrived = pa.concat_tables([one.rows.cells.select(keyed_schema(plan.key_schema).names) for one in both])
        by_key = factorize_rows(arrived.columns, arrived.num_rows)
        keys = arrived.take(pa.array(by_key.first())).combine_chunks()
        ends = len(both[LEFT].rows)
        of = [by_key[:ends], by_key[ends:]]
        was, now = self._count(keys, both, of)
        group, pairs = hashes(keys.columns, keys.num_rows), ~any_null(keys.columns, keys.num_rows)
        changed = [one.old != one.rows["copies"] for one in both]
        reaches = [of[number][changed[number]].occupied() & pairs for number in (LEFT, RIGHT)]
        sides = []
        for number in (LEFT, RIGHT):
            own, reached = both[number].take(changed[number]), reaches[1 - number]
            others = self._others(number, keys, own, group[reached & (was[number] > 0)])
            rows = TableRows.concat([own.rows, others])
            code = np.concatenate([of[number].of[changed[number]], codes_of(keys, others)])
            old = np.concatenate([own.old, others["copies"]])
            sides.append(Side(rows, code, old, rows["copies"], len(own.rows), was[number], now[number]))
        updates = changed_updates(plan, keys, sides)
        for table, one, differs in zip(self._rows, both, changed, strict=True):
            table.remove(one.at[differs & (one.at != NO_ENTRY)])
            table.add(one.rows.take(differs & (one.rows["copies"] > 0)))
        return updates

    def _net(self, number: int, bundle: pa.Table | None) -> Changes:
        """The net changes of a bundle of an input; what it drops is counted and listed."""
        plan, table, empty = self._plan, self._rows[number], np.empty(0, np.int64)
        if bundle is None:
            return Changes(no_rows(plan, number), empty, empty)
        rows, sign, why = self._arrived(number, bundle)
        at = np.flatnonzero(why == TAKEN)
        rows, sign = rows.take(at), sign[at]
        table.load_places(rows["group"], rows["place"])
        known = np.flatnonzero(table.alive & np.isin(table.records["place"], rows["place"]))
        stored = table.records.take(known)
        equal = stored.concat([stored, rows])
        rank = ranks([*value_keys(equal.keys), *equal.order()])
        by_row = Groups(rank, int(rank.max(initial=-1)) + 1)
        before, since = by_row[: len(stored)], by_row[len(stored) :]
        old, added, removed = before.sum(stored["copies"]), since[sign > 0].sizes(), since[sign < 0].sizes()
        unmatched = np.maximum(removed - added - old, 0)
        removes = np.flatnonzero(sign < 0)
        removes = removes[np.argsort(since.of[removes], kind="stable")]
        lost = removes[since[removes].positions() >= (removed - unmatched)[since.of[removes]]]
        why[at[lost]] = UNMATCHED_REMOVAL
        self._drop(number, bundle, why)
        place = np.full(by_row.count, NO_ENTRY)
        place[before.of] = known
        taken = np.flatnonzero(added + removed > unmatched)
        new = (old + added + unmatched - removed)[taken]
        return Changes(rows.take(since.first()[taken]).with_columns(copies=new), old[taken], place[taken])

    def _arrived(self, number: int, bundle: pa.Table) -> tuple[TableRows, Ints, Ints]:
        """The rows of a bundle, the sign of each, and why it is dropped."""
        plan, relation, time = self._plan, self._plan.takes[number], bundle["time_us"]
        cells = bundle.select(no_rows(plan, number).cells.schema.names).combine_chunks()
        keys = [cells[name].combine_chunks() for name in keyed_schema(plan.key_schema).names]
        null = None if plan.options.emits_unmatched(number) else any_null(keys, len(time))
        if not relation.has_timestamps:  # panes without a time are rows all the same
            time = pc.fill_null(time, EARLIEST_US)
        why = why_dropped(time, null, NO_WATERMARK_US)
        time_us = pc.fill_null(bundle["time_us"], NO_TIME_US).to_numpy()
        rows = TableRows.new(cells, time_us=time_us, group=hashes(keys, len(time)))
        place = hashes([pa.array(time_us), *map(normalise, rows.own)], len(time))
        sign = bundle["sign"].to_numpy().astype(np.int64) if relation.retracts else np.ones(len(time), np.int64)
        return rows.with_columns(place=place), sign, why

    def _drop(self, number: int, bundle: pa.Table, why: Ints) -> None:
        plan = self._plan
        keys = {name: bundle[f"key.{name}"].combine_chunks() for name in plan.key_schema.names}
        time_us = pc.fill_null(bundle["time_us"], NO_TIME_US).to_numpy()
        rows = bundle["row"].combine_chunks() if self._drops.lists else None
        self._drops.add(why, time_us, self.clocks.watermark_us, keys, rows, row_of=plan.names[number])
        self._counts = Counts((self._counts.taken or 0) + int((why == TAKEN).sum()))

    def _count(self, keys: pa.Table, both: Sequence[Changes], of: Sequence[Groups]) -> tuple[list[Ints], list[Ints]]:
        """How many rows of each input some join values have, and have now."""
        values, plan = self._values, self._plan
        at = values.find(keys)
        was = [values.rows_of(at, number) for number in (LEFT, RIGHT)]
        more = [groups.sum(one.rows["copies"] - one.old) for one, groups in zip(both, of, strict=True)]
        now = [before + added for before, added in zip(was, more, strict=True)]
        stored_us = np.append(values.records["latest_us"], NO_WATERMARK_US)[at]
        latest_us = stored_us
        if plan.options.forget_after is not None:
            for one, groups in zip(both, of, strict=True):
                latest_us = np.maximum(latest_us, groups.greatest(one.rows["time_us"]))
        differs = (more[LEFT] != 0) | (more[RIGHT] != 0) | (latest_us != stored_us)
        values.remove(at[differs & (at != NO_ENTRY)])
        stays = np.flatnonzero(differs & (now[LEFT] + now[RIGHT] > 0))
        new = {"latest_us": latest_us[stays], "due_us": plan.due_us(latest_us[stays])}
        new |= {name: counts[stays] for name, counts in zip(COUNTS, now, strict=True)}
        values.add(Values.new(keys.take(pa.array(stays)), **new))
        return was, now

    def _others(self, number: int, keys: pa.Table, own: Changes, groups: Ints) -> TableRows:
        """The stored rows of some groups that do not change."""
        table = self._rows[number]
        table.load_groups(groups)
        stays = table.alive & np.isin(table.records["group"], groups)
        stays[own.at[own.at != NO_ENTRY]] = False
        others = table.records.take(stays)
        return others.take(codes_of(keys, others) >= 0)

    def _forget(self, watermark_us: int) -> None:
        """Drop the join values that expire, with their rows."""
        due = self._values.take_due(watermark_us)
        if not len(due):
            return
        groups = hashes(due.keys, len(due))
        for table in self._rows:
            table.load_groups(groups)
            at = np.flatnonzero(table.alive & np.isin(table.records["group"], groups))
            table.remove(at[codes_of(due.cells, table.records.take(at)) >= 0])


@attrs.define(slots=False, eq=False)
class TableJoinOperator(Operator):
    """The operator of a join of tables (see ``contract/operator.py``).

    Attributes:
        plan: the stage's plan.
        policy: how stored rows are cut into segments.
    """

    plan: TableJoinPlan
    policy: RowsPolicy = RowsPolicy()

    def __attrs_post_init__(self) -> None:
        plan = self.plan
        self.takes, self.gives, self.shards, self.identity = plan.takes, plan.gives, plan.shards, plan.identity
        self.moves_by(plan.policies)

    def reads(self, number: int) -> Sequence[str]:
        takes = self.takes[number]
        return (*dict.fromkeys((*takes.own_columns.names, *columns_of_where(takes))), *sign_column(takes))

    def pack(self, number: int, rows: pa.Table) -> Iterator[tuple[int, bytes]]:
        if not rows.num_rows:
            return
        plan, takes = self.plan, self.takes[number]
        rows = wanted(takes, rows).combine_chunks()
        columns = {
            f"key.{field.name}": cast(normalise(rows[name].combine_chunks()), field.type)
            for field, name in zip(plan.key_schema, takes.keys, strict=True)
        }
        keys = list(columns.values())
        for field in plan.value_schemas[number]:
            columns[f"value.{field.name}"] = cast(rows[field.name].combine_chunks(), field.type)
        columns["time_us"] = times_of(takes, rows)
        if takes.retracts:
            columns["sign"] = signs_of(takes, rows)
        if plan.options.with_dropped:
            whole = plan.whole_schemas[number]
            own = [cast(rows[field.name].combine_chunks(), field.type) for field in whole]
            columns["row"] = pa.StructArray.from_arrays(own, fields=list(whole))
        yield from to_shards(pa.table(columns), keys, takes, number, plan.shards)

    def open(self, store: Store) -> Shard:
        return TableJoinShard(self, self.plan, store, self.policy)

    @property
    def stored_keys(self) -> pa.Schema:
        return self.plan.key_schema

    def stored(self, store: Store) -> Iterator[StoredPart]:
        plan = self.plan
        values = values_table(plan, self.policy).open(store).stored()
        for number, name in enumerate(plan.names):
            rows = rows_table(plan, number, self.policy).open(store).stored()
            of = codes_of(values.cells, rows)
            yield StoredPart(
                f"rows of {name}",
                rows.keyed(plan.key_schema.names),
                rows["time_us"],
                rows["time_us"],
                entries=rows["copies"],
                values=pa.table(rows.own, names=plan.value_schemas[number].names),
                due_us=values["due_us"][of],
                then="its join value expires: later rows do not pair with its rows",
                ends_us=values["due_us"][of],
            )

    def tables(self) -> Sequence[KeyedTable]:
        rows = [rows_table(self.plan, number, self.policy) for number in (LEFT, RIGHT)]
        return [*rows, values_table(self.plan, self.policy)]

    def notes(self) -> Sequence[Note]:
        return [TableJoinShard.note(self.identity)]
