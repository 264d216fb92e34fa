"""Count windows: the reach of the row numbers of each group (docs/rules/windows.md#windows-of-rows).

Rows are numbered on arrival, or by a column. A numbered row is assigned to windows like a row with an event time
(entries.py); then the reach of its group advances, and windows that are full are evaluated. Groups are keys, or the whole
stream.

columns (one entry per group):
    reach       int64: numbered on arrival: its number of rows; by a column: the greatest number + 1, minus the delay; NONE before
                the first row
    latest_us   int64, microseconds: the latest event time of its rows; NONE: none had one
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from beamish.contract.drops import NULL_NUMBER
from beamish.contract.inputs import find_column, is_whole_number
from beamish.contract.stored import KeyedTable, Store
from beamish.durations import Duration
from beamish.errors import ColumnError
from beamish.instants import END_OF_TIME_US
from beamish.kernels.buffers import NO_ENTRY, Flags, Ints, plain, plain_type
from beamish.kernels.codes import factorize_values, normalise
from beamish.kernels.groups import Groups
from beamish.kernels.order import is_orderable, run_starts, sort_keys
from beamish.kinds.window.plan.part import Progress
from beamish.kinds.window.plan.plan import WindowPlan
from beamish.kinds.window.state.segments import counted_segments
from beamish.kinds.window.step.bundle import Bundle
from beamish.kinds.window.step.drops import drop_rows
from beamish.kinds.window.step.firing import fire_at_ends
from beamish.kinds.window.step.step import Step
from beamish.tables.records import HASHED, NOWHERE, KeyedRecords, Records, keyed_table, parts_of_keys
from beamish.tables.working_table import rows_without_columns
from beamish.triggers.trigger import WindowIndices
from beamish.windows.option import Numbering, WindowOption

NAME = "reaches"
"""Prefix of the entries of reaches in a shard's store."""
NONE = np.iinfo(np.int64).min
"""No row yet; no event time."""
_MOST_SPANS = 64
"""If a group advances by more spans of full windows, its whole part is loaded."""


def check_numbering(window: WindowOption | None, numbering: Numbering, schema: pa.Schema) -> None:
    """Check the columns that number or order rows (ColumnError: one is missing, has no order, or has no whole numbers)."""
    for name in numbering.columns:
        type_ = find_column(schema, f"window({window!r})", name).type
        if numbering.numbered_by is not None and not (is_whole_number(type_) or pa.types.is_null(type_)):
            raise ColumnError(
                f"window({window!r}): column {name!r} is {type_}; row numbers must be whole numbers: cast it to bigint"
            )
        if not is_orderable(plain_type(type_)):
            raise ColumnError(f"window({window!r}): column {name!r} is {type_}, which has no order; use another column")


class RowProgress(Progress):
    """The reaches of groups of rows.

    Args:
        numbering: how rows are numbered.
        keys: the key columns by which rows are numbered; empty: over the stream.
    """

    by_watermark = False
    why_not_preaggregated = "rows are numbered in the shard"
    working: Mapping[str, tuple[str, Any]] = {"group": ("int64", NO_ENTRY)}
    reaches: Reaches
    """The reaches of the shard."""

    def __init__(self, numbering: Numbering, keys: pa.Schema) -> None:
        self._numbering, self._keys, self.by_key = numbering, keys, bool(keys.names)

    def tables(self, plan: WindowPlan) -> Iterator[KeyedTable]:
        yield keyed_table(self._keys, NAME, Reach, self._stored)

    def open(self, plan: WindowPlan, store: Store, about: Mapping[str, Any]) -> RowProgress:
        opened = RowProgress(self._numbering, self._keys)
        opened.reaches = self._stored(store)
        return opened

    def _stored(self, store: Store) -> Reaches:
        return Reaches(self._keys, self._numbering.idle, store)

    def save(self, watermark_us: int, reached: int) -> None:
        self.reaches.save(watermark_us)

    @property
    def next_due_us(self) -> int | None:
        return self.reaches.next_due_us

    def segments(self, span: int, end: Ints, keys: pa.Table, progress: int | Ints) -> Ints:
        return counted_segments(span, end, parts_of_keys(keys), end <= progress)

    def begin_step(self, watermark_us: int) -> None:
        if watermark_us == END_OF_TIME_US:
            self.reaches.end()
            self.reaches.begin_part()

    def begin_part(self) -> None:
        self.reaches.begin_part()

    def of_windows(self, step: Step, at: WindowIndices) -> Ints:
        return self.reaches.of(self._groups(step, at))

    def before(self, step: Step, at: WindowIndices) -> Ints:
        return self.reaches.before(self._groups(step, at))

    def of_rows(self, step: Step, bundle: Bundle, rows: Ints) -> Ints:
        return self.reaches.of(bundle.group[rows])

    def of_all(self, watermark_us: int) -> int:
        return self.reaches.of_stream()

    def at_rest(self, plan: WindowPlan, keys: pa.Table, watermark_us: int) -> Ints:
        self.begin_step(watermark_us)
        if plan.keys:
            keys = pa.table([normalise(column.combine_chunks()) for column in keys.columns], schema=plan.key_schema)
        return self.reaches.of(self.reaches.find(keys))

    def _groups(self, step: Step, at: WindowIndices) -> Ints:
        group = step.table["group"]
        unknown = at[group[at] == NO_ENTRY]
        if len(unknown):
            group[unknown] = self.reaches.find(step.table.keys.take(step.table["key_at"][unknown]))
        return group[at]

    def windows_due_us(self, index: Mapping[str, Ints]) -> list[int]:
        """Windows are due by rows, or at the end of time."""
        return [END_OF_TIME_US, *index["keeps_until_us"].tolist()] if len(index["segment"]) else []

    # Arriving rows

    def place(self, step: Step, bundle: Bundle) -> Flags:
        """Number rows, as their ``place`` and ``group``."""
        step.begin_part()
        numbered_by = self._numbering.numbered_by
        if numbered_by is not None:
            brought = bundle.table[numbered_by]
            counted: Flags = brought.is_valid().to_numpy()
            drop_rows(step, bundle, ~counted, NULL_NUMBER)
            bundle.place = pc.fill_null(brought.cast(pa.int64()), 0).to_numpy()
        else:
            counted = np.ones(len(bundle.time_us), dtype=bool)
        for part in step.parts:
            counted = part.admit_keys(step, bundle, counted)
        if numbered_by is None:
            for part in step.parts:
                counted = part.admit_rows(step, bundle, counted)
        rows = np.flatnonzero(counted)
        bundle.group = np.full(len(counted), NOWHERE)
        keys = bundle.keys.take(pa.array(rows)) if bundle.keys.schema.names else rows_without_columns(len(rows))
        bundle.group[rows] = self.reaches.find(keys, new=True)
        if numbered_by is None:
            ordered = rows[_order(bundle, rows, self._numbering.order_by, by_key=self._numbering.over_stream)]
            group = bundle.group[ordered]
            runs = Groups(np.cumsum(run_starts([group])) - 1, len(group))
            bundle.place = np.zeros(len(counted), dtype=np.int64)
            bundle.place[ordered] = self.reaches.counted(group) + runs.positions()
        return counted

    def ask(self, step: Step, bundle: Bundle, came: WindowIndices) -> None:
        """Advance the reaches, then evaluate windows once."""
        self._load_passed(step, self._advance(bundle))
        fire_at_ends(step, came)

    def _advance(self, bundle: Bundle) -> Ints:
        """Advance the groups of numbered rows; returns the groups."""
        rows = np.flatnonzero(bundle.group != NOWHERE)
        groups = factorize_values(bundle.group[rows])
        at = bundle.group[rows][groups.first()]
        if self._numbering.numbered_by is None:
            reach = self.reaches.counted(at) + groups.sizes()
        else:
            reach = groups.greatest(bundle.place[rows]) + 1 - self._numbering.delay
        self.reaches.advance(at, reach, groups.greatest(bundle.time_us[rows]))
        return at

    def _load_passed(self, step: Step, groups: Ints) -> None:
        """Load the segments in which something is due after groups advanced."""
        if not len(groups):
            return
        index = step.state.index
        if not self.by_key:
            step.load(index["due_us"] <= self.reaches.of(groups).max())
            return
        part = self.reaches.parts(groups)
        wanted = [part * 2]
        late, span = step.plan.options.lateness, step.state.note.span_us
        before, now = self.reaches.before(groups), self.reaches.of(groups)
        if late and step.state.by_key is self:
            had = before != NONE
            first, last = ((before[had] - late + 1) // span), ((now[had] - late) // span)
            part = part[had]
            far = last - first >= _MOST_SPANS
            whole = np.isin(step.state.part_of_segments, part[far])
            wanted.append(index["segment"][whole])
            spans = np.where(far, 0, last - first + 1)
            at = Groups.each(len(part)).repeat(spans)
            number = first[at.of] + at.positions()
            wanted.append((number * HASHED + part[at.of]) * 2 + 1)
        step.load(np.isin(index["segment"], np.unique(np.concatenate(wanted))))

    # The watermark

    def load_due(self, step: Step) -> bool:
        """End the windows of idle keys, or all at the end of time; load those in which rows of a join expire."""
        if step.watermark_us <= step.watermark_before_us:
            return False
        everything = np.ones(len(step.state.index["segment"]), dtype=bool)
        if step.watermark_us == END_OF_TIME_US:
            step.load(everything)
            self.reaches.end()
            return True
        lets_go = step.state.index["keeps_until_us"] <= step.watermark_us
        step.load(lets_go)
        idle = self.reaches.idle(step.watermark_us)
        if len(idle):
            self._end(step, idle)
        return bool(len(idle)) or bool(lets_go.any())

    def _end(self, step: Step, idle: Ints) -> None:
        """Reset idle groups."""
        keys = self.reaches.keys(idle)
        step.load(step.state.of_keys(keys))
        step.progress(np.arange(len(step.table)))  # whose windows they are must be known before they are forgotten
        for part in step.parts:
            part.on_idle(keys)
        self.reaches.forget(idle)


def _order(bundle: Bundle, rows: Ints, columns: tuple[str, ...], *, by_key: bool) -> Ints:
    """The order in which rows are numbered, by group: positions in ``rows``."""
    by = [bundle.group]
    by += [key for name in columns for key in sort_keys(plain(bundle.table[name].combine_chunks()))]
    by.append(bundle.time_us)
    if by_key:
        by += [key for column in bundle.keys.columns for key in sort_keys(plain(column.combine_chunks()))]
    return bundle.first_come(rows, by)


@attrs.frozen(eq=False)
class Reach(Records):
    """The reach of groups."""

    COLUMNS: ClassVar[dict[str, tuple[str, Any]]] = {"reach": ("int64", NONE), "latest_us": ("int64", NONE)}


class Reaches(KeyedRecords[Reach]):
    """The groups of a shard that a step has loaded.

    Args:
        keys: the key columns by which rows are numbered; empty: over the stream.
        idle: how long a group may be without rows before it is deleted; None: never deleted.
        store: the shard's.

    Raises:
        StateError: the index cannot be read.
    """

    def __init__(self, keys: pa.Schema, idle: Duration | None, store: Store) -> None:
        self._idle_us, self._together = None if idle is None else idle.us, not keys.names
        super().__init__(keys, Reach, store, NAME)
        self._before: Ints | None = None
        self._ended = self._ended_before = False

    @property
    def next_due_us(self) -> int | None:
        """The least watermark at which a group may be idle; None: never."""
        return None if self._idle_us is None else self.next_due

    def of(self, groups: Ints) -> Ints:
        """The reach of each group; of a deleted group the end of time."""
        return self._of(self._reach, groups, ended=self._ended)

    def of_stream(self) -> int:
        """The reach of the stream; NONE if rows are numbered by key."""
        return int(self.of(self.find(rows_without_columns(1), new=True))[0]) if self._together else NONE

    def before(self, groups: Ints) -> Ints:
        """The same when this part of the step began."""
        before = self._reach if self._before is None else self._before
        return self._of(np.append(before, self._reach[len(before) :]), groups, ended=self._ended_before)

    @property
    def _reach(self) -> Ints:
        return self.records["reach"]

    def _of(self, reach: Ints, groups: Ints, *, ended: bool) -> Ints:
        if ended:
            return np.full(len(groups), END_OF_TIME_US)
        return np.where(groups == NOWHERE, END_OF_TIME_US, np.append(reach, END_OF_TIME_US)[groups])

    def begin_part(self) -> None:
        """Begin a part of the step, before which ``before`` looks."""
        self._before, self._ended_before = None, self._ended

    def end(self) -> None:
        """End all groups: the end of time is reached."""
        self._ended = True

    def counted(self, groups: Ints) -> Ints:
        """The number of rows of each group, if numbered on arrival."""
        return np.maximum(self._reach[groups], 0)

    def advance(self, groups: Ints, reach: Ints, latest_us: Ints) -> None:
        """Advance the reach of groups, which never decreases.

        Args:
            groups: int64[n], indices of groups, each once.
            reach: int64[n].
            latest_us: int64[n], the latest event time of their new rows; NONE: none had one.
        """
        self._note_before()
        records = self.records
        for name, values in (("reach", reach), ("latest_us", latest_us)):
            records[name][groups] = np.maximum(records[name][groups], values)
        self.touch(groups)

    def idle(self, watermark_us: int) -> Ints:
        """The groups that are idle at a watermark: int64, indices."""
        if self._idle_us is None:
            return np.empty(0, dtype=np.int64)
        self.load_due(watermark_us)
        latest_us = self.records["latest_us"]
        over = (latest_us != NONE) & (_until_us(latest_us, self._idle_us) <= watermark_us)
        return np.flatnonzero(self.alive & over)

    def forget(self, groups: Ints) -> None:
        """Delete groups: their windows end, and later rows are numbered from 0."""
        self._note_before()
        self._reach[groups] = END_OF_TIME_US
        self.remove(groups)

    def _note_before(self) -> None:
        if self._before is None:
            self._before = self._reach.copy()

    def save(self, watermark_us: int) -> None:
        """Write the changes of the step."""
        self.save_due(lambda groups: groups["reach"] != NONE, lambda groups: self._due_us(groups["latest_us"]))
        self._before = None

    def _due_us(self, latest_us: Ints) -> Ints:
        if self._idle_us is None:
            return np.full(len(latest_us), END_OF_TIME_US)
        return np.where(latest_us == NONE, END_OF_TIME_US, _until_us(latest_us, self._idle_us))


def _until_us(latest_us: Ints, idle_us: int) -> Ints:
    return np.minimum(latest_us, END_OF_TIME_US - idle_us) + idle_us
