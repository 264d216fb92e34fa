"""Spark's sort order of values, as integers that compare alike; columns of any type as columns that have an order.

A column becomes one or more int64 arrays, its *sort keys*, most significant first: two rows compare as their keys
do, and are equal in Spark's sense (nulls alike, -0.0 = 0.0, NaN = NaN) if and only if all their keys are. Nulls come first, NaN
last, strings are compared by bytes, structs field by field, arrays item by item and then by length. ``~key`` reverses a key. Keys
of two columns are not comparable with each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from beamish.kernels.buffers import Ints, is_whole, limbs, list_column, list_lengths, numbers, plain, starts, valid

Key = NDArray[np.int64]
Keys = list[Key]

_GREATEST = np.iinfo(np.int64).max


def is_orderable(type_: pa.DataType) -> bool:
    """Whether Spark orders values of this type: all but maps and types unknown to Spark."""
    kind = pa.types
    if kind.is_struct(type_):
        return all(is_orderable(field.type) for field in type_)
    if kind.is_list(type_):
        return is_orderable(type_.value_type)
    return bool(
        is_whole(type_)
        or kind.is_floating(type_)
        or kind.is_string(type_)
        or kind.is_binary(type_)
        or kind.is_decimal128(type_)
        or kind.is_null(type_)
    )


def sort_keys(column: pa.Array) -> Keys:
    """The sort keys of a column of a plain type that ``is_orderable``."""
    if pa.types.is_null(column.type):
        return [np.zeros(len(column), np.int64)]
    keys, present = _value_keys(column), valid(column)
    if present is None:
        return keys
    return [present.astype(np.int64), *(np.where(present, key, 0) for key in keys)]


def _value_keys(column: pa.Array) -> Keys:
    kind, type_ = pa.types, column.type
    if kind.is_floating(type_):
        return [_float_key(numbers(column).astype(np.float64))]
    if kind.is_uint64(type_):
        return [_unsigned_key(numbers(column))]
    if is_whole(type_):
        return [numbers(column).astype(np.int64, copy=False)]
    if kind.is_decimal128(type_):
        high, low = limbs(column)
        return [low.astype(np.uint64).view(np.int64)] if type_.precision <= 18 else [high, _unsigned_key(low)]
    if kind.is_struct(type_):
        keys = [key for i in range(type_.num_fields) for key in sort_keys(column.field(i))]
        return keys or [np.zeros(len(column), np.int64)]
    if kind.is_list(type_):
        return [_list_key(column)]
    encoded = column.dictionary_encode()
    places = numbers(pc.sort_indices(encoded.dictionary)).astype(np.int64)
    rank = np.zeros(max(len(places), 1), np.int64)
    rank[places] = np.arange(len(places))
    indices, present = numbers(encoded.indices), valid(column)
    return [rank[indices if present is None else np.where(present, indices, 0)]]


def _float_key(values: NDArray[np.float64]) -> Key:
    values = values + 0.0  # -0.0 becomes 0.0
    values[np.isnan(values)] = np.nan  # one bit pattern for NaN, above infinity's
    bits = values.view(np.int64)
    return bits ^ ((bits >> 63) & _GREATEST)


def _unsigned_key(values: NDArray[np.uint64]) -> Key:
    return (values ^ np.uint64(1 << 63)).view(np.int64)


def _list_key(column: pa.Array) -> Key:
    # From the last position to the first, lists of at least this length are ranked by (item here, rank of the rest).
    items = column.flatten()
    lengths = list_lengths(column)
    begin = starts(lengths)
    item_rank = ranks(sort_keys(items))
    rank = np.zeros(len(column), np.int64)
    by_length = np.argsort(-lengths, kind="stable")
    reaching = np.searchsorted(-lengths[by_length], -np.arange(lengths.max(initial=0)), side="left")
    for position in range(len(reaching) - 1, -1, -1):
        rows = by_length[: reaching[position]]
        rank[rows] = 1 + ranks([item_rank[begin[rows] + position], rank[rows]])
    return rank


def sort_order(keys: Sequence[Key]) -> Ints:
    """Indices of rows in order of the keys, most significant first; stable."""
    one_key = _as_one_key(keys)
    if one_key is None:
        return np.lexsort(keys[::-1]).astype(np.int64, copy=False)
    if len(one_key) < 2 or bool((one_key[1:] >= one_key[:-1]).all()):
        return np.arange(len(one_key), dtype=np.int64)
    return np.argsort(one_key, kind="stable").astype(np.int64, copy=False)


def _as_one_key(keys: Sequence[Key]) -> Key | None:
    """One key that sorts as all of them, if they fit into 63 bits."""
    if len(keys[0]) == 0 or len(keys) == 1:
        return keys[0]
    least = [int(key.min()) for key in keys]
    spans = [int(key.max()) - low + 1 for key, low in zip(keys, least, strict=True)]
    total = 1
    for span in spans:
        total *= span
    if total > _GREATEST:
        return None
    combined = keys[0] - least[0]
    for key, low, span in zip(keys[1:], least[1:], spans[1:], strict=True):
        combined *= span
        combined += key - low
    return combined


def run_starts(keys: Sequence[Key]) -> NDArray[np.bool_]:
    """For sorted rows: whether a row differs from the one before it in some key (the first row does)."""
    differs = np.zeros(len(keys[0]), dtype=bool)
    differs[:1] = True
    for key in keys:
        differs[1:] |= key[1:] != key[:-1]
    return differs


def ranks(keys: Sequence[Key]) -> Key:
    """One dense rank for several keys: 0 for the least rows, 1 for the next."""
    order = sort_order(keys)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.cumsum(run_starts([key[order] for key in keys])) - 1
    return rank


def comparable(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The column in an orderable type (``kernels/order.py``): maps become lists of their entries."""
    column = plain(column)
    kind, type_ = pa.types, column.type
    if kind.is_map(type_):
        entries = pa.StructArray.from_arrays([column.keys, column.items], names=["key", "value"])
        lengths = column.cast(pa.list_(pa.struct([type_.key_field, type_.item_field])))
        return comparable(list_column(entries, list_lengths(lengths), valid(column)))
    if kind.is_struct(type_) and type_.num_fields:
        parts = [comparable(part) for part in column.flatten()]
        return pa.StructArray.from_arrays(parts, names=[field.name for field in type_], mask=column.is_null())
    if kind.is_list(type_):
        return list_column(comparable(column.flatten()), list_lengths(column), valid(column))
    return column


def value_keys(columns: Iterable[pa.Array | pa.ChunkedArray]) -> list[Key]:
    """Sort keys of rows of columns of any types."""
    return [key for column in columns for key in sort_keys(comparable(column))]


def value_ranks(columns: Iterable[pa.Array | pa.ChunkedArray], rows: int) -> Ints:
    """Rank rows of columns of any type: equal rows have equal ranks."""
    keys = value_keys(columns)
    return ranks(keys) if keys else np.zeros(rows, dtype=np.int64)
