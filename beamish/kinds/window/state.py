"""A shard's state: the index of its segments, the segments through it, and its clocks.

What is stored where: stored_tables.py; what the index says: index.py; how windows are cut into segments: segments.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from beamish.contract.clocks import Clocks
from beamish.contract.input_schemas import note_takes
from beamish.contract.store import Store
from beamish.instants import END_OF_TIME_US
from beamish.kernels.arrays import NO_VALUE, Ints
from beamish.kernels.codes import factorize_values
from beamish.kernels.identity import same_identity
from beamish.kernels.order import run_starts
from beamish.kinds.deduplicate.remembered import RememberedIds
from beamish.kinds.window.compatibility import check_identity
from beamish.kinds.window.fallen import FallenWindows
from beamish.kinds.window.index import (
    IndexColumns,
    empty_index,
    read_index_entry,
    with_rows,
    without,
    write_index_entry,
)
from beamish.kinds.window.inherited_panes import InheritedPanes
from beamish.kinds.window.plan import WindowPlan
from beamish.kinds.window.reaches import Reaches
from beamish.kinds.window.segments import append_stored, counted_segments, part_of_counted, to_stored
from beamish.kinds.window.window_table import LATEST, WindowTable
from beamish.tables.keyed_records import parts_of_keys
from beamish.tables.notes import FORMAT, check_new, check_unnamed
from beamish.tables.pool import Pool
from beamish.tables.segment_policy import DEFAULT_POLICY, SegmentPolicy, segment_numbers
from beamish.tables.stored_tables import (
    INDEX,
    inherited_name,
    naming_entry,
    read_entry,
    segment_name,
    write_entry,
)
from beamish.triggers.trigger import NEVER_US, WindowIndices


@attrs.define
class State:
    """The state of a shard between two steps.

    Attributes:
        plan: the stage's plan.
        store: where the bytes are.
        policy: how windows are cut into segments.
        index: the index's columns.
        clocks: where they stand.
        dropped: number of rows dropped so far, by reason.
        span_us: how long a span of ends a segment holds.
        numbered: number of rows that were given a number so far, where they are numbered.
        remembered: the ids that are remembered for some time; None: rows are not known again by that.
        reaches: where windows are of rows, how far the groups of rows have come; else None.
        fallen: where keys keep only so much, or did, the latest window of each that fell out; else None.
        held: of a suppressed stage the name of the suppress, and how many updates it holds; None: there never was one.
        changed: whether the trigger or the lateness is another than the one the state was written with.
        retriggered: whether the trigger is.
        is_new: whether nothing was stored yet.
        retyped: whether types are wider than those it was written with, an accumulation is new, or other panes come out.
        relaid: whether windows lie by key now and did not, or the other way round, or are forgotten at another time.
        rewrites: whether this step reads and writes all segments, since they are cut anew or the pipeline changed.
    """

    plan: WindowPlan
    store: Store
    policy: SegmentPolicy
    index: IndexColumns
    clocks: Clocks
    dropped: dict[str, int]
    span_us: int
    numbered: int = 0
    remembered: RememberedIds | None = None
    reaches: Reaches | None = None
    fallen: FallenWindows | None = None
    held: dict[str, Any] | None = None
    changed: bool = False
    retriggered: bool = False
    is_new: bool = False
    retyped: bool = False
    relaid: bool = False
    rewrites: bool = False

    @classmethod
    def open(cls, plan: WindowPlan, store: Store, policy: SegmentPolicy = DEFAULT_POLICY) -> State:
        """Read the index.

        Raises:
            StateError: it was written by another format, shard count or pipeline, or cannot be read.
        """
        stored = read_index_entry(store)
        remembered = None if plan.ids_within_us is None else open_ids(plan, store)
        reaches = Reaches(plan, store) if plan.counts_rows else None
        fallen = _open_fallen(plan, store, {} if stored is None else stored[1])
        if stored is None:
            check_unnamed(store)
            check_new(store, INDEX)
            clocks, span_us = Clocks.new(len(plan.takes)), _least_span_us(policy, plan)
            return cls(
                plan,
                store,
                policy,
                empty_index(),
                clocks,
                {},
                span_us,
                remembered=remembered,
                reaches=reaches,
                fallen=fallen,
                is_new=True,
            )
        index, about = stored
        check_identity(about["identity"], plan)
        changed = not same_identity(about["changeable"], plan.changeable)
        clocks = Clocks.of(about["clocks"])
        dropped, span_us, held = about["dropped"], about["span_us"], about.get("held")
        numbered = about.get("numbered", 0)
        state = cls(
            plan, store, policy, index, clocks, dropped, span_us, numbered, remembered, reaches, fallen, held, changed
        )
        state.retriggered = not same_identity(about["changeable"]["trigger"], plan.changeable["trigger"])
        state.retyped = not same_identity(about["identity"], plan.identity)
        state.relaid = about.get("by_key", False) != plan.retains
        state.relaid |= about.get("forget_after_us") != plan.forget_after_us
        return state

    def begin_step(self) -> None:
        """Decide how windows are cut into segments in this step."""
        before = self.span_us
        segments, windows = len(self.index["segment"]), int(self.index["windows"].sum())
        self.span_us = _least_span_us(self.policy, self.plan)
        if not (self.plan.counts_by_key or self.plan.retains):
            self.span_us = self.policy.next_span_us(self.span_us, before, segments, windows)
        self.rewrites = self.changed or self.relaid or self.span_us != before

    @property
    def next_due_us(self) -> int | None:
        """The least watermark at which something in it is due; None: nothing is."""
        due = self.index["due_us"].tolist()
        if self.reaches is not None:  # then windows wait for rows, or for the end of time
            due = [END_OF_TIME_US, *self.index["keeps_until_us"].tolist()] if due else []
        of_rows = [one.next_due_us for one in (self.remembered, self.reaches, self.fallen) if one is not None]
        return min([*due, *(us for us in of_rows if us is not None)], default=None)

    def segments_of(self, end_us: Ints, keys: Pool, key_at: Ints, progress: int | Ints) -> Ints:
        """The segment of each of some windows.

        Args:
            end_us: int64, one per window: its end.
            keys: the pool of keys.
            key_at: int64, one per window: where its key is in the pool.
            progress: how far they have come (``windowing/step.py``).
        """
        if self.plan.retains:
            return parts_of_keys(keys.take(key_at)) * 2
        if self.plan.counts_by_key:
            return counted_segments(self.span_us, end_us, parts_of_keys(keys.take(key_at)), end_us <= progress)
        return segment_numbers(self.span_us, end_us, keys, key_at)

    @property
    def part_of_segments(self) -> Ints:
        """Of windows that lie by key the part of the keys of each segment: int64, one per entry of the index."""
        return part_of_counted(self.index["segment"])

    def load(self, segments: Iterable[int], table: WindowTable, inherited: InheritedPanes) -> None:
        """Read segments into the window table; those already in it or not stored are skipped."""
        loaded = set(np.unique(table["segment"]).tolist())
        wanted = set(self.index["segment"].tolist()) - loaded
        stored = [(number, read_entry(self.store, segment_name(number))) for number in segments if number in wanted]
        for _, alike in groupby(stored, key=lambda one: one[1].schema):  # an older one may lack columns
            self._append(list(alike), table, inherited)

    def _append(self, stored: Sequence[tuple[int, pa.Table]], table: WindowTable, inherited: InheritedPanes) -> None:
        """Put segments of one schema into the window table, at once: that costs much the same for one and for many."""
        numbers, sizes = [number for number, _ in stored], [segment.num_rows for _, segment in stored]
        given = {
            name: value for name, (_, value) in table.stored.items() if self.retriggered and name.startswith("trigger")
        }
        with naming_entry(segment_name(numbers[0])):
            windows = pa.concat_tables([segment for _, segment in stored])
            if LATEST in table.stored and LATEST not in windows.schema.names:
                given[LATEST] = self.clocks.watermark_us  # when their last row came is not known: as if it came now
            of = np.repeat(np.array(numbers), sizes)
            rows = append_stored(self.plan, windows, table, touched=self.rewrites, segment=of, **given)
        had_inherited = self._with_inherited_panes()
        for number, own in zip(numbers, np.split(rows, np.cumsum(sizes)[:-1]), strict=True):
            if number in had_inherited:
                panes = read_entry(self.store, inherited_name(number))
                with naming_entry(inherited_name(number)):
                    inherited.read(panes, own, table)

    def save(
        self, table: WindowTable, inherited: InheritedPanes, progress: Callable[[WindowIndices], int | Ints]
    ) -> None:
        """Write back the segments in which something was touched, and the index.

        Args:
            table: the windows in memory.
            inherited: their inherited panes.
            progress: how far windows of the table have come.
        """
        kept = ~table["gone"]
        reached = progress(np.arange(len(table)))
        target = self.segments_of(table["end_us"], table.keys, table["key_at"], reached)
        touched = table["touched"]
        dirty = np.unique(np.concatenate([table["segment"][touched], target[touched & kept]]))
        dirty = dirty[dirty != NO_VALUE]
        # A window may have moved into a segment that was not read: read it, since it is written as a whole.
        before = len(table)
        self.load(dirty.tolist(), table, inherited)
        if len(table) > before:
            kept = ~table["gone"]
            target = np.concatenate([target, table["segment"][before:]])
        known, had_inherited = set(self.index["segment"].tolist()), self._with_inherited_panes()
        rows = np.flatnonzero(kept & np.isin(target, dirty))
        by_segment = factorize_values(target[rows])
        rows = rows[np.argsort(by_segment.of, kind="stable")]
        entries = self._write(target[rows], rows, table, inherited, progress(rows))
        written = {entry[0] for entry in entries}
        for segment in known.intersection(dirty.tolist()) - written:
            self.store.remove(segment_name(segment))
        for segment in had_inherited.intersection(dirty.tolist()) - {entry[0] for entry in entries if entry[-1]}:
            self.store.remove(inherited_name(segment))
        self.index = with_rows(without(self.index, dirty), entries)
        if self.remembered is not None:
            self.remembered.save(self.clocks.watermark_us)
        together = None if self.reaches is None else self.reaches.of_stream()
        if self.reaches is not None:
            self.reaches.save()
        if self.fallen is not None:
            self.fallen.save(self.clocks.watermark_us if together is None else together)
        if self.is_new or self.retyped:
            note_takes(self.store, self.plan.takes)
        self.changed = self.retriggered = self.is_new = self.retyped = self.relaid = self.rewrites = False
        self._save_index()

    def _write(
        self,
        segment: Ints,
        rows: WindowIndices,
        table: WindowTable,
        inherited: InheritedPanes,
        progress: int | Ints,
    ) -> list[tuple[int, ...]]:
        """Write segments; gives their rows of the index.

        Args:
            segment: the segment of each window, those of one together.
            rows: the windows.
            table: they are of.
            inherited: their inherited panes.
            progress: how far they have come.
        """
        if not len(rows):
            return []
        stored = to_stored(self.plan, table, rows)
        first = np.flatnonzero(run_starts([segment]))
        least = [
            np.minimum.reduceat(each, first) for each in (table["start_us"][rows], *self._due(rows, table, progress))
        ]
        latest = np.maximum.reduceat(table["end_us"][rows], first)
        about = [segment[first], first, np.append(first[1:], len(rows)), least[0], latest, *least[1:]]
        entries: list[tuple[int, ...]] = []
        for number, begin, stop, *of_windows in zip(*(each.tolist() for each in about), strict=True):
            write_entry(self.store, segment_name(number), stored.slice(begin, stop - begin))
            panes = inherited.of(rows[begin:stop], table)
            if panes is not None:
                write_entry(self.store, inherited_name(number), panes)
            entries.append((number, stop - begin, *of_windows, int(panes is not None)))
        return entries

    def _due(self, rows: WindowIndices, table: WindowTable, progress: int | Ints) -> tuple[Ints, Ints, Ints]:
        """At what something is due in each of these windows: the watermark, or reach; the clock; the watermark, where it goes by reach."""
        end = table["end_us"][rows]
        # The end is due though nothing asks there: an empty pane at expiry is on time only if its step passes the end too.
        waits = table["asks_at_end"][rows] | self.plan.options.gives_empty_panes | self.plan.gives_alone
        waits &= ~table["closed"][rows] & (end > progress)
        due = np.where(waits, end, self.plan.expiry_us(end))
        if self.plan.forgets:
            due = np.minimum(due, table.forgotten_us(rows))
        kept = table["keeps_until_us"][rows] if self.plan.cuts else np.full(len(rows), NEVER_US)
        if not self.plan.counts_rows:
            due, kept = np.minimum(due, kept), np.full(len(rows), NEVER_US)
        wake = np.full(len(rows), NEVER_US)
        if self.plan.options.trigger.needs_clock:
            open_ = np.flatnonzero(~table["closed"][rows])
            wake[open_] = self.plan.options.trigger.wakes_at_columns(table.trigger, rows[open_])
        return due, wake, kept

    def _with_inherited_panes(self) -> set[int]:
        return set(self.index["segment"][self.index["inherited_panes"] > 0].tolist())

    def _save_index(self) -> None:
        about = {
            "format": FORMAT,
            "identity": self.plan.identity,
            "changeable": self.plan.changeable,
            "clocks": attrs.asdict(self.clocks),
            "dropped": self.dropped,
            "span_us": self.span_us,
            **({} if self.held is None else {"held": self.held}),
            **({"by_key": True} if self.plan.retains else {}),
            **({"fell_out": True} if self.fallen is not None and not self.fallen.is_empty else {}),
            **({"numbered": self.numbered} if self.plan.numbers_rows else {}),
            **({"forget_after_us": self.plan.forget_after_us} if self.plan.forgets else {}),
        }
        write_index_entry(self.store, self.index, about)


def _open_fallen(plan: WindowPlan, store: Store, about: Mapping[str, Any]) -> FallenWindows | None:
    """What fell out of the keys of a shard, whose index says this; None: nothing did, and nothing will."""
    noted = about.get("by_key", False) or about.get("fell_out", False)  # the former alone where retain() was said last
    return FallenWindows(plan, store) if plan.retains or noted else None


def open_ids(plan: WindowPlan, store: Store) -> RememberedIds:
    """The ids that windows remember for some time, as they are kept beside them.

    Raises:
        StateError: they cannot be read, or are of other columns.
    """
    assert plan.ids_within_us is not None  # noqa: S101 - it is said
    return RememberedIds(pa.schema([*plan.key_schema, *plan.id_schema]), plan.ids_within_us, store)


def _least_span_us(policy: SegmentPolicy, plan: WindowPlan) -> int:
    return policy.least_span_us(plan.window.period_us, plan.lateness, counts_rows=plan.counts_rows)
