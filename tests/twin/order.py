"""Spark's order and equality of values."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any


def spark_order(value: Any) -> tuple[Any, ...]:
    """A sort key: nulls first, NaN last, -0.0 = 0.0, strings by bytes, lists and structs item by item."""
    if value is None:
        return (0,)
    if isinstance(value, float) and math.isnan(value):
        return (1, 1, 0)
    if isinstance(value, str):
        return (1, 0, value.encode())
    if isinstance(value, (list, tuple)):
        return (1, 0, tuple(spark_order(item) for item in value))
    if isinstance(value, dict):
        return (1, 0, tuple(spark_order(item) for item in value.values()))
    return (1, 0, value)


def same(a: Any, b: Any) -> bool:
    """Whether two values are equal, null with null and NaN with NaN."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[name], b[name]) for name in a)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, float) and isinstance(b, float) and math.isnan(a):
        return math.isnan(b)
    return bool(a == b)


def normal(value: Any) -> Any:
    """The grouping value of a key (rules/output.md#keys): all NaN are one, and -0.0 is 0.0; null is a key; instants in UTC."""
    if isinstance(value, datetime):
        return value.astimezone(UTC)
    if isinstance(value, float):
        return math.nan if math.isnan(value) else value + 0.0
    return value
