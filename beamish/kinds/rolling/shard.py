"""A shard of rolling spans: rows into slices, and the keys whose values may change at a boundary (docs/rules/rolling.md).

A slice enters a span at one boundary and leaves it at another, so its key is looked at there, and nowhere else. A late row changes
boundaries that have passed; they are looked at as it arrives, or, if none of them is open, at the first one that is.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np
import pyarrow as pa

from beamish.contract.clocks import in_range
from beamish.contract.drops import (
    EVENT_TIME_OUT_OF_RANGE,
    EXPIRED,
    NULL_EVENT_TIME,
    TAKEN,
    UNMATCHED_REMOVAL,
    Counts,
    Drops,
)
from beamish.contract.operator import Operator
from beamish.contract.stored import Store
from beamish.contract.updates import EARLY, LATE, ON_TIME, Updates
from beamish.instants import END_OF_TIME_US, LATEST_US
from beamish.kernels.buffers import Flags, Ints
from beamish.kernels.codes import factorize_rows, factorize_tuples, factorize_values
from beamish.kernels.groups import Groups
from beamish.kernels.order import run_starts
from beamish.kinds.rolling.changes import changed_rows
from beamish.kinds.rolling.looking import Asked, Looked, Looking, keys_of
from beamish.kinds.rolling.past import past_table
from beamish.kinds.rolling.plan import PAST_US, RollingPlan
from beamish.kinds.rolling.tables import Rows, Slices, rows_table, slices_table, totals_table
from beamish.kinds.rolling.values import of_spans, values_at
from beamish.kinds.window.step.bundle import Bundle
from beamish.kinds.window.step.drops import as_listed
from beamish.kinds.window.step.packing import about
from beamish.kinds.window.step.unmatched import unmatched
from beamish.tables.notes import ROLLING, NotedShard
from beamish.tables.timed_records import SpanPolicy
from beamish.watermarks import NO_WATERMARK_US


@attrs.frozen(eq=False)
class Added:
    """Slices with rows of a bundle added.

    Attributes:
        groups: of the rows, by slice.
        keys, start_us: n keys and starts, one per slice.
        state: n accumulators.
        rows: int64[n], numbers of rows; 0: removals have left none.
        there: int64[n]: the stored slices, by their indices in memory; -1: a new one.
        before: the accumulators of the stored ones; None: all are new.
        rows_before: int64[n], numbers of rows before.
        latest_us: int64[n], the start of the latest slice of its rows.
    """

    groups: Groups
    keys: pa.Table
    start_us: Ints
    state: pa.Table
    rows: Ints
    there: Ints
    before: pa.Table | None
    rows_before: Ints
    latest_us: Ints

    @property
    def is_past(self) -> Flags:
        """Whether each is the slice that others are folded into."""
        past: Flags = self.start_us == PAST_US
        return past


class RollingShard(NotedShard):
    """A shard (see ``contract/operator.py``)."""

    ENTRY, HOLDS, BY = ROLLING, "slices of rows", "window(bm.Rolling(...))"

    def __init__(self, operator: Operator, plan: RollingPlan, store: Store, policy: SpanPolicy) -> None:
        super().__init__(operator, store)
        self._plan = plan
        self._slices, self._rows = slices_table(plan, policy).open(store), rows_table(plan).open(store)
        self._totals = totals_table(plan).open(store)
        self._past = past_table(plan).open(store) if plan.has_lifetime else None
        self._looking = Looking(plan, self._slices, self._totals, self._rows, self._past)
        self._counts = Counts(0)

    @property
    def counts(self) -> Counts:
        return attrs.evolve(self._counts, windows=self._slices.segments.rows)

    # A step

    def updates(
        self, sources_us: Sequence[int | None], clock_us: int | None, payloads: Sequence[bytes]
    ) -> Sequence[Updates]:
        takes = self._plan.of.takes
        policies, fastest = [relation.policy for relation in takes], self._plan.of.options.by_fastest
        before_us, _ = self.clocks.step(policies, sources_us, clock_us, fastest=fastest)
        now_us = self.clocks.watermark_us
        self._counts = Counts(0)
        if self._plan.of.has_several_inputs:
            self._note_latest(payloads)
        panes = [payload for payload in payloads if takes[about(payload)["input"]].is_panes]
        rows = [payload for payload in payloads if not takes[about(payload)["input"]].is_panes]
        return [
            *(self._arrive(panes, before_us) if panes else ()),
            *(self._pass(before_us, now_us) if now_us > before_us else ()),
            *(self._arrive(rows, now_us) if rows else ()),
        ]

    def _note_latest(self, payloads: Sequence[bytes]) -> None:
        """Store the latest event time of each input."""
        for of_payload in map(about, payloads):
            progress = self.clocks.inputs[of_payload["input"]]
            progress.latest_us = max(progress.latest_us, of_payload.get("latest_us", NO_WATERMARK_US))

    def save(self) -> None:
        plan, watermark_us = self._plan, self.clocks.watermark_us
        least_us = (
            NO_WATERMARK_US if watermark_us == NO_WATERMARK_US else watermark_us - plan.lateness_us - plan.kept_us + 1
        )
        if self._past is None:
            self._slices.forget(max(least_us, NO_WATERMARK_US))
            self._slices.save(max(least_us, NO_WATERMARK_US))
        else:
            self._slices.save()
            self._past.save(watermark_us)
        self._totals.save()
        self._rows.save(watermark_us)
        super().save()

    @property
    def next_due_us(self) -> int | None:
        plan, index = self._plan, self._slices.segments.index
        watermark_us = self.clocks.watermark_us
        after_us = plan.next_boundary(watermark_us)
        due = (self._rows.next_due_us, None if self._past is None else self._past.next_due_us)
        found = [one for one in due if one is not None]
        for change_us in plan.changes_us:
            first, last = index["start_us"] + change_us, index["end_us"] + change_us
            found += first[first > watermark_us].tolist()
            if after_us is not None and bool(((first <= watermark_us) & (last > watermark_us)).any()):
                found.append(after_us)
        found += (index["end_us"] + (plan.kept_us + plan.lateness_us)).tolist()
        return min(found, default=None)

    # The watermark passes boundaries

    def _pass(self, before_us: int, now_us: int) -> list[Updates]:
        plan = self._plan
        since_us, until_us = max(before_us, -LATEST_US * 4), min(now_us, LATEST_US)
        changes = [
            self._changes(since_us + 1 - change_us, until_us - change_us, change_us, ON_TIME)
            for change_us in plan.changes_us
        ]
        self._rows.load_due(now_us)
        rows = self._rows.records
        asks = np.flatnonzero(self._rows.alive & (rows["ask_us"] <= until_us))
        if len(asks):
            changes.append(Asked.at(plan, keys_of(plan, rows, asks), rows["ask_us"][asks], ON_TIME))
            self._rows.remove(asks)
        if self._past is not None:
            self._past.load_due(now_us)
            past = self._past.records
            ends = self._past.ends(past)
            over = np.flatnonzero(self._past.alive & (ends > since_us) & (ends <= until_us))
            changes.append(Asked.at(plan, keys_of(plan, past, over), ends[over], ON_TIME))
        beside, next_us = None, plan.next_boundary(now_us)
        if plan.early and next_us is not None and next_us != plan.next_boundary(before_us):
            enters = sorted({plan.step_us, *plan.enters_us})
            changes += [self._changes(next_us - one, next_us - one, one, EARLY) for one in enters]
            leaves = [one for one in plan.changes_us if one not in enters]
            each = [self._changes(next_us - one, next_us - one, one, EARLY) for one in leaves]
            beside = Asked.concat(each) if each else None
        asked = Asked.concat(changes)
        if len(asked):
            looked = self._looking.ahead(asked, beside, until_us, stands=True)
            out = self._emit(looked, now_us)
        else:
            out = []
        self._expire(now_us)
        self._fold(now_us)
        self._forget(now_us)
        return out

    def _changes(self, least_us: int, most_us: int, change_us: int, timing: int) -> Asked:
        """The changes of totals where slices that start in a range of times enter or leave spans, by key."""
        plan = self._plan
        at = self._slices.between(least_us, most_us) if least_us <= most_us else np.empty(0, np.int64)
        slices = self._slices.records.take(at)
        asked = Asked.at(plan, keys_of(plan, slices, np.arange(len(at))), slices["start_us"] + change_us, timing)
        sign = (change_us == plan.present.enters_us) - (change_us == plan.present.leaves_us)
        asked.change[:, 0] = sign * plan.weights(slices["rows"])
        lifted = plan.totals.lift(slices.state)
        for span, own in zip(plan.spans, of_spans(plan, asked.change), strict=True):
            sign = (change_us == span.enters_us) - (change_us == span.leaves_us)
            if sign:
                own[:] = sign * lifted
        return asked

    def _expire(self, watermark_us: int) -> None:
        """Have the rows of keys that are over written without them."""
        rows = self._rows.records
        over = (
            self._rows.alive & (rows["is_last"] | ~rows["live"]) & self._plan.is_frozen(rows["time_us"], watermark_us)
        )
        self._rows.touch(np.flatnonzero(over))

    def _fold(self, watermark_us: int) -> None:
        """Fold the slices that all boundaries which may change hold in the same spans."""
        if self._past is None:
            return
        slices = self._slices.take_until(self._plan.folded_until(watermark_us))
        if len(slices):
            keys = keys_of(self._plan, slices, np.arange(len(slices)))
            self._past.fold(keys, slices["start_us"], slices["rows"], slices.state)

    def _forget(self, watermark_us: int) -> None:
        """Drop keys that had their last row for want of others, and cannot have it corrected."""
        plan, past = self._plan, self._past
        if past is None or plan.forget_us is None:
            return
        ends = past.ends(past.records)
        past.touch(np.flatnonzero(past.alive & (ends <= watermark_us)))
        gone = np.flatnonzero(past.alive & plan.is_frozen(ends, watermark_us))
        if len(gone):
            keys = keys_of(plan, past.records, gone).combine_chunks()
            past.remove(gone)
            self._totals.replace(keys, np.zeros((len(gone), plan.totals_width), np.int64))

    # Rows arrive

    def _arrive(self, payloads: Sequence[bytes], watermark_us: int) -> list[Updates]:
        plan = self._plan
        self._fold(watermark_us)
        bundle = Bundle.read(plan.of, payloads)
        drops = Drops(plan.schema, self.dropped)
        start_us = self._taken(bundle, drops, watermark_us)
        at = np.flatnonzero(start_us != NO_WATERMARK_US)
        if not len(at):
            return drops.updates
        added = self._added(bundle, at, start_us, watermark_us)
        if plan.of.signed:
            lost = unmatched(plan.of, bundle, at, added.groups, state=added.state, held=added.rows_before)
            if lost is not None and lost.any():
                why = np.full(len(start_us), TAKEN)
                why[at[lost]] = UNMATCHED_REMOVAL
                self._drop(drops, bundle, why, watermark_us)
                at = at[~lost]
                if not len(at):
                    return drops.updates
                added = self._added(bundle, at, start_us, watermark_us)
        self._counts = attrs.evolve(self._counts, taken=(self._counts.taken or 0) + int(bundle.rows[at].sum()))
        returns = self._returns(added.keys, watermark_us)
        self._put(added, watermark_us)
        asked = self._asked(added.keys, added.start_us, returns, watermark_us)
        if not len(asked):
            return drops.updates
        if plan.history:
            return [*drops.updates, *self._emit(self._looking.back(asked, watermark_us), watermark_us)]
        next_us, beside = plan.next_boundary(watermark_us), None
        if plan.early and next_us is not None:
            each = [self._changes(next_us - one, next_us - one, one, EARLY) for one in plan.changes_us]
            beside = Asked.concat(each)
        looked = self._looking.ahead(asked, beside, watermark_us, stands=False)
        return [*drops.updates, *self._emit(looked, watermark_us)]

    def _taken(self, bundle: Bundle, drops: Drops, watermark_us: int) -> Ints:
        """The start of the slice of each row or slice of a bundle; NO_WATERMARK_US: it is dropped."""
        plan = self._plan
        listed = {name: bundle.untimed[name].combine_chunks() for name in plan.of.key_schema.names}
        if bundle.untimed_rows and drops.lists:
            why = np.full(bundle.untimed_rows, NULL_EVENT_TIME)
            drops.add(why, np.zeros(len(why), np.int64), watermark_us, listed, as_listed(plan.of, bundle.untimed))
        else:
            drops.count(NULL_EVENT_TIME, bundle.untimed_rows)
        drops.count(EVENT_TIME_OUT_OF_RANGE, bundle.out_of_range_rows)
        timed = in_range(bundle.time_us) | plan.of.preaggregates
        start_us = plan.rolling.slices(np.where(timed, bundle.time_us, 0))
        why = np.where(timed, TAKEN, EVENT_TIME_OUT_OF_RANGE)
        if watermark_us != NO_WATERMARK_US:
            last_us = np.full(len(start_us), LATEST_US) if plan.expires_us is None else start_us + plan.expires_us
            why[timed & plan.is_frozen(last_us, watermark_us)] = EXPIRED
            self._note_late(bundle.first_us[why == EXPIRED], watermark_us)
        if (why != TAKEN).any():
            self._drop(drops, bundle, why, watermark_us)
        return np.where(why == TAKEN, start_us, NO_WATERMARK_US)

    def _drop(self, drops: Drops, bundle: Bundle, why: Ints, watermark_us: int) -> None:
        """Drop rows of a bundle."""
        rows = as_listed(self._plan.of, bundle.table) if drops.lists else None
        own = {
            name: column.combine_chunks()
            for name, column in zip(bundle.keys.schema.names, bundle.keys.columns, strict=True)
        }
        drops.add(why, bundle.time_us, watermark_us, own, rows, bundle.rows)

    def _note_late(self, first_us: Ints, watermark_us: int) -> None:
        if len(first_us) and watermark_us != END_OF_TIME_US:
            late_us = max(self._counts.late_by_us or 0, watermark_us - int(first_us.min()))
            self._counts = attrs.evolve(self._counts, late_by_us=late_us)

    def _added(self, bundle: Bundle, at: Ints, start_us: Ints, watermark_us: int) -> Added:
        """Rows of a bundle, added to their slices; nothing is stored yet."""
        plan, cells, latest_us = self._plan, self._plan.key_cells, start_us[at]
        start_us = np.where(latest_us <= plan.folded_until(watermark_us), PAST_US, latest_us)
        keys = bundle.keys.take(pa.array(at)) if bundle.keys.num_columns else None
        columns = [pa.array(np.zeros(len(at), np.int8))] if keys is None else keys.columns
        keys = pa.table(columns, schema=cells).combine_chunks()
        groups = factorize_tuples([factorize_rows(keys.columns, len(at)), factorize_values(start_us)], len(at))
        first = groups.first()
        own, own_us = keys.take(pa.array(first)).combine_chunks(), start_us[first]
        there = self._find(own, own_us)
        known = there >= 0
        before = old = None
        rows_before, place, states = np.zeros(groups.count, np.int64), np.zeros(groups.count, np.int64), []
        if known.any():
            old = self._slices.records.take(there[known]).state
            states.append(old)
            place[known] = 1 + np.arange(old.num_rows)
            rows_before[known] = self._slices.records["rows"][there[known]]
        folded = np.flatnonzero(own_us == PAST_US)
        if self._past is not None and len(folded):
            past = self._past.of(own.take(pa.array(folded)), before_rows=True)
            place[folded[past.code]] = 1 + sum(one.num_rows for one in states) + np.arange(len(past.code))
            states.append(past.state)
            rows_before[folded[past.code]] = past.rows
        if states:
            before = pa.concat_tables([plan.of.new_state, *states]).take(pa.array(place)).combine_chunks()
        state = bundle.accumulate(at, groups, before)
        rows = rows_before + groups.sum(bundle.signs[at])
        return Added(groups, own, own_us, state, rows, there, old, rows_before, groups.greatest(latest_us))

    def _put(self, added: Added, watermark_us: int) -> None:
        """Store slices with added rows; those that lost all their rows are removed."""
        plan = self._plan
        self._slices.remove(added.there[added.there >= 0])
        self._add_to_totals(added, watermark_us)
        left = (added.rows > 0) & ~added.is_past
        cells = pa.table([*added.keys.columns, *added.state.columns], schema=plan.slice_cells).combine_chunks()
        if left.all():
            self._slices.add(Slices.new(cells, start_us=added.start_us, rows=added.rows))
        else:
            kept = cells.filter(pa.array(left)).combine_chunks()
            self._slices.add(Slices.new(kept, start_us=added.start_us[left], rows=added.rows[left]))
        if self._past is None:
            return
        at = np.flatnonzero(added.is_past)
        if len(at):
            rows, place = added.rows - added.rows_before, pa.array(at)
            self._past.fold(added.keys.take(place), added.latest_us[at], rows[at], added.state.take(place), whole=True)
        if plan.forget_us is not None:
            self._past.see(added.keys, added.latest_us)

    def _returns(self, keys: pa.Table, watermark_us: int) -> Flags:
        """Whether each key is not present at the last boundary that the watermark has reached, for want of rows."""
        plan = self._plan
        if self._past is None or plan.forget_us is None or watermark_us == NO_WATERMARK_US:
            return np.zeros(keys.num_rows, bool)
        codes = factorize_rows(keys.columns, keys.num_rows)
        last_us = self._past.latest(keys.take(pa.array(codes.first())).combine_chunks())[codes.of]
        reached_us = plan.boundary(min(watermark_us, LATEST_US))
        returns: Flags = (last_us != NO_WATERMARK_US) & (reached_us > last_us + plan.forget_us)
        return returns

    def _add_to_totals(self, added: Added, watermark_us: int) -> None:
        """Change the totals of spans that slices are in at the watermark."""
        plan, until_us, start_us = self._plan, min(watermark_us, LATEST_US), added.start_us
        enters_us, leaves_us = start_us + plan.present.enters_us, start_us + plan.present.leaves_us
        here = np.flatnonzero((enters_us <= until_us) & (until_us < leaves_us))
        if watermark_us == NO_WATERMARK_US or not len(here):
            return
        known, left = added.there >= 0, added.rows > 0
        lifted = plan.totals.lift(added.state)
        lifted[~left & ~added.is_past] = 0
        if added.before is not None:
            lifted[known] -= plan.totals.lift(added.before)
        change = np.zeros((len(here), plan.totals_width), np.int64)
        now, before = plan.weights(added.rows) * left, plan.weights(added.rows_before) * (added.rows_before > 0)
        change[:, 0] = now[here] - before[here]
        for span, own in zip(plan.spans, of_spans(plan, change), strict=True):
            inside = (start_us[here] + span.enters_us <= until_us) & (until_us < start_us[here] + span.leaves_us)
            own[inside] = lifted[here[inside]]
        keys = added.keys.take(pa.array(here)).combine_chunks()
        codes = factorize_rows(keys.columns, len(here))
        order = np.argsort(codes.of, kind="stable")
        one = keys.take(pa.array(codes.first())).combine_chunks()
        sums = np.add.reduceat(change[order], np.flatnonzero(run_starts([codes.of[order]])), axis=0)
        self._totals.replace(one, self._totals.of(one) + sums)

    def _find(self, keys: pa.Table, start_us: Ints) -> Ints:
        """The slice of each key that starts at a time: its index, or -1."""
        index, times = self._slices.segments.index, np.unique(start_us)
        inside = np.searchsorted(times, index["end_us"], side="right") > np.searchsorted(times, index["start_us"])
        self._slices.load_where(inside)
        records = self._slices.records
        known = np.flatnonzero(self._slices.alive & np.isin(records["start_us"], times))
        both = pa.concat_tables([keys_of(self._plan, records, known), keys])
        codes = factorize_rows(both.columns, both.num_rows)
        times_of = factorize_values(np.concatenate([records["start_us"][known], start_us]))
        code = factorize_tuples([codes, times_of], both.num_rows).of
        place = np.full(int(code.max(initial=-1)) + 1, -1)
        place[code[: len(known)]] = known
        return place[code[len(known) :]]

    def _asked(self, keys: pa.Table, start_us: Ints, returns: Flags, watermark_us: int) -> Asked:
        """The boundaries at which the keys of slices with new rows are looked at now; or that they are later."""
        plan = self._plan
        asked = [Asked.at(plan, keys.slice(0, 0), 0, LATE)]
        if watermark_us == NO_WATERMARK_US:
            return asked[0]
        first, last = start_us + plan.step_us, start_us + plan.counts_us
        open_us, reached_us = plan.first_open(watermark_us), plan.boundary(min(watermark_us, LATEST_US))
        behind = first <= reached_us
        if plan.history:
            late = (returns | (first <= reached_us)) & (open_us <= reached_us)
            asked.append(self._where(keys, late, open_us, LATE))
        else:
            late = (returns | (behind & (reached_us <= last))) & (open_us <= reached_us)
            asked.append(self._where(keys, late, reached_us, LATE))
        next_us = plan.next_boundary(watermark_us)
        if next_us is None:
            return Asked.concat(asked)
        if open_us > reached_us:
            self._ask_later(self._where(keys, behind & (last >= open_us), open_us, ON_TIME))
        if plan.early:
            asked.append(self._where(keys, (first <= next_us) & (next_us <= last), next_us, EARLY))
        return Asked.concat(asked)

    def _where(self, keys: pa.Table, wanted: Flags, boundary_us: int, timing: int) -> Asked:
        return Asked.at(self._plan, keys.filter(pa.array(wanted)), boundary_us, timing)

    def _ask_later(self, asked: Asked) -> None:
        """Note that keys are looked at when the watermark reaches a boundary."""
        if not len(asked):
            return
        codes = factorize_rows(asked.keys.columns, len(asked))
        one = asked.keys.take(pa.array(codes.first())).combine_chunks()
        self._rows.load_keys(one)
        boundary_us, plan = int(asked.boundary_us[0]), self._plan
        rows = self._rows.records
        known = np.flatnonzero(self._rows.alive & (rows["ask_us"] == boundary_us))
        both = pa.concat_tables([keys_of(self._plan, rows, known), one])
        code = factorize_rows(both.columns, both.num_rows).of
        new = one.filter(pa.array(~np.isin(code[len(known) :], code[: len(known)]))).combine_chunks()
        values = [pa.nulls(new.num_rows, field.type) for field in plan.row_cells][len(plan.key_cells) :]
        cells = pa.table([*new.columns, *values], schema=plan.row_cells)
        self._rows.add(Rows.new(cells, ask_us=np.full(new.num_rows, boundary_us)))

    # Rows of output

    def _emit(self, looked: Looked, watermark_us: int) -> list[Updates]:
        """The rows that keys emit at boundaries where they are looked at."""
        if not len(looked.code):
            return []
        plan, at = self._plan, (looked.keys, looked.code, looked.boundary_us)
        values = values_at(plan, looked.totals, looked.slices_of, *at)
        gone, rows, updates = changed_rows(plan, looked, values, self._rows.records, watermark_us)
        self._rows.remove(gone)
        self._rows.add(rows)
        return [updates] if len(updates) else []
