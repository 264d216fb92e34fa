"""The operator of an upserts stage, and its shards.

The state of a shard is the images of its keys (images.py), and one entry, ``upserts``: JSON with the clocks and the number of dropped
rows. Rows of a bundle are applied in their order; what a key had before the bundle is retracted, and what it has after it emitted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs
import numpy as np
import pyarrow as pa

from beamish.contract.clocks import in_range
from beamish.contract.drops import SUPERSEDED, TAKEN, Counts, Drops, structs, why_dropped
from beamish.contract.keys import any_null, from_shards
from beamish.contract.operator import Operator, Shard
from beamish.contract.stored import KeyedTable, Note, Store
from beamish.contract.stored_keys import StoredPart
from beamish.contract.updates import PANE_KIND, RETRACTION_KIND, UNKNOWN, Updates, make_block
from beamish.instants import EARLIEST_US, LATEST_US
from beamish.kernels.buffers import NO_ENTRY, Flags, Ints, numbers, pick
from beamish.kernels.codes import normalise
from beamish.kernels.column_names import EVENT_TIME
from beamish.kernels.order import sort_keys, sort_order, value_ranks
from beamish.kinds.upserts.images import ImagePolicy, Images, images_table, no_images
from beamish.kinds.upserts.plan import UpsertsPlan
from beamish.tables.notes import UPSERTS, NotedShard
from beamish.watermarks import NO_WATERMARK_US


class UpsertsShard(NotedShard):
    """Some of the keys of an upserts stage (see ``contract/operator.py``)."""

    ENTRY, HOLDS, BY = UPSERTS, "rows of keys", "upserts(...)"

    def __init__(self, operator: Operator, plan: UpsertsPlan, store: Store, policy: ImagePolicy) -> None:
        super().__init__(operator, store)
        self._plan, self._images = plan, images_table(plan, policy).open(store)

    @property
    def next_due_us(self) -> int | None:
        return self._images.next_due_us

    def updates(
        self, sources_us: Sequence[int | None], clock_us: int | None, payloads: Sequence[bytes]
    ) -> Sequence[Updates]:
        takes, images = self._plan.takes, self._images
        before_us, _ = self.clocks.step([takes.policy], sources_us, clock_us)
        watermark_us, self._counts, out = self.clocks.watermark_us, Counts(0), list[Updates]()
        if not takes.is_panes:
            images.expire(watermark_us)
        if payloads:
            out = self._take(from_shards(payloads)[0], before_us if takes.is_panes else watermark_us)
        if takes.is_panes:
            images.expire(watermark_us)
        return out

    def save(self) -> None:
        self._images.save(self.clocks.watermark_us)
        super().save()

    def _take(self, rows: pa.Table, watermark_us: int) -> list[Updates]:
        """The dropped rows, if they are listed, and the changes."""
        plan = self._plan
        deletes = plan.deletes(rows)
        keys = {name: normalise(rows[name].combine_chunks()) for name in plan.key_schema.names}
        time = self._times(rows[EVENT_TIME].combine_chunks(), deletes, watermark_us)
        why = why_dropped(pa.chunked_array([time]), any_null(keys.values(), rows.num_rows), NO_WATERMARK_US)
        at = np.flatnonzero(why == TAKEN)
        arrived = self._images_of(rows, keys, at, numbers(time), deletes)
        superseded, changes = self._apply(arrived)
        why[at[superseded]] = SUPERSEDED
        drops = Drops(plan.gives.schema, self.dropped)
        listed = structs(rows, plan.takes.own_columns) if drops.lists else None
        drops.add(why, numbers(time), watermark_us, keys, listed)
        self._counts = Counts(int((why == TAKEN).sum()))
        return [*drops.updates, changes]

    def _times(self, time: pa.Array, deletes: Flags, watermark_us: int) -> pa.Array:
        """The times of rows; a delete whose place is known without one is at the watermark."""
        if self._plan.sequence is None:
            return time
        missing = time.is_null().to_numpy(zero_copy_only=False)
        time_us = np.where(missing, 0, numbers(time))
        untimed = deletes & (missing | ~in_range(time_us))
        now_us = min(max(watermark_us, EARLIEST_US), LATEST_US)
        return pa.array(np.where(untimed, now_us, time_us), mask=missing & ~untimed)

    def _images_of(self, rows: pa.Table, keys: dict[str, pa.Array], at: Ints, time_us: Ints, deletes: Flags) -> Images:
        """The rows at some positions as images; a delete has no values."""
        plan, schema = self._plan, no_images(self._plan).cells.schema
        own = {f"key.{name}": column.take(pa.array(at)) for name, column in keys.items()}
        sets = np.where(deletes[at], NO_ENTRY, at)
        own |= {f"value.{name}": pick(rows[name].combine_chunks(), sets) for name in plan.value_schema.names}
        if plan.sequence is not None:
            own["sequence"] = rows[plan.sequence.name].combine_chunks().take(pa.array(at))
        cells = pa.table([own[name] for name in schema.names], schema=schema)
        due_us = plan.due_us(time_us[at], deletes[at])
        return Images.new(cells, time_us=time_us[at], deletes=deletes[at], due_us=due_us)

    def _apply(self, arrived: Images) -> tuple[Flags, Updates]:
        """Apply rows; returns which are older than the image that was stored before them, and the changes."""
        images = self._images
        at, groups = images.stored_of(arrived)
        both, old = Images.concat([images.records.take(at), arrived]), len(at)
        is_new = np.arange(len(both)) >= old
        order = sort_order([groups.of, *both.order, is_new.astype(np.int64), *both.ties])
        place = np.empty(len(both), np.int64)
        place[order] = np.arange(len(both))
        newest = order[np.cumsum(groups.sizes()) - 1]
        stored = np.full(groups.count, NO_ENTRY)
        stored[groups.of[:old]] = np.arange(old)
        since = np.append(place, NO_ENTRY)[stored]
        superseded = place[old:] < since[groups.of[old:]]
        changed = newest >= old
        images.remove(at[stored[changed & (stored != NO_ENTRY)]])
        images.add(both.take(newest[changed]))
        return superseded, self._changes(both, stored[changed], newest[changed])

    def _changes(self, both: Images, old: Ints, new: Ints) -> Updates:
        """The changes of keys: the retraction of an old image, and the new one; neither, if they are equal.

        Args:
            both: images.
            old, new: int64, one per key: the index of its image; NO_ENTRY: none.
        """
        plan = self._plan
        value = value_ranks(both.values, len(both))
        live = np.append(~both["deletes"], False)
        was, now = live[old], live[new]
        same = was & now & (value[old] == value[new]) & (both["time_us"][old] == both["time_us"][new])
        went, came = np.flatnonzero(was & ~same), np.flatnonzero(now & ~same)
        at = np.concatenate([old[went], new[came]])
        replaces = (was & now)[np.concatenate([went, came])]
        kind = np.repeat(np.array([RETRACTION_KIND, PANE_KIND], np.int8), [len(went), len(came)])
        by_key = [key for column in both.take(at).keys for key in sort_keys(column)]
        order = sort_order([*by_key, (kind == PANE_KIND).astype(np.int64)])
        at, kind = at[order], kind[order]
        rows = both.take(at)
        block = make_block(
            len(at),
            kind=kind,
            timing=UNKNOWN,
            windowless=True,
            is_first=True,
            is_last=plan.is_final,
            replaces=replaces[order],
            pane_time_us=rows["time_us"],
        )
        values = pa.table(rows.values, names=plan.value_schema.names) if plan.value_schema.names else pa.table({})
        return Updates(block, rows.keyed(plan.key_schema.names), values)


@attrs.define(slots=False, eq=False)
class UpsertsOperator(Operator):
    """The operator of an upserts stage (see ``contract/operator.py``).

    Attributes:
        plan: the stage's plan.
        policy: how the keys of its shards are cut into segments.
    """

    plan: UpsertsPlan
    policy: ImagePolicy = ImagePolicy()

    def __attrs_post_init__(self) -> None:
        plan = self.plan
        self.takes, self.gives, self.shards, self.identity = (plan.takes,), plan.gives, plan.shards, plan.identity
        self.moves_by([plan.takes.policy])

    def open(self, store: Store) -> Shard:
        return UpsertsShard(self, self.plan, store, self.policy)

    def stored(self, store: Store) -> Iterator[StoredPart]:
        plan, images = self.plan, images_table(self.plan, self.policy).open(store).stored()
        for what, of in (("rows", images.take(~images["deletes"])), ("deletes", images.take(images["deletes"]))):
            values = None if what == "deletes" else pa.table(of.values, names=plan.value_schema.names)
            yield StoredPart(
                what,
                of.keyed(plan.key_schema.names),
                of["time_us"],
                of["time_us"],
                values=values,
                due_us=of["due_us"],
                then="it expires: the next row of its key is an insert, however old",
                ends_us=of["due_us"],
            )

    def tables(self) -> Sequence[KeyedTable]:
        return [images_table(self.plan, self.policy)]

    def notes(self) -> Sequence[Note]:
        return [UpsertsShard.note(self.identity)]
