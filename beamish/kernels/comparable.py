"""Convert columns of any type to orderable ones, so that equal values are found without a loop."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from beamish.kernels.arrays import Ints
from beamish.kernels.buffers import list_column, list_lengths, plain, valid
from beamish.kernels.order import Key, ranks, sort_keys


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
