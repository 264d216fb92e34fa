"""Keys: which shard a row belongs to, by the hash of its key, and pairs of key and window as groups of rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beamish.contract.relation import Relation
from beamish.kernels.buffers import NO_ENTRY, Flags, Ints, from_bytes, to_bytes
from beamish.kernels.codes import factorize_rows, factorize_tuples, factorize_values, hash_rows
from beamish.kernels.column_names import EVENT_TIME
from beamish.kernels.groups import Groups


@attrs.frozen
class KeyedWindows:
    """Windows of keys, as columns."""

    key: Ints
    start_us: Ints
    end_us: Ints

    def __len__(self) -> int:
        return len(self.key)

    def __add__(self, other: KeyedWindows) -> KeyedWindows:
        """Concatenate."""
        return KeyedWindows(
            np.concatenate([self.key, other.key]),
            np.concatenate([self.start_us, other.start_us]),
            np.concatenate([self.end_us, other.end_us]),
        )

    def take(self, at: NDArray[Any]) -> KeyedWindows:
        """A subset: indices or flags."""
        return KeyedWindows(self.key[at], self.start_us[at], self.end_us[at])

    def groups(self) -> Groups:
        """Number equal windows from 0, in order of first appearance."""
        key = Groups(self.key, int(self.key.max(initial=-1)) + 1)
        return factorize_tuples([key, factorize_values(self.start_us), factorize_values(self.end_us)], len(self))

    def find_in(self, known: KeyedWindows) -> Ints:
        """The index of the equal known window for each, or NO_ENTRY; both are distinct."""
        code = (known + self).groups().of[len(known) :]
        return np.where(code < len(known), code, NO_ENTRY)


def keyed_windows(
    keys: Sequence[pa.Array | pa.ChunkedArray], start_us: Ints, end_us: Ints, windowless: Flags
) -> KeyedWindows:
    """Windows of keys; a row without a window has a unique marker window.

    Args:
        keys: key columns, normalised, n rows.
        start_us, end_us: int64[n], microseconds since the epoch.
        windowless: bool[n], whether a row has no window.
    """
    code = factorize_rows(keys, len(windowless)).of
    return KeyedWindows(code, np.where(windowless, -1, start_us), np.where(windowless, -1, end_us))


def any_null(columns: Iterable[pa.Array | pa.ChunkedArray], rows: int) -> Flags:
    """Whether a key has a null in one of its columns: bool, one per row."""
    found = np.zeros(rows, dtype=bool)
    for column in columns:
        if column.null_count:
            found |= column.is_null().to_numpy(zero_copy_only=False)
    return found


_INPUT = b"input"


def to_shards(
    rows: pa.Table, keys: Sequence[pa.Array], takes: Relation, number: int, shards: int
) -> Iterator[tuple[int, bytes]]:
    """Rows of an input as one payload per non-empty shard, by their keys; the payload has the number of the input."""
    by_key = factorize_rows(keys, rows.num_rows)
    shard = shards_of_keys(keys, by_key, shards, takes.shards_by)[by_key.of]
    rows = rows.replace_schema_metadata({_INPUT: str(number)})
    for one in np.unique(shard).tolist():
        yield one, to_bytes(rows.filter(pa.array(shard == one)))


def from_shards(payloads: Sequence[bytes]) -> dict[int, pa.Table]:
    """The payloads of a shard as one table per input, by its number."""
    tables: dict[int, list[pa.Table]] = {}
    for payload in payloads:
        table = from_bytes(payload)
        tables.setdefault(int(table.schema.metadata[_INPUT]), []).append(table)
    return {number: pa.concat_tables(parts).combine_chunks() for number, parts in tables.items()}


def times_of(relation: Relation, rows: pa.Table) -> pa.Array:
    """The times of rows, int64 microseconds: event times of a source, timestamps of panes."""
    if relation.is_panes:
        return rows["timestamp"].combine_chunks().cast(pa.int64())
    return rows[EVENT_TIME].combine_chunks()


def shard_of(key: pa.Table, shards: int) -> int:
    """The shard of a key, one row of its columns."""
    return int(shards_of_keys([column.combine_chunks() for column in key.columns], Groups.each(1), shards)[0])


def shards_of_keys(
    keys: Sequence[pa.Array], by_key: Groups, shards: int, by: Sequence[int] | None = None
) -> NDArray[np.int32]:
    """The shard of each key, by the upper bits of its hash; the lower bits number segments within a shard.

    Args:
        keys: the key columns of rows, normalised.
        by_key: of the rows, by equal keys.
        shards: number of shards.
        by: the positions of the columns that decide it; None: all.
    """
    first = pa.array(by_key.first())
    hashed = keys if by is None else [keys[at] for at in by]
    hashes = hash_rows([column.take(first) for column in hashed], by_key.count)
    return ((hashes >> np.uint64(40)) % np.uint64(shards)).astype(np.int32)
