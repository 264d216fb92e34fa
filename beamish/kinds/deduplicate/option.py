"""What is declared by ``Pipeline.deduplicate``: by which columns a row is known again, and for how long (docs/rules/output.md#duplicates)."""

from __future__ import annotations

from typing import Any

import attrs

from beamish.durations import LONGEST_US, Duration, DurationLike, positive
from beamish.errors import OptionError

FOREVER = Duration(LONGEST_US)
"""How long ``within="forever"`` remembers a row: past all event times."""


@attrs.frozen
class Deduplication:
    """How rows that come again are known.

    Attributes:
        columns: by which a row is known, beside its key.
        within: how long; None: as long as the window that took it is kept.
    """

    columns: tuple[str, ...]
    within: Duration | None = None

    @property
    def arguments(self) -> str:
        """Its arguments as they were written."""
        within = () if self.within is None else (f"within={self.span!r}",)
        return ", ".join([*map(repr, self.columns), *within])

    @property
    def span(self) -> str:
        """How long, as it was written."""
        return "forever" if self.within == FOREVER else str(self.within)

    @property
    def call(self) -> str:
        """The call that declares it."""
        return f"deduplicate({self.arguments})"


def read_deduplication(columns: tuple[Any, ...], within: DurationLike | None) -> Deduplication:
    """What a call says.

    Raises:
        OptionError: there is no column, one is no name or there twice, or the duration is not above 0.
    """
    if len(columns) == 1 and isinstance(columns[0], (list, tuple)):
        columns = tuple(columns[0])
    call = f"deduplicate({', '.join(map(repr, columns))})"
    if not columns:
        raise OptionError("deduplicate(): by which columns is a row known again? Say .deduplicate('event_id')")
    for column in columns:
        if not isinstance(column, str) or not column:
            raise OptionError(
                f"{call}: {column!r} must be the name of a column; for an expression add one first, df.withColumn('id', ...)"
            )
    twice = next((column for column in columns if columns.count(column) > 1), None)
    if twice is not None:
        raise OptionError(f"{call}: {twice!r} is there twice; name each column once")
    if within is None:
        return Deduplication(columns)
    return Deduplication(columns, FOREVER if within == "forever" else positive(f"{call}: within", within))
