"""Table ownership: which query may write a table, and the last batch that it wrote, one row per table in ``_beamish_sinks``.

Rows know which change is newer (``_sequence``), but only among the changes of one query: another query, or the same pipeline restarted
from an empty checkpoint, counts from the beginning, and its changes would be taken for old ones. So a table belongs to the query whose
id its checkpoint holds. Spark Connect does not report that id; there only the numbers of batches are compared.

A number alone does not tell a batch: a checkpoint restored to an earlier batch plans the same number again, with other rows. So the mark
holds a digest of the batch's entry in the offset log, which a batch that is run again keeps.
"""

from __future__ import annotations

from typing import Any

import attrs

from beamish.errors import SinkError
from beamish.sinks.databases.database import Database, literal, rows_of
from beamish.sinks.names import TableName

MARKS = "_beamish_sinks"
_ENTRY = "batch_entry"
_COLUMNS = f"table_name VARCHAR(255) PRIMARY KEY, query_id VARCHAR(64) NOT NULL, batch_id BIGINT NOT NULL, {_ENTRY} VARCHAR(64)"


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

    def check_after(self, before: Mark | None, table: TableName, *, exists: bool, has_rows: bool) -> None:
        """Check that this batch may follow the last one.

        Args:
            before: the last one; None: there is none.
            table: the table.
            exists: whether it is there.
            has_rows: whether rows are in it.

        Raises:
            SinkError: the batch is of another query, or of one restarted from an empty or an earlier checkpoint; or rows of earlier batches are missing.
        """
        if before is None:
            self._check_first(table, has_rows=has_rows)
        elif exists or (self.batch > 0 and self.is_of(before)):
            self._check_next(before, table, exists=exists)

    def _check_first(self, table: TableName, *, has_rows: bool) -> None:
        if self.batch > 0:
            raise SinkError(
                f"table {table}: nothing was ever written to it (no row of {table.beside(MARKS)} names it), and batch {self.batch} has "
                "only what changed since the batch before. The table or its database was deleted, or the sink was added to a query "
                "that had run, or was not called for the first batches (call it for each, also for one without rows). "
                f"{_rebuild(table)}"
            )
        if has_rows:
            raise SinkError(
                f"table {table}: it has rows, and no row of {table.beside(MARKS)} says of which query: changes of two queries cannot "
                f"be ordered. Choose another table, or empty this one: DELETE FROM {table.sql}"
            )

    def _check_next(self, before: Mark, table: TableName, *, exists: bool) -> None:
        if not self.is_of(before):
            raise SinkError(
                f"table {table}: it belongs to the query {before.query} (batch {before.batch}), this is {self.query}: changes of two "
                f"queries, or of two checkpoints, cannot be ordered. Give each query a table of its own; {_begin_anew(table)}"
            )
        if not exists:
            raise SinkError(
                f"table {table}: it was deleted, though batch {before.batch} of this query was written to it, and batch {self.batch} has "
                f"only what changed since. {_rebuild(table)}"
            )
        if self.batch < before.batch:
            raise SinkError(
                f"table {table}: batch {self.batch} comes after batch {before.batch}: two queries write it, or the checkpoint was "
                f"restored to an earlier batch or is empty, so that the newer change is not known. {_begin_anew(table)}"
            )
        if self.is_another(before):
            raise SinkError(
                f"table {table}: it holds batch {self.batch} with other rows: the checkpoint was restored to an earlier batch, or two "
                f"queries run from copies of it, so that changes of the first batch {self.batch} would stay. Go on from the newer "
                f"checkpoint; {_begin_anew(table)}"
            )


def _begin_anew(table: TableName) -> str:
    return (
        f"to fill the table again from the source, stop the query, run DROP TABLE IF EXISTS {table.sql}; DELETE FROM "
        f"{table.beside(MARKS).sql} WHERE table_name = {literal(table.name)}; then start from an empty checkpoint"
    )


def _rebuild(table: TableName) -> str:
    return (
        "Put back what was deleted; or, from a stored table of all panes, run sink.rebuild(spark.table(...), checkpoint=...) and restart; "
        f"or, {_begin_anew(table)}"
    )


def make_marks(cursor: Any, database: Database, table: TableName, *, create: bool) -> None:
    """Make the table of marks, or add the columns that an earlier version did not have.

    Raises:
        SinkError: it is not there, or lacks a column, and ``create`` is False.
    """
    marks = table.beside(MARKS)
    columns = database.columns(cursor, marks)
    if _ENTRY in columns:
        return
    wanted = (
        f"ALTER TABLE {marks.sql} ADD COLUMN {_ENTRY} VARCHAR(64)"
        if columns
        else f"CREATE TABLE {marks.sql} ({_COLUMNS})"
    )
    if not create:
        raise SinkError(
            f"table {table}: with create=False {marks}, which says which query owns a table, must be there too: {wanted}"
        )
    cursor.execute(wanted)


def read_mark(cursor: Any, table: TableName) -> Mark | None:
    """The mark of a table."""
    found = rows_of(
        cursor,
        f"SELECT query_id, batch_id, coalesce({_ENTRY}, '') FROM {table.beside(MARKS).sql} WHERE table_name = {literal(table.name)}",
    )
    return Mark(*found[0]) if found else None


def write_mark(cursor: Any, table: TableName, mark: Mark) -> None:
    """Replace the mark of a table."""
    marks, name = table.beside(MARKS).sql, literal(table.name)
    cursor.execute(f"DELETE FROM {marks} WHERE table_name = {name}")
    values = f"{name}, {literal(mark.query)}, {mark.batch}, {literal(mark.entry)}"
    cursor.execute(f"INSERT INTO {marks} (table_name, query_id, batch_id, {_ENTRY}) VALUES ({values})")
