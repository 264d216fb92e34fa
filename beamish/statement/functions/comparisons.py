"""Comparisons and logic; NaN equals itself and is above all numbers, as in Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from beamish.statement.functions.types import RefusedError, common


def _comparable(columns: Sequence[pa.Array]) -> list[pa.Array]:
    made = common(columns)
    type_ = made[0].type
    if pa.types.is_nested(type_) or pa.types.is_null(type_):
        if pa.types.is_null(type_):
            return [column.cast(pa.int32()) for column in made]
        raise RefusedError(f"a comparison of {type_}: in a script only of plain values; compare their fields")
    return [column.cast(pa.int8()) for column in made] if pa.types.is_boolean(type_) else made


def equal(a: pa.Array, b: pa.Array) -> pa.Array:
    """Whether two are equal; null if one is null."""
    a, b = _comparable([a, b])
    same = pc.equal(a, b)
    return pc.or_(same, pc.and_(pc.is_nan(a), pc.is_nan(b))) if pa.types.is_float64(a.type) else same


def less(a: pa.Array, b: pa.Array) -> pa.Array:
    """Whether one is below the other; null if one is null."""
    a, b = _comparable([a, b])
    below = pc.less(a, b)
    return pc.or_(below, pc.and_(pc.invert(pc.is_nan(a)), pc.is_nan(b))) if pa.types.is_float64(a.type) else below


def as_boolean(column: pa.Array) -> pa.Array:
    """Check that a column is a condition (else RefusedError)."""
    if pa.types.is_null(column.type):
        return column.cast(pa.bool_())
    if not pa.types.is_boolean(column.type):
        raise RefusedError(f"{column.type} where a condition must stand; compare it with something")
    return column


def _compared(compare: Callable[[pa.Array, pa.Array], pa.Array]) -> Callable[[Sequence[pa.Array], Any], pa.Array]:
    return lambda columns, _: compare(*columns)


def _null_safe_equal(columns: Sequence[pa.Array], _: Any) -> pa.Array:
    a, b = columns
    both_null = pc.and_(pc.is_null(a), pc.is_null(b))
    return pc.or_(both_null, pc.fill_null(equal(a, b), fill_value=False))


def _is(columns: Sequence[pa.Array], _: Any) -> pa.Array:
    value, wanted = columns
    if pa.types.is_null(wanted.type):
        return pc.is_null(value)
    return pc.fill_null(pc.equal(as_boolean(value), as_boolean(wanted)), fill_value=False)


def _between(columns: Sequence[pa.Array], _: Any) -> pa.Array:
    value, low, high = columns
    return pc.and_kleene(pc.invert(less(value, low)), pc.invert(less(high, value)))


def _in(columns: Sequence[pa.Array], _: Any) -> pa.Array:
    value, *others = common(columns)
    return reduce(pc.or_kleene, (equal(value, other) for other in others))


def _nullif(columns: Sequence[pa.Array], _: Any) -> pa.Array:
    value, other = columns
    return pc.if_else(pc.fill_null(equal(value, other), fill_value=False), pa.scalar(None, value.type), value)


def _extreme(wanted: Callable[[pa.Array, pa.Array], pa.Array]) -> Callable[[Sequence[pa.Array], Any], pa.Array]:
    """The extreme value: no other is ``wanted``; nulls are ignored."""

    def function(columns: Sequence[pa.Array], _: Any) -> pa.Array:
        if len(columns) < 2:
            raise RefusedError("takes two values or more")

        def pick(a: pa.Array, b: pa.Array) -> pa.Array:
            other = pc.or_(pc.is_null(a), pc.fill_null(wanted(a, b), fill_value=False))
            return pc.if_else(other, pc.coalesce(b, a), a)

        return reduce(pick, common(columns))

    return function


FUNCTIONS: Mapping[str, Callable[[Sequence[pa.Array], Any], pa.Array]] = {
    "=": _compared(equal),
    "<>": _compared(lambda a, b: pc.invert(equal(a, b))),
    "<": _compared(less),
    ">": _compared(lambda a, b: less(b, a)),
    "<=": _compared(lambda a, b: pc.invert(less(b, a))),
    ">=": _compared(lambda a, b: pc.invert(less(a, b))),
    "<=>": _null_safe_equal,
    "IS DISTINCT FROM": lambda columns, _: pc.invert(_null_safe_equal(columns, _)),
    "NOT": lambda columns, _: pc.invert(as_boolean(columns[0])),
    "IS": _is,
    "BETWEEN": _between,
    "IN": _in,
    "NULLIF": _nullif,
    "GREATEST": _extreme(less),
    "LEAST": _extreme(lambda a, b: less(b, a)),
}
