"""SQLite, with Python's own driver: older rows are deleted, newer ones inserted. ``IS`` is null-safe and uses the index.

``OR ABORT`` overrides the conflict clauses of the table's constraints, which would ignore rows, or delete others.

A process must not open a file with two copies of the SQLite library, such as ADBC's: closing it in one copy releases the locks of
the other (https://sqlite.org/howtocorrupt.html, 2.2.1).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

import attrs
import pyarrow as pa
import pyarrow.compute as pc

from beamish.errors import OptionError, SinkError
from beamish.kernels.upserts import DELETED
from beamish.sinks.databases.batch import STAGE, Batch, TableName, quoted
from beamish.sinks.databases.database import (
    FileDatabase,
    check_collation,
    equal,
    literal,
    names,
    newer,
    rows_of,
    written,
)

_WAIT_S = 30
"""How long a transaction waits for another one to end, seconds."""
_ROW_IDS = ("rowid", "_rowid_", "oid")
"""SQLite's names of the row id; a column of the same name hides one."""


@attrs.frozen
class Sqlite(FileDatabase):
    """See the module docstring."""

    title = "SQLite"
    driver = "sqlite3"
    package = "a Python with sqlite3"
    extra = "sqlite"
    json_type = "TEXT"
    options: ClassVar[Mapping[str, Any]] = {"timeout": _WAIT_S, "isolation_level": None}
    stage = f"temp.{quoted(STAGE)}"
    join = "CROSS JOIN"  # which forces the order: stage rows are looked up in the table

    def check(self, table: TableName, columns: Iterable[str]) -> None:
        if table.schema is not None:
            raise OptionError(
                f"table={str(table)!r}: SQLite has no schemas; for one name with a dot write '\"{table}\"'"
            )
        FileDatabase.check(self, table, columns)

    def resolve(self, cursor: Any, table: TableName) -> TableName:
        found = rows_of(
            cursor,
            f"SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND {self.same_name('name', table.name)}",
        )
        return TableName(None, found[0][0] if found else table.name)

    def same_name(self, column: str, name: str) -> str:
        return f"lower({column}) = lower({literal(name)})"  # of ASCII letters, as SQLite compares names

    def check_kind(self, cursor: Any, table: TableName) -> None:
        found = rows_of(
            cursor,
            f"SELECT type, sql FROM sqlite_master WHERE name = {literal(table.name)} AND type IN ('table', 'view')",
        )
        for kind, made in found:
            if kind == "view" or made.upper().startswith("CREATE VIRTUAL"):
                raise SinkError(f"table {table}: it is a {'view' if kind == 'view' else 'virtual table'}; name a table")
            key = rows_of(cursor, f"SELECT name FROM pragma_index_list({literal(table.name)}) WHERE origin = 'pk'")
            stored = f"SELECT 1 FROM sqlite_master WHERE type = 'index' AND name = {literal(key[0][0])}" if key else ""
            if stored and not rows_of(cursor, stored):
                raise SinkError(
                    f"table {table}: it is declared WITHOUT ROWID, and rows are replaced by their row id; declare it without that clause"
                )

    def type_name(self, type_: pa.DataType) -> str | None:
        if pa.types.is_boolean(type_) or pa.types.is_integer(type_):
            return "INTEGER"
        if pa.types.is_floating(type_):
            return "REAL"
        if pa.types.is_binary(type_):
            return "BLOB"
        plain = pa.types.is_string(type_) or pa.types.is_date(type_) or pa.types.is_timestamp(type_)
        return "TEXT" if plain or pa.types.is_decimal(type_) else None

    def fits(self, wanted: str, declared: str) -> bool:
        return _affinity(declared) in (wanted, "BLOB") or (wanted != "TEXT" and _affinity(declared) == "NUMERIC")

    def begin(self, cursor: Any) -> None:
        # A transaction that reads before it writes fails at once if another one writes; this one waits.
        cursor.execute("BEGIN IMMEDIATE")

    def may_pass_over(self, cursor: Any, table: TableName) -> bool:
        own = f"tbl_name = {literal(table.name)} AND type = 'trigger'"
        return bool(rows_of(cursor, f"SELECT 1 FROM sqlite_master WHERE {own}"))

    def load(self, cursor: Any, batch: Batch) -> None:
        columns = batch.rows.column_names
        cursor.execute(f"CREATE TEMP TABLE {quoted(STAGE)} ({names(columns)})")
        rows = zip(*(_values(batch.rows[name]) for name in columns), strict=True)
        places = ", ".join("?" * len(columns))
        cursor.executemany(f"INSERT INTO {self.stage} VALUES ({places})", rows)

    def columns(self, cursor: Any, table: TableName) -> Mapping[str, str]:
        found = rows_of(cursor, f"SELECT name, type FROM pragma_table_info({literal(table.name)})")
        return {name: type_.upper() for name, type_ in found}

    def create(self, batch: Batch, table: TableName, types: Mapping[str, str]) -> Iterator[str]:
        columns = ", ".join(f"{quoted(name)} {type_}" for name, type_ in types.items())
        # Not a primary key: a single INTEGER primary key is the row id, and a null becomes the next free one.
        yield f"CREATE TABLE {table.sql} ({columns}, UNIQUE ({names(batch.identity)}))"

    def check_identity(self, cursor: Any, batch: Batch, table: TableName) -> None:
        found = rows_of(cursor, f"SELECT name, type FROM pragma_table_info({literal(table.name)}) WHERE pk > 0")
        numbers = [name for name, type_ in found if len(found) == 1 and type_.upper() == "INTEGER"]
        for name in set(numbers) & set(batch.nulls):
            raise SinkError(
                f"table {table}: key column {name!r} has a null, which would become the next free number, since it is declared INTEGER "
                f"PRIMARY KEY; declare it INTEGER, with UNIQUE ({quoted(name)}), in a new table"
            )
        check_collation(cursor, batch, table)

    def check_upgraded(self, cursor: Any, batch: Batch, table: TableName, accept: str) -> None:
        for name in batch.identity:
            key = quoted(name)
            is_float = pa.types.is_floating(batch.schema.field(name).type)
            if is_float and rows_of(cursor, f"SELECT 1 FROM {table.sql} WHERE {key} IS NULL LIMIT 1"):
                raise SinkError(
                    f"table {table}: key column {name!r} has nulls, and an earlier version of beamish wrote NaN as null; this one writes "
                    f"the text 'NaN', so a row would stay beside its newer version. Rebuild the table: sink.rebuild(spark.table(...), "
                    f"checkpoint=...); or, if these keys are NaN, run UPDATE {table.sql} SET {key} = 'NaN' WHERE {key} IS NULL; or, if "
                    f"they are null, {accept}"
                )

    def merge(
        self, batch: Batch, table: TableName, declared: Mapping[str, str], *, keep_deleted: bool, replay: bool
    ) -> Iterator[str]:
        columns, same = written(batch, keep_deleted=keep_deleted), equal(batch.identity, "IS")
        row_id = next(name for name in _ROW_IDS if name not in map(str.lower, declared))
        yield (
            f"DELETE FROM {table.sql} WHERE {row_id} IN (SELECT t.{row_id} FROM {self.stage} AS s"
            f" {self.join} {table.sql} AS t WHERE {same}{'' if replay else f' AND {newer()}'})"
        )
        yield (
            f"INSERT OR ABORT INTO {table.sql} ({names(columns)}) SELECT {names(columns, 's.')} FROM {self.stage} AS s"
            f" WHERE {'' if keep_deleted else f'NOT s.{quoted(DELETED)} AND '}NOT EXISTS"
            f" (SELECT 1 FROM {table.sql} AS t WHERE {same})"
        )

    def matches(self, batch: Batch, declared: Mapping[str, str]) -> Iterator[str]:
        yield equal(batch.identity, "IS")


def _affinity(declared: str) -> str:
    """The affinity of a declared type."""
    for part, affinity in (("INT", "INTEGER"), ("CHAR", "TEXT"), ("CLOB", "TEXT"), ("TEXT", "TEXT"), ("BLOB", "BLOB")):
        if part in declared:
            return affinity
    if not declared:
        return "BLOB"
    return "REAL" if any(part in declared for part in ("REAL", "FLOA", "DOUB")) else "NUMERIC"


def _values(column: pa.ChunkedArray) -> list[Any]:
    """Values as SQLite stores them: dates and times as sortable texts that its functions read, decimals as exact texts.

    SQLite stores NaN as null, so NaN is the text ``NaN``.
    """
    if pa.types.is_timestamp(column.type):
        texts = pc.strftime(column.cast(pa.timestamp("us")), format="%Y-%m-%d %H:%M:%S")
        column = pc.replace_substring_regex(texts, r"\.000000$", "")
    if pa.types.is_decimal(column.type) or pa.types.is_date(column.type):
        column = column.cast(pa.string())
    values: list[Any] = column.to_pylist()
    if pa.types.is_floating(column.type) and pc.any(pc.is_nan(column)).as_py():
        return ["NaN" if value != value else value for value in values]  # noqa: PLR0124 - only NaN differs from itself
    return values
