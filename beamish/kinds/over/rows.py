"""The stored rows of an over stage, by time; and what is stored of each key for ever, by key.

columns of a row (one entry per row; ``_us``: int64, microseconds since the epoch):
    time_us             its time
    start_us, end_us    for a pane the window
    windowless          bool: without a window
    due_us              the next watermark at which it may be emitted; the end of time for emitted rows
    panes               int64: how many panes it emitted; 0: it is not emitted
    later_panes         int64: how many of them were not EARLY
    timing              int8: of the last pane
    came                int64: its number among equal rows that are emitted
    late                bool: its time was passed when it arrived
    computed            bool: whether ``value.<name>`` are its values
cells: its key as ``key.<name>``, its own columns as ``own.<name>``, its values as ``value.<name>`` if the plan ``stores_values``.

columns of the past of a key, which stands for its evicted rows:
    rows        int64: their number
    dense       int64: how many distinct times, with ``order_by``, they have
    last_us     the time of the latest row of the key that is known here
cells: the key as ``key.<name>``, accumulators as ``sum.<name>.<i>``, values of the first row as ``first.<name>``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Generic, TypeVar

import attrs
import numpy as np
import pyarrow as pa

from beamish.contract.stored import Layout, Store
from beamish.contract.updates import EARLY
from beamish.instants import END_OF_TIME_US
from beamish.kernels.buffers import Flags, Ints
from beamish.kernels.codes import factorize_rows
from beamish.kinds.over.plan import OverPlan
from beamish.tables.records import DUE, Records, RecordTable, SegmentedRecords, parts_of_keys, record_table
from beamish.tables.segments import SegmentStore
from beamish.tables.timed_records import SpanPolicy, Timed, TimedRecords
from beamish.watermarks import NO_WATERMARK_US

ROWS, TAIL, PAST = "rows", "tail", "past"
"""Prefixes of the entries of stored rows, of the last rows of keys, and of the past of keys."""


@attrs.frozen(eq=False)
class OverRows(Timed):
    """Rows with their values."""

    TIME = "time_us"
    COLUMNS: ClassVar[dict[str, tuple[str, Any]]] = {
        "time_us": ("int64", 0),
        "start_us": ("int64", 0),
        "end_us": ("int64", 0),
        "windowless": ("bool", True),
        "due_us": ("int64", END_OF_TIME_US),
        "panes": ("int64", 0),
        "later_panes": ("int64", 0),
        "timing": ("int8", EARLY),
        "came": ("int64", 0),
        "late": ("bool", False),
        "computed": ("bool", False),
    }

    @property
    def is_shown(self) -> Flags:
        """Whether each is emitted."""
        shown: Flags = self["panes"] > 0
        return shown


@attrs.frozen(eq=False)
class PastOfKeys(Records):
    """The past of keys, stored for ever."""

    COLUMNS: ClassVar[dict[str, tuple[str, Any]]] = {
        "rows": ("int64", 0),
        "dense": ("int64", 0),
        "last_us": ("int64", 0),
    }


def _keys(plan: OverPlan) -> list[tuple[str, pa.DataType]]:
    return [(f"key.{field.name}", field.type) for field in plan.key_schema]


def row_cells(plan: OverPlan) -> pa.Schema:
    """The cells of stored rows."""
    own = [(f"own.{field.name}", field.type) for field in plan.schema]
    values = [(f"value.{one.name}", one.type) for one in plan.values] if plan.stores_values else []
    return pa.schema([*_keys(plan), *own, *values])


def past_cells(plan: OverPlan) -> pa.Schema:
    """The cells of the past of keys."""
    sums = [(f"sum.{one.name}.{i}", type_) for one in plan.sums for i, type_ in enumerate(one.state)]
    return pa.schema([*_keys(plan), *sums, *((f"first.{one.name}", one.type) for one in plan.firsts)])


class RowsByTime(TimedRecords[OverRows]):
    """The stored rows of a shard; its index has the least ``due_us`` of each segment."""

    @property
    def next_due_us(self) -> int:
        """The least watermark at which a row may be emitted; the end of time without such a row."""
        return min(self.segments.index[DUE].tolist(), default=END_OF_TIME_US)

    def load_due(self, watermark_us: int) -> Ints:
        """Load the rows that may be emitted at a watermark; returns their indices in memory."""
        self.load_where(self.segments.index[DUE] <= watermark_us)
        rows = self.records
        return np.flatnonzero(self.alive & ~rows.is_shown & (rows["due_us"] <= watermark_us))

    def take_past(self, below_us: int, *, exactly: bool) -> OverRows:
        """Take out the rows at times below this one; unless ``exactly``, only those of segments that are below it as a whole."""
        if exactly:
            return self.take_until(below_us - 1)
        ends = self.segments.index["end_us"]
        gone = ends[ends < below_us]
        return self.take_until(int(gone.max())) if len(gone) else self._none

    def save(self, watermark_us: int = NO_WATERMARK_US) -> None:
        index = self.segments.index
        self._spans.adapt(self.records.time_us[self.is_new & self.alive], index["segment"], index["rows"])
        self.segments.about = {"spans": self._spans.about}
        self.write_back(
            lambda of: self._spans.number(of.time_us),
            lambda of: of.time_us >= watermark_us,
            lambda columns, runs: {
                "start_us": runs.least(columns["time_us"]),
                "end_us": runs.greatest(columns["time_us"]),
                DUE: runs.least(np.where(columns["panes"] > 0, END_OF_TIME_US, columns["due_us"])),
            },
        )


def rows_table(plan: OverPlan, policy: SpanPolicy) -> RecordTable[RowsByTime]:
    """The table of rows."""
    layout, none = Layout(ROWS, ("start_us", "end_us", DUE)), OverRows.none(row_cells(plan))

    def opened(store: Store) -> RowsByTime:
        return RowsByTime(SegmentStore(store, layout), none, policy)

    return record_table(layout, none, [name for name, _ in _keys(plan)], opened)


R = TypeVar("R", bound=Records)


class ByKey(SegmentedRecords[R], Generic[R]):
    """Records of keys, any number of each, in segments by a hash of the key."""

    def __init__(self, segments: SegmentStore, none: R, due_us: Callable[[Any], Ints]) -> None:
        super().__init__(segments, none)
        self._due_us = due_us

    def load_keys(self, keys: Records) -> None:
        """Load the segments of the keys of records."""
        self.load(np.unique(_parts(keys)).tolist())

    def load_due(self, watermark_us: int) -> None:
        """Load the segments with rows that may be emitted at a watermark."""
        self.load_where(self.segments.index[DUE] <= watermark_us)

    @property
    def next_due_us(self) -> int:
        """The least watermark at which a record may be emitted; the end of time without such a record."""
        return min(self.segments.index[DUE].tolist(), default=END_OF_TIME_US)

    def save(self, watermark_us: int = NO_WATERMARK_US) -> None:
        self.write_back(
            _parts,
            lambda of: np.ones(len(of), dtype=bool),
            lambda columns, runs: {DUE: runs.least(self._due_us(columns))},
        )


def _parts(records: Records) -> Ints:
    keys = records.keys
    if not keys:
        return np.zeros(len(records), np.int64)
    return parts_of_keys(pa.table(keys, names=[str(i) for i in range(len(keys))]))


def tail_table(plan: OverPlan) -> RecordTable[ByKey[OverRows]]:
    """The table of the last rows of each key."""
    layout, none = Layout(TAIL, (DUE,)), OverRows.none(row_cells(plan))

    def opened(store: Store) -> ByKey[OverRows]:
        segments = SegmentStore(store, layout)
        return ByKey(segments, none, lambda columns: np.where(columns["panes"] > 0, END_OF_TIME_US, columns["due_us"]))

    return record_table(layout, none, [name for name, _ in _keys(plan)], opened)


def past_table(plan: OverPlan) -> RecordTable[ByKey[PastOfKeys]]:
    """The table of the past of keys."""
    cells = past_cells(plan)
    layout, none = Layout(PAST, (DUE,)), PastOfKeys.none(cells if cells.names else pa.schema([("none", pa.int8())]))

    def opened(store: Store) -> ByKey[PastOfKeys]:
        segments = SegmentStore(store, layout)
        forget = plan.options.forget_after
        if forget is None:
            return ByKey(segments, none, lambda columns: np.full(len(columns["rows"]), END_OF_TIME_US))
        return ByKey(segments, none, lambda columns: columns["last_us"] + forget.us)

    return record_table(layout, none, [name for name, _ in _keys(plan)], opened)


def codes_of(records: list[Any]) -> list[Ints]:
    """Number the keys of several tables of records: equal keys have equal numbers, from 0 in order of first appearance."""
    sizes = [len(one) for one in records]
    columns = [pa.concat_arrays(list(parts)) for parts in zip(*(one.keys for one in records), strict=True)]
    of = factorize_rows(columns, sum(sizes)).of
    return np.split(of, np.cumsum(sizes)[:-1])
