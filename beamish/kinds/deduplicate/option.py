"""``Pipeline.deduplicate``: the columns that identify a row, and how long ids are stored (docs/rules/output.md#duplicates)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from beamish.contract.relation import Relation
from beamish.durations import LONGEST_US, Duration, DurationLike, positive
from beamish.errors import OptionError, PipelineError

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
    """Read the arguments of a call (OptionError: no column, an invalid or repeated name, or a duration not above 0)."""
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


def describe_deduplication(options: Deduplication, relation: Relation) -> str:
    """The definition of a duplicate, for explain."""
    by = ", ".join(dict.fromkeys(map(str, (*relation.keys, *options.columns))))
    if options.within is None:
        return f"a row equal in {by} to an earlier one in its window is dropped; ids are stored as long as the window"
    if options.within == FOREVER:
        return f"a row equal in {by} to an earlier one is dropped; ids are stored forever"
    return f"a row equal in {by} to an earlier one is dropped; an id is stored until the watermark is {options.within} past its event time, and an older row is dropped too"


def check_deduplication(options: Deduplication, takes: Sequence[Relation]) -> None:
    """Check that an input can be deduplicated (PipelineError: rows are retracted, or come from several inputs)."""
    if any(relation.retracts for relation in takes):
        of_stage = (
            "deduplicate in an earlier stage without retractions, or make that stage accumulating() or discarding()"
        )
        fix = "leave it out, since a table holds each row once" if takes[0].is_signed else of_stage
        raise PipelineError(
            f"{options.call} over rows that are retracted: a row and its retraction have the same id;  {fix}"
        )
    if not takes[0].has_timestamps:
        raise PipelineError(
            f"{options.call} of panes without timestamp: when do ids expire? Give the stage before a timestamp_combiner, such as "
            ".timestamp_combiner(bm.TimestampCombiner.LATEST), or windows that end"
        )
    if options.within is not None and takes[0].behind_us >= options.within.us:
        raise PipelineError(
            f"{options.call}: panes of a suppress, or of an expiring window, are emitted when the watermark is {Duration(takes[0].behind_us)} past their time; where it moves in small steps, their ids have expired by then; give a longer within"
        )
    if takes[0].name is not None:
        raise PipelineError(
            f"{options.call} of a merge: ambiguous column: deduplicate an input instead, with within=...: "
            "bm.merge(orders=bm.Pipeline()....deduplicate('id', within='1 hour'), ...)"
        )
