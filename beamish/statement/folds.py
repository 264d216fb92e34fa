"""Functions of ``Fold`` for aggregates of SQL. Spark's workers import them: without sqlglot."""

from __future__ import annotations

from typing import Any


def counted(counts: dict[Any, int], value: Any) -> dict[Any, int]:
    """Count one value that is not null."""
    if value is not None:
        counts[value] = counts.get(value, 0) + 1
    return counts


def added(counts: dict[Any, int], others: dict[Any, int]) -> dict[Any, int]:
    """Add the counts of two parts."""
    for value, count in others.items():
        counts[value] = counts.get(value, 0) + count
    return counts
