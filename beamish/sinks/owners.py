"""Whose a table is: one line per table beside it, in ``_beamish_sinks``.

Rows know which change is newer (``_sequence``), but only among the changes of one query: another one, or the same pipeline
begun anew from an empty checkpoint, counts from the beginning, and its changes would be taken for old ones in silence. So a
table belongs to a query, by the id that its checkpoint holds. Spark Connect does not tell that id; there the numbers of
batches, which never fall within a query, must do.
"""

from __future__ import annotations

from typing import Any

import attrs

from beamish.errors import SinkError
from beamish.sinks.databases.database import literal, rows_of
from beamish.sinks.names import TableName

MARKS = "_beamish_sinks"


@attrs.frozen
class Mark:
    """The last batch that a table took.

    Attributes:
        query: the id of its query; empty: it is not known.
        batch: its number.
    """

    query: str
    batch: int

    def is_of(self, other: Mark) -> bool:
        """Whether both may be of one query."""
        return not self.query or not other.query or self.query == other.query

    def check_after(self, before: Mark | None, table: TableName, *, exists: bool) -> None:
        """Check that this batch may follow the last one.

        Args:
            before: the last one; None: there is none.
            table: the table.
            exists: whether it is there.

        Raises:
            SinkError: it is of another query, or of one begun anew; or the table is gone.
        """
        if before is None or (not exists and (self.batch == 0 or not self.is_of(before))):
            return
        begin_anew = (
            f"to fill it anew, stop the query, and say: DROP TABLE {table.sql}; DELETE FROM {table.beside(MARKS).sql} WHERE "
            f"table_name = {literal(table.name)}; then start from an empty checkpoint"
        )
        if not self.is_of(before):
            raise SinkError(
                f"table {table}: it belongs to the query {before.query} (batch {before.batch}), this is {self.query}: changes of two "
                f"queries, or of two checkpoints, cannot be put in order. Give each query a table of its own; {begin_anew}"
            )
        if not exists:
            raise SinkError(
                f"table {table}: it is gone, though batch {before.batch} of this query was put into it, and batch {self.batch} has only "
                f"what changed since. Put the table back; {begin_anew}"
            )
        if self.batch < before.batch:
            raise SinkError(
                f"table {table}: batch {self.batch} comes after batch {before.batch}: two queries write it, or the checkpoint was set "
                f"back or begun anew, and then what is newer cannot be told. Give each query a table of its own; {begin_anew}"
            )


def make_marks(cursor: Any, table: TableName) -> None:
    """Make the table of marks, if it is not there."""
    cursor.execute(
        f"CREATE TABLE IF NOT EXISTS {table.beside(MARKS).sql} (table_name VARCHAR(255) PRIMARY KEY, query_id VARCHAR(64) NOT NULL,"
        " batch_id BIGINT NOT NULL)"
    )


def read_mark(cursor: Any, table: TableName) -> Mark | None:
    """The mark of a table."""
    found = rows_of(
        cursor,
        f"SELECT query_id, batch_id FROM {table.beside(MARKS).sql} WHERE table_name = {literal(table.name)}",
    )
    return Mark(*found[0]) if found else None


def write_mark(cursor: Any, table: TableName, mark: Mark) -> None:
    """Put a mark in the place of the last one."""
    marks, name = table.beside(MARKS).sql, literal(table.name)
    cursor.execute(f"DELETE FROM {marks} WHERE table_name = {name}")
    cursor.execute(f"INSERT INTO {marks} VALUES ({name}, {literal(mark.query)}, {mark.batch})")
