"""Records in segments (segmented.py)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

import attrs
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beamish.kernels.arrays import NO_VALUE, Flags, Ints
from beamish.kernels.buffers import cast_table
from beamish.tables.records import Records
from beamish.tables.segment_store import SegmentStore
from beamish.tables.segmented import Rows, Runs, Segmented

R = TypeVar("R", bound=Records)
Columns = Mapping[str, NDArray[Any]]


class RecordRows(Rows, Generic[R]):
    """Records of one kind in memory.

    Args:
        none: no records of this kind; what is stored may have narrower types than its cells (kernels/widening.py).
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
        """All that are in memory, in the order in which they came there."""
        if len(self._parts) > 1:
            self._parts = [self._none.concat(self._parts)]
        return self._parts[0]

    def add(self, records: R, segment: int | Ints = NO_VALUE, *, touched: bool = True) -> Ints:
        """Append records; gives their indices."""
        first, count = len(self), len(records)
        if count:
            self._parts.append(records)
            for name, value in (("segment", segment), ("touched", touched), ("gone", False)):
                column = self._columns[name]
                self._columns[name] = np.append(column, np.broadcast_to(value, count).astype(column.dtype))
        return np.arange(first, first + count)

    def read(self, stored: pa.Table, segment: Ints) -> Ints:
        records, schema = self._none.of_stored(stored), self._none.cells.schema
        if records.cells.schema != schema:
            records = attrs.evolve(records, cells=cast_table(records.cells, schema))
        return self.add(records, segment, touched=False)

    def read_beside(self, stored: pa.Table, at: Ints) -> None:
        raise NotImplementedError  # nothing belongs to records

    def stored(self, at: Ints) -> pa.Table:
        return self.records.take(at).stored()

    def beside(self, at: Ints) -> None:
        return None


class SegmentedRecords(Segmented[RecordRows[R]], Generic[R]):
    """Records of one kind, from step to step: after each nothing is in memory.

    Args:
        segments: what is stored.
        none: no records of this kind; what is stored may have narrower types than its cells (kernels/widening.py).
    """

    def __init__(self, segments: SegmentStore, none: R) -> None:
        super().__init__(segments, RecordRows(none))
        self._none = none

    @property
    def records(self) -> R:
        """All that are in memory, in the order in which they came there."""
        return self.rows.records

    @property
    def alive(self) -> Flags:
        """Whether each is still there."""
        alive: Flags = ~self.rows["gone"]
        return alive

    @property
    def is_new(self) -> Flags:
        """Whether each was added in this step."""
        new: Flags = self.rows["segment"] == NO_VALUE
        return new

    def stored(self) -> R:
        """All of them."""
        self.load_all()
        return self.records

    def add(self, records: R) -> None:
        """Add records."""
        self.rows.add(records)

    def remove(self, at: Ints) -> None:
        """Remove records, by their indices in memory."""
        self.rows["gone"][at] = self.rows["touched"][at] = True

    def save(
        self,
        target: Callable[[R], Ints],
        kept: Callable[[R], Flags],
        entries: Callable[[Columns, Runs], Mapping[str, Ints]],
    ) -> None:
        """Write what the step has changed, and the index.

        Args:
            target: the segment that records belong to.
            kept: whether records are kept, of those that are written.
            entries: the further columns of the index, of records' columns in order of their segments.
        """
        self.write(
            lambda: target(self.records),
            lambda at, runs: entries({name: column[at] for name, column in self.records.columns.items()}, runs),
            lambda: kept(self.records),
        )
        self.segments.save()
        self.rows, self.read = RecordRows(self._none), set()
