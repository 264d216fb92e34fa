"""The state of a window shard: windows in segments (segments.py), metadata (segments.py), and tables by key."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from beamish.contract.clocks import Clocks
from beamish.contract.stored import INDEX, Store, note_takes
from beamish.instants import END_OF_TIME_US
from beamish.kernels.buffers import Flags, Ints
from beamish.kinds.window.plan.part import Progress, WindowPart
from beamish.kinds.window.plan.plan import WindowPlan
from beamish.kinds.window.state.endless import Generations
from beamish.kinds.window.state.segments import LAYOUT, Changed, WindowNote, part_of_counted
from beamish.kinds.window.state.window_table import WindowTable, trigger_columns
from beamish.tables.notes import check_new, check_unnamed
from beamish.tables.records import parts_of_keys
from beamish.tables.segment_policy import DEFAULT_POLICY, HASHED_SEGMENTS, SegmentPolicy, segment_numbers
from beamish.tables.segments import Runs, Segmented, SegmentStore
from beamish.tables.working_table import Pool
from beamish.triggers.trigger import NEVER_US, WindowIndices
from beamish.windows.within import Within

Windows = Segmented[WindowTable]


@attrs.define
class State:
    """The state of a shard between two steps.

    Attributes:
        plan: the stage's plan.
        policy: how windows are partitioned into segments.
        segments: the stored windows.
        note: the metadata.
        changed: how the pipeline differs from the one that wrote it.
        progress: the progress of windows.
        parts: the active parts of the plan.
        rewrites: whether this step reads and writes all segments, since their span or the pipeline changed.
    """

    plan: WindowPlan
    policy: SegmentPolicy
    segments: SegmentStore
    note: WindowNote
    changed: Changed
    progress: Progress
    parts: tuple[WindowPart, ...]
    rewrites: bool = False

    @classmethod
    def open(cls, plan: WindowPlan, store: Store, policy: SegmentPolicy = DEFAULT_POLICY) -> State:
        """Read the index (StateError: it was written in another format, or cannot be read)."""
        segments = SegmentStore(store, LAYOUT)
        about = segments.about
        progress = plan.progress.open(plan, store, about)
        parts = tuple(opened for part in plan.parts if (opened := part.open(plan, store, about)) is not None)
        if segments.is_new:
            check_unnamed(store)
            check_new(store, INDEX)
            note = WindowNote(Clocks.new(len(plan.takes)), {}, _least_span_us(policy, plan))
            return cls(plan, policy, segments, note, Changed(takes=True), progress, parts)
        return cls(plan, policy, segments, WindowNote.of(about), Changed.since(about, plan), progress, parts)

    @property
    def by_key(self) -> WindowPart | None:
        """The part that determines segments; None: none."""
        return next((part for part in (*self.parts, self.progress) if part.by_key), None)

    @property
    def index(self) -> dict[str, Ints]:
        """The index's columns."""
        return self.segments.index

    def begin_step(self) -> Windows:
        """Choose the span of segments for this step; returns its windows, with none loaded."""
        before = self.note.span_us
        self.note.span_us = _least_span_us(self.policy, self.plan)
        if self.by_key is None:
            spanned = self.index["end_us"] < END_OF_TIME_US  # others are hashed, whatever the span
            windows = int(self.index["windows"][spanned].sum())
            self.note.span_us = self.policy.next_span_us(self.note.span_us, before, int(spanned.sum()), windows)
        self.rewrites = self.changed.options or self.changed.layout_facts or self.note.span_us != before
        return self.windows()

    def windows(self) -> Windows:
        """The windows, with none loaded."""
        instead: dict[str, Any] = {"touched": self.rewrites}
        if self.changed.trigger:
            columns = trigger_columns(self.plan.options.trigger)
            instead |= {name: np.array(value, dtype) for name, (dtype, value) in columns}
        watermark_us = self.progress.forwarded_us(self.note.clocks.watermark_us)
        missing = {name: value for part in self.parts for name, value in part.missing(watermark_us).items()}
        return Segmented(self.segments, WindowTable(self.plan, instead=instead, missing=missing))

    @property
    def next_due_us(self) -> int | None:
        """The least watermark at which something in it is due; None: nothing is."""
        of_tables = [part.next_due_us for part in (self.progress, *self.parts)]
        due = [*self.progress.windows_due_us(self.index), *(us for us in of_tables if us is not None)]
        return min(due, default=None)

    def segments_of(self, end_us: Ints, keys: Pool, key_at: Ints, progress: int | Ints) -> Ints:
        """The segment of each of some windows.

        Args:
            end_us: int64, one per window: its end.
            keys: the pool of keys.
            key_at: int64, one per window: the position of its key in the pool.
            progress: their progress (``step.py``).
        """
        if self.by_key is not None:
            return self.by_key.segments(self.note.span_us, end_us, keys.take(key_at), progress)
        return segment_numbers(self.note.span_us, end_us, keys, key_at)

    @property
    def generations(self) -> Generations:
        """Those of windows without an end."""
        return Generations(self.segments, self.policy)

    @property
    def has_generations(self) -> bool:
        """Whether windows without an end may be in generations: an earlier format has none."""
        return self.by_key is None and (self.note.older is None or self.changed.takes or self.changed.options)

    def that_may_have(self, end_us: Ints, keys: Pool, key_at: Ints, progress: int | Ints) -> Flags:
        """The segments that may have some windows, as in ``segments_of``: bool, one per entry of the index."""
        needed = np.unique(self.segments_of(end_us, keys, key_at, progress))
        found: Flags = np.isin(self.index["segment"], needed)
        return found | self.generations.with_keys(end_us, keys, key_at) if self.by_key is None else found

    @property
    def part_of_segments(self) -> Ints:
        """For windows partitioned by key the part of the keys of each segment: int64, one per entry of the index."""
        return part_of_counted(self.index["segment"])

    def of_keys(self, keys: pa.Table) -> Flags:
        """The segments that may have windows of keys: bool, one per entry of the index."""
        if not self.progress.by_key:
            return np.ones(len(self.index["segment"]), dtype=bool)
        of_keys: Flags = np.isin(self.part_of_segments, np.unique(parts_of_keys(keys)))
        return of_keys

    def save(self, windows: Windows, progress: Callable[[WindowIndices], int | Ints]) -> None:
        """Write the changed segments, the tables by key, and the index.

        Args:
            windows: the windows in memory.
            progress: of the windows.
        """
        table = windows.rows

        def target() -> Ints:
            return self.segments_of(table["end_us"], table.keys, table["key_at"], progress(np.arange(len(table))))

        def write(generation: Ints) -> None:
            after = generation * HASHED_SEGMENTS
            windows.write(lambda: target() + after, lambda at, runs: self._entries(table, at, runs, progress(at)))

        if self.has_generations:
            self.generations.write(windows, write)
        else:
            write(np.zeros(len(table), np.int64))
        self.note.has_generations = bool(self.generations.numbers)
        watermark_us = self.note.clocks.watermark_us
        forwarded_us, reached = self.progress.forwarded_us(watermark_us), self.progress.of_all(watermark_us)
        for part in (self.progress, *self.parts):
            part.save(forwarded_us, reached)
        if self.changed.takes:
            note_takes(self.segments.store, self.plan.takes)
        if self.changed.takes or self.changed.options:
            self.note.older = None
        self.changed, self.rewrites = Changed(), False
        self.segments.about = self.note.about(self.plan, (self.progress, *self.parts))
        self.segments.save()

    def _entries(self, table: WindowTable, at: WindowIndices, runs: Runs, progress: int | Ints) -> Mapping[str, Ints]:
        """The index columns of windows ordered by segment."""
        due, wake, kept = self._due(at, table, progress)
        return {
            "start_us": runs.least(table["start_us"][at]),
            "end_us": runs.greatest(table["end_us"][at]),
            "due_us": runs.least(due),
            "wake_us": runs.least(wake),
            "keeps_until_us": runs.least(kept),
        }

    def _due(self, rows: WindowIndices, table: WindowTable, progress: int | Ints) -> tuple[Ints, Ints, Ints]:
        """When these windows are due: by watermark, or reach; by clock; by watermark, for those with a reach."""
        end = table["end_us"][rows]
        # The end is due though nothing asks there: an empty pane at expiry is on time only if its step passes the end too.
        gives_empty = self.plan.options.gives_empty_panes or any(part.waits_for_end for part in self.parts)
        waits = table["asks_at_end"][rows] | gives_empty
        waits &= ~table["closed"][rows] & (end > progress)
        due = np.where(waits, end, self.plan.expiry_us(end))
        never = kept = np.full(len(rows), NEVER_US)
        for part in self.parts:
            due_us = part.due_us(table, rows)
            kept = kept if due_us is None else np.minimum(kept, due_us)
        if self.progress.by_watermark:
            due, kept = np.minimum(due, kept), never
        wake = np.full(len(rows), NEVER_US)
        trigger = self.plan.options.trigger
        if trigger.needs_clock or trigger.needs_row_times:
            open_ = np.flatnonzero(~table["closed"][rows])
            wake[open_] = trigger.wakes_at_columns(table.trigger, rows[open_])
            due[open_] = np.minimum(due[open_], trigger.due_columns(table.trigger, rows[open_]))
        return due, wake, kept


def _least_span_us(policy: SegmentPolicy, plan: WindowPlan) -> int:
    window = plan.window
    apart = not window.overlaps or isinstance(window, Within)
    return policy.least_span_us(
        window.period_us, plan.options.lateness, counts_rows=not plan.progress.by_watermark, apart=apart
    )
