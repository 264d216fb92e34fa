"""Operators and functions in process, by Arrow kernels, with Spark's meaning; one family a file (docs/sql.md#in-process)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from beamish.statement.functions import casts, comparisons, nested, numbers, texts, times

Function = Callable[[Sequence[pa.Array], Any], pa.Array]
"""From the operands, all of equal length, and the node's value: the result."""

FUNCTIONS: Mapping[str, Function] = {
    **numbers.FUNCTIONS,
    **comparisons.FUNCTIONS,
    **texts.FUNCTIONS,
    **times.FUNCTIONS,
    **casts.FUNCTIONS,
    **nested.FUNCTIONS,
}
