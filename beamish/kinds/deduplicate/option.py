"""The option of ``Pipeline.deduplicate``: the id columns, and how long ids are stored (docs/rules/output.md#duplicates)."""

from __future__ import annotations

from typing import Any

import attrs

from beamish.durations import LONGEST_US, Duration, DurationLike, positive
from beamish.errors import OptionError

FOREVER = Duration(LONGEST_US)
"""The duration of ``within="forever"``: past all event times."""


@attrs.frozen
class Deduplication:
    """The options of deduplication.

    Attributes:
        columns: the id columns, besides the key.
        within: how long ids are stored; None: as long as the row's window.
    """

    columns: tuple[str, ...]
    within: Duration | None = None

    @property
    def arguments(self) -> str:
        """Its arguments in source form."""
        within = () if self.within is None else (f"within={self.span!r}",)
        return ", ".join([*map(repr, self.columns), *within])

    @property
    def span(self) -> str:
        """The duration, in source form."""
        return "forever" if self.within == FOREVER else str(self.within)

    @property
    def call(self) -> str:
        """The call that declares it."""
        return f"deduplicate({self.arguments})"


def read_deduplication(columns: tuple[Any, ...], within: DurationLike | None) -> Deduplication:
    """Read the arguments of a call.

    Raises:
        OptionError: no column, an invalid or repeated name, or a duration not above 0.
    """
    if len(columns) == 1 and isinstance(columns[0], (list, tuple)):
        columns = tuple(columns[0])
    call = f"deduplicate({', '.join(map(repr, columns))})"
    if not columns:
        raise OptionError("deduplicate(): which columns identify a row? Write .deduplicate('event_id')")
    for column in columns:
        if not isinstance(column, str) or not column:
            raise OptionError(
                f"{call}: {column!r} must be the name of a column; for an expression add one first, df.withColumn('id', ...)"
            )
    twice = next((column for column in columns if columns.count(column) > 1), None)
    if twice is not None:
        raise OptionError(f"{call}: {twice!r} is repeated; name each column once")
    if within is None:
        return Deduplication(columns)
    return Deduplication(columns, FOREVER if within == "forever" else positive(f"{call}: within", within))
