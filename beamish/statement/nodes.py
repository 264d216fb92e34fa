"""Expression trees of plain values, for evaluation in process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

UNKNOWN = "unknown"
"""Only Spark can compute it; its value names it."""
COLUMN = "column"
"""A column; its value is the path to it, a tuple of names."""
LITERAL = "literal"
"""A constant; its value is None, a bool, an int, a float, a Decimal, a timedelta or a text."""


@attrs.frozen
class Node:
    """An operator or function with its operands.

    Attributes:
        op: COLUMN, LITERAL, UNKNOWN, or a name in ``functions.FUNCTIONS``.
        args: its operands.
        value: a further constant.
        at: its position in the text.
    """

    op: str
    args: tuple[Node, ...] = ()
    value: Any = None
    at: int = attrs.field(default=0, eq=False)

    def walk(self) -> Iterator[Node]:
        """Itself and all descendants."""
        yield self
        for arg in self.args:
            yield from arg.walk()
