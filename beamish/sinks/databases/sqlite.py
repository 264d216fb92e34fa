"""SQLite: what is older goes, what is newer comes. ``IS`` compares nulls and uses the primary key's index."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.compute as pc

from beamish.errors import OptionError
from beamish.kernels.image_columns import DELETED
from beamish.sinks.batch import Batch
from beamish.sinks.databases.database import STAGE, Database, equal, literal, names, newer, rows_of, written
from beamish.sinks.databases.files import path_of
from beamish.sinks.names import TableName, quoted

_WAIT_MS = 30_000
"""How long a transaction waits for another's to end."""


@attrs.frozen
class Sqlite(Database):
    """See the head of the file."""

    title = "SQLite"
    driver = "adbc_driver_sqlite"
    package = "adbc-driver-sqlite"
    extra = "sqlite"
    json_type = "TEXT"

    @property
    def address(self) -> str:
        return path_of(self.uri)

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

    def as_stored(self, batch: Batch) -> pa.Table:
        return pa.table({name: _stored(batch.rows[name]) for name in batch.rows.column_names})

    def begin(self, cursor: Any, table: TableName) -> None:
        cursor.execute(f"PRAGMA busy_timeout = {_WAIT_MS}")

    def columns(self, cursor: Any, table: TableName) -> Mapping[str, str]:
        found = rows_of(cursor, f"SELECT name, type FROM pragma_table_info({literal(table.name)})")
        return {name: type_.upper() for name, type_ in found}

    def create(self, batch: Batch, table: TableName, types: Mapping[str, str]) -> Iterator[str]:
        columns = ", ".join(f"{quoted(name)} {type_}" for name, type_ in types.items())
        yield f"CREATE TABLE {table.sql} ({columns}, PRIMARY KEY ({names(batch.identity)}))"

    def merge(
        self, batch: Batch, table: TableName, declared: Mapping[str, str], *, keep_deleted: bool
    ) -> Iterator[str]:
        columns, same = written(batch, keep_deleted=keep_deleted), equal(batch.identity, "IS")
        # CROSS JOIN: each row of the stage is looked up in the table, not the other way round.
        yield (
            f"DELETE FROM {table.sql} WHERE rowid IN (SELECT t.rowid FROM temp.{quoted(STAGE)} AS s"
            f" CROSS JOIN {table.sql} AS t WHERE {same} AND {newer()})"
        )
        yield (
            f"INSERT INTO {table.sql} ({names(columns)}) SELECT {names(columns, 's.')} FROM temp.{quoted(STAGE)} AS s"
            f" WHERE {'' if keep_deleted else f'NOT s.{quoted(DELETED)} AND '}NOT EXISTS"
            f" (SELECT 1 FROM {table.sql} AS t WHERE {same})"
        )


def _affinity(declared: str) -> str:
    """What SQLite makes of a declared type."""
    for part, affinity in (("INT", "INTEGER"), ("CHAR", "TEXT"), ("CLOB", "TEXT"), ("TEXT", "TEXT"), ("BLOB", "BLOB")):
        if part in declared:
            return affinity
    if not declared:
        return "BLOB"
    return "REAL" if any(part in declared for part in ("REAL", "FLOA", "DOUB")) else "NUMERIC"


def _stored(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Times as texts that sort and that SQLite's functions read, decimals as texts that are exact."""
    if pa.types.is_timestamp(column.type):
        texts = pc.strftime(column.cast(pa.timestamp("us")), format="%Y-%m-%d %H:%M:%S")
        return pc.replace_substring_regex(texts, r"\.000000$", "")
    return column.cast(pa.string()) if pa.types.is_decimal(column.type) else column
