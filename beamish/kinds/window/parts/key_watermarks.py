"""A watermark per key (docs/rules/key-watermarks.md#watermark-per-key).

The windows of a key follow the greatest event time of its rows of earlier steps, but are at most a span behind the stage's watermark. A
key whose watermark is given by that bound is not stored.

columns (one entry per key):
    watermark_us    int64, microseconds: the key's watermark in the last step
    next_us         int64, microseconds: the same in the next step, by the rows of the last one
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import attrs
import numpy as np
import pyarrow as pa

from beamish.contract.relation import Relation
from beamish.contract.stored import KeyedTable, Store
from beamish.errors import PipelineError
from beamish.instants import END_OF_TIME_US
from beamish.kernels.buffers import Flags, Ints
from beamish.kernels.codes import normalise
from beamish.kinds.window.plan.options import KeyWatermark, WindowOptions
from beamish.kinds.window.plan.part import Progress
from beamish.kinds.window.plan.plan import WindowPlan
from beamish.kinds.window.step.bundle import Bundle
from beamish.kinds.window.step.drops import admit_timed
from beamish.kinds.window.step.firing import evaluate
from beamish.kinds.window.step.step import Step
from beamish.tables.records import Columns, KeyedRecords, Records, keyed_table
from beamish.triggers.trigger import WindowIndices
from beamish.watermarks import NO_WATERMARK_US

NAME = "key_watermarks"
"""Prefix of the entries of keys in a shard's store."""
_FLOOR = "floor_us"
"""In the metadata of a shard: the watermark that all keys have reached."""
_UNKNOWN = -2
"""The record of a window's key was not looked up yet."""


def check_key_watermark(options: WindowOptions, takes: Sequence[Relation]) -> None:
    """Check that rows of one source have keys, and windows that end by the watermark (PipelineError: not so)."""
    declared = options.key_watermark
    if declared is None:
        return
    if not takes[0].keys:
        raise PipelineError(
            f"{declared.call} without keys: all rows have one watermark; add .key_by('device'), or leave it out: the delay is that of "
            "the event_time's policy"
        )
    if takes[0].name is not None:
        raise PipelineError(
            f"{declared.call} of a merge: a row of one input must find the rows of the others, which have watermarks of their own; union "
            "the inputs before, or use allowed_lateness(...)"
        )
    if takes[0].is_panes:
        raise PipelineError(
            f"{declared.call} over a stage: its panes come with one watermark, behind which none of them is; add it to the stage before"
        )
    if options.counts_rows:
        raise PipelineError(
            f"{declared.call} in {options.window!r}: count windows end by rows, not by a watermark; leave it out, or use time windows"
        )
    if options.never_ends and options.forget_after is None:
        raise PipelineError(
            f"{declared.call} in {options.window!r}: the global window never ends, whatever its key's watermark; add "
            ".forget_after('30 days'), use windows that end, or leave it out"
        )
    if takes[0].policy.lag is not None:
        raise PipelineError(
            f"{declared.call} with {takes[0].policy!r}: rows do not move that watermark, but they move that of their key; use "
            "bm.BoundedOutOfOrderness, or leave it out"
        )


class KeyProgress(Progress):
    """The watermark of each key."""

    reads_times = True
    working: Mapping[str, tuple[str, Any]] = {"group": ("int64", _UNKNOWN)}
    watermarks: KeyWatermarks
    """The keys of the shard."""

    def __init__(self, declared: KeyWatermark, *, max_future_us: int | None) -> None:
        self._declared, self._max_future_us = declared, max_future_us
        self.needs_clock = max_future_us is not None
        self.why_not_preaggregated = "a watermark per key with max_future needs the rows" * self.needs_clock
        self._floor_us = self._least_us = self._least_before_us = NO_WATERMARK_US

    @classmethod
    def of(cls, plan: WindowPlan) -> KeyProgress | None:
        declared = plan.options.key_watermark
        future = next((policy.max_future for policy in plan.takes[0].watermarks), None)  # unknown where state is read
        return None if declared is None else cls(declared, max_future_us=None if future is None else future.us)

    def tables(self, plan: WindowPlan) -> Iterator[KeyedTable]:
        yield keyed_table(plan.key_schema, NAME, KeyReach, lambda store: KeyWatermarks(plan.key_schema, store))

    def open(self, plan: WindowPlan, store: Store, about: Mapping[str, Any]) -> KeyProgress:
        opened = KeyProgress(self._declared, max_future_us=self._max_future_us)
        opened.watermarks = KeyWatermarks(plan.key_schema, store)
        if about:  # without a floor the stage had one watermark so far
            opened._floor_us = about.get(_FLOOR, about["clocks"]["watermark_us"])
        return opened

    def noted(self) -> Mapping[str, Any]:
        return {_FLOOR: self._floor_us}

    def save(self, watermark_us: int, reached: int) -> None:
        self._floor_us = watermark_us
        self.watermarks.save(watermark_us)

    # Watermarks

    def forwarded_us(self, watermark_us: int) -> int:
        return max(self._floor_us, self._declared.least_us(watermark_us))

    def of_all(self, watermark_us: int) -> int:
        return self.forwarded_us(watermark_us)

    def begin_step(self, watermark_us: int) -> None:
        self._least_us = self._least_before_us = self.forwarded_us(watermark_us)

    def begin_part(self) -> None:
        self._least_before_us = self._least_us
        self.watermarks.begin_part()

    def of_windows(self, step: Step, at: WindowIndices) -> Ints:
        return np.maximum(self.watermarks.of(self._records(step, at)), self._least_us)

    def before(self, step: Step, at: WindowIndices) -> Ints:
        return np.maximum(self.watermarks.before(self._records(step, at)), self._least_before_us)

    def of_rows(self, step: Step, bundle: Bundle, rows: Ints) -> Ints:
        if len(bundle.group) < bundle.keys.num_rows:
            bundle.group = self.watermarks.find(bundle.keys)
        return np.maximum(self.watermarks.of(bundle.group[rows]), self._least_us)

    def at_rest(self, plan: WindowPlan, keys: pa.Table, watermark_us: int) -> Ints:
        keys = pa.table([normalise(column.combine_chunks()) for column in keys.columns], schema=plan.key_schema)
        return np.maximum(self.watermarks.of(self.watermarks.find(keys)), self.forwarded_us(watermark_us))

    def _records(self, step: Step, at: WindowIndices) -> Ints:
        """The record of the key of each window."""
        record = step.table["group"]
        unknown = at[record[at] == _UNKNOWN]
        if len(unknown):
            record[unknown] = self.watermarks.find(step.table.keys.take(step.table["key_at"][unknown]))
        return record[at]

    def windows_due_us(self, index: Mapping[str, Ints]) -> list[int]:
        at_most = self._declared.at_most.us
        return [min(due, END_OF_TIME_US - at_most) + at_most for due in super().windows_due_us(index)]

    def load_due(self, step: Step) -> bool:
        """Apply the rows of the step before, and load the windows that are due by the bound, or by rows of their key."""
        self._least_us = self.forwarded_us(step.watermark_us)
        if self._least_us == NO_WATERMARK_US:  # on Spark a shard without rows is not called before there is a watermark
            return True
        moved = self.watermarks.apply_rows()
        step.load((step.state.index["due_us"] <= self._least_us) | self._passed(step, moved))
        return True

    def _passed(self, step: Step, moved: Ints) -> Flags:
        """The segments that may have a window of these keys which their watermarks pass: bool, one per entry of the index."""
        now = np.maximum(self.watermarks.of(moved), self._least_us)
        before = np.maximum(self.watermarks.before(moved), self._least_before_us)
        order, index = np.argsort(now), step.state.index
        first = np.searchsorted(now[order], index["due_us"])  # of the keys that have reached it
        least = np.minimum.accumulate(np.append(before[order], END_OF_TIME_US)[::-1])[::-1]
        passed: Flags = least[first] < step.plan.expiry_us(index["end_us"])
        return passed

    # Arriving rows

    def place(self, step: Step, bundle: Bundle) -> Flags:
        return admit_timed(step, bundle)

    def ask(self, step: Step, bundle: Bundle, came: WindowIndices) -> None:
        evaluate(step, came)
        counts = bundle.timed
        if self._max_future_us is not None:
            counts &= bundle.last_us <= step.clock_us + self._max_future_us
        next_us = np.where(counts, bundle.last_us - self._declared.delay.us, NO_WATERMARK_US)
        ahead = np.flatnonzero(next_us > self._least_us)
        self.watermarks.advance(bundle.keys.take(pa.array(ahead)), next_us[ahead])


@attrs.frozen(eq=False)
class KeyReach(Records):
    """The watermarks of keys."""

    COLUMNS: ClassVar[dict[str, tuple[str, Any]]] = {
        "watermark_us": ("int64", NO_WATERMARK_US),
        "next_us": ("int64", NO_WATERMARK_US),
    }


class KeyWatermarks(KeyedRecords[KeyReach]):
    """The keys of a shard that a step has loaded, among those that are ahead of the bound.

    Args:
        keys: the key columns.
        store: the shard's.

    Raises:
        StateError: the index cannot be read.
    """

    def __init__(self, keys: pa.Schema, store: Store) -> None:
        super().__init__(keys, KeyReach, store, NAME)
        self.begin_part()

    def begin_part(self) -> None:
        """Begin a part of the step, before which ``before`` looks."""
        self._before = np.empty(0, dtype=np.int64)

    def of(self, at: Ints) -> Ints:
        """The watermark of each record; before there is one, and for NOWHERE, NO_WATERMARK_US."""
        return np.append(self.records["watermark_us"], NO_WATERMARK_US)[at]  # NOWHERE is the last one

    def before(self, at: Ints) -> Ints:
        """The same when this part of the step began."""
        now = self.records["watermark_us"]
        return np.concatenate([self._before, now[len(self._before) :], [NO_WATERMARK_US]])[at]

    def apply_rows(self) -> Ints:
        """Advance the watermarks of keys with rows in the step before: returns their indices."""
        self.load_due(NO_WATERMARK_US)
        watermark_us, next_us = self.records["watermark_us"], self.records["next_us"]
        self._before = watermark_us.copy()
        moved = np.flatnonzero(next_us > watermark_us)
        watermark_us[moved] = next_us[moved]
        self.touch(moved)
        return moved

    def advance(self, keys: pa.Table, next_us: Ints) -> None:
        """Advance keys as of the next step; watermarks never decrease.

        Args:
            keys: key columns, normalised, n rows.
            next_us: int64[n], microseconds.
        """
        at = self.find(keys, new=True)
        np.maximum.at(self.records["next_us"], at, next_us)
        self.touch(at)

    def save(self, watermark_us: int) -> None:
        """Write the changes of the step, without the keys that are not ahead of the bound."""
        self.load_due(watermark_us)
        self.remove(np.flatnonzero(self.alive & (self.records["next_us"] <= watermark_us)))
        self.save_due(lambda keys: keys["next_us"] > watermark_us, _due_us)
        self.begin_part()


def _due_us(keys: Columns) -> Ints:
    """The bound at which a key is no longer ahead; the least one if rows have yet to be applied."""
    return np.where(keys["next_us"] > keys["watermark_us"], NO_WATERMARK_US, keys["next_us"])
