"""The stored ids of a shard, in segments by expiry; and the order of equal rows in a bundle.

A segment ``s<number>`` is paired with an entry ``h<number>``: the hashes of its ids only, in their order, 8 bytes each. A step
reads all hashes, but whole ids only of segments that contain the hash of a new id.

columns (one entry per id):
    until_us    int64, microseconds: the watermark at which it expires
cells: the columns of the id as ``id.<number>``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, ClassVar

import attrs
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beamish.contract.stored import KeyedTable, Layout, Store
from beamish.errors import StateError
from beamish.instants import END_OF_TIME_US
from beamish.kernels.buffers import Flags, Ints, cast_table, plain
from beamish.kernels.codes import factorize_rows, hash_rows, normalise
from beamish.kernels.order import Key, is_orderable, run_starts, sort_keys, sort_order
from beamish.tables.records import Records, SegmentedRecords, record_table
from beamish.tables.segments import SegmentStore
from beamish.tables.timed_records import SpanPolicy, Spans


def first_come(at: Ints, by: Sequence[Key], rows: pa.Table, read: Collection[str]) -> Ints:
    """Order rows by keys, then by the columns that something reads, by name, then by the others: positions in ``at``.

    Args:
        at: int64, the rows to order.
        by: sort keys of all ``rows``, such as the event time; most significant first.
        rows: the columns; those of types without an order are skipped. They only break ties.
        read: the names of the columns that affect the output.
    """
    own = [key[at] for key in by]
    order = sort_order(own)
    new = run_starts([key[order] for key in own])
    tied = np.flatnonzero(~new | np.append(~new[1:], False))
    if len(tied):
        of = order[tied]
        order = order.copy()
        order[tied] = of[sort_order([*(key[of] for key in own), *_keys(rows.take(pa.array(at[of])), read)])]
    return order


def _keys(rows: pa.Table, read: Collection[str]) -> list[Key]:
    names = sorted(name for name in rows.schema.names if is_orderable(rows.schema.field(name).type))
    names.sort(key=lambda name: name not in read)
    return [key for name in names for key in sort_keys(plain(rows[name].combine_chunks()))]


NAME = "ids"
"""Prefix of the id entries in a shard's store."""
LAYOUT = Layout(NAME, ("until_us",))
DEFAULT_POLICY = SpanPolicy(rows=65_536)

Hashes = NDArray[np.uint64]


@attrs.frozen(eq=False)
class Ids(Records):
    """Stored ids."""

    COLUMNS: ClassVar[dict[str, tuple[str, Any]]] = {"until_us": ("int64", 0)}


class _HashedSegments(SegmentStore):
    """Segments of ids, each with an entry of their hashes."""

    def hashes(self) -> Iterator[tuple[int, Hashes]]:
        """The hashes of the ids of each segment, with its number."""
        for number in self.index["segment"].tolist():
            stored = self.store.get(self._hashes_of(number))
            if stored is None or len(stored) % 8:
                raise StateError(
                    f"the state store's entry {self._hashes_of(number)!r} is not what was written: restore the checkpoint from a "
                    "copy, or start from a new one"
                )
            yield number, np.frombuffer(stored, "<u8")

    def put(self, number: int, rows: pa.Table, companions: pa.Table | None) -> None:
        super().put(number, rows, companions)
        ids = [rows[name] for name in rows.schema.names if name.startswith("id.")]
        self.store.put(self._hashes_of(number), hash_rows(ids, rows.num_rows).astype("<u8").tobytes())

    def remove(self, gone: Flags) -> None:
        for number in self.numbers(gone):
            self.store.remove(self._hashes_of(number))
        super().remove(gone)

    def _hashes_of(self, number: int) -> str:
        return self.layout.entry(number, "h")


def ids_table(schema: pa.Schema, key: Iterable[int], opened: Callable[[Store], SegmentedRecords[Any]]) -> KeyedTable:
    """The declaration of a shard's ids.

    Args:
        schema: the columns of an id.
        key: the positions of the partitioning columns.
        opened: opens the ids in a store.
    """
    return record_table(LAYOUT, Ids.none(_cells_of(schema)), (f"id.{place}" for place in key), opened)


def ids_of(rows: pa.Table, names: Sequence[str]) -> list[pa.Array]:
    """Normalised id columns."""
    return [normalise(rows[name].combine_chunks()) for name in names]


def _cells_of(schema: pa.Schema) -> pa.Schema:
    return pa.schema([(f"id.{number}", type_) for number, type_ in enumerate(schema.types)])


class RememberedIds(SegmentedRecords[Ids]):
    """The ids of a shard.

    Args:
        schema: the columns of an id; stored types may be narrower.
        within_us: how long after its event time an id expires, microseconds.
        store: the shard's.
        policy: how they are partitioned into segments.

    Raises:
        StateError: the index cannot be read.
    """

    def __init__(self, schema: pa.Schema, within_us: int, store: Store, policy: SpanPolicy = DEFAULT_POLICY) -> None:
        self._schema = _cells_of(schema)
        self._within_us = within_us
        self._hashed = _HashedSegments(store, LAYOUT)
        super().__init__(self._hashed, Ids.none(self._schema))
        self._spans = Spans.of(policy, self.segments.about.get("spans"))

    @property
    def next_due_us(self) -> int | None:
        """The least watermark at which a segment expires, or None."""
        return min(self.segments.index["until_us"].tolist(), default=None)

    def too_old(self, time_us: Ints, watermark_us: int) -> Flags:
        """Which rows are so late that their ids may have expired: bool, one per row; times in microseconds."""
        flags: Flags = self._until_us(time_us) <= watermark_us
        return flags

    def _until_us(self, time_us: Ints) -> Ints:
        return np.minimum(time_us, END_OF_TIME_US - self._within_us) + self._within_us

    def take(self, ids: Sequence[pa.Array], time_us: Ints, watermark_us: int) -> Flags:
        """Which rows are duplicates; the ids of the others are stored. At most once in a step.

        Args:
            ids: the normalised ids of rows, in the order in which rows take precedence.
            time_us: int64, their event times, microseconds; none too old.
            watermark_us: the watermark.

        Returns:
            bool, one per row.
        """
        count = len(time_us)
        known = self._known(_Came(hash_rows(ids, count)), watermark_us)
        both = [
            pa.chunked_array([*before.chunks, now], now.type) for before, now in zip(known.columns, ids, strict=True)
        ]
        groups = factorize_rows(both, known.num_rows + count)
        again: Flags = groups.first()[groups.of][known.num_rows :] != np.arange(known.num_rows, known.num_rows + count)
        new = np.flatnonzero(~again)
        cells = pa.table([column.take(pa.array(new)) for column in ids], schema=self._schema)
        self.add(Ids.new(cells, until_us=self._until_us(time_us[new])))
        return again

    def _known(self, came: _Came, watermark_us: int) -> pa.Table:
        """The stored ids with one of these hashes."""
        found = [self._schema.empty_table()]
        for number, hashes in self._hashed.hashes():
            at = came.among(hashes)
            if len(at):
                rows = self.segments.read(number).take(pa.array(at))
                rows = rows.filter(pa.array(rows["until_us"].to_numpy() > watermark_us))
                found.append(cast_table(rows.select(self._schema.names), self._schema))
        return pa.concat_tables(found)

    def save(self, watermark_us: int) -> None:
        """Drop expired ids, and write the changes of the step."""
        self.drop(self.segments.index["until_us"] <= watermark_us)
        new = self.is_new
        self._spans.adapt(self.records["until_us"][new], self.segments.index["segment"], self.segments.index["rows"])
        self.segments.about = {**self.segments.about, "spans": self._spans.about}
        self.write_back(
            lambda ids: self._spans.number(ids["until_us"]),
            lambda ids: ids["until_us"] > watermark_us,
            lambda ids, runs: {"until_us": runs.greatest(ids["until_us"])},
        )


class _Came:
    """The new hashes of a step, to be looked up."""

    def __init__(self, hashes: Hashes) -> None:
        self._sorted = np.sort(hashes)
        bits = max(len(hashes).bit_length() + 4, 12)
        self._mask = np.uint64((1 << bits) - 1)
        self._marked = np.zeros(1 << bits, dtype=bool)
        self._marked[hashes & self._mask] = True

    def among(self, hashes: Hashes) -> Ints:
        """The positions of these."""
        likely = np.flatnonzero(self._marked[hashes & self._mask])
        if not len(self._sorted):
            return likely
        place = np.minimum(np.searchsorted(self._sorted, hashes[likely]), len(self._sorted) - 1)
        at: Ints = likely[self._sorted[place] == hashes[likely]]
        return at
