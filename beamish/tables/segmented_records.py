"""Tables of records in segments (segmented.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import attrs
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beamish.contract.kept import KeyedTable, Layout, Segments
from beamish.contract.store import Store
from beamish.kernels.arrays import NO_VALUE, Flags, Ints
from beamish.kernels.buffers import cast_table
from beamish.tables.records import Records
from beamish.tables.segment_store import SegmentStore
from beamish.tables.segmented import Rows, Runs, Segmented
from beamish.watermarks import NO_WATERMARK_US

R = TypeVar("R", bound=Records)
Columns = Mapping[str, NDArray[Any]]


def read_records(none: R, stored: pa.Table) -> R:
    """Stored records, with cells widened to the types of ``none``."""
    records, schema = none.of_stored(stored), none.cells.schema
    return records if records.cells.schema == schema else attrs.evolve(records, cells=cast_table(records.cells, schema))


class RecordRows(Rows, Generic[R]):
    """Records in memory.

    Args:
        none: an empty table of these records; stored cells may have narrower types (kernels/widening.py).
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
        none: an empty table of these records; stored cells may have narrower types (kernels/widening.py).
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
