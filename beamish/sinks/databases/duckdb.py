"""DuckDB, 1.4 or later: one MERGE INTO. The table has no unique index, since DuckDB would check it too early.

Uses DuckDB's own Python module, in which all connections to a file share a database instance, including those of a notebook in
the same process. ADBC opens an instance per connection; two in one process ignore each other's locks and overwrite each other's
writes.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

import attrs
import pyarrow as pa

from beamish.errors import SinkError
from beamish.kernels.upserts import MergeInto
from beamish.sinks.databases.batch import STAGE, Batch, TableName, quoted
from beamish.sinks.databases.database import FileDatabase, check_collation, decimal_fits, equal, literal, rows_of

_TYPES = {
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INTEGER",
    pa.int64(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.string(): "VARCHAR",
    pa.binary(): "BLOB",
    pa.date32(): "DATE",
    pa.timestamp("us", "UTC"): "TIMESTAMP WITH TIME ZONE",
    pa.timestamp("us"): "TIMESTAMP",
}
_SAME = "IS NOT DISTINCT FROM"
_WAIT_S = 30
"""How long a transaction waits for others to close the file, seconds."""
_IN_USE = ("lock on file", "already attached")
"""DuckDB's error messages if another process has the file open, or this one is closing it."""
_UPPER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_WIDER = ["TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"]


_locks: defaultdict[Path, Lock] = defaultdict(Lock)
"""A lock per file, for the transactions of this process."""


@attrs.frozen
class DuckDb(FileDatabase):
    """See the module docstring."""

    title = "DuckDB"
    driver = "duckdb"
    package = "'duckdb>=1.4'"
    extra = "duckdb"
    json_type = "JSON"

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        # DuckDB rejects conflicting transactions of the same process; with this lock they wait for one another.
        with _locks[Path(self.address).absolute()], FileDatabase.transaction(self) as cursor:
            yield cursor

    def connect(self, driver: Any) -> Any:
        until = time.monotonic() + _WAIT_S
        while True:
            try:
                return FileDatabase.connect(self, driver)
            except driver.Error as error:
                if not any(words in str(error) for words in _IN_USE) or time.monotonic() > until:
                    raise
                time.sleep(0.05)

    def cursor(self, connection: Any) -> Any:
        return connection  # its cursors are connections with their own transactions

    def begin(self, cursor: Any) -> None:
        cursor.begin()

    def load(self, cursor: Any, batch: Batch) -> None:
        cursor.register(STAGE, batch.rows)

    def type_name(self, type_: pa.DataType) -> str | None:
        if pa.types.is_decimal(type_):
            return f"DECIMAL({type_.precision},{type_.scale})"
        return _TYPES.get(type_)

    def fits(self, wanted: str, declared: str) -> bool:
        wider = _WIDER[_WIDER.index(wanted) :] if wanted in _WIDER else []
        wider += ["DOUBLE"] if wanted == "FLOAT" else []
        wider += ["VARCHAR"] if wanted == "JSON" else []
        return declared == wanted or declared in wider or decimal_fits(wanted, declared)

    def columns(self, cursor: Any, table: TableName) -> Mapping[str, str]:
        found = rows_of(
            cursor,
            f"SELECT column_name, data_type FROM duckdb_columns() WHERE {self._is('table', table)} ORDER BY column_index",
        )
        return dict(found)

    def resolve(self, cursor: Any, table: TableName) -> TableName:
        found = rows_of(
            cursor, f"SELECT schema_name, table_name FROM duckdb_columns() WHERE {self._is('table', table)}"
        )
        schema, name = found[0] if found else (table.schema, table.name)
        return TableName(None if table.schema is None else schema, name)

    def same_name(self, column: str, name: str) -> str:
        # DuckDB ignores the case of ASCII letters in names; its lower() converts others too.
        return f"translate({column}, '{_UPPER}', '{_UPPER.lower()}') = translate({literal(name)}, '{_UPPER}', '{_UPPER.lower()}')"

    def check_kind(self, cursor: Any, table: TableName) -> None:
        if rows_of(cursor, f"SELECT 1 FROM duckdb_views() WHERE {self._is('view', table)}"):
            raise SinkError(f"table {table}: it is a view; name a table")

    def may_pass_over(self, cursor: Any, table: TableName) -> bool:
        return False  # it has neither triggers nor rules

    def _is(self, kind: str, table: TableName) -> str:
        schema = self.same_name("schema_name", table.schema) if table.schema else "schema_name = current_schema()"
        return f"database_name = current_database() AND {schema} AND {self.same_name(f'{kind}_name', table.name)}"

    def create(self, batch: Batch, table: TableName, types: Mapping[str, str]) -> Iterator[str]:
        yield f"CREATE TABLE {table.sql} ({', '.join(f'{quoted(name)} {type_}' for name, type_ in types.items())})"

    def check_identity(self, cursor: Any, batch: Batch, table: TableName) -> None:
        check_collation(cursor, batch, table)

    def merge(
        self, batch: Batch, table: TableName, declared: Mapping[str, str], *, keep_deleted: bool, replay: bool
    ) -> Iterator[str]:
        into = MergeInto(table.sql, self.stage, batch.data, batch.identity, quoted, _SAME, keep_deleted)
        yield into.repeat() if replay else into.update()

    def matches(self, batch: Batch, declared: Mapping[str, str]) -> Iterator[str]:
        yield equal(batch.identity, _SAME)
