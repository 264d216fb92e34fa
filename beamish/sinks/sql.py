"""A table of a database, kept as the panes say, and its ownership: one query may write it (``_beamish_sinks``).

Table ownership: which query may write a table, and the last batch that it wrote, one row per table in ``_beamish_sinks``.

``_sequence`` orders changes only within one query: another query, or the same pipeline restarted from an empty checkpoint, counts
from the beginning, and its changes would look old. So a table belongs to the query id in a checkpoint. Spark Connect does not
report that id; there only batch numbers are compared.

A number alone does not identify a batch: a checkpoint restored to an earlier batch plans the same number again, with other rows.
So the mark has a digest of the batch's entry in the offset log, which is the same for a replayed batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from beamish.errors import ColumnError, OptionError, SinkError
from beamish.kernels.upserts import DELETED, Mark, Marked
from beamish.sinks.databases import database_of
from beamish.sinks.databases.batch import Batch, TableName, quoted
from beamish.sinks.databases.database import Database, literal, rows_of, written
from beamish.sinks.options import is_driver, read_fields, read_flag, read_keys

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


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


def sql(
    uri: str,
    table: str,
    *,
    keep_deleted: bool = False,
    create: bool = True,
    fields: Sequence[str] = (),
    keys: Sequence[str] | None = None,
) -> SqlSink:
    """A function for ``foreachBatch`` that maintains a table of PostgreSQL, SQLite or DuckDB from panes.

    The table has a row per key and window with its live pane's values, ``window_start``, ``window_end`` and ``_sequence``. Each
    batch is one transaction: a reader never sees half of one. A replayed batch changes nothing.

    Args:
        uri: ``postgresql://user:password@host:port/database``, ``sqlite:///file.db`` or ``duckdb:///file.duckdb``, as seen from the
            driver (under Spark Connect: from the server). PostgreSQL and DuckDB need the extras
            ``postgresql`` and ``duckdb``, SQLite none.
        table: its name, with an optional schema: ``"stats.hourly"``.
        keep_deleted: keep deleted rows, marked by a column ``_deleted``.
        create: create the table if it does not exist.
        fields: fields of the pane to store: ``timing``, ``index``, ``on_time_index``, ``is_first``, ``is_last``,
            ``sequence``, ``watermark`` (as ``pane_timing`` and so on) and ``timestamp``.
        keys: the columns that, with the window, identify a row; default: the key columns, for versions also ``valid_from``.
            Required for joined rows.

    Returns:
        the function, a value.

    Raises:
        OptionError: an option is invalid, or the driver of the database is not installed.

    Example:
        ``panes.writeStream.foreachBatch(bm.sinks.sql("sqlite:///hourly.db", "hourly")).option("checkpointLocation", ...)``
    """
    name = TableName.read(table)
    call = f"sinks.sql(..., {str(name)!r})"
    sink = SqlSink(
        database_of(uri),
        name,
        read_flag(call, "keep_deleted", keep_deleted),
        read_flag(call, "create", create),
        read_fields(call, fields),
        read_keys(call, keys),
    )
    if is_driver() and (missing := sink.database.missing_driver()):
        raise OptionError(missing)
    return sink


@attrs.frozen
class SqlSink:
    """The function of ``bm.sinks.sql``: call it with a batch and its number, or pass it to ``foreachBatch``.

    Attributes:
        database: the database.
        table: its name.
        keep_deleted, create, fields, keys: as for ``bm.sinks.sql``.
    """

    database: Database
    table: TableName
    keep_deleted: bool
    create: bool
    fields: tuple[str, ...]
    keys: tuple[str, ...] | None

    def __attrs_post_init__(self) -> None:
        self.database.address  # noqa: B018 - it is read from the URI, or refused
        self.database.check(self.table, [])

    def __call__(self, batch_df: DataFrame, batch_id: int) -> None:
        """Write a batch of panes to the table.

        Raises:
            ColumnError: not panes, or columns that the table cannot have.
            PipelineError: they do not determine the current rows.
            SinkError: the table does not match, belongs to another query, or cannot be reached; nothing of the batch was written.
        """
        from beamish.spark.merging import batch_entry, query_id

        # One action per batch: a second one would run the query's plan again.
        batch = self._net(batch_df)
        entry = batch_entry(batch_df, batch_id) or batch.digest()
        self.write(batch, Mark(query_id(batch_df), batch_id, entry))

    def rebuild(self, panes: DataFrame, *, checkpoint: str) -> None:
        """Rebuild the table, in one transaction, from all panes that a stopped query has emitted; the query then continues from its checkpoint.

        For a deleted table, or a new column that is null in older rows.

        Args:
            panes: a batch DataFrame of all panes of the query, such as the stored table that a second sink appends them to.
            checkpoint: the query's checkpoint.

        Raises:
            ColumnError, PipelineError, SinkError: as for a batch.
            StateError: the folder is not the checkpoint of a query that has committed a batch.
        """
        from beamish.spark.checkpoint.stored_query import last_entry

        batch = self._net(panes)
        mark = Mark(*last_entry(panes.sparkSession, checkpoint))
        with self.database.transaction() as cursor:
            declared = self._begin(cursor)
            if declared:
                cursor.execute(f"DELETE FROM {self.table.sql}")
            self._merge(cursor, batch, declared)
            write_mark(cursor, self.table, mark)

    def _net(self, panes: DataFrame) -> Batch:
        from beamish.spark.merging import images

        taken = images(panes, f"sinks.sql(..., {str(self.table)!r})", self.fields, self.keys)
        self.database.check(self.table, taken.names)
        return Batch.net(taken.collect(), taken.identity, taken.nested)

    def write(self, batch: Batch, mark: Mark) -> None:
        """Write the net change of a batch to the table, in one transaction.

        Args:
            batch: the net change; may be empty.
            mark: identifies the batch.

        Raises:
            ColumnError, SinkError: as for a call.
        """
        with self.database.transaction() as cursor:
            declared = self._begin(cursor)
            before = marked(cursor, self.table, exists=bool(declared))
            before.check_takes(mark)
            self._merge(cursor, batch, declared)
            known = mark.query or (before.last.query if before.last and declared else "")
            write_mark(cursor, self.table, attrs.evolve(mark, query=known))

    def _begin(self, cursor: Any) -> Mapping[str, str]:
        """The columns of the table, locked against other writers; empty: no such table."""
        self.database.lock(cursor, self.table)
        make_marks(cursor, self.database, self.table, create=self.create)
        return self.database.columns(cursor, self.table)

    def _merge(self, cursor: Any, batch: Batch, declared: Mapping[str, str]) -> None:
        types = self._types(batch)
        declared = declared or self._made(cursor, batch, types)
        self._check_fits(types, declared)
        self.database.check_identity(cursor, batch, self.table)
        self.database.check_values(batch, self.table, declared)
        if batch.rows.num_rows:
            self.database.load(cursor, batch)
            for statement in self.database.merge(batch, self.table, declared, keep_deleted=self.keep_deleted):
                cursor.execute(statement)

    def _types(self, batch: Batch) -> Mapping[str, str]:
        """The types of the columns that are written (ColumnError: a column has an unsupported type)."""
        types: dict[str, str] = {}
        for name in written(batch, keep_deleted=self.keep_deleted):
            type_ = batch.schema.field(name).type
            found = self.database.json_type if name in batch.nested else self.database.type_name(type_)
            if found is None:
                raise ColumnError(
                    f"table {self.table}: column {name!r} is {type_}, which {self.database.title} does not support: cast it first, or leave it out"
                )
            types[name] = found
        return types

    def _made(self, cursor: Any, batch: Batch, types: Mapping[str, str]) -> Mapping[str, str]:
        statements = list(self.database.create(batch, self.table, types))
        if not self.create:
            raise SinkError(
                f"table {self.table}: it does not exist, and create is False; create it: {'; '.join(statements)}"
            )
        for statement in statements:
            cursor.execute(statement)
        return self.database.columns(cursor, self.table)

    def _check_fits(self, types: Mapping[str, str], declared: Mapping[str, str]) -> None:
        for name, type_ in types.items():
            if name not in declared:
                hint = "; the sink was made without keep_deleted before" if name == DELETED else ""
                raise SinkError(
                    f"table {self.table}: it has no column {name!r} (it has {', '.join(declared)}){hint}; add it: ALTER TABLE "
                    f"{self.table.sql} ADD COLUMN {quoted(name)} {type_}, which is null in rows that do not change again unless "
                    "sink.rebuild(panes, checkpoint=...) fills the table from all panes; or choose another table"
                )
            if not self.database.fits(type_, declared[name]):
                raise SinkError(
                    f"table {self.table}: column {name!r} is {declared[name]}, the panes need {type_}; change its type, or choose "
                    "another table"
                )
        if DELETED in declared and not self.keep_deleted:
            raise SinkError(
                f"table {self.table}: it has a column {DELETED!r}, so it has deleted rows, which this sink would treat as live; use keep_deleted=True, or choose another table"
            )
