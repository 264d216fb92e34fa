"""An over stage bound to its data, and its shards: rows that wait, and emitted rows in the frames of others (docs/rules/over.md).

A step: panes of stages, at the old watermark; the watermark moves, and rows that it passes are emitted; rows of sources. For each
key with new, removed or due rows, its rows are put in order; those that are due are emitted, and those whose frames or
functions have changed are corrected.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from beamish.contract.at_rest import Answer, Asked, Keeps
from beamish.contract.clocks import horizon_us
from beamish.contract.drops import TAKEN, Drops, structs, why_dropped
from beamish.contract.held import HeldRows
from beamish.contract.inputs import columns_of_where, sign_column, wanted
from beamish.contract.keys import from_shards
from beamish.contract.operator import Native, Operator, Shard
from beamish.contract.stored import KeyedTable, Note, Store
from beamish.contract.stored_keys import StoredPart
from beamish.contract.updates import EARLY, LATE, ON_TIME, PANE_KIND, RETRACTION_KIND, Updates, make_block
from beamish.instants import END_OF_TIME_US, LATEST_US
from beamish.kernels.buffers import Flags, Ints
from beamish.kernels.groups import Groups
from beamish.kernels.order import ranks, run_starts, sort_order, value_keys
from beamish.kinds.over.options import Lead, OverFunction
from beamish.kinds.over.plan import OverPlan, pack_rows
from beamish.kinds.over.rows import (
    OverRows,
    PastOfKeys,
    codes_of,
    past_cells,
    past_table,
    row_cells,
    rows_table,
    tail_table,
)
from beamish.kinds.over.sequence import Ordered, holds, lifted, numbers_of_equals, order_of, own_keys
from beamish.tables.notes import OVER, NotedShard
from beamish.tables.records import Selection
from beamish.tables.timed_records import SpanPolicy
from beamish.watermarks import NO_WATERMARK_US

WAITING = "over"


@attrs.frozen(eq=False)
class Emitted:
    """Output rows.

    Attributes:
        kind: PANE_KIND or RETRACTION_KIND.
        rows: as they were when emitted.
        values: their values, by name.
        is_last: bool, one per row.
        of: int64, one per row: a number shared by a row's retraction and pane; equal rows are emitted in its order.
    """

    kind: int
    rows: OverRows
    values: pa.Table
    is_last: Flags
    of: Ints


class OverShard(NotedShard):
    """Some of the keys of an over stage (see ``contract/operator.py``)."""

    ENTRY, HOLDS, BY = OVER, "rows", "over(...)"

    def __init__(self, operator: Operator, plan: OverPlan, store: Store, policy: SpanPolicy) -> None:
        super().__init__(operator, store)
        self._plan = plan
        self._rows = rows_table(plan, policy).open(store)
        self._tail, self._past = tail_table(plan).open(store), past_table(plan).open(store)
        self._lateness_us = plan.options.allowed_lateness.us

    @property
    def next_due_us(self) -> int | None:
        plan, watermark_us = self._plan, self.clocks.watermark_us
        due = [self._rows.next_due_us, self._tail.next_due_us]
        due = [one for one in due if one < END_OF_TIME_US or (plan.options.lead and self._waits)]
        due += [self._past.next_due_us] if plan.options.forget_after is not None else []
        due = [one for one in due if one < END_OF_TIME_US or plan.options.lead]
        leaves = self._rows.segments.index["end_us"] + (plan.span_us + 1)
        due += leaves[leaves > watermark_us].tolist()
        return min(due, default=None)

    @property
    def _waits(self) -> bool:
        """Whether there are rows at all, some of which may wait for Lead until the end of time."""
        return bool(len(self._rows.segments.index["segment"]) or len(self._tail.segments.index["segment"]))

    def updates(
        self, sources_us: Sequence[int | None], clock_us: int | None, payloads: Sequence[bytes]
    ) -> Sequence[Updates]:
        plan, clocks = self._plan, self.clocks
        before_us, _ = clocks.step([plan.takes.policy], sources_us, clock_us)
        self._drops, self._out = Drops(plan.gives.schema, self.dropped), list[Updates]()
        arrived, first = from_shards(payloads).get(0), plan.takes.is_panes
        if first and arrived is not None:
            self._take(arrived, before_us)
        if clocks.watermark_us > before_us:
            self._emit_due(clocks.watermark_us)
            self._forget(clocks.watermark_us)
            if plan.options.forget_after is not None:
                self._forget_keys(clocks.watermark_us, plan.options.forget_after.us)
        if not first and arrived is not None:
            self._take(arrived, clocks.watermark_us)
        return [*self._drops.updates, *self._out]

    def save(self) -> None:
        plan = self._plan
        below_us = horizon_us(self.clocks.watermark_us, plan.span_us)
        self._rows.save(NO_WATERMARK_US if plan.has_past else below_us)
        self._tail.save()
        self._past.save()
        super().save()

    # Rows arrive

    def _take(self, arrived: pa.Table, watermark_us: int) -> None:
        plan = self._plan
        why = why_dropped(arrived["time_us"], None, horizon_us(watermark_us, self._lateness_us))
        time_us = pc.fill_null(arrived["time_us"], 0).to_numpy()
        self._drop_rows(arrived, why, time_us, watermark_us)
        at = np.flatnonzero(why == TAKEN)
        rows = self._read(arrived, at, watermark_us)
        removed = rows.take(np.empty(0, np.int64))
        if plan.takes.retracts:
            rows, removed = self._remove(rows, arrived["sign"].to_numpy()[at] < 0)
        new = np.arange(len(rows)) + len(self._rows.alive)
        self._rows.add(rows)
        active = rows if plan.options.early else rows.take(rows["late"])
        if len(active) or len(removed):
            self._process(active, new, removed, watermark_us)

    def _read(self, arrived: pa.Table, at: Ints, watermark_us: int) -> OverRows:
        """Rows from payloads."""
        plan, rows = self._plan, arrived.take(pa.array(at))
        time_us = rows["time_us"].to_numpy()
        columns: dict[str, Any] = {"time_us": time_us, "due_us": time_us + 1, "late": time_us < watermark_us}
        if plan.has_windows:
            columns |= {name: rows[name].to_numpy() for name in ("start_us", "end_us")}
            columns["windowless"] = np.zeros(len(at), dtype=bool)
        cells = row_cells(plan)
        own = {name: rows[name].combine_chunks() for name in cells.names if not name.startswith("value.")}
        nulls = {field.name: pa.nulls(len(at), field.type) for field in cells if field.name not in own}
        return OverRows.new(pa.table({**own, **nulls}, schema=cells), **columns)

    def _drop_rows(self, arrived: pa.Table, why: Ints, time_us: Ints, watermark_us: int) -> None:
        plan, rows = self._plan, None
        own = {field.name: arrived[f"own.{field.name}"].combine_chunks() for field in plan.schema}
        if self._drops.lists:
            rows = structs(pa.table(own, schema=plan.schema), plan.takes.own_columns)
        keys = {name: own[name] for name in plan.takes.keys}
        self._drops.add(why, time_us, watermark_us, keys, rows)

    def _remove(self, rows: OverRows, takes_back: Flags) -> tuple[OverRows, OverRows]:
        """Apply retractions: with rows of the bundle, then with stored ones.

        Returns:
            the rows of the bundle that are left, and the stored ones that are removed.
        """
        plan = self._plan
        removes = rows.take(takes_back)
        if not len(removes):
            return rows, removes
        stored = self._rows.between(int(removes.time_us.min()), int(removes.time_us.max()))
        known = self._rows.records.take(stored)
        both = OverRows.concat([rows, known])
        rank = ranks([both.time_us, *own_keys(plan, both)])
        equal = Groups(rank, int(rank.max(initial=-1)) + 1)
        of_bundle, of_stored = equal[: len(rows)], equal[len(rows) :]
        cancelled = np.minimum(of_bundle[~takes_back].sizes(), of_bundle[takes_back].sizes())
        adds, taken = _beyond(of_bundle, np.flatnonzero(~takes_back), cancelled), of_bundle[takes_back].sizes()
        # A row that waits goes first, then the one with the fewest panes, then the one that came first.
        order = np.lexsort((known["came"], known["later_panes"], known["panes"], of_stored.of))
        gone = order[Groups(of_stored.of[order], equal.count).positions() < (taken - cancelled)[of_stored.of[order]]]
        self._rows.remove(stored[gone])
        removed = known.take(gone)
        shown = removed.take(removed.is_shown)
        self._out.extend(output_updates(plan, [_retraction(shown, np.arange(len(shown)))]))
        return rows.take(np.sort(adds)), removed

    # The watermark moves

    def _emit_due(self, watermark_us: int) -> None:
        at = self._rows.load_due(watermark_us)
        due = self._rows.records.take(at)
        if self._plan.options.lead and watermark_us == END_OF_TIME_US:
            self._tail.load_due(watermark_us)
            tail = self._tail.records.take(self._tail.alive)
            due = OverRows.concat([due, tail.take(~tail.is_shown)])
        if len(due):
            none = np.empty(0, np.int64)
            self._process(due, none, due.take(none), watermark_us)

    def _forget(self, watermark_us: int) -> None:
        """Drop rows that are in no frame any more, and count them in the past of their keys."""
        plan, below_us = self._plan, horizon_us(watermark_us, self._plan.span_us)
        if not plan.has_past:
            self._rows.forget(below_us)
            return
        rows = self._rows.take_past(below_us, exactly=plan.options.forget_after is not None)
        if len(rows):
            self._count(rows)

    def _forget_keys(self, watermark_us: int, span_us: int) -> None:
        """Drop the state of keys that had no row for a span; their last rows with Lead are emitted first."""
        plan, past = self._plan, self._past
        past.load_due(watermark_us)
        due = np.flatnonzero(past.alive & (past.records["last_us"] + span_us <= watermark_us))
        if not len(due):
            return
        ended = past.records.take(due)
        self._rows.load_all()
        alive = np.flatnonzero(self._rows.alive)
        of_ended, of_rows = codes_of([ended, self._rows.records.take(alive)])
        last = Groups(of_rows, int(max(of_ended.max(), of_rows.max(initial=0))) + 1)
        last_us = last.greatest(self._rows.records.take(alive).time_us)[of_ended]
        goes_on = np.isin(of_ended, of_rows)
        past.remove(due)
        past.add(ended.take(goes_on).with_columns(last_us=np.maximum(ended["last_us"], last_us)[goes_on]))
        if not plan.tail:
            return
        self._tail.load_keys(ended)
        if plan.options.lead:
            none = np.empty(0, np.int64)
            gone = ended.take(~goes_on)
            tail = np.flatnonzero(self._tail.alive)
            of_gone, of_tail = codes_of([gone, self._tail.records.take(tail)])
            waits = self._tail.records.take(tail[np.isin(of_tail, of_gone)])
            waits = waits.take(~waits.is_shown)
            if len(waits):
                self._process(waits, none, waits.take(none), watermark_us, ends=True)
        tail = np.flatnonzero(self._tail.alive)
        of_gone, of_tail = codes_of([ended.take(~goes_on), self._tail.records.take(tail)])
        self._tail.remove(tail[np.isin(of_tail, of_gone)])

    def _count(self, rows: OverRows) -> None:
        """Count rows in the past of their keys."""
        plan = self._plan
        self._load_past(rows)
        known, tail = self._past.records, self._tail.records
        code, of_past, of_tail = codes_of([rows, known, tail])
        order = order_of(plan, code, rows)
        rows, code = rows.take(order.at), code[order.at]
        past = np.flatnonzero(self._past.alive & np.isin(of_past, code))
        keys = np.unique(code)
        key_of = np.searchsorted(keys, code)
        before_at = np.full(len(keys), -1)
        before_at[np.searchsorted(keys, of_past[past])] = past
        self._past.remove(past)
        self._past.add(self._counted(rows, key_of, order.peers, known, before_at))
        if plan.tail:
            self._keep_tail(rows, code, of_tail)

    def _counted(self, rows: OverRows, key_of: Ints, peers: Flags, known: PastOfKeys, before_at: Ints) -> PastOfKeys:
        """The past of keys with further rows, in order."""
        plan, groups = self._plan, Groups(key_of, len(before_at))
        first = pa.array(groups.first())
        has = before_at >= 0
        keys = [name for name in past_cells(plan).names if name.startswith("key.")]
        own = {name: rows.cells[name].combine_chunks().take(first) for name in keys}
        for one in plan.sums:
            old = [known.cells[f"sum.{one.name}.{i}"].combine_chunks() for i in range(len(one.state))]
            old = [column.take(pa.array(before_at[has])) for column in old]
            new = lifted(one, rows)
            both = [pa.concat_arrays([a, b]) for a, b in zip(old, new, strict=True)]
            with one.placed():
                state = one.of.combine(Groups(np.flatnonzero(has), groups.count).followed_by(groups), both)
            own |= {f"sum.{one.name}.{i}": column for i, column in enumerate(state)}
        for one in plan.firsts:
            old_first = known.cells[f"first.{one.name}"].combine_chunks()
            here = one.inputs(rows.cell)[0].take(first)
            chosen = np.where(has, len(here) + before_at, np.arange(len(here)))
            own[f"first.{one.name}"] = pa.concat_arrays([here, old_first]).take(pa.array(chosen))
        own = own or {"none": pa.array(np.zeros(groups.count, np.int8))}
        counts = {name: np.append(known[name], 0)[before_at] for name in ("rows", "dense")}
        dense = Groups(key_of[peers], groups.count).sizes()
        return PastOfKeys.new(
            pa.table(own),
            rows=counts["rows"] + groups.sizes(),
            dense=counts["dense"] + dense,
            last_us=groups.greatest(rows.time_us),
        )

    def _keep_tail(self, rows: OverRows, code: Ints, of_tail: Ints) -> None:
        """The last rows of keys."""
        alive = np.flatnonzero(self._tail.alive & np.isin(of_tail, code))
        both = OverRows.concat([self._tail.records.take(alive), rows])
        codes = np.concatenate([of_tail[alive], code])
        order = order_of(self._plan, codes, both)
        codes = codes[order.at]
        left = np.searchsorted(codes, codes, side="right") - np.arange(len(codes))
        self._tail.remove(alive)
        self._tail.add(both.take(order.at[left <= self._plan.tail]))

    def _load_past(self, rows: OverRows) -> None:
        self._past.load_keys(rows)
        if self._plan.tail:
            self._tail.load_keys(rows)

    # Rows are emitted and corrected

    def _process(
        self, active: OverRows, new: Ints, removed: OverRows, watermark_us: int, *, ends: bool = False
    ) -> None:
        """Emit rows that are due, and correct emitted ones.

        Args:
            active: rows that arrived or are due, whose keys are looked at.
            new: the indices in memory of those that arrived.
            removed: stored rows that were removed.
            watermark_us: the watermark.
            ends: whether no rows follow those of these keys.
        """
        plan, rows = self._plan, self._rows
        active = OverRows.concat([active, removed])
        self._load(active, watermark_us)
        tail_at = np.flatnonzero(self._tail.alive)
        alive = np.flatnonzero(rows.alive)
        stored, tail = rows.records, self._tail.records
        of_active, of_rows, of_tail, of_past, of_removed = codes_of([active, stored, tail, self._past.records, removed])
        is_active = np.zeros(
            1 + max(int(of.max(initial=-1)) for of in (of_active, of_rows, of_tail, of_past)), dtype=bool
        )
        is_active[of_active] = True
        at, tail_at = alive[is_active[of_rows[alive]]], tail_at[is_active[of_tail[tail_at]]]
        everything = Selection(
            OverRows.concat([tail, stored, removed]),
            np.concatenate([tail_at, len(tail) + at, len(tail) + len(stored) + np.arange(len(removed))]),
        )
        code = np.concatenate([of_tail[tail_at], of_rows[at], of_removed])
        source = np.concatenate([tail_at, at, np.full(len(removed), -1)])
        is_tail = np.arange(len(code)) < len(tail_at)
        gone = np.arange(len(code)) >= len(tail_at) + len(at)
        is_new = np.isin(source, new) & ~is_tail & ~gone
        order = order_of(plan, code, everything)
        order_at = order.at
        past_at = np.full(int(code.max(initial=0)) + 1, -1)
        live_past = np.flatnonzero(self._past.alive & is_active[of_past])
        past_at[of_past[live_past]] = live_past
        came = np.empty(len(code), np.int64)
        ordered = everything.select(order_at)
        came[order_at] = numbers_of_equals(order, ordered)
        step = _Step(
            plan=plan,
            watermark_us=watermark_us,
            ends=ends or watermark_us == END_OF_TIME_US,
            lateness_us=self._lateness_us,
            rows=ordered,
            code=code[order_at],
            source=source[order_at],
            came=came[order_at],
            is_tail=is_tail[order_at],
            is_new=is_new[order_at],
            is_gone=gone[order_at],
            peers=order.peers,
            past=self._past.records,
            past_at=past_at[code[order_at]],
        )
        done = step.run()
        self._out.extend(output_updates(plan, done.emitted))
        for table, of in ((rows, ~done.is_tail), (self._tail, done.is_tail)):
            table.remove(done.source[of])
            table.add(done.rows.take(of))

    def _load(self, active: OverRows, watermark_us: int) -> None:
        """Load what the values of the keys of rows depend on."""
        plan = self._plan
        if plan.has_past:
            self._load_past(active)
            self._rows.load_all()
            return
        span_us = plan.options.frame.span_us
        self._rows.between(
            max(int(active.time_us.min()) - span_us, NO_WATERMARK_US),
            min(int(active.time_us.max()) + span_us, LATEST_US),
        )


def output_updates(plan: OverPlan, parts: Sequence[Emitted]) -> list[Updates]:
    """Updates by time, a row's retraction right before its pane; empty without rows."""
    parts = [part for part in parts if len(part.rows)]
    if not parts:
        return []
    rows = OverRows.concat([part.rows for part in parts])
    kind = np.concatenate([np.full(len(part.rows), part.kind) for part in parts])
    of = np.concatenate([part.of for part in parts])
    order = _order_of_output(plan, rows, of, kind)
    rows, kind, of = rows.take(order), kind[order], of[order]
    is_pane = kind == PANE_KIND
    pairs = (of[:-1] == of[1:]) & ~is_pane[:-1] & is_pane[1:]
    timing, index = rows["timing"], rows["panes"] - 1
    block = make_block(
        len(order),
        kind=kind.astype(np.int8),
        timing=timing,
        start_us=rows["start_us"],
        end_us=rows["end_us"],
        windowless=rows["windowless"],
        index=index,
        on_time_index=np.where(timing == EARLY, -1, rows["later_panes"] - 1),
        is_first=index == 0,
        is_last=np.concatenate([part.is_last for part in parts])[order],
        pane_time_us=rows.time_us,
        replaces=np.append(pairs, False) | np.append(False, pairs),
    )
    values = {name: rows.cells[f"own.{name}"].combine_chunks() for name in plan.shown}
    computed = pa.concat_tables([part.values for part in parts]).combine_chunks().take(pa.array(order))
    values |= {one.name: computed[one.name].combine_chunks() for one in plan.values}
    return [Updates(block, pa.table({}), pa.table(values))]


def _order_of_output(plan: OverPlan, rows: OverRows, of: Ints, kind: Ints) -> Ints:
    """By time, then in the order of rows; most differ in time."""
    order = sort_order([rows.time_us, of, (kind == PANE_KIND).astype(np.int64)])
    run = np.cumsum(run_starts([rows.time_us[order]])) - 1
    first, last = np.searchsorted(run, run, side="left"), np.searchsorted(run, run, side="right") - 1
    tied = np.flatnonzero(of[order[first]] != of[order[last]])
    if len(tied):
        some, by = rows.take(order[tied]), plan.options.order_by
        keys = [run[tied], *([] if by is None else value_keys([some.cells[f"own.{by}"]])), *own_keys(plan, some)]
        keys += [of[order[tied]], (kind[order[tied]] == PANE_KIND).astype(np.int64)]
        order[tied] = order[tied][sort_order(keys)]
    return order


def _beyond(groups: Groups, at: Ints, struck: Ints) -> Ints:
    """The entries left after dropping the first n of each group."""
    own = groups[at]
    order = np.argsort(own.of, kind="stable")
    places = np.empty(len(order), np.int64)
    places[order] = Groups(own.of[order], own.count).positions()
    return at[places >= struck[own.of]]


def _retraction(rows: OverRows, of: Ints) -> Emitted:
    """Retractions of the last panes of rows, which were not the last of their rows."""
    return Emitted(RETRACTION_KIND, rows, stored_values(rows), np.zeros(len(rows), dtype=bool), of)


def stored_values(rows: OverRows) -> pa.Table:
    """The stored values of rows, by their names."""
    names = [name for name in rows.cells.schema.names if name.startswith("value.")]
    return rows.cells.select(names).rename_columns([name.removeprefix("value.") for name in names])


@attrs.frozen(eq=False)
class _Done:
    """The result of a step: output, and the stored rows that changed, with where they are stored."""

    emitted: list[Emitted]
    rows: OverRows
    source: Ints
    is_tail: Flags


@attrs.frozen(eq=False, kw_only=True)
class _Step:
    """The rows of some keys in order, to be emitted and corrected; one entry per row."""

    plan: OverPlan
    watermark_us: int
    ends: bool
    lateness_us: int
    rows: Selection[OverRows]
    code: Ints
    source: Ints
    came: Ints
    is_tail: Flags
    is_new: Flags
    is_gone: Flags
    peers: Flags
    past: PastOfKeys
    past_at: Ints

    def _sequence(self, of: Flags) -> Ordered:
        """The rows with a flag; a peer that is left out leaves its place to the next."""
        group = np.cumsum(self.peers)[of]
        return Ordered(
            self.plan,
            self.rows.select(of),
            self.code[of],
            run_starts([group.astype(np.int64)]),
            self.is_tail[of],
            self.past,
            self.past_at[of],
        )

    def run(self) -> _Done:
        """Emit and correct."""
        plan, options, watermark_us = self.plan, self.plan.options, self.watermark_us
        here = ~self.is_gone
        now = self._sequence(here)
        rows, time_us = now.rows, now.time_us
        shown = rows["panes"] > 0
        leads_to = now.leads_to() if options.lead else time_us
        passed = self.ends | (leads_to < watermark_us)
        ready = np.full(len(now), options.early) | ((time_us < watermark_us) & passed)
        since_us = int(self.rows[OverRows.TIME][self.is_new | self.is_gone].min(initial=END_OF_TIME_US))
        changed = np.zeros(len(now), dtype=bool)
        if since_us < END_OF_TIME_US and (options.retracts or options.lead):
            changed = self._changed(now, since_us, here)
        emits = ~shown & ready
        corrects = shown & changed & options.retracts
        computes = ~shown & ~ready & (time_us < watermark_us) & (~rows["computed"] | changed)
        at = np.flatnonzero(emits | corrects | computes)
        # Stored values still hold where no row came to the frame, which may not be loaded as a whole.
        as_stored = rows["computed"][at] & (time_us[at] < since_us)
        values = self._values(now, at, as_stored)
        old = rows.take(at)
        emitted = (emits | corrects)[at]
        is_late = time_us[at] < watermark_us
        first = np.where(old["late"], LATE, ON_TIME)
        timing = np.where(is_late, np.where(corrects[at], LATE, first), EARLY).astype(np.int8)
        new = old.with_columns(
            panes=old["panes"] + emitted,
            later_panes=old["later_panes"] + (emitted & (timing != EARLY)),
            timing=np.where(emitted, timing, old["timing"]).astype(np.int8),
            came=np.where(emits[at], self.came[here][at], old["came"]),
            computed=np.ones(len(at), dtype=bool),
            due_us=np.full(len(at), END_OF_TIME_US),
        )
        if plan.stores_values:
            cells = new.cells
            for one in plan.values:
                name = f"value.{one.name}"
                cells = cells.set_column(cells.schema.get_field_index(name), name, values[one.name])
            new = attrs.evolve(new, cells=cells)
        number = np.arange(len(at))
        back = corrects[at]
        is_last = self._is_last(time_us, leads_to, at)
        out = [] if not back.any() else [_retraction(old.take(back), number[back])]
        out.append(
            Emitted(PANE_KIND, new.take(emitted), values.filter(pa.array(emitted)), is_last[emitted], number[emitted])
        )
        return _Done(out, new, self.source[here][at], self.is_tail[here][at])

    def _is_last(self, time_us: Ints, leads_to: Ints, at: Ints) -> Flags:
        if not self.plan.options.retracts or self.ends:
            return np.ones(len(at), dtype=bool)
        last: Flags = np.maximum(time_us, leads_to)[at] < horizon_us(self.watermark_us, self.lateness_us)
        return last

    def _changed(self, now: Ordered, since_us: int, here: Flags) -> Flags:
        """Whether a row came into the frame of each row, or left it, or one of its functions has another value."""
        plan, rows = self.plan, now.rows
        changed = np.zeros(len(now), dtype=bool)
        if plan.over_frame:
            changed |= holds(now, self.is_new[here])
            if self.is_gone.any():
                before = self._sequence(~self.is_new)
                held = np.zeros(len(here), dtype=bool)
                held[~self.is_new] = holds(before, self.is_gone[~self.is_new])
                changed |= held[here]
        for one in plan.functions:
            lead = isinstance(one.of, Lead)
            at = np.flatnonzero(rows["computed"] & (lead | (now.time_us >= since_us)))
            both = [rows.select(at).cell(f"value.{one.name}"), now.function(one, at)]
            for key in value_keys([pa.concat_arrays(both)]):
                changed[at] |= key[: len(at)] != key[len(at) :]
        return changed

    def _values(self, now: Ordered, at: Ints, as_stored: Flags) -> pa.Table:
        """The values of rows; those that are stored are taken as they are, but for Lead."""
        plan, values = self.plan, dict[str, pa.Array]()
        fresh, stored = at[~as_stored], at[as_stored]
        place = np.empty(len(at), np.int64)
        place[~as_stored], place[as_stored] = np.arange(len(fresh)), len(fresh) + np.arange(len(stored))
        ranges = now.ranges(fresh if plan.over_frame else fresh[:0])
        for one in plan.values:
            if isinstance(one.of, Lead):
                values[one.name] = now.function(one, at)
                continue
            is_function = isinstance(one.of, OverFunction)
            found = now.function(one, fresh) if is_function else now.accumulated(one, fresh, ranges)
            if len(stored):
                kept = now.rows.select(stored).cell(f"value.{one.name}")
                found = pa.concat_arrays([found, kept]).take(pa.array(place))
            values[one.name] = found
        return pa.table(values, schema=pa.schema([(one.name, one.type) for one in plan.values]))


@attrs.frozen(eq=False)
class WaitingRows(HeldRows):
    """The rows of shards that are not emitted yet, without values."""

    plan: OverPlan

    def needs(self, notes: Store) -> Iterable[str] | None:
        return [table.layout.entry("") for table in self.operator.tables()]

    def held(self, store: Store) -> tuple[pa.Table, Ints, Ints]:
        plan = self.plan
        tables = (rows_table(plan, SpanPolicy()), tail_table(plan))
        rows = OverRows.concat([table.open(store).stored() for table in tables])
        rows = rows.take(~rows.is_shown)
        values = {one.name: pa.nulls(len(rows), one.type) for one in plan.values}
        shown = Emitted(PANE_KIND, rows, pa.table(values), np.zeros(len(rows), dtype=bool), np.arange(len(rows)))
        due_us = rows["due_us"][_order_of_output(plan, rows, shown.of, np.full(len(rows), PANE_KIND))]
        output = self.operator.rows(output_updates(plan, [shown]))
        return output, output["timestamp"].combine_chunks().cast(pa.int64()).to_numpy(), due_us


def stored_parts(plan: OverPlan, store: Store) -> Iterator[StoredPart]:
    """The entries of keys in a shard: rows that wait, emitted rows in the frames of others, and the past."""
    rows, tail = rows_table(plan, SpanPolicy()).open(store).stored(), tail_table(plan).open(store).stored()
    past, lead, span_us = past_table(plan).open(store).stored(), plan.options.lead, plan.span_us + 1
    waits = OverRows.concat([one.take(~one.is_shown) for one in (rows, tail)])
    follows = (
        f"wait for {'a row' if lead == 1 else f'{lead} rows'} after each (Lead)"
        if lead
        else "wait until their time is passed"
    )
    then = "the first of them is emitted"
    yield attrs.evolve(_part(plan, f"rows that {follows}", waits), due_us=waits["due_us"], then=then)
    rows, tail = rows.take(rows.is_shown), tail.take(tail.is_shown)
    words = "emitted rows, which are in the frame of later ones" + ", or corrected" * plan.options.retracts
    yield attrs.evolve(_part(plan, words, rows), ends_us=None if plan.has_past else rows.time_us + span_us)
    yield _part(plan, "emitted rows, for Lag and Lead", tail)
    forget = plan.options.forget_after
    last_us = past["last_us"]
    yield StoredPart(
        "rows before these, of which only counts and accumulators are stored",
        past.keyed(plan.key_schema.names),
        last_us,
        last_us,
        past["rows"],
        ends_us=None if forget is None else last_us + forget.us,
    )


def _part(plan: OverPlan, what: str, rows: OverRows) -> StoredPart:
    return StoredPart(what, rows.keyed(plan.key_schema.names), rows.time_us, rows.time_us)


@attrs.define(slots=False, eq=False)
class OverOperator(Operator):
    """The operator of an over stage (see ``contract/operator.py``).

    Attributes:
        plan: the stage's plan.
        policy: how stored rows are partitioned into segments.
    """

    plan: OverPlan
    policy: SpanPolicy = SpanPolicy()

    def __attrs_post_init__(self) -> None:
        plan = self.plan
        self.takes, self.shards, self.gives, self.identity = (plan.takes,), plan.shards, plan.gives, plan.identity
        self.moves_by([plan.takes.policy])

    def reads(self, number: int) -> Sequence[str]:
        relation = self.takes[number]
        return (*dict.fromkeys((*self.plan.schema.names, *columns_of_where(relation))), *sign_column(relation))

    def pack(self, number: int, rows: pa.Table) -> Iterator[tuple[int, bytes]]:
        if rows.num_rows:
            yield from pack_rows(self.plan, wanted(self.takes[number], rows))

    def open(self, store: Store) -> Shard:
        return OverShard(self, self.plan, store, self.policy)

    def answer(self, asked: Asked) -> Answer:
        return WaitingRows(self, WAITING, self.plan) if asked.what is Keeps.HELD else super().answer(asked)

    def stored(self, store: Store) -> Iterator[StoredPart]:
        return stored_parts(self.plan, store)

    def tables(self) -> Sequence[KeyedTable]:
        return [rows_table(self.plan, self.policy), tail_table(self.plan), past_table(self.plan)]

    def notes(self) -> Sequence[Note]:
        return [OverShard.note(self.identity)]

    @property
    def native(self) -> Native:
        return Native(Native.OVER, self.plan)
