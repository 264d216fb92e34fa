"""SQLite, with Python's own driver: older rows are deleted, newer ones inserted. ``IS`` is null-safe and uses the index.

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
from beamish.sinks.databases.batch import Batch, TableName, quoted
from beamish.sinks.databases.database import (
    STAGE,
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

    def check(self, table: TableName, columns: Iterable[str]) -> None:
        if table.schema is not None:
            raise OptionError(
                f"table={str(table)!r}: SQLite has no schemas; for one name with a dot write '\"{table}\"'"
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

    def load(self, cursor: Any, batch: Batch) -> None:
        columns = batch.rows.column_names
        cursor.execute(f"CREATE TEMP TABLE {quoted(STAGE)} ({names(columns)})")
        rows = zip(*(_values(batch.rows[name]) for name in columns), strict=True)
        places = ", ".join("?" * len(columns))
        cursor.executemany(f"INSERT INTO temp.{quoted(STAGE)} VALUES ({places})", rows)

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

    def merge(
        self, batch: Batch, table: TableName, declared: Mapping[str, str], *, keep_deleted: bool
    ) -> Iterator[str]:
        columns, same = written(batch, keep_deleted=keep_deleted), equal(batch.identity, "IS")
        row_id = next(name for name in _ROW_IDS if name not in map(str.lower, declared))
        # CROSS JOIN forces the join order: stage rows are looked up in the table.
        yield (
            f"DELETE FROM {table.sql} WHERE {row_id} IN (SELECT t.{row_id} FROM temp.{quoted(STAGE)} AS s"
            f" CROSS JOIN {table.sql} AS t WHERE {same} AND {newer()})"
        )
        yield (
            f"INSERT INTO {table.sql} ({names(columns)}) SELECT {names(columns, 's.')} FROM temp.{quoted(STAGE)} AS s"
            f" WHERE {'' if keep_deleted else f'NOT s.{quoted(DELETED)} AND '}NOT EXISTS"
            f" (SELECT 1 FROM {table.sql} AS t WHERE {same})"
        )


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
