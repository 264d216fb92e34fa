"""A table of a database, kept as the panes say, and its ownership: one query may write it (``_beamish_sinks``).

Table ownership: which query may write a table, and the last batch that it wrote, one row per table in ``_beamish_sinks``.

``_sequence`` orders changes only within one query: another query, or the same pipeline restarted from an empty checkpoint, counts
from the beginning, and its changes would look old. So a table belongs to the query id in a checkpoint. Spark Connect does not
report that id; there only batch numbers are compared.

A number alone does not identify a batch: a checkpoint restored to an earlier batch plans the same number again, with other rows.
So the mark has a digest of the batch's entry in the offset log, which is the same for a replayed batch, and one of its changed
identities, which differs if the sources have changed under the same offsets.

A mark alone does not identify a table: it may have been emptied, restored or written by others. So the mark has the number of
rows, and the sum of their sequences, which each batch keeps up to date by what it changes. In each batch they must not be those of a
table with rows if it has none; in the first batch of a process, and after another writer's mark, the table is counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from beamish.errors import ColumnError, OptionError, SinkError
from beamish.kernels.upserts import DELETED, REBUILT, Contents, Mark, Marked
from beamish.sinks.databases import database_of
from beamish.sinks.databases.batch import MARKS, Batch, TableName, quoted
from beamish.sinks.databases.database import Database, literal, rows_of, written
from beamish.sinks.options import OfDriver, is_driver, read_fields, read_flag, read_keys

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


_ENTRY = "batch_entry"
_ADDED = {_ENTRY: "VARCHAR(64)", "batch_rows": "VARCHAR(64)", "table_rows": "BIGINT", "table_sequences": "BIGINT"}
"""The columns that earlier versions lacked."""
_COLUMNS = ", ".join(
    (
        "table_name VARCHAR(255) PRIMARY KEY, query_id VARCHAR(64) NOT NULL, batch_id BIGINT NOT NULL",
        *(f"{name} {type_}" for name, type_ in _ADDED.items()),
    )
)

_left: dict[tuple[str, TableName], Mark] = {}
"""The last mark that this process wrote per database and table."""


def make_marks(cursor: Any, database: Database, table: TableName, *, create: bool) -> Sequence[str]:
    """Create the table of marks, or add columns that an earlier version lacked.

    Returns:
        the statements that did so.

    Raises:
        SinkError: it is missing, or lacks a column, and ``create`` is False.
    """
    marks = table.beside(MARKS)
    if database.columns(cursor, marks).keys() >= _ADDED.keys():
        return ()
    database.lock(cursor, marks)
    columns = database.columns(cursor, marks)
    wanted = [
        f"ALTER TABLE {marks.sql} ADD COLUMN {name} {type_}" for name, type_ in _ADDED.items() if name not in columns
    ]
    if not columns:
        wanted = [f"CREATE TABLE {marks.sql} ({_COLUMNS})"]
        if table.schema is not None:
            database.check_schema(cursor, table.schema)
    if wanted and not create:
        raise SinkError(
            f"table {table}: with create=False {marks}, which records the owner of a table, must exist too: {'; '.join(wanted)}"
        )
    for statement in wanted:
        cursor.execute(statement)
    return wanted


def adopt_mark(cursor: Any, database: Database, given: TableName, table: TableName) -> None:
    """Move a mark of an earlier version, which was in the first schema of the search path, beside its table.

    Args:
        cursor: a cursor.
        database: the database.
        given: the table's name as declared.
        table: the table as the database has it.
    """
    marks, other = table.beside(MARKS), database.resolve(cursor, given.beside(MARKS))
    columns = {} if given.schema is not None or other == marks else database.columns(cursor, other)
    mine = f"WHERE {database.same_name('table_name', table.name)}"
    if not columns or rows_of(cursor, f"SELECT 1 FROM {marks.sql} {mine}"):
        return
    mine += " AND batch_rows IS NULL" if "batch_rows" in columns else ""
    kept = ", ".join(name for name in ("table_name", "query_id", "batch_id", _ENTRY) if name in columns)
    cursor.execute(f"INSERT INTO {marks.sql} ({kept}) SELECT {kept} FROM {other.sql} {mine}")
    cursor.execute(f"DELETE FROM {other.sql} {mine}")


def marked(cursor: Any, database: Database, table: TableName, added: Sequence[str], *, exists: bool) -> Marked:
    """A table and its mark.

    Args:
        cursor: a cursor.
        database: the database.
        table: the table as the database has it.
        added: the statements of this transaction that made the mark's columns.
        exists: whether the table exists.

    Raises:
        SinkError: it has several.
    """
    marks = table.beside(MARKS)
    same = database.same_name("table_name", table.name)
    found = rows_of(cursor, f"SELECT table_name, query_id, batch_id, {', '.join(_ADDED)} FROM {marks.sql} WHERE {same}")
    mine = f"WHERE table_name IN ({', '.join(literal(row[0]) for row in found) or literal(table.name)})"
    drop = f"run DROP TABLE IF EXISTS {table.sql}; DELETE FROM {marks.sql} {mine}"
    if len(found) > 1:
        named = ", ".join(f"{name} of the query {query}" for name, query, *_ in found)
        raise SinkError(
            f"table {table}: {marks} has several marks for it ({named}), which are names of one table: two queries wrote it, and changes "
            f"of two queries cannot be ordered. Give each query a table of its own; to fill one again from the source, stop both, {drop}; then start from "
            "empty checkpoints"
        )
    last = read_mark(*found[0][1:]) if found else None
    has_rows = exists and bool(rows_of(cursor, f"SELECT 1 FROM {table.sql} LIMIT 1"))
    first = bool(found) and exists and found[0][3] is None
    return Marked(
        str(table),
        last,
        exists,
        has_rows,
        drop,
        accept=f"UPDATE {marks.sql} SET table_rows = NULL {mine}",
        accept_keys="; ".join([*added, f"UPDATE {marks.sql} SET {_ENTRY} = '' {mine}"]) if first else "",
    )


def read_mark(  # noqa: PLR0917 - the columns of a mark
    query: str, batch: int, entry: str | None, rows: str | None, table_rows: int | None, sequences: int | None
) -> Mark:
    """A mark from its columns; those that an earlier version did not write are null."""
    contents = None if table_rows is None or sequences is None else Contents(table_rows, sequences)
    is_entry = entry is not None and entry.startswith("offsets ")  # an earlier version stored a digest of rows there
    return Mark(query, batch, entry if is_entry and entry else "", rows or "", contents=contents)


def write_mark(cursor: Any, database: Database, table: TableName, mark: Mark, contents: Contents) -> Mark:
    """Replace the mark of a table."""
    marks, name = table.beside(MARKS).sql, literal(table.name)
    cursor.execute(f"DELETE FROM {marks} WHERE {database.same_name('table_name', table.name)}")
    values = f"{name}, {literal(mark.query)}, {mark.batch}, {literal(mark.entry)}, {literal(mark.rows)}"
    cursor.execute(
        f"INSERT INTO {marks} (table_name, query_id, batch_id, {', '.join(_ADDED)}) VALUES"
        f" ({values}, {contents.rows}, {contents.sequences})"
    )
    return attrs.evolve(mark, previous=None, contents=contents)


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
    batch is one transaction: a reader never sees half of one. The values of a replayed batch replace those
    of its first run.

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
class SqlSink(OfDriver):
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
            SinkError: the table does not match, belongs to another query, was changed by others, or cannot be reached; or the batch does
                not follow the last one. Nothing of the batch was written.
        """
        from beamish.spark.merging import mark_of

        # One action per batch: a second one would run the query's plan again.
        batch = self._net(batch_df)
        self.write(batch, mark_of(batch_df, batch_id))

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
        mark = Mark(*last_entry(panes.sparkSession, checkpoint), REBUILT)
        with self.database.transaction() as cursor:
            table, declared, _ = self._begin(cursor)
            if declared:
                cursor.execute(f"DELETE FROM {table.sql}")
                if rows_of(cursor, f"SELECT 1 FROM {table.sql} LIMIT 1"):
                    raise SinkError(
                        f"table {table}: a trigger or a rule of the table keeps rows that the sink deletes; drop it"
                    )
            self._merge(cursor, table, batch, declared)
            mark = write_mark(cursor, self.database, table, mark, self.database.contents(cursor, table))
        _left[self.database.uri, table] = mark

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
        mark = attrs.evolve(mark, rows=batch.digest())
        with self.database.transaction() as cursor:
            table, declared, added = self._begin(cursor)
            before = marked(cursor, self.database, table, added, exists=bool(declared))
            key, had = (self.database.uri, table), None if before.last is None else before.last.contents
            if declared and had is not None and _left.get(key) != before.last:
                before = attrs.evolve(before, contents=self.database.contents(cursor, table))
            before.check_takes(mark)
            if before.accept_keys:
                self.database.check_upgraded(cursor, batch, table, before.accept_keys)
            change = self._merge(cursor, table, batch, declared, replay=before.is_replay(mark))
            if not declared or (before.last is None):
                had = Contents(0, 0)
            known = mark.query or (before.last.query if before.last and declared else "")
            contents = self.database.contents(cursor, table) if had is None else had.plus(change)
            mark = write_mark(cursor, self.database, table, attrs.evolve(mark, query=known), contents)
        _left[key] = mark

    def _begin(self, cursor: Any) -> tuple[TableName, Mapping[str, str], Sequence[str]]:
        """The table as the database has it, locked against other writers, its columns (empty: no such table), and the statements that made marks."""
        table = self.database.resolve(cursor, self.table)
        self.database.lock(cursor, table)
        self.database.check_kind(cursor, table)
        added = make_marks(cursor, self.database, table, create=self.create)
        adopt_mark(cursor, self.database, self.table, table)
        return table, self.database.columns(cursor, table), added

    def _merge(
        self, cursor: Any, table: TableName, batch: Batch, declared: Mapping[str, str], *, replay: bool = False
    ) -> Contents:
        """Merge a batch; how it changes the contents of the table (SinkError: the table does not fit, or did not store a row)."""
        types = self._types(batch)
        declared = declared or self._made(cursor, table, batch, types)
        self._check_fits(table, types, declared)
        self.database.check_identity(cursor, batch, table)
        self.database.check_values(batch, table, declared)
        if not batch.rows.num_rows:
            return Contents(0, 0)
        database, deleted = self.database, self.keep_deleted
        database.load(cursor, batch)
        change = database.change(cursor, batch, table, declared, keep_deleted=deleted, replay=replay)
        for statement in database.merge(batch, table, declared, keep_deleted=deleted, replay=replay):
            cursor.execute(statement)
        if database.may_pass_over(cursor, table):
            database.settle(cursor)
            missing, undeleted = database.missed(cursor, batch, table, declared, keep_deleted=deleted)
            if missing > 0 or undeleted:
                raise SinkError(
                    f"table {table}: of a batch of {batch.rows.num_rows} changes {missing} rows were not stored and {undeleted} not "
                    "deleted, though the database reported no error: a trigger, a rule or a policy of the table passes over them. Remove it, "
                    "or choose another table"
                )
        return change

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

    def _made(self, cursor: Any, table: TableName, batch: Batch, types: Mapping[str, str]) -> Mapping[str, str]:
        statements = list(self.database.create(batch, table, types))
        if not self.create:
            raise SinkError(
                f"table {table}: it does not exist, and create is False; create it: {'; '.join(statements)}"
            )
        for statement in statements:
            cursor.execute(statement)
        return self.database.columns(cursor, table)

    def _check_fits(self, table: TableName, types: Mapping[str, str], declared: Mapping[str, str]) -> None:
        for name, type_ in types.items():
            if name not in declared:
                hint = "; the sink was made without keep_deleted before" if name == DELETED else ""
                raise SinkError(
                    f"table {table}: it has no column {name!r} (it has {', '.join(declared)}){hint}; add it: ALTER TABLE "
                    f"{table.sql} ADD COLUMN {quoted(name)} {type_}, which is null in rows that do not change again unless "
                    "sink.rebuild(panes, checkpoint=...) fills the table from all panes; or choose another table"
                )
            if not self.database.fits(type_, declared[name]):
                raise SinkError(
                    f"table {table}: column {name!r} is {declared[name]}, the panes need {type_}; change its type, or choose "
                    "another table"
                )
        if DELETED in declared and not self.keep_deleted:
            raise SinkError(
                f"table {table}: it has a column {DELETED!r}, so it has deleted rows, which this sink would treat as live; use keep_deleted=True, or choose another table"
            )
