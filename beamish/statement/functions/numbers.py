"""Arithmetic, as in Spark's ANSI mode: overflow and division by zero fail."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from beamish.statement.functions.types import (
    TIMESTAMP,
    RefusedError,
    as_decimal,
    as_double,
    common,
    each,
    is_exact,
    is_number,
)

_LEAST, _GREATEST = -(2**63), 2**63 - 1
_EXACT = Context(prec=400)


def _numbers(name: str, columns: Sequence[pa.Array]) -> list[pa.Array]:
    """Operands in a common numeric type."""
    for column in columns:
        if not is_number(column.type) and not pa.types.is_null(column.type):
            raise RefusedError(f"{name} of {column.type}: must be a number, CAST it to one")
    made = common(columns)
    return [pa.nulls(len(column), pa.float64()) if pa.types.is_null(column.type) else column for column in made]


_TIMES: Mapping[str, tuple[tuple[str, str], ...]] = {
    "+": (("t", "d"), ("d", "t"), ("d", "d")),
    "-": (("t", "d"), ("t", "t"), ("d", "d")),
    "*": (),
}
"""Timestamps and intervals (Arrow: durations) that are added and subtracted."""


def _is_time(column: pa.Array) -> bool:
    return bool(pa.types.is_duration(column.type) or column.type == TIMESTAMP)


def _arithmetic(name: str, kernel: Callable[..., pa.Array]) -> Callable[[Sequence[pa.Array], Any], pa.Array]:
    def function(columns: Sequence[pa.Array], _: Any) -> pa.Array:
        if (
            tuple("td"[pa.types.is_duration(column.type)] if _is_time(column) else "" for column in columns)
            in _TIMES[name]
        ):
            return kernel(*columns)
        if any(pa.types.is_decimal128(column.type) for column in columns) and all(is_exact(c.type) for c in columns):
            return kernel(*map(as_decimal, columns))
        return kernel(*_numbers(name, columns))

    return function


def _check_divisor(divisor: pa.Array, dividend: pa.Array) -> None:
    zero = pc.and_(pc.equal(divisor, 0), pc.is_valid(dividend))
    if pc.any(zero).as_py():
        raise RefusedError("division by zero (Spark: DIVIDE_BY_ZERO); NULLIF(x, 0) as the divisor gives null")


def _no_decimals(name: str, columns: Sequence[pa.Array]) -> None:
    if any(pa.types.is_decimal128(column.type) for column in columns) and not any(
        pa.types.is_float64(column.type) for column in columns
    ):
        raise RefusedError(f"{name} of decimals: in a script only of integers and doubles; CAST one to DOUBLE")


def _divide(columns: Sequence[pa.Array], _: Any) -> pa.Array:
    _no_decimals("/", columns)
    dividend, divisor = map(as_double, _numbers("/", columns))
    _check_divisor(divisor, dividend)
    return pc.divide(dividend, pc.if_else(pc.equal(divisor, 0.0), None, divisor))


def _integers(name: str, columns: Sequence[pa.Array]) -> list[pa.Array]:
    for column in columns:
        if not pa.types.is_integer(column.type) and not pa.types.is_null(column.type):
            raise RefusedError(f"{name} of {column.type}: in a script of integers only; CAST it to BIGINT")
    return [column.cast(pa.int64()) for column in columns]


def _whole_divide(columns: Sequence[pa.Array], _: Any) -> pa.Array:
    dividend, divisor = _integers("DIV", columns)
    _check_divisor(divisor, dividend)

    def divide(a: int, b: int) -> int:
        quotient = abs(a) // abs(b)
        return quotient if (a < 0) == (b < 0) else -quotient

    quotients = [
        None if a is None or b is None else divide(a, b)
        for a, b in zip(dividend.to_pylist(), divisor.to_pylist(), strict=True)
    ]
    return pa.array(quotients, pa.int64())


def _modulo(columns: Sequence[pa.Array], _: Any) -> pa.Array:
    _no_decimals("%", columns)
    dividend, divisor = _numbers("%", columns)
    _check_divisor(divisor, dividend)
    if pa.types.is_float64(dividend.type):
        return each(lambda a, b: math.nan if math.isnan(a) or math.isnan(b) or math.isinf(a) else math.fmod(a, b), pa.float64(), dividend, divisor)  # fmt: skip
    return each(lambda a, b: abs(a) % abs(b) if a >= 0 else -(abs(a) % abs(b)), dividend.type, dividend, divisor)


def _one(name: str, columns: Sequence[pa.Array]) -> pa.Array:
    (column,) = _numbers(name, columns[:1])
    return column


def _negative(columns: Sequence[pa.Array], _: Any) -> pa.Array:
    return pc.negate_checked(_one("-", columns))


def _abs(columns: Sequence[pa.Array], _: Any) -> pa.Array:
    return pc.abs_checked(_one("ABS", columns))


def _digits(columns: Sequence[pa.Array]) -> int:
    if len(columns) < 2:
        return 0
    digits = set(columns[1].to_pylist())
    if len(digits) > 1 or not pa.types.is_integer(columns[1].type) or min(digits, default=0) < 0:
        raise RefusedError("ROUND: the number of digits must be a constant, in a script 0 or more")
    return int(next(iter(digits), 0))


def _round(columns: Sequence[pa.Array], _: Any) -> pa.Array:
    column, digits = _one("ROUND", columns), _digits(columns)
    if pa.types.is_integer(column.type):
        return column
    if pa.types.is_decimal128(column.type):
        raise RefusedError("ROUND of decimals: in a script only of integers and doubles; CAST it to DOUBLE")
    unit = Decimal(1).scaleb(-digits)

    def half_up(x: float) -> float:
        # without a negative zero, as in Spark
        return float(Decimal(repr(x)).quantize(unit, ROUND_HALF_UP, _EXACT)) + 0.0 if math.isfinite(x) else x

    return each(half_up, pa.float64(), column)


def _whole(name: str, to: Callable[[float], int]) -> Callable[[Sequence[pa.Array], Any], pa.Array]:
    def whole(x: float) -> int:
        if math.isnan(x):
            return 0  # as in Spark
        if math.isinf(x) or not _LEAST <= to(x) <= _GREATEST:
            raise RefusedError(f"{name} of {x!r} is no BIGINT (Spark: ARITHMETIC_OVERFLOW)")
        return to(x)

    def function(columns: Sequence[pa.Array], _: Any) -> pa.Array:
        column = _one(name, columns)
        if pa.types.is_integer(column.type):
            return column.cast(pa.int64())
        if pa.types.is_decimal128(column.type):
            return each(lambda x: Decimal(to(x)), pa.decimal128(38, 0), column)
        return each(whole, pa.int64(), column)

    return function


def _sqrt(columns: Sequence[pa.Array], _: Any) -> pa.Array:
    return pc.sqrt(as_double(_one("SQRT", columns)))


def _sign(columns: Sequence[pa.Array], _: Any) -> pa.Array:
    column = as_double(_one("SIGN", columns))
    values = column.to_numpy(zero_copy_only=False)
    signs = np.where(values == 0, values, np.sign(values))  # of -0.0 it is -0.0
    return pa.array(signs, mask=np.array(column.is_null()), type=pa.float64())


FUNCTIONS: Mapping[str, Callable[[Sequence[pa.Array], Any], pa.Array]] = {
    "+": _arithmetic("+", pc.add_checked),
    "-": _arithmetic("-", pc.subtract_checked),
    "*": _arithmetic("*", pc.multiply_checked),
    "/": _divide,
    "DIV": _whole_divide,
    "%": _modulo,
    "negative": _negative,
    "ABS": _abs,
    "ROUND": _round,
    "FLOOR": _whole("FLOOR", math.floor),
    "CEIL": _whole("CEIL", math.ceil),
    "SQRT": _sqrt,
    "SIGN": _sign,
}
