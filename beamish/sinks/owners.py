"""Table ownership: which query may write a table, and the last batch that it wrote, one row per table in ``_beamish_sinks``.

``_sequence`` orders changes only within one query: another query, or the same pipeline restarted from an empty checkpoint, counts
from the beginning, and its changes would look old. So a table belongs to the query id in a checkpoint. Spark Connect does not
report that id; there only batch numbers are compared.

A number alone does not identify a batch: a checkpoint restored to an earlier batch plans the same number again, with other rows.
So the mark has a digest of the batch's entry in the offset log, which is the same for a replayed batch.
"""

from __future__ import annotations

from typing import Any

from beamish.errors import SinkError
from beamish.kernels.marks import Mark, Marked
from beamish.sinks.databases.database import Database, literal, rows_of
from beamish.sinks.databases.names import TableName

MARKS = "_beamish_sinks"
_ENTRY = "batch_entry"
_COLUMNS = f"table_name VARCHAR(255) PRIMARY KEY, query_id VARCHAR(64) NOT NULL, batch_id BIGINT NOT NULL, {_ENTRY} VARCHAR(64)"


def make_marks(cursor: Any, database: Database, table: TableName, *, create: bool) -> None:
    """Create the table of marks, or add columns that an earlier version lacked.

    Raises:
        SinkError: it is missing, or lacks a column, and ``create`` is False.
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
    if not columns and table.schema is not None:
        database.check_schema(cursor, table.schema)
    if not create:
        raise SinkError(
            f"table {table}: with create=False {marks}, which records the owner of a table, must exist too: {wanted}"
        )
    cursor.execute(wanted)


def marked(cursor: Any, table: TableName, *, exists: bool) -> Marked:
    """A table and its mark."""
    marks = table.beside(MARKS)
    mine = f"FROM {marks.sql} WHERE table_name = {literal(table.name)}"
    found = rows_of(cursor, f"SELECT query_id, batch_id, coalesce({_ENTRY}, '') {mine}")
    last = Mark(*found[0]) if found else None
    has_rows = exists and bool(rows_of(cursor, f"SELECT 1 FROM {table.sql} LIMIT 1"))
    return Marked(str(table), last, exists, has_rows, f"DROP TABLE IF EXISTS {table.sql}; DELETE {mine}")


def write_mark(cursor: Any, table: TableName, mark: Mark) -> None:
    """Replace the mark of a table."""
    marks, name = table.beside(MARKS).sql, literal(table.name)
    cursor.execute(f"DELETE FROM {marks} WHERE table_name = {name}")
    values = f"{name}, {literal(mark.query)}, {mark.batch}, {literal(mark.entry)}"
    cursor.execute(f"INSERT INTO {marks} (table_name, query_id, batch_id, {_ENTRY}) VALUES ({values})")
