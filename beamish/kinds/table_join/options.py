"""The options of ``bm.table_join`` (docs/rules/joins.md#changing-tables)."""

from __future__ import annotations

from typing import Any, Literal, get_args

import attrs

from beamish.durations import Duration
from beamish.errors import OptionError

How = Literal["inner", "left", "right", "outer"]
LEFT, RIGHT = 0, 1
"""The numbers of the inputs."""


@attrs.frozen
class TableJoinOptions:
    """The options of a join of two tables.

    Attributes:
        how: which rows are emitted without a match: none, the left ones, the right ones, or both.
        forget_after: how far past its latest row the watermark is when a join value is dropped; None: never.
        with_dropped: whether dropped rows are emitted.
    """

    how: How = "inner"
    forget_after: Duration | None = None
    with_dropped: bool = False

    def emits_unmatched(self, number: int) -> bool:
        """Whether rows of an input are emitted without a match."""
        return self.how in ("outer", ("left", "right")[number])


def read_table_join(how: Any) -> TableJoinOptions:
    """Read the argument of a call (OptionError: no such join)."""
    if how not in get_args(How):
        raise OptionError(
            f"table_join(how={how!r}): must be 'inner', or 'left', 'right' or 'outer' for the rows of that input, or of both, without a match too"
        )
    return TableJoinOptions(how)
