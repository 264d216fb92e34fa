"""Keys as numbers: a 64-bit hash that is the same in every process, and groups of equal rows.

Equality is that of Spark's groupBy: null equals null, -0.0 equals 0.0, all NaN are one key.

A 64-bit hash of the values of a column: the same in every process, on every machine, for equal values. Numbers are 64-bit words; strings
are words of 8 bytes and arrays the hashes of their items, each mixed with its position and added up; structs are mixed field by field. All
nulls are equal, and so are -0.0 and 0.0, and all NaN. It is not collision-resistant against chosen values.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from beamish.kernels.buffers import is_whole, limbs, list_column, list_lengths, numbers, offsets, plain, starts, valid
from beamish.kernels.groups import Groups

Words = NDArray[np.uint64]

_STEP = np.uint64(0x9E3779B97F4A7C15)
_NULL = np.uint64(0x6E756C6C)


def hash_values(column: pa.Array) -> Words:
    """Hash each value of a column of a plain type (not maps): uint64, one per row; nulls have a hash of their own."""
    if pa.types.is_null(column.type):
        return np.full(len(column), _NULL)
    hashes, present = _hash_present(column), valid(column)
    return hashes if present is None else np.where(present, hashes, _NULL)


def _hash_present(column: pa.Array) -> Words:
    kind, type_ = pa.types, column.type
    if kind.is_floating(type_):
        values = numbers(column).astype(np.float64) + 0.0  # -0.0 becomes 0.0
        values[np.isnan(values)] = np.nan
        return _mix(values.view(np.uint64))
    if is_whole(type_):
        return _mix(numbers(column).astype(np.int64).view(np.uint64))
    if kind.is_decimal128(type_):
        high, low = limbs(column)
        return _mix(low ^ _mix(high.view(np.uint64)))
    if kind.is_struct(type_):
        fields = np.zeros(len(column), np.uint64)
        for child in column.flatten():
            fields = _mix(fields ^ hash_values(plain(child)))
        return fields
    if kind.is_list(type_):
        return _hash_runs(hash_values(plain(column.flatten())), list_lengths(column))
    if kind.is_string(type_) or kind.is_binary(type_):
        return _hash_bytes(column)
    raise TypeError(f"values of type {type_} cannot be hashed")


def _mix(words: Words) -> Words:
    # The finalizer of splitmix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
    words = words + _STEP
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Words = words ^ (words >> np.uint64(31))
    return mixed


def _hash_runs(words: Words, lengths: NDArray[np.int64]) -> Words:
    # One hash for each run of words: each word is mixed with its position in the run, and all are added up.
    total = np.zeros(len(lengths), np.uint64)
    some = lengths > 0
    if some.any():
        first = starts(lengths)
        place = np.arange(len(words)) - np.repeat(first, lengths)
        total[some] = np.add.reduceat(_mix(words ^ _mix(place.astype(np.uint64))), first[some])
    return _mix(total ^ lengths.astype(np.uint64))


def _hash_bytes(column: pa.Array) -> Words:
    ends = offsets(column).astype(np.int64)
    begin, lengths = ends[:-1], np.diff(ends)
    counts = (lengths + 7) // 8
    if not counts.any():
        return _mix(_hash_runs(np.zeros(0, np.uint64), counts) ^ lengths.astype(np.uint64))
    row = np.repeat(np.arange(len(counts)), counts)
    before = 8 * (np.arange(len(row)) - np.repeat(starts(counts), counts))
    words = _words_at(column.buffers()[2], begin[row] + before)
    spare = np.maximum(8 - (lengths[row] - before), 0)
    words = words & (~np.uint64(0) >> (8 * spare).astype(np.uint64))
    return _mix(_hash_runs(words, counts) ^ lengths.astype(np.uint64))


def _words_at(data: pa.Buffer, at: NDArray[np.int64]) -> Words:
    """Read 8 bytes at each position of a buffer, as little-endian words; zeros beyond its end."""
    octets = np.zeros(int(at[-1]) + 8 - int(at[0]), np.uint8)
    held = np.frombuffer(data, np.uint8)[int(at[0]) : int(at[-1]) + 8]
    octets[: len(held)] = held
    every = np.ndarray((len(octets) - 7,), "<u8", octets, strides=(1,))
    words: Words = every[at - at[0]].astype(np.uint64)
    return words


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
