"""PostgreSQL, 15 or later: INSERT ... ON CONFLICT on a unique constraint with NULLS NOT DISTINCT."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.compute as pc

from beamish.addresses import is_uri, printable
from beamish.errors import ColumnError, OptionError, SinkError
from beamish.kernels.upserts import DELETED
from beamish.sinks.databases.batch import STAGE, Batch, TableName, quoted
from beamish.sinks.databases.database import Database, decimal_fits, literal, names, newer, rows_of, written

_LONGEST = 63
"""Maximum length of a name in bytes; PostgreSQL truncates longer ones."""
_FITS = {
    "smallint": {"integer", "bigint"},
    "integer": {"bigint"},
    "real": {"double precision"},
    "text": {"character varying", "user-defined"},
    "jsonb": {"json", "text"},
}
"""Types that hold all values of a type; decimals have rules of their own."""
_AS_DECIMAL = {"smallint": "numeric(5,0)", "integer": "numeric(10,0)", "bigint": "numeric(19,0)"}
_LENGTH = re.compile(r"character varying\((\d+)\)")
_KINDS = {"v": "a view", "m": "a materialized view", "f": "a foreign table"}
_WITH_KEY = {"23503", "23505", "23P01"}
"""The states of errors whose detail has a key; that of others may have a row."""
_DETAIL = ("PG_DIAG_MESSAGE_DETAIL", b"PG_DIAG_MESSAGE_DETAIL")
_NUL_IN_JSON = r"(^|[^\\])(\\\\)*\\u0000"
_TYPES = {
    pa.bool_(): "boolean",
    pa.int8(): "smallint",
    pa.int16(): "smallint",
    pa.int32(): "integer",
    pa.int64(): "bigint",
    pa.float32(): "real",
    pa.float64(): "double precision",
    pa.string(): "text",
    pa.binary(): "bytea",
    pa.date32(): "date",
    pa.timestamp("us", "UTC"): "timestamp with time zone",
    pa.timestamp("us"): "timestamp without time zone",
}


@attrs.frozen
class PostgreSql(Database):
    """See the module docstring."""

    title = "PostgreSQL"
    driver = "adbc_driver_postgresql.dbapi"
    package = "adbc-driver-postgresql"
    extra = "postgresql"
    json_type = "jsonb"

    @property
    def address(self) -> str:
        """The address in the driver's format (OptionError: the URI is malformed)."""
        if "://" not in self.uri or not is_uri(self.uri):
            raise OptionError(
                f"uri={printable(self.uri)}: must be 'postgresql://user:password@host:port/database'; percent-encode special characters "
                "in user, password and database: urllib.parse.quote(password, safe='')"
            )
        return self.uri

    def check(self, table: TableName, columns: Iterable[str]) -> None:
        for name in (table.name, *columns):
            if len(name.encode()) > _LONGEST:
                raise ColumnError(
                    f"{name!r}: PostgreSQL truncates names after {_LONGEST} bytes, and this one has {len(name.encode())}; "
                    "choose a shorter one"
                )
        Database.check(self, table, columns)

    def resolve(self, cursor: Any, table: TableName) -> TableName:
        found = rows_of(
            cursor,
            "SELECT n.nspname::text, c.relname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
            f" WHERE c.oid = to_regclass({literal(table.sql)})",
        )
        if found:
            return TableName(*found[0])
        schema = table.schema or rows_of(cursor, "SELECT current_schema()::text")[0][0]
        return TableName(schema, table.name)

    def check_kind(self, cursor: Any, table: TableName) -> None:
        found = rows_of(cursor, f"SELECT relkind::text FROM pg_class WHERE oid = to_regclass({literal(table.sql)})")
        for (kind,) in found:
            if kind not in {"r", "p"}:
                raise SinkError(f"table {table}: it is {_KINDS.get(kind, 'not a table')}; name a table")

    def words(self, error: Any) -> str:
        said, details = Database.words(self, error), getattr(error, "details", None) or ()
        detail = next((bytes(value).decode(errors="replace") for name, value in details if name in _DETAIL), "")
        if detail and getattr(error, "sqlstate", None) not in _WITH_KEY:
            said = said.replace(detail, "(a row)")
        return said

    def may_pass_over(self, cursor: Any, table: TableName) -> bool:
        own = "relhastriggers OR relhasrules OR relrowsecurity OR relkind = 'p'"
        return bool(
            rows_of(cursor, f"SELECT 1 FROM pg_class WHERE oid = to_regclass({literal(table.sql)}) AND ({own})")
        )

    def settle(self, cursor: Any) -> None:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")

    def type_name(self, type_: pa.DataType) -> str | None:
        if pa.types.is_decimal(type_):
            return f"numeric({type_.precision},{type_.scale})"
        return _TYPES.get(type_)

    def fits(self, wanted: str, declared: str) -> bool:
        declared = declared.replace("(6)", "")  # the default precision of timestamps
        plain = _LENGTH.sub("character varying", declared)
        return plain in {wanted, *_FITS.get(wanted, ())} or decimal_fits(_AS_DECIMAL.get(wanted, wanted), declared)

    def lock(self, cursor: Any, table: TableName) -> None:
        cursor.execute(f"SELECT pg_advisory_xact_lock(hashtext({literal('beamish ' + str(table))}))").fetchall()

    def columns(self, cursor: Any, table: TableName) -> Mapping[str, str]:
        found = rows_of(
            cursor,
            "SELECT a.attname::text, CASE WHEN t.typtype = 'd' THEN format_type(t.typbasetype, t.typtypmod)"
            " WHEN t.typtype = 'b' AND t.typelem = 0 THEN format_type(a.atttypid, a.atttypmod)"
            " ELSE 'user-defined' END FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid"
            f" WHERE a.attrelid = to_regclass({literal(table.sql)}) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum",
        )
        return dict(found)

    def create(self, batch: Batch, table: TableName, types: Mapping[str, str]) -> Iterator[str]:
        columns = ", ".join(f"{quoted(name)} {type_}" for name, type_ in types.items())
        yield f"CREATE TABLE {table.sql} ({columns}, UNIQUE NULLS NOT DISTINCT ({names(batch.identity)}))"

    def check_identity(self, cursor: Any, batch: Batch, table: TableName) -> None:
        found = rows_of(
            cursor,
            "SELECT i.indnullsnotdistinct, string_agg(a.attname::text, chr(10) ORDER BY a.attname::text) FROM pg_index i"
            " JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY(i.indkey[0:i.indnkeyatts - 1])"
            f" WHERE i.indrelid = to_regclass({literal(table.sql)}) AND i.indisunique AND i.indimmediate AND i.indisvalid"
            " AND i.indpred IS NULL AND i.indexprs IS NULL GROUP BY i.indexrelid, i.indnullsnotdistinct",
        )
        self._check_collations(cursor, batch, table)
        own = [one_null for one_null, columns in found if set(columns.split("\n")) == set(batch.identity)]
        if any(own) or (own and not batch.nulls):
            return
        why = "treats nulls as distinct" if own else "is missing"
        raise SinkError(
            f"{self.title}: a unique constraint over the identity of {table} ({', '.join(batch.identity)}) {why}, so rows cannot be looked up; run: ALTER TABLE {table.sql} ADD UNIQUE NULLS NOT DISTINCT ({names(batch.identity)})"
        )

    def _check_collations(self, cursor: Any, batch: Batch, table: TableName) -> None:
        found = rows_of(
            cursor,
            "SELECT a.attname::text, c.collname::text FROM pg_attribute a JOIN pg_collation c ON c.oid = a.attcollation"
            f" WHERE a.attrelid = to_regclass({literal(table.sql)}) AND NOT c.collisdeterministic",
        )
        for name, collation in found:
            if name in batch.identity:
                raise SinkError(
                    f"table {table}: key column {name!r} has the collation {collation!r}, in which different texts are equal; run: "
                    f'ALTER TABLE {table.sql} ALTER COLUMN {quoted(name)} TYPE text COLLATE "C"'
                )

    def check_values(self, batch: Batch, table: TableName, declared: Mapping[str, str]) -> None:
        for name in batch.data:
            if not pa.types.is_string(batch.schema.field(name).type):
                continue
            texts = batch.rows[name]
            nul = _NUL_IN_JSON if name in batch.nested else "\0"
            if pc.any(pc.match_substring_regex(texts, nul)).as_py():
                raise SinkError(
                    f"table {table}: column {name!r} has a text with the character NUL, which PostgreSQL cannot hold; remove it: "
                    f"panes.withColumn({name!r}, F.translate({name!r}, '\\0', ''))"
                )
            length = _LENGTH.fullmatch(declared[name])
            if length and pc.any(pc.greater(pc.utf8_length(texts), int(length[1]))).as_py():
                raise SinkError(
                    f"table {table}: column {name!r} has a text longer than its {declared[name]}; run: ALTER TABLE {table.sql} ALTER "
                    f"COLUMN {quoted(name)} TYPE text"
                )

    def load(self, cursor: Any, batch: Batch) -> None:
        cursor.adbc_ingest(STAGE, batch.rows, mode="create", temporary=True)

    def merge(
        self, batch: Batch, table: TableName, declared: Mapping[str, str], *, keep_deleted: bool, replay: bool
    ) -> Iterator[str]:
        columns = written(batch, keep_deleted=keep_deleted)
        values = ", ".join(
            f"CAST(s.{quoted(name)} AS {declared[name]})" if name in batch.nested else f"s.{quoted(name)}"
            for name in columns
        )
        sets = ", ".join(f"{quoted(name)} = excluded.{quoted(name)}" for name in columns if name not in batch.identity)
        yield (
            f"INSERT INTO {table.sql} AS t ({names(columns)}) SELECT {values} FROM {self.stage} AS s"
            f"{'' if keep_deleted else f' WHERE NOT s.{quoted(DELETED)}'}"
            f" ON CONFLICT ({names(batch.identity)}) DO UPDATE SET {sets}{'' if replay else ' WHERE ' + newer('excluded')}"
        )
        if not keep_deleted:
            for found in self.matches(batch, declared):
                yield (
                    f"DELETE FROM {table.sql} AS t USING {self.stage} AS s"
                    f" WHERE s.{quoted(DELETED)} AND {found}{'' if replay else f' AND {newer()}'}"
                )

    def matches(self, batch: Batch, declared: Mapping[str, str]) -> Iterator[str]:
        # IS NOT DISTINCT FROM cannot use an index, so each set of null columns has its own statement.
        for nulls in batch.null_patterns():
            yield " AND ".join(_same(batch, name, declared[name], is_null=name in nulls) for name in batch.identity)


def _same(batch: Batch, name: str, type_: str, *, is_null: bool) -> str:
    of, to = f"t.{quoted(name)}", f"s.{quoted(name)}"
    if is_null:
        return f"{of} IS NULL AND {to} IS NULL"
    return f"{of} = CAST({to} AS {type_})" if name in batch.nested else f"{of} = {to}"
