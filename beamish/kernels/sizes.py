"""Sizes of values in bytes: strings by their UTF-8, others by the width of their type.

Booleans take 1; lists and structs the sum of their parts; nulls 0.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from beamish.kernels.arrays import Ints
from beamish.kernels.buffers import list_lengths, numbers, plain, starts


def bytes_of_rows(table: pa.Table) -> Ints:
    """Bytes of each row: int64, one per row."""
    total = np.zeros(table.num_rows, dtype=np.int64)
    for column in table.columns:
        total += value_bytes(plain(column.combine_chunks()))
    return total


def value_bytes(column: pa.Array) -> Ints:
    """Bytes of each value of a column of a plain type: int64, one per row."""
    kind, type_ = pa.types, column.type
    rows = len(column)
    if kind.is_null(type_):
        return np.zeros(rows, dtype=np.int64)
    present: Ints = np.ones(rows, dtype=np.int64)
    if column.null_count:
        present = column.is_valid().to_numpy(zero_copy_only=False).astype(np.int64)
    if kind.is_struct(type_):
        total = np.zeros(rows, dtype=np.int64)
        for i in range(type_.num_fields):
            total += value_bytes(plain(column.field(i)))
        return total * present
    if kind.is_map(type_):
        entry = pa.struct([("key", type_.key_type), ("value", type_.item_type)])
        return value_bytes(column.cast(pa.list_(entry)))
    if kind.is_list(type_):
        sums = np.concatenate([[0], np.cumsum(value_bytes(plain(column.flatten())))])
        lengths = list_lengths(column)
        begin = starts(lengths)
        within: Ints = sums[begin + lengths] - sums[begin]
        return within * present
    if kind.is_string(type_) or kind.is_binary(type_):
        return numbers(pc.fill_null(pc.binary_length(column), 0)).astype(np.int64)
    width: int = max(type_.bit_width // 8, 1)
    return present * width
