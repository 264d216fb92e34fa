"""Retention of keys (docs/rules/windows.md#retention).

After a bundle each key with new rows keeps its latest windows within a budget; older ones are *evicted*: they emit their last pane, and
their state is deleted. The latest evicted window of each key is stored, since rows for it and for earlier ones are dropped: also when the
pipeline no longer declares ``retain``, since an evicted window was emitted, and would be emitted again with fewer rows.

columns (one entry per window):
    rows        int64: rows added to it, if the budget counts rows
columns of evictions (one entry per key):
    start, end  int64: the window, by (end, start); microseconds, or numbers of rows
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import attrs
import numpy as np
import pyarrow as pa

from beamish.contract.drops import OUT_OF_RETENTION
from beamish.contract.stored import KeyedTable, Store
from beamish.errors import PipelineError
from beamish.instants import END_OF_TIME_US
from beamish.kernels.buffers import Flags, Ints, bytes_of_rows
from beamish.kernels.codes import factorize_rows
from beamish.kernels.groups import Groups
from beamish.kernels.order import run_starts
from beamish.kinds.window.plan.options import Retention, WindowOptions
from beamish.kinds.window.plan.part import WindowPart
from beamish.kinds.window.plan.plan import WindowPlan
from beamish.kinds.window.state.window_table import TriggerMerge
from beamish.kinds.window.step.bundle import Bundle
from beamish.kinds.window.step.drops import drop_from_windows
from beamish.kinds.window.step.entries import Entries
from beamish.kinds.window.step.firing import fire
from beamish.kinds.window.step.step import Step
from beamish.tables.records import NOWHERE, Columns, KeyedRecords, Records, keyed_table, parts_of_keys
from beamish.triggers.trigger import WindowIndices

NAME = "fallen"
"""Prefix of the entries of evictions in a shard's store."""
_NONE = np.iinfo(np.int64).min


def check_retention(options: WindowOptions) -> None:
    """Check that windows end (PipelineError: they are global)."""
    retention = options.retention
    if retention is not None and options.never_ends:
        raise PipelineError(
            f"{retention.call} in {options.window!r}: a key has one global window, which is never evicted; leave it out, or use "
            "windows that end"
        )


class RetentionPart(WindowPart):
    """Evicts windows beyond a budget, and drops rows for evicted ones.

    Args:
        budget: what a key may store; None: no limit, but evictions of earlier runs apply.
    """

    evictions: Evictions
    """The evictions of the shard."""

    def __init__(self, budget: Retention | None) -> None:
        self._budget, self.by_key = budget, budget is not None
        self.layout_facts = {} if budget is None else {"by_key": True}
        self.columns = {"rows": ("int64", 0)} if budget is not None and budget.rows is not None else {}

    @classmethod
    def of(cls, plan: WindowPlan) -> RetentionPart:
        return cls(plan.options.retention)

    def tables(self, plan: WindowPlan) -> Iterator[KeyedTable]:
        yield keyed_table(plan.key_schema, NAME, Eviction, lambda store: Evictions(plan, store))

    def open(self, plan: WindowPlan, store: Store, about: Mapping[str, Any]) -> RetentionPart | None:
        fell_out = about.get("by_key", False) or about.get("fell_out", False)  # the former alone in older checkpoints
        if self._budget is None and not fell_out:
            return None
        opened = RetentionPart(self._budget)
        opened.evictions = Evictions(plan, store)
        return opened

    def noted(self) -> Mapping[str, Any]:
        return {} if self.evictions.next_due is None else {"fell_out": True}

    def save(self, watermark_us: int, reached: int) -> None:
        self.evictions.save(reached)

    @property
    def next_due_us(self) -> int | None:
        return self.evictions.next_due_us

    def segments(self, span_us: int, end: Ints, keys: pa.Table, progress: int | Ints) -> Ints:
        return parts_of_keys(keys) * 2

    def admit(self, step: Step, bundle: Bundle, entries: Entries) -> Entries:
        if not len(entries.row):
            return entries
        keys = step.table.keys.take(entries.key_at)
        gone = self.evictions.are_gone(keys, entries.start_us, entries.end_us)
        # A row that is expired by itself, and joins an open session, is past all evictions that are stored.
        gone &= step.plan.expiry_us(entries.end_us) > step.progress_of_rows(bundle, entries.row)
        drop_from_windows(step, bundle, entries.only(gone), OUT_OF_RETENTION)
        return entries.only(~gone)

    def on_rows(self, step: Step, bundle: Bundle, entries: Entries, groups: Groups, at: WindowIndices) -> None:
        if self.columns:
            step.table["rows"][at] += groups.sum(bundle.rows[entries.row])

    def on_merge(self, step: Step, merge: TriggerMerge) -> None:
        if self.columns:
            rows = step.table["rows"]
            rows[merge.into] = merge.sum(rows)

    def on_idle(self, keys: pa.Table) -> None:
        self.evictions.forget(keys)

    def after_rows(self, step: Step, at: WindowIndices) -> None:
        if self._budget is None or not len(at):
            return
        at, groups = _latest_first(step, at)
        place = groups.positions()
        over = np.zeros(len(at), dtype=bool)
        for budget, sizes in _sizes(step, self._budget, at):
            # Sums do not fall, so all windows before the first that is over are over too.
            total = np.cumsum(sizes)
            over |= total - (total - sizes)[place == 0][groups.of] > budget
        falls = np.flatnonzero(over & (place > 0))
        if len(falls):
            latest = run_starts([groups.of[falls]])
            _evict(step, self.evictions, at[falls], at[falls[latest]])


def _latest_first(step: Step, came: WindowIndices) -> tuple[WindowIndices, Groups]:
    """All windows of the keys of ``came``, latest first, and their grouping by key."""
    table = step.table
    keys = table.keys.take(table["key_at"][came])
    step.load(np.isin(step.state.part_of_segments, np.unique(parts_of_keys(keys))))
    at = np.flatnonzero(~table["gone"])
    own = table.keys.take(table["key_at"][at])
    both = [pa.chunked_array([*a.chunks, *b.chunks], a.type) for a, b in zip(own.columns, keys.columns, strict=True)]
    code = factorize_rows(both, len(at) + len(came)).of
    wanted = np.isin(code[: len(at)], code[len(at) :])
    at, key = at[wanted], code[: len(at)][wanted]
    order = np.lexsort((-table["start_us"][at], -table["end_us"][at], key))
    first = run_starts([key[order]])
    return at[order], Groups(np.cumsum(first) - 1, int(first.sum()))


def _sizes(step: Step, retention: Retention, at: WindowIndices) -> Iterator[tuple[int, Ints]]:
    """Each budget, and the usage by windows."""
    table = step.table
    if retention.windows is not None:
        yield retention.windows, np.ones(len(at), dtype=np.int64)
    if retention.rows is not None:
        yield retention.rows, table["rows"][at]
    if retention.bytes is not None:
        yield retention.bytes, bytes_of_rows(table.state.take(table["state_at"][at]))


def _evict(step: Step, evictions: Evictions, at: WindowIndices, latest: WindowIndices) -> None:
    """Evict windows; ``latest``: the latest of each key among them."""
    table = step.table
    evictions.note(table.keys.take(table["key_at"][latest]), table["start_us"][latest], table["end_us"][latest])
    open_ = at[~table["closed"][at]]
    fire(step, open_, np.ones(len(open_), dtype=bool))
    table["gone"][at] = True
    table["touched"][at] = True


@attrs.frozen(eq=False)
class Eviction(Records):
    """The latest evicted window of each key."""

    COLUMNS: ClassVar[dict[str, tuple[str, Any]]] = {"start": ("int64", _NONE), "end": ("int64", _NONE)}


class Evictions(KeyedRecords[Eviction]):
    """The evictions of a shard's keys.

    Args:
        plan: the stage's plan.
        store: the shard's.

    Raises:
        StateError: the index cannot be read.
    """

    def __init__(self, plan: WindowPlan, store: Store) -> None:
        self._plan = plan
        super().__init__(plan.key_schema, Eviction, store, NAME)

    def are_gone(self, keys: pa.Table, start: Ints, end: Ints) -> Flags:
        """Whether windows are at or before the latest evicted one of their key: bool, one per window.

        Args:
            keys: key columns, normalised, one row per window.
            start, end: int64, one per window.
        """
        at = self.find(keys)
        known = np.flatnonzero(at != NOWHERE)
        records, gone = self.records, np.zeros(len(at), dtype=bool)
        last_end, last_start = records["end"][at[known]], records["start"][at[known]]
        gone[known] = (end[known] < last_end) | ((end[known] == last_end) & (start[known] <= last_start))
        return gone

    def note(self, keys: pa.Table, start: Ints, end: Ints) -> None:
        """Store the latest evicted window of each key."""
        at = self.find(keys, new=True)
        records = self.records
        later = (end > records["end"][at]) | ((end == records["end"][at]) & (start > records["start"][at]))
        records["start"][at[later]], records["end"][at[later]] = start[later], end[later]
        self.touch(at)

    def forget(self, keys: pa.Table) -> None:
        """Delete the evictions of keys."""
        at = self.find(keys)
        self.remove(at[at != NOWHERE])

    def save(self, progress: int) -> None:
        """Write changes, and delete evictions of expired windows, whose rows are too late anyway.

        Args:
            progress: the watermark, or the number reached by the stream; not used for rows numbered by key.
        """

        def expiry(evictions: Eviction | Columns) -> Ints:
            if self._plan.progress.by_key:
                return np.full(len(evictions["end"]), END_OF_TIME_US)
            return self._plan.expiry_us(evictions["end"])  # type: ignore[no-any-return]

        if self.next_due is not None and self.next_due <= progress:
            self.load_due(progress)
            over = np.flatnonzero(self.alive & (expiry(self.records) <= progress))
            self.remove(over)
        self.save_due(lambda evictions: expiry(evictions) > progress, expiry)

    @property
    def next_due_us(self) -> int | None:
        """The least watermark at which evictions expire; None: never, or by row numbers."""
        return self.next_due if self._plan.progress.by_watermark else None
