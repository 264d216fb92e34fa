"""The last batch that a table took, which says which batch may follow."""

from __future__ import annotations

import attrs

from beamish.errors import SinkError


@attrs.frozen
class Mark:
    """The last batch that a table took.

    Attributes:
        query: the id of its query; empty: unknown.
        batch: its number.
        entry: a digest that tells the batch from another one of this number; empty: unknown.
    """

    query: str
    batch: int
    entry: str = ""

    def is_of(self, other: Mark) -> bool:
        """Whether both may be of one query."""
        return not self.query or not other.query or self.query == other.query

    def is_another(self, other: Mark) -> bool:
        """Whether these are known to be two batches of one number."""
        kinds = {mark.entry.partition(" ")[0] for mark in (self, other)}
        return self.batch == other.batch and len(kinds) == 1 and self.entry != other.entry


@attrs.frozen
class Marked:
    """A table that takes batches.

    Attributes:
        table: its name, for messages.
        last: the mark of the last batch; None: there is none.
        exists: whether the table is there.
        has_rows: whether rows are in it.
        drop: the statements that remove the table and its mark.
    """

    table: str
    last: Mark | None
    exists: bool
    has_rows: bool
    drop: str

    def check_takes(self, mark: Mark) -> None:
        """Check that a batch may follow the last one.

        Raises:
            SinkError: it is of another query, or of one restarted from an empty or an earlier checkpoint; or rows of earlier batches
                are missing.
        """
        if self.last is None:
            self._check_first(mark)
        elif self.exists or (mark.batch > 0 and mark.is_of(self.last)):
            self._check_next(mark, self.last)

    def _check_first(self, mark: Mark) -> None:
        if mark.batch > 0:
            raise SinkError(
                f"table {self.table}: no earlier batch is on record for it, and batch {mark.batch} has only what changed since the "
                "batch before. The table or its database was deleted, or the sink was added to a query that had run, or was not "
                f"called for the first batches (call it for each, also for one without rows). {self._rebuild}"
            )
        if self.has_rows:
            raise SinkError(
                f"table {self.table}: it has rows, and nothing says of which query: changes of two queries cannot be ordered. Choose "
                "another table, or delete its rows"
            )

    def _check_next(self, mark: Mark, last: Mark) -> None:
        if not mark.is_of(last):
            raise SinkError(
                f"table {self.table}: it belongs to the query {last.query} (batch {last.batch}), this is {mark.query}: changes of two "
                f"queries, or of two checkpoints, cannot be ordered. Give each query a table of its own; {self._begin_anew}"
            )
        if not self.exists:
            raise SinkError(
                f"table {self.table}: it was deleted, though batch {last.batch} of this query was written to it, and batch {mark.batch} "
                f"has only what changed since. {self._rebuild}"
            )
        if mark.batch < last.batch:
            raise SinkError(
                f"table {self.table}: batch {mark.batch} comes after batch {last.batch}: two queries write it, or the checkpoint was "
                f"restored to an earlier batch or is empty, so that the newer change is not known; {self._begin_anew}"
            )
        if mark.is_another(last):
            raise SinkError(
                f"table {self.table}: it holds batch {mark.batch} with other rows: the checkpoint was restored to an earlier batch, or "
                f"two queries run from copies of it, so that changes of the first batch {mark.batch} would stay. Go on from the newer "
                f"checkpoint; {self._begin_anew}"
            )

    @property
    def _begin_anew(self) -> str:
        return f"to fill the table again from the source, stop the query, run {self.drop}; then start from an empty checkpoint"

    @property
    def _rebuild(self) -> str:
        return (
            "Put back what was deleted; or, from a stored table of all panes, run sink.rebuild(spark.table(...), checkpoint=...) and "
            f"restart; or, {self._begin_anew}"
        )
