"""Types of values in process, and their common types."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

TIMESTAMP = pa.timestamp("us", tz="UTC")
_INT32 = 2**31
_INT64 = 2**63
_DIGITS = {pa.int32(): 10, pa.int64(): 20}


class RefusedError(ValueError):
    """Unsupported values or types; the expression's position is added where it is known."""


def literal(value: Any, count: int) -> pa.Array:
    """A constant repeated for all rows, in its Spark type."""
    type_ = None
    if isinstance(value, int) and not isinstance(value, bool):
        type_ = pa.int32() if -_INT32 <= value < _INT32 else pa.int64()
        if not -_INT64 <= value < _INT64:
            value, type_ = Decimal(value), None
    return pa.array([value] * count, type_ or pa.scalar(value).type)


def is_number(type_: pa.DataType) -> bool:
    """Whether it is a supported numeric type."""
    return is_exact(type_) or pa.types.is_float64(type_)


def is_exact(type_: pa.DataType) -> bool:
    """Whether it is an integer or a decimal."""
    return type_ in _DIGITS or pa.types.is_decimal128(type_)


def known(column: pa.Array) -> pa.Array:
    """A column in a supported type, if there is one with the same values."""
    type_ = column.type
    if pa.types.is_dictionary(type_):
        return known(column.dictionary_decode())
    if pa.types.is_large_string(type_):
        return column.cast(pa.string())
    if pa.types.is_integer(type_) and type_ not in _DIGITS:
        return column.cast(pa.int64())
    if pa.types.is_timestamp(type_) and type_.tz is not None:
        return column.cast(TIMESTAMP)
    return column


def common(columns: Sequence[pa.Array]) -> list[pa.Array]:
    """Columns in a common type, as in Spark (RefusedError: not found)."""
    types = list(dict.fromkeys(column.type for column in columns if not pa.types.is_null(column.type)))
    type_ = types[0] if types else pa.null()
    for other in types[1:]:
        type_ = _wider(type_, other)
    return [as_type(column, type_) for column in columns]


def as_type(column: pa.Array, type_: pa.DataType) -> pa.Array:
    """Widen a column."""
    if column.type == type_:
        return column
    if pa.types.is_null(column.type):
        return pa.nulls(len(column), type_)
    if pa.types.is_float64(type_):
        return as_double(column)
    if pa.types.is_decimal128(type_) and column.type in _DIGITS:
        column = column.cast(pa.decimal128(_DIGITS[column.type], 0))
    return column.cast(type_)


def as_double(column: pa.Array) -> pa.Array:
    """Numbers as double, rounded to nearest."""
    if pa.types.is_decimal128(column.type):
        return each(float, pa.float64(), column)
    return column.cast(pa.float64(), safe=False)


def as_decimal(column: pa.Array) -> pa.Array:
    """Exact numbers as decimal."""
    return column.cast(pa.decimal128(_DIGITS[column.type], 0)) if column.type in _DIGITS else column


def each(function: Callable[..., Any], type_: pa.DataType, *columns: pa.Array) -> pa.Array:
    """Apply a Python function per row; null if an operand is null."""
    rows = zip(*(column.to_pylist() for column in columns), strict=True)
    return pa.array([None if None in row else function(*row) for row in rows], type_)


def _wider(a: pa.DataType, b: pa.DataType) -> pa.DataType:
    if is_number(a) and is_number(b):
        if pa.types.is_float64(a) or pa.types.is_float64(b):
            return pa.float64()
        if a in _DIGITS and b in _DIGITS:
            return pa.int64()
        (p, s), (q, r) = _digits(a), _digits(b)
        scale = max(s, r)
        if max(p - s, q - r) + scale > 38:
            raise RefusedError("decimals of more than 38 digits; CAST one to DOUBLE")
        return pa.decimal128(max(p - s, q - r) + scale, scale)
    if {a, b} == {pa.date32(), TIMESTAMP}:
        return TIMESTAMP
    raise RefusedError(f"{a} beside {b}: in a script values of these types do not meet; CAST one of them")


def _digits(type_: pa.DataType) -> tuple[int, int]:
    return (_DIGITS[type_], 0) if type_ in _DIGITS else (type_.precision, type_.scale)
