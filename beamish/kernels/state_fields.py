"""State columns of accumulations, and how simple ones merge group by group: sum, min and max."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import attrs
import numpy as np
import pyarrow as pa

from beamish.errors import NumericOverflowError
from beamish.kernels.buffers import (
    Flags,
    Numbers,
    column_of,
    decimal_column,
    flags,
    is_fixed,
    limbs,
    numbers,
    pick,
    valid,
)
from beamish.kernels.groups import Groups
from beamish.kernels.order import sort_keys
from beamish.kernels.type_names import spark_name

Merger = Literal["sum", "min", "max"]


@attrs.frozen
class Field:
    """A state column of an accumulation.

    Attributes:
        type: its Arrow type.
        merger: how two are merged, nulls ignored (all null: null); None: ``combine`` merges them.
        initial: its value in an accumulator of no rows; None or, for a sum, 0.
        column: its input column, for messages.
    """

    type: pa.DataType
    merger: Merger | None = None
    initial: Any = None
    column: str = ""


_LOW_32 = 0xFFFFFFFF
_INT64 = np.iinfo(np.int64)


def combine_fields(fields: Sequence[Field], groups: Groups, state: Sequence[pa.Array]) -> list[pa.Array]:
    """Merge fields that have a merger, of any number of accumulations at once.

    Args:
        fields: the columns of ``state``; all have a merger.
        groups: of the entries of ``state``.
        state: one column per field. Nulls are ignored.

    Returns:
        one column per field, one entry per group; ``initial`` for a group without entries, null for
        one with nulls only (``initial`` if that is 0).

    Raises:
        NumericOverflowError: the sum of a group does not fit the field's type.
    """
    return [_combine(field, groups, column) for field, column in zip(fields, state, strict=True)]


def _combine(field: Field, groups: Groups, column: pa.Array) -> pa.Array:
    if pa.types.is_null(field.type):
        return pa.nulls(groups.count)
    present = valid(column)
    if present is not None:
        column, groups = column.filter(flags(present)), groups[present]
    seen = groups.occupied() if field.initial is None else None
    if field.merger == "sum":
        return _sum(field, groups, column, seen)
    if is_fixed(field.type):
        reduce = groups.greatest if field.merger == "max" else groups.least
        return column_of(reduce(numbers(column)), field.type, seen)
    keys = sort_keys(column)
    return pick(column, groups.first(keys if field.merger == "min" else [~key for key in keys]))


def _sum(field: Field, groups: Groups, column: pa.Array, seen: Flags | None) -> pa.Array:
    if pa.types.is_decimal128(field.type):
        high, low = limbs(column)
        return decimal_column(*_sum_decimals(field, groups, high, low), field.type, seen)
    values = numbers(column)
    if values.dtype.kind == "f" or _bound(values) <= _INT64.max:
        with np.errstate(invalid="ignore", over="ignore"):
            result = groups.sum(values)
    else:
        high, low = _sum_limbs(field, groups, values >> 63, values.view(np.uint64))
        check_fits(field, (high != low.view(np.int64) >> 63))
        result = low.view(np.int64)
    return column_of(result, field.type, seen)


def _bound(values: Numbers) -> int:
    """An upper bound on the magnitude of the sum of any subset of values."""
    if len(values) == 0:
        return 0
    return max(int(values.max()), -int(values.min())) * len(values)


def _sum_decimals(field: Field, groups: Groups, high: Numbers, low: Numbers) -> tuple[Numbers, Numbers]:
    short = np.ascontiguousarray(low).view(np.int64)
    limit = 10**field.type.precision
    if bool((high == short >> 63).all()):
        bound = _bound(short)
        if bound <= _INT64.max:
            total = groups.sum(short)
            if bound >= limit:
                check_fits(field, (total >= limit) | (total <= -limit))
            return total >> 63, total.view(np.uint64)
    sum_high, sum_low = _sum_limbs(field, groups, high, low)
    check_decimals(field, sum_high, sum_low)
    return sum_high, sum_low


def check_decimals(field: Field, high: Numbers, low: Numbers) -> None:
    """Check that decimals fit a field's precision (NumericOverflowError: one does not)."""
    limit = 10**field.type.precision
    above = _at_least(high, low, limit)
    below = ~_at_least(high, low, 1 - limit)
    check_fits(field, above | below)


def _at_least(high: Numbers, low: Numbers, bound: int) -> Flags:
    bound_high, bound_low = np.int64(bound >> 64), np.uint64(bound & (2**64 - 1))
    result: Flags = (high > bound_high) | ((high == bound_high) & (low >= bound_low))
    return result


def _sum_limbs(field: Field, groups: Groups, high: Numbers, low: Numbers) -> tuple[Numbers, Numbers]:
    # Exact 128-bit sums: 32 bits at a time, so that 2**31 of them fit into 64 bits, and then the carries.
    parts = (low & _LOW_32, low >> 32, high & _LOW_32, high >> 32)
    sums = [groups.sum(part.astype(np.int64)) for part in parts]
    for i in range(3):
        sums[i + 1] += sums[i] >> 32
        sums[i] &= _LOW_32
    check_fits(field, sums[3] != sums[3].astype(np.int32))
    return sums[2] | sums[3] << 32, (sums[0] | sums[1] << 32).view(np.uint64)


def overflow(what: str, wider: str, group: int) -> NumericOverflowError:
    """The overflow error, with the fix; ``wider``: types to cast to."""
    error = NumericOverflowError(
        f"{what}; add .on_error('drop') and restart from the checkpoint: the row that overflows it is then emitted as a dropped row; or cast the column first, such as to {wider}, in a new checkpoint"
    )
    error.group, error.raised = group, what
    return error


def sum_overflow(column: str, type_: pa.DataType, group: int = 0) -> NumericOverflowError:
    """The error of a sum that does not fit its type."""
    what = f"the sum of column {column!r} does not fit {spark_name(type_)} (Spark: ARITHMETIC_OVERFLOW)"
    return overflow(what, "decimal(38, 0) or double", group)


def mean_overflow(column: str, type_: pa.DataType, group: int = 0) -> NumericOverflowError:
    """The error of a mean that does not fit its type."""
    what = f"the mean of column {column!r} does not fit {spark_name(type_)} (Spark: ARITHMETIC_OVERFLOW)"
    return overflow(what, "a decimal of fewer digits or double", group)


def check_fits(field: Field, overflows: Flags) -> None:
    """Raise the overflow error of the first sum that does not fit (NumericOverflowError)."""
    if overflows.any():
        raise sum_overflow(field.column, field.type, int(np.flatnonzero(overflows)[0]))
