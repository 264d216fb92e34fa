"""An as-of join bound to its data, and its shards: the table, waiting rows, and emitted rows that may be corrected.

A step: input from stages, at the old watermark; the watermark moves, rows that it passes are joined and emitted, and unreachable
state is dropped; input from sources. Each input begins with the table's changes (docs/rules/tables.md#as-of-joins-steps). At arrival
rows come last, after all changes of their step.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import attrs
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beamish.contract.clocks import horizon_us
from beamish.contract.drops import EXPIRED, TAKEN, Drops, why_dropped
from beamish.contract.inputs import columns_of_where, sign_column, wanted
from beamish.contract.keys import from_shards
from beamish.contract.operator import Native, Operator, Shard
from beamish.contract.stored import KeyedTable, Note, Store
from beamish.contract.stored_keys import StoredPart
from beamish.contract.updates import EARLY, LATE, ON_TIME, PANE_KIND, RETRACTION_KIND, Updates
from beamish.instants import END_OF_TIME_US
from beamish.kernels.buffers import Flags, Ints
from beamish.kinds.as_of.joined import (
    Joined,
    Matches,
    corrected,
    joined_updates,
    match_rows,
    nearer,
    other_matches,
    read_us,
)
from beamish.kinds.as_of.left_rows import KEPT, WAITING, LeftRows, left_rows, left_table, net, pack_left, taken_back
from beamish.kinds.as_of.plan import LEFT, TABLE, AsOfPlan
from beamish.kinds.versions.plan import key_columns, null_key, pack_changes, time_us_of
from beamish.kinds.versions.reading import stored_versions
from beamish.kinds.versions.table import LATEST, TablePolicy, codes_of_both, versions_table
from beamish.kinds.versions.table_shard import TableShard, table_note
from beamish.watermarks import NO_WATERMARK_US


class AsOfShard(TableShard):
    """Some of the keys of an as-of join (see ``contract/operator.py``)."""

    def __init__(self, operator: Operator, plan: AsOfPlan, store: Store, policy: TablePolicy) -> None:
        super().__init__(operator, plan.table, store, policy, inputs=len(plan.counted))
        self._plan = plan
        self._waiting = left_table(plan, WAITING, policy.spans).open(store)
        self._kept = left_table(plan, KEPT, policy.spans).open(store)
        self._waits_us, self._kept_us = plan.options.waits.us, plan.corrected_for_us

    @property
    def watermark_us(self) -> int | None:
        watermark_us = super().watermark_us
        return watermark_us if watermark_us in (None, END_OF_TIME_US) else horizon_us(watermark_us, self._waits_us)

    @property
    def next_due_us(self) -> int | None:
        first, forgotten = self._waiting.first_us, self._kept.first_segment_us
        due = [] if first is None else [first + self._waits_us + 1]
        due += [] if forgotten is None else [forgotten + self._kept_us + 1]
        due += [] if self._table.next_due_us is None else [self._table.next_due_us]
        return min(due, default=None)

    def updates(
        self, sources_us: Sequence[int | None], clock_us: int | None, payloads: Sequence[bytes]
    ) -> Sequence[Updates]:
        plan, clocks = self._plan, self.clocks
        before_us, _ = clocks.step(plan.policies, [sources_us[number] for number in plan.counted], clock_us)
        self._drops, self._out = Drops(plan.gives.schema, self.dropped), list[Updates]()
        arrived = from_shards(payloads)
        last = [LEFT] if plan.options.at_arrival else []
        of_stages = {n: rows for n, rows in arrived.items() if plan.takes[n].is_panes and n not in last}
        self._take(of_stages, before_us)
        self._emit_due(clocks.watermark_us)
        self._take({number: rows for number, rows in arrived.items() if number not in of_stages}, clocks.watermark_us)
        return [*self._drops.updates, *self._out]

    def save(self) -> None:
        self._waiting.save()
        self._kept.save(horizon_us(self.clocks.watermark_us, self._kept_us))
        super().save()

    def _take(self, arrived: Mapping[int, pa.Table], watermark_us: int) -> None:
        """Process input at a watermark: the table's changes, then the left rows."""
        if TABLE in arrived:
            self._take_changes(arrived[TABLE], watermark_us)
        if LEFT in arrived:
            self._take_rows(arrived[LEFT], watermark_us)

    def _take_changes(self, changes: pa.Table, watermark_us: int) -> None:
        plan, retracts = self._plan, self._plan.options.retracts
        keys = {
            name: changes[f"key.{key}"].combine_chunks()
            for name, key in zip(plan.left.keys, plan.table.key_schema.names, strict=True)
        }
        due_below_us = horizon_us(watermark_us, self._waits_us)
        concerned = self._concerned(changes) if retracts and plan.options.ahead else None
        folded = self.take_changes(
            changes,
            watermark_us,
            drops=self._drops,
            keys=keys,
            joined_below_us=None
            if retracts or plan.options.at_arrival
            else horizon_us(watermark_us, plan.options.grace.us),
            row_of=str(plan.takes[TABLE].name),
        )
        if folded is None or not retracts:
            return
        if concerned is None:
            at, then, now = other_matches(plan, self._kept, folded)
        else:
            (at, then), now = concerned, self._match(self._kept.records.take(concerned[0]))
        others = corrected(plan, self._kept, at, then=then, now=now, due_below_us=due_below_us)
        self._out.extend(joined_updates(plan, others))

    def _concerned(self, changes: pa.Table) -> tuple[Ints, Matches]:
        """The emitted rows that changes may give another match, as indices, and their matches before."""
        ahead_us = self._plan.options.ahead.us
        after_us = ahead_us if self._plan.options.direction == "nearest" else 0
        own = changes.filter(pa.array(~null_key(changes) & changes["time_us"].is_valid().to_numpy()))
        time_us = time_us_of(own)
        if not len(time_us):
            return np.empty(0, np.int64), self._match(self._kept.records.take(np.empty(0, np.int64)))
        at = self._kept.between(int(time_us.min()) - ahead_us, int(time_us.max()) + after_us)
        rows = self._kept.records.take(at)
        of_changes, of_rows = codes_of_both(key_columns(own), rows.keys, len(time_us), len(at))
        first, last = (found[of_rows.of] for found in (of_changes.least(time_us), of_changes.greatest(time_us)))
        reached = of_changes.occupied()[of_rows.of]
        reached &= (rows["time_us"] >= first - ahead_us) & (rows["time_us"] <= last + after_us)
        return at[reached], self._match(rows.take(reached))

    def _emit_due(self, watermark_us: int) -> None:
        """Emit rows that the watermark has passed, and drop old state."""
        due_below_us = horizon_us(watermark_us, self._waits_us)
        rows = self._waiting.take_until(max(due_below_us - 1, NO_WATERMARK_US))
        if len(rows):
            self._emit(rows, self._match(rows), np.full(len(rows), ON_TIME, np.int8), watermark_us)
        self._table.forget(watermark_us)
        self._kept.forget(horizon_us(watermark_us, self._kept_us))

    def _take_rows(self, arrived: pa.Table, watermark_us: int) -> None:
        """Process new rows: late ones are joined at once, the others wait, or are emitted early."""
        plan, time_us = self._plan, time_us_of(arrived)
        takes_back = np.zeros(len(time_us), dtype=bool)
        if plan.left.retracts:
            takes_back = arrived["sign"].to_numpy() < 0
        without_match = null_key(arrived) if plan.options.how == "inner" else None
        why = why_dropped(arrived["time_us"], without_match, NO_WATERMARK_US)
        why[takes_back & (why == TAKEN) & (time_us < horizon_us(watermark_us, self._kept_us))] = EXPIRED
        at = np.flatnonzero(why == TAKEN)
        if takes_back.any():
            at = self._take_back(arrived, at, takes_back[at])
        rows, due_below_us = left_rows(plan, arrived, at), horizon_us(watermark_us, self._waits_us)
        due = (rows["time_us"] < due_below_us) | plan.options.at_arrival
        now = np.flatnonzero(due | plan.options.early)
        self._waiting.add(rows.take(np.flatnonzero(~(due | plan.options.early))))
        own, is_due = rows.take(now), due[now]
        matches, past = self._match_now(own, is_due, watermark_us)
        lost = past & (matches.at < 0)
        why[at[now[lost]]] = EXPIRED
        self._drop_rows(arrived, why, time_us, watermark_us)
        timing = np.where(is_due, ON_TIME if plan.options.at_arrival else LATE, EARLY).astype(np.int8)
        self._emit(own.take(~lost), matches.take(~lost), timing[~lost], watermark_us)

    def _take_back(self, arrived: pa.Table, at: Ints, takes_back: Flags) -> Ints:
        """Apply retractions of left rows, of this bundle or earlier ones; returns the remaining rows of the bundle."""
        plan = self._plan
        rows = left_rows(plan, arrived, at)
        adds, removes = net(rows, takes_back)
        live, gone = taken_back(rows.take(removes), self._waiting, self._kept)
        self._kept.remove(gone)
        shown = live.take(live["shown"])
        never_last, of = np.zeros(len(shown), dtype=bool), np.arange(len(shown))
        self._out.extend(joined_updates(plan, [Joined(RETRACTION_KIND, shown, self._match(shown), never_last, of)]))
        return at[adds]

    def _drop_rows(self, arrived: pa.Table, why: Ints, time_us: Ints, watermark_us: int) -> None:
        keys = {name: arrived[f"left.{name}"].combine_chunks() for name in self._plan.left.keys}
        rows = arrived["row"].combine_chunks() if self._drops.lists else None
        self._drops.add(why, time_us, watermark_us, keys, rows, row_of=str(self._plan.left.name))

    def _emit(self, rows: LeftRows, matches: Matches, timing: NDArray[np.int8], watermark_us: int) -> None:
        """Emit rows for the first time; with retractions they are stored while they may be corrected."""
        plan = self._plan
        past = rows["time_us"] < horizon_us(watermark_us, self._kept_us)
        shows = (matches.at >= 0) | (plan.options.how == "left")
        rows = rows.with_columns(
            panes=shows.astype(np.int64),
            later_panes=(shows & (timing != EARLY)).astype(np.int64),
            timing=timing,
            shown=shows,
        )
        is_last = past if plan.options.retracts else np.ones(len(rows), dtype=bool)
        of = np.arange(int(shows.sum()))
        shown = Joined(PANE_KIND, rows.take(shows), matches.take(shows), is_last[shows], of)
        self._out.extend(joined_updates(plan, [shown]))
        if plan.options.retracts:
            self._kept.add(rows.take(~past))

    def _match(self, rows: LeftRows) -> Matches:
        """The matches of rows whose times are within exact reads."""
        plan, time_us = self._plan, read_us(self._plan, rows)
        if plan.options.direction == "backward":
            return match_rows(plan, rows, *self._table.find(rows.keys, time_us))
        since_us = rows["time_us"] + (not plan.options.allow_exact_matches)
        changes, before, after = self._table.find_around(
            rows.keys, time_us, since_us, rows["time_us"] + plan.options.ahead.us
        )
        if plan.options.direction == "nearest":
            after = nearer(match_rows(plan, rows, changes, before), after, rows["time_us"])
        return match_rows(plan, rows, changes, after)

    def _match_now(self, rows: LeftRows, is_due: Flags, watermark_us: int) -> tuple[Matches, Flags]:
        """The matches of rows, and which due rows read too far back: there only a key's latest version is known."""
        if self._plan.options.at_arrival:
            none = np.zeros(len(rows), dtype=bool)
            return match_rows(self._plan, rows, *self._table.find(rows.keys, np.full(len(rows), LATEST))), none
        time_us = read_us(self._plan, rows)
        past = is_due & (time_us < horizon_us(watermark_us, self._plan.table.options.history.us))
        if self._plan.options.direction != "backward":  # an earlier start than those that are known may have expired
            matches = self._match(rows)
            return Matches(matches.changes, np.where(past, -1, matches.at)), past
        changes, at = self._table.find(rows.keys, np.where(past, LATEST, time_us))
        far = np.flatnonzero(past & (at >= 0))
        had_begun = changes["version_us"][at[far]] <= time_us[far]
        is_known = self._table.expires_us(changes)[at[far]] >= watermark_us
        at[far] = np.where(had_begun & is_known, at[far], -1)
        return match_rows(self._plan, rows, changes, at), past


@attrs.define(slots=False, eq=False)
class AsOfOperator(Operator):
    """The operator of an as-of join (see ``contract/operator.py``).

    Attributes:
        plan: the join's plan.
        policy: how stored rows are partitioned into segments.
    """

    plan: AsOfPlan
    policy: TablePolicy = TablePolicy()

    def __attrs_post_init__(self) -> None:
        plan = self.plan
        self.takes, self.gives, self.shards, self.identity = plan.takes, plan.gives, plan.shards, plan.identity
        self.moves_by(plan.policies)
        self.holds_watermark = bool(plan.options.waits)

    def reads(self, number: int) -> Sequence[str]:
        own = self.plan.left_schema.names if number == LEFT else self.plan.table.columns
        return (*dict.fromkeys((*own, *columns_of_where(self.takes[number]))), *sign_column(self.takes[number]))

    def pack(self, number: int, rows: pa.Table) -> Iterator[tuple[int, bytes]]:
        if not rows.num_rows:
            return
        rows = wanted(self.takes[number], rows)
        if number == LEFT:
            yield from pack_left(self.plan, rows)
        else:
            yield from pack_changes(self.plan.table, rows, number, self.shards)

    def open(self, store: Store) -> Shard:
        return AsOfShard(self, self.plan, store, self.policy)

    def stored(self, store: Store) -> Iterator[StoredPart]:
        plan, keys = self.plan, list(self.stored_keys.names)
        name = plan.left.name
        for part, what, past_us in (
            (WAITING, f"rows of {name} that wait", plan.options.waits.us + 1),
            (KEPT, f"emitted rows of {name}, which late changes correct", plan.corrected_for_us + 1),
        ):
            rows = left_table(plan, part, self.policy.spans).open(store).stored()
            time_us, waits = rows["time_us"], part is WAITING
            yield StoredPart(
                what,
                rows.keyed(keys),
                time_us,
                time_us,
                due_us=time_us + past_us if waits else None,
                then="they are joined and emitted" if waits else "",
                ends_us=None if waits else time_us + past_us,
            )
        yield from stored_versions(store, keys, f"versions of {plan.takes[TABLE].name}")

    def tables(self) -> Sequence[KeyedTable]:
        rows = [left_table(self.plan, name, self.policy.spans) for name in (WAITING, KEPT)]
        return [versions_table(self.plan.table, self.policy), *rows]

    def notes(self) -> Sequence[Note]:
        return [table_note(self.plan.table, self.identity)]

    @property
    def native(self) -> Native | None:
        options = self.plan.options
        reads_back = options.direction == "backward" and not options.at_arrival
        return Native(Native.WINDOW_FUNCTION, self.plan) if reads_back else None
