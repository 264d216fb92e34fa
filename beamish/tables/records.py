"""Records: cells of users' types as an Arrow table, with columns of numbers and flags, in segments, and one per key.

Records by key, in segments by a hash of the key: a step reads the segments of the keys that it touches. A record's index is its position in
memory, and is stable for the step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Generic, Self, TypeVar

import attrs
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beamish.contract.stored import KeyedTable, Layout, Segments, Store
from beamish.kernels.buffers import NO_VALUE, Flags, Ints, cast_table, pick
from beamish.kernels.codes import factorize_rows, hash_rows
from beamish.tables.segments import Rows, Runs, Segmented, SegmentStore
from beamish.watermarks import NO_WATERMARK_US


@attrs.frozen(eq=False)
class Records:
    """n records. Subclasses declare their columns.

    Attributes:
        cells: n rows.
        columns: n entries each.
    """

    COLUMNS: ClassVar[dict[str, tuple[str, Any]]] = {}
    """The dtype and default of each column."""

    cells: pa.Table
    columns: dict[str, NDArray[Any]]

    @classmethod
    def none(cls, schema: pa.Schema) -> Self:
        """An empty table of records."""
        return cls(schema.empty_table(), {name: np.empty(0, dtype) for name, (dtype, _) in cls.COLUMNS.items()})

    @classmethod
    def new(cls, cells: pa.Table, **columns: NDArray[Any]) -> Self:
        """Records; omitted columns have their default value."""
        count = cells.num_rows
        usual = {name: np.full(count, value, dtype) for name, (dtype, value) in cls.COLUMNS.items()}
        return cls(cells, usual | columns)

    @classmethod
    def of_stored(cls, stored: pa.Table) -> Self:
        """Decode ``stored``."""
        columns = {name: np.array(stored[name].to_numpy(), dtype=dtype) for name, (dtype, _) in cls.COLUMNS.items()}
        return cls(stored.drop_columns(list(cls.COLUMNS)), columns)

    def stored(self) -> pa.Table:
        """Encode as one table."""
        names = [*self.cells.schema.names, *self.columns]
        return pa.table([*self.cells.columns, *map(pa.array, self.columns.values())], names=names)

    @classmethod
    def concat(cls, parts: Sequence[Self]) -> Self:
        """Concatenate."""
        parts = [part for part in parts if len(part)] or parts[:1]
        if len(parts) == 1:
            return parts[0]
        cells = pa.concat_tables([part.cells for part in parts]).combine_chunks()
        return cls(cells, {name: np.concatenate([part.columns[name] for part in parts]) for name in cls.COLUMNS})

    def __len__(self) -> int:
        return int(self.cells.num_rows)

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self.columns[name]

    def cell(self, name: str) -> pa.Array:
        """A column of cells."""
        return self.cells[name].combine_chunks()

    def take(self, at: Ints | Flags) -> Self:
        """A subset, by indices or flags."""
        at = np.flatnonzero(at) if at.dtype == bool else at
        if len(at) == len(self) and bool((at == np.arange(len(self))).all()):
            return self
        return attrs.evolve(
            self,
            cells=self.cells.take(pa.array(at)),
            columns={name: column[at] for name, column in self.columns.items()},
        )

    def with_columns(self, **columns: NDArray[Any]) -> Self:
        """A copy with replaced columns."""
        return attrs.evolve(self, columns=self.columns | columns)

    def named(self, prefix: str) -> list[pa.Array]:
        """The cell columns with a prefix."""
        return [self.cells[name].combine_chunks() for name in self.cells.schema.names if name.startswith(prefix)]

    @property
    def keys(self) -> list[pa.Array]:
        """The key columns."""
        return self.named("key.")

    def keyed(self, names: Sequence[str]) -> pa.Table:
        """The key columns under these names; without names a table of as many rows and no columns."""
        return pa.table(self.keys[: len(names)], names=list(names)) if names else self.cells.select([])


R = TypeVar("R", bound=Records)


@attrs.frozen(eq=False)
class Selection(Generic[R]):
    """Some records, in any order: most columns of many records are never read, so each is gathered when it is.

    Attributes:
        records: all records.
        at: int64, the index of each selected one.
    """

    records: R
    at: Ints
    _gathered: dict[str, NDArray[Any]] = attrs.field(factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.at)

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self._gathered:
            self._gathered[name] = self.records[name][self.at]
        return self._gathered[name]

    def cell(self, name: str) -> pa.Array:
        """A column of cells."""
        return self.records.cell(name).take(pa.array(self.at))

    def pick(self, name: str, at: Ints) -> pa.Array:
        """A column of cells at indices; -1: null."""
        return pick(self.records.cell(name), np.where(at >= 0, self.at[at], -1))

    def select(self, at: Ints | Flags) -> Selection[R]:
        """A subset, by indices or flags."""
        return Selection(self.records, self.at[at])

    def take(self, at: Ints | Flags) -> R:
        """The records of a subset, by indices or flags."""
        return self.records.take(self.at[at])


Columns = Mapping[str, NDArray[Any]]


def read_records(none: R, stored: pa.Table) -> R:
    """Stored records, with cells widened to the types of ``none``."""
    records, schema = none.of_stored(stored), none.cells.schema
    return records if records.cells.schema == schema else attrs.evolve(records, cells=cast_table(records.cells, schema))


class RecordRows(Rows, Generic[R]):
    """Records in memory.

    Args:
        none: an empty table of these records; stored cells may have narrower types (kernels/type_names.py).
    """

    def __init__(self, none: R) -> None:
        self._none, self._parts = none, [none]
        self._columns = {"segment": np.empty(0, np.int64), "touched": np.empty(0, bool), "gone": np.empty(0, bool)}

    def __len__(self) -> int:
        return len(self._columns["segment"])

    def __getitem__(self, column: str, /) -> NDArray[Any]:
        return self._columns[column]

    @property
    def records(self) -> R:
        """The records in memory, in the order in which they were added."""
        if len(self._parts) > 1:
            self._parts = [self._none.concat(self._parts)]
        return self._parts[0]

    def add(self, records: R, segment: int | Ints = NO_VALUE, *, touched: bool = True) -> Ints:
        """Append records; returns their indices."""
        first, count = len(self), len(records)
        if count:
            self._parts.append(records)
            for name, value in (("segment", segment), ("touched", touched), ("gone", False)):
                column = self._columns[name]
                self._columns[name] = np.append(column, np.broadcast_to(value, count).astype(column.dtype))
        return np.arange(first, first + count)

    def read(self, stored: pa.Table, segment: Ints) -> Ints:
        return self.add(read_records(self._none, stored), segment, touched=False)

    def read_companions(self, stored: pa.Table, at: Ints) -> None:
        raise NotImplementedError  # records have no companions

    def stored(self, at: Ints) -> pa.Table:
        return self.records.take(at).stored()

    def companions(self, at: Ints) -> None:
        return None


class SegmentedRecords(Segmented[RecordRows[R]], Generic[R]):
    """A segmented table of records; after each step its memory is empty.

    Args:
        segments: the stored segments.
        none: an empty table of these records; stored cells may have narrower types (kernels/type_names.py).
    """

    def __init__(self, segments: SegmentStore, none: R) -> None:
        super().__init__(segments, RecordRows(none))
        self._none = none

    @property
    def records(self) -> R:
        """The records in memory, in the order in which they were added."""
        return self.rows.records

    @property
    def alive(self) -> Flags:
        """Whether each record is not removed."""
        alive: Flags = ~self.rows["gone"]
        return alive

    @property
    def is_new(self) -> Flags:
        """Whether each record was added in this step."""
        new: Flags = self.rows["segment"] == NO_VALUE
        return new

    def stored(self) -> R:
        """All records."""
        self.load_all()
        return self.records

    def add(self, records: R) -> None:
        """Add records."""
        self.rows.add(records)

    def remove(self, at: Ints) -> None:
        """Remove records, by their indices in memory."""
        self.rows["gone"][at] = self.rows["touched"][at] = True

    def put(self, records: R) -> None:
        """Add and write records of other shards, whose keys this shard does not have."""
        self.add(records)
        self.save(NO_WATERMARK_US)

    def save(self, watermark_us: int) -> None:
        """Write the changes of the step; subclasses drop what has expired at the watermark."""
        raise NotImplementedError

    def touch(self, at: Ints) -> None:
        """Mark records as changed."""
        self.rows["touched"][at] = True

    def write_back(
        self,
        target: Callable[[R], Ints],
        kept: Callable[[R], Flags],
        entries: Callable[[Columns, Runs], Mapping[str, Ints]],
    ) -> None:
        """Write the changed segments and the index.

        Args:
            target: returns the segment that each record belongs to.
            kept: returns whether each record is kept when it is written.
            entries: returns the additional index columns, from the columns of records ordered by segment.
        """
        self.write(
            lambda: target(self.records),
            lambda at, runs: entries({name: column[at] for name, column in self.records.columns.items()}, runs),
            lambda: kept(self.records),
        )
        self.segments.save()
        self.rows, self.read = RecordRows(self._none), set()


S = TypeVar("S", bound="SegmentedRecords[Any]")


@attrs.frozen(eq=False)
class RecordTable(KeyedTable, Generic[S]):
    """A table of records; ``open`` opens it in a store."""

    open: Callable[[Store], S]


def record_table(layout: Layout, none: Records, key: Iterable[str], opened: Callable[[Store], S]) -> RecordTable[S]:
    """Declare a table of records.

    Args:
        layout: its entries in a shard's store.
        none: an empty table of its records.
        key: names of the cells that records are partitioned by.
        opened: opens the table in a store.
    """

    def restore(store: Store, parts: Sequence[Segments]) -> None:
        stored = [part.read(number) for part in parts for number in part.index["segment"].tolist()]
        opened(store).put(none.concat([none, *(read_records(none, rows) for rows in stored)]))

    return RecordTable(layout, pa.schema([none.cells.schema.field(name) for name in key]), restore, opened)


NOWHERE = -1
"""No record."""
HASHED = 64
"""Number of hash buckets."""
DUE = "due_us"
"""The index column with the due time of a segment."""


def keyed_schema(keys: pa.Schema) -> pa.Schema:
    """Key columns as cells."""
    return pa.schema([(f"key.{field.name}", field.type) for field in keys])


def cells_of_keys(keys: pa.Schema) -> pa.Schema:
    """The cells of records of keys; without key columns a single constant one."""
    return keyed_schema(keys) if keys.names else pa.schema([("key", pa.int8())])


def keyed_layout(name: str) -> Layout:
    """The layout of records of keys under a name."""
    return Layout(name, (DUE,))


def keyed_table(
    keys: pa.Schema, name: str, kind: type[Records], opened: Callable[[Store], SegmentedRecords[Any]]
) -> KeyedTable:
    """Declare a table of records of keys.

    Args:
        keys: the key columns.
        name: before its entries in a store.
        kind: what a record is.
        opened: opens the table in a store.
    """
    return record_table(keyed_layout(name), kind.none(cells_of_keys(keys)), keyed_schema(keys).names, opened)


def parts_of_keys(keys: pa.Table) -> Ints:
    """The bucket of each key (normalised), by the lower bits of its hash; the upper ones determine its shard."""
    hashes = hash_rows(keys.columns, keys.num_rows)
    return (hashes % np.uint64(HASHED)).astype(np.int64)


class KeyedRecords(SegmentedRecords[R], Generic[R]):
    """The loaded records of a shard.

    Args:
        keys: the key columns; empty: a single record.
        kind: the class of records.
        store: the shard's.
        name: prefix of their entries.

    Raises:
        StateError: the index cannot be read.
    """

    def __init__(self, keys: pa.Schema, kind: type[R], store: Store, name: str) -> None:
        self._by_key, self._cells_schema = bool(keys.names), cells_of_keys(keys)
        super().__init__(SegmentStore(store, keyed_layout(name)), kind.none(self._cells_schema))

    @property
    def next_due(self) -> int | None:
        """The least of the entries ``due``, or None."""
        return min(self.segments.index[DUE].tolist(), default=None)

    def load_due(self, at: int) -> None:
        """Load the segments with due records."""
        self.load_where(self.segments.index[DUE] <= at)

    def find(self, keys: pa.Table, *, new: bool = False) -> Ints:
        """The record of each key.

        Args:
            keys: key columns, normalised, n rows.
            new: whether to create missing ones.

        Returns:
            int64[n], indices of records; NOWHERE: no record.
        """
        cells = self._cells(keys)
        by_key = factorize_rows(cells.columns, cells.num_rows)
        one = cells.take(pa.array(by_key.first()))
        self.load(np.unique(parts_of_keys(one)).tolist())
        known = np.flatnonzero(self.alive)
        have = self.records.cells.take(pa.array(known))
        both = [
            pa.chunked_array([*a.chunks, *b.chunks], a.type) for a, b in zip(have.columns, one.columns, strict=True)
        ]
        code = factorize_rows(both, len(known) + one.num_rows).of[len(known) :]
        at = np.full(one.num_rows, NOWHERE)
        there = code < len(known)
        at[there] = known[code[there]]
        if new and not there.all():
            first = len(self.alive)
            at[~there] = np.arange(first, first + int((~there).sum()))
            self.add(self._none.new(one.take(pa.array(np.flatnonzero(~there)))))
        return at[by_key.of]

    def _cells(self, keys: pa.Table) -> pa.Table:
        if self._by_key:
            return pa.table(keys.columns, schema=self._cells_schema)
        return pa.table([pa.array(np.zeros(keys.num_rows, np.int8))], schema=self._cells_schema)

    def keys(self, at: Ints) -> pa.Table:
        """The keys of records."""
        cells = self.records.cells.take(pa.array(at))
        return (
            cells.rename_columns([name.removeprefix("key.") for name in cells.schema.names]) if self._by_key else cells
        )

    def parts(self, at: Ints) -> Ints:
        """The buckets of the keys of records."""
        return parts_of_keys(self.records.cells.take(pa.array(at)))

    def save_due(self, kept: Callable[[R], Flags], due_us: Callable[[Columns], Ints]) -> None:
        """Write the changes of the step.

        Args:
            kept: selects the records to keep among those written.
            due_us: computes the due times of records from their columns.
        """
        self.write_back(
            lambda records: parts_of_keys(records.cells), kept, lambda columns, runs: {DUE: runs.least(due_us(columns))}
        )
