"""Partitioning of rows by the hash of their key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beamish.contract.relation import Relation
from beamish.kernels.codes import factorize_rows, hash_rows
from beamish.kernels.groups import Groups
from beamish.kernels.ipc import from_bytes, to_bytes
from beamish.kernels.reserved import EVENT_TIME

_INPUT = b"input"


def to_shards(rows: pa.Table, keys: Sequence[pa.Array], number: int, shards: int) -> Iterator[tuple[int, bytes]]:
    """Rows as one payload per non-empty shard, by their keys; the payload has the number of their input."""
    by_key = factorize_rows(keys, rows.num_rows)
    shard = shards_of_keys(keys, by_key, shards)[by_key.of]
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


def shards_of_keys(keys: Sequence[pa.Array], by_key: Groups, shards: int) -> NDArray[np.int32]:
    """The shard of each key, by the upper bits of its hash; the lower bits number segments within a shard.

    Args:
        keys: the key columns of rows, normalised.
        by_key: of the rows, by equal keys.
        shards: number of shards.
    """
    first = pa.array(by_key.first())
    hashes = hash_rows([column.take(first) for column in keys], by_key.count)
    return ((hashes >> np.uint64(40)) % np.uint64(shards)).astype(np.int32)
