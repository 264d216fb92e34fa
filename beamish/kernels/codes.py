"""Keys as numbers: equal rows of key columns form one group.

Equality is that of Spark's groupBy: null equals null, -0.0 equals 0.0, all NaN are one key.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from beamish.kernels.buffers import list_column, list_lengths, plain, valid
from beamish.kernels.groups import Groups
from beamish.kernels.hashing import hash_values


def normalise(column: pa.Array) -> pa.Array:
    """A column with -0.0 as 0.0 and one NaN, also in floats inside structs and lists."""
    if pa.types.is_floating(column.type):
        positive = pc.add(column, pa.scalar(0.0, column.type))
        return pc.if_else(pc.is_nan(positive), pa.scalar(float("nan"), column.type), positive)
    if pa.types.is_struct(column.type) and column.type.num_fields:
        children = [normalise(child) for child in column.flatten()]
        return pa.StructArray.from_arrays(children, fields=list(column.type), mask=column.is_null())
    if pa.types.is_list(column.type):
        return list_column(normalise(column.flatten()), list_lengths(column), valid(column), column.type)
    return column


def factorize_rows(columns: Sequence[pa.Array | pa.ChunkedArray], rows: int) -> Groups:
    """Groups of equal rows, numbered in order of first appearance.

    Args:
        columns: normalised key columns, each with ``rows`` entries; empty: all rows are equal.
        rows: the number of rows.
    """
    return factorize_tuples(map(_factorize, columns), rows)


def factorize_tuples(parts: Iterable[Groups], rows: int) -> Groups:
    """Groups of rows that are in the same group of each part.

    They are numbered in order of first appearance; a single part is returned as it is.
    """
    result = Groups(np.zeros(rows, dtype=np.int64), min(rows, 1))
    for number, part in enumerate(parts):
        result = part if number == 0 else factorize_values(result.of * part.count + part.of)
    return result


def factorize_values(values: NDArray[np.int64]) -> Groups:
    """Groups of equal integers, numbered in order of first appearance."""
    encoded = pa.array(values).dictionary_encode()
    return Groups(encoded.indices.to_numpy().astype(np.int64), len(encoded.dictionary))


def _factorize(column: pa.Array | pa.ChunkedArray) -> Groups:
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_struct(column.type):
        valid = np.asarray(column.is_valid().to_numpy(zero_copy_only=False), dtype=np.int64)
        return factorize_tuples([factorize_values(valid), *map(_factorize, column.flatten())], len(column))
    if pa.types.is_null(column.type):
        return factorize_tuples([], len(column))
    encoded = column.dictionary_encode(null_encoding="encode")
    return Groups(encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), len(encoded.dictionary))


def hash_rows(columns: Sequence[pa.Array | pa.ChunkedArray], rows: int) -> NDArray[np.uint64]:
    """Hash each row of normalised key columns: the same in every process for equal rows."""
    total = np.zeros(rows, dtype=np.uint64)
    for number, column in enumerate(columns):
        whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        nested = pa.types.is_struct(whole.type)
        own = hash_rows(whole.flatten(), rows) if nested else hash_values(plain(whole))
        own[np.asarray(whole.is_null().to_numpy(zero_copy_only=False), dtype=bool)] = 0
        total = total * np.uint64(0x9E3779B97F4A7C15) + own + np.uint64(number)
    return total ^ (total >> np.uint64(32))
