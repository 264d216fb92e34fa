"""The contract of a database, as used by a sink.

Laws (tests/laws/test_sinks.py):

1. After a batch the table holds, per identity, the row with the greatest sequence so far, unless it is a deletion.
2. A batch that is written again, or after a rolled-back transaction, changes nothing.
3. Two identities are two rows: values that differ for Spark's GROUP BY differ in the table, and each is read back as it was. A
table or a value that violates this is rejected.
4. A row that the table swallows is noticed: one that its own triggers, rules or conflict clauses do not store or delete. The batch is
rejected.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, ClassVar

import attrs
import pyarrow as pa

from beamish.addresses import printable, without_secrets
from beamish.errors import HIDDEN, ColumnError, OptionError, SinkError, cause, values_are_hidden
from beamish.kernels.upserts import DELETED, MODULUS, SEQUENCE, Contents
from beamish.sinks.databases.batch import STAGE, Batch, TableName, is_name, quoted

_DECIMAL = re.compile(r"(?P<name>numeric|DECIMAL)(\((?P<precision>\d+),(?P<scale>-?\d+)\))?")


@attrs.frozen
class Database:
    """A database, accessed through its driver.

    Attributes:
        uri: as given by the user.
        title: its name.
        driver: the DB-API module of its driver.
        package: its pip requirement.
        extra: the extra of beamish that includes it.
        json_type: the type of a column of JSON.
    """

    uri: str = attrs.field(repr=printable)
    title: ClassVar[str]
    driver: ClassVar[str]
    package: ClassVar[str]
    extra: ClassVar[str]
    json_type: ClassVar[str]
    options: ClassVar[Mapping[str, Any]] = {}
    """Additional arguments of the driver's ``connect``."""
    stage: ClassVar[str] = quoted(STAGE)
    """The quoted name of the temporary table that a batch is loaded into."""
    join: ClassVar[str] = "JOIN"
    """How the stage is joined with the table."""

    # Per database

    @property
    def address(self) -> str:
        """The address in the driver's format."""
        return self.uri

    def check(self, table: TableName, columns: Iterable[str]) -> None:
        """Check names.

        Raises:
            OptionError, ColumnError: the database does not support these names.
        """
        for name in columns:
            if not is_name(name):
                raise ColumnError(
                    f"table {table}: column {printable(name)}: a name must be Unicode text without the character NUL; rename it"
                )

    def resolve(self, cursor: Any, table: TableName) -> TableName:
        """The table as the database has it, in its schema and spelling; for a missing one where it would be created."""
        raise NotImplementedError

    def same_name(self, column: str, name: str) -> str:
        """The condition that a column has a name, by the database's rule for upper and lower case."""
        return f"{column} = {literal(name)}"

    def check_kind(self, cursor: Any, table: TableName) -> None:
        """Check that rows can be stored in it.

        Raises:
            SinkError: it is a view, or another kind of table that a sink cannot maintain.
        """
        raise NotImplementedError

    def type_name(self, type_: pa.DataType) -> str | None:
        """The column type for an Arrow type; None: not supported."""
        raise NotImplementedError

    def fits(self, wanted: str, declared: str) -> bool:
        """Whether a declared column type holds all values of the wanted type."""
        raise NotImplementedError

    def lock(self, cursor: Any, table: TableName) -> None:
        """Lock the table, so that this transaction is its only writer."""

    def check_schema(self, cursor: Any, schema: str) -> None:
        """Check that a schema exists.

        Raises:
            SinkError: it does not exist; the message has the statement that creates it.
        """
        if not rows_of(cursor, f"SELECT 1 FROM pg_namespace WHERE {self.same_name('nspname', schema)}"):
            raise SinkError(
                f"{self.title}: the schema {schema!r} does not exist; create it: CREATE SCHEMA {quoted(schema)}"
            )

    def columns(self, cursor: Any, table: TableName) -> Mapping[str, str]:
        """The columns of a table with their types; empty: no such table."""
        raise NotImplementedError

    def create(self, batch: Batch, table: TableName, types: Mapping[str, str]) -> Iterator[str]:
        """Statements that create the table.

        Args:
            batch: the first batch.
            table: its name.
            types: its columns with their types.
        """
        raise NotImplementedError

    def check_identity(self, cursor: Any, batch: Batch, table: TableName) -> None:
        """Check that the table distinguishes identities and can look them up.

        Raises:
            SinkError: a constraint, a collation or a type of the table does not allow it.
        """

    def check_upgraded(self, cursor: Any, batch: Batch, table: TableName, accept: str) -> None:
        """Check that a table of an earlier version, whose marks had no entry of the offset log, stores keys as this version does.

        Args:
            cursor: a cursor.
            batch: the batch that follows.
            table: its name.
            accept: the statement that accepts the table as it is.

        Raises:
            SinkError: a key may be stored in another form.
        """

    def check_values(self, batch: Batch, table: TableName, declared: Mapping[str, str]) -> None:
        """Check that the columns store the values of a batch unchanged.

        Raises:
            SinkError: a value would be altered or rejected.
        """

    def load(self, cursor: Any, batch: Batch) -> None:
        """Load the rows of a batch into the temporary table, or view, ``STAGE``."""
        raise NotImplementedError

    def merge(
        self, batch: Batch, table: TableName, declared: Mapping[str, str], *, keep_deleted: bool, replay: bool
    ) -> Iterator[str]:
        """Statements that merge the stage into the table.

        Args:
            batch: the batch in the stage.
            table: the target.
            declared: the table's columns with their types.
            keep_deleted: whether deleted rows are kept, marked.
            replay: whether the table has the batch: then its rows replace those of the first run, whatever their sequence.
        """
        raise NotImplementedError

    def matches(self, batch: Batch, declared: Mapping[str, str]) -> Iterator[str]:
        """Conditions for a row ``t`` of the table to have the identity of a row ``s`` of the stage; at most one holds for a row."""
        raise NotImplementedError

    def may_pass_over(self, cursor: Any, table: TableName) -> bool:
        """Whether the table has triggers, rules, policies or clauses of its own, which may not store or delete a row without an error."""
        raise NotImplementedError

    def settle(self, cursor: Any) -> None:
        """Run what the table's constraints and triggers have deferred to the end of the transaction."""

    # Common

    def contents(self, cursor: Any, table: TableName) -> Contents:
        """The rows of a table; reads all of it."""
        return Contents(*rows_of(cursor, f"SELECT count(*), {_sum(f't.{_SEQUENCE}')} FROM {table.sql} AS t")[0])

    def change(
        self,
        cursor: Any,
        batch: Batch,
        table: TableName,
        declared: Mapping[str, str],
        *,
        keep_deleted: bool,
        replay: bool,
    ) -> Contents:
        """How the merge of the stage will change the contents of the table."""
        changed = "TRUE" if replay else newer()
        live = "TRUE" if keep_deleted else f"NOT s.{quoted(DELETED)}"
        counted = (live, f"NOT ({live}) AND {changed}")
        summed = (
            f"CASE WHEN {changed} THEN t.{_SEQUENCE} END",
            f"CASE WHEN {live} AND NOT {changed} THEN s.{_SEQUENCE} END",
        )
        matched, removed, replaced, kept = self._joined(
            cursor, batch, table, declared, [*map(_count, counted), *map(_sum, summed)]
        )
        stored = batch.stored(keep_deleted=keep_deleted)
        return Contents(stored.rows - matched - removed, stored.sequences - kept - replaced)

    def missed(
        self, cursor: Any, batch: Batch, table: TableName, declared: Mapping[str, str], *, keep_deleted: bool
    ) -> tuple[int, int]:
        """How many rows of the stage the merge has not stored, and how many not deleted."""
        live = "TRUE" if keep_deleted else f"NOT s.{quoted(DELETED)}"
        counted = [_count(f"{live} AND NOT {newer()}"), _count(f"NOT ({live}) AND {newer()}")]
        there, undeleted = self._joined(cursor, batch, table, declared, counted)
        return batch.stored(keep_deleted=keep_deleted).rows - there, undeleted

    def _joined(
        self, cursor: Any, batch: Batch, table: TableName, declared: Mapping[str, str], sums: Sequence[str]
    ) -> list[int]:
        """Sums over the rows of the stage, each with the row of the table that has its identity."""
        each = [
            rows_of(cursor, f"SELECT {', '.join(sums)} FROM {self.stage} AS s {self.join} {table.sql} AS t ON {same}")[
                0
            ]
            for same in self.matches(batch, declared)
        ]
        return [sum(column) for column in zip(*each, strict=True)]

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        """A cursor in a transaction of its own connection, committed or rolled back at the end.

        Raises:
            SinkError: the driver is not installed, or the database reports an error.
        """
        wrote = "nothing of the batch was written"
        if missing := self.missing_driver():
            raise SinkError(f"{missing}; {wrote}")
        driver = importlib.import_module(self.driver)
        try:
            with closing(self.connect(driver)) as connection, closing(self.cursor(connection)) as cursor:
                self.begin(cursor)
                yield cursor
                wrote = "the commit failed: the batch was written as a whole or not at all, and may be written again"
                connection.commit()
        except driver.Error as error:
            said = str(error).strip()
            shown = without_secrets(self.words(error), self.uri)
            raise SinkError(f"{self.title}: {HIDDEN if values_are_hidden() else shown}; {wrote}") from (
                cause(error) if shown == said else None
            )

    def connect(self, driver: Any) -> Any:
        """A new connection, by DB-API."""
        return driver.connect(self.address, **self.options)

    def cursor(self, connection: Any) -> Any:
        """A cursor of a connection."""
        return connection.cursor()

    def begin(self, cursor: Any) -> None:
        """Begin the transaction, where the driver does not."""

    def words(self, error: Any) -> str:
        """The driver's message, without rows of the table (SECURITY.md)."""
        return str(error).strip()

    def missing_driver(self) -> str:
        """An error text with the line that installs the driver; empty: it can be imported."""
        try:
            importlib.import_module(self.driver)
        except ImportError as error:
            return (
                f"sinks.sql: the driver for {self.title} is not installed ({error}): pip install {self.package} "
                f"(the extra '{self.extra}')"
            )
        return ""


_SEQUENCE = f"{quoted(SEQUENCE)} % {MODULUS}"


def _sum(values: str) -> str:
    return f"CAST(coalesce(sum({values}), 0) AS BIGINT)"


def _count(condition: str) -> str:
    return _sum(f"CASE WHEN {condition} THEN 1 END")


def check_collation(cursor: Any, batch: Batch, table: TableName) -> None:
    """Check that the identity columns distinguish all texts.

    Raises:
        SinkError: a collation ignores case or trailing blanks.
    """
    for name in batch.identity:
        if name in batch.nested or not pa.types.is_string(batch.schema.field(name).type):
            continue
        texts = f"SELECT {quoted(name)} AS text FROM {table.sql} WHERE FALSE UNION ALL SELECT 'a'"
        if rows_of(cursor, f"SELECT 1 FROM ({texts}) AS texts WHERE text = 'A' OR text = 'a '"):
            raise SinkError(
                f"table {table}: key column {name!r} has a collation in which different texts are equal; declare the column without it, in a new table"
            )


def decimal_fits(wanted: str, declared: str) -> bool:
    """Whether a decimal declared as ``name(precision,scale)``, or as ``name`` for any, holds all values of a wanted one."""
    one, other = _DECIMAL.fullmatch(wanted), _DECIMAL.fullmatch(declared)
    if not one or not other or one["name"] != other["name"] or not other["precision"]:
        return bool(one and other) and wanted.partition("(")[0] == declared
    digits, scale, most, places = (int(found[part]) for found in (one, other) for part in ("precision", "scale"))
    return places >= scale and most - places >= digits - scale


def rows_of(cursor: Any, query: str) -> list[tuple[Any, ...]]:
    """The rows of a small query."""
    cursor.execute(query)
    return list(cursor.fetchall())


def literal(text: str) -> str:
    """A text as SQL reads it."""
    return "'" + text.replace("'", "''") + "'"


def names(columns: Iterable[str], of: str = "") -> str:
    """Quoted columns of a table or an alias."""
    return ", ".join(f"{of}{quoted(column)}" for column in columns)


def equal(identity: Iterable[str], same: str, of: str = "t", to: str = "s") -> str:
    """The condition that two rows have the same identity; ``same`` is the null-safe equality."""
    return " AND ".join(f"{of}.{quoted(name)} {same} {to}.{quoted(name)}" for name in identity)


def newer(of: str = "s", than: str = "t") -> str:
    """The condition that a row is newer than another."""
    return f"{of}.{quoted(SEQUENCE)} > {than}.{quoted(SEQUENCE)}"


def written(batch: Batch, *, keep_deleted: bool) -> list[str]:
    """The columns to write."""
    return [*batch.data, *([DELETED] if keep_deleted else [])]


@attrs.frozen
class FileDatabase(Database):
    """A database in a file, ``scheme:///relative.db``, ``scheme:////absolute.db`` or ``scheme:file.db``."""

    @property
    def address(self) -> str:
        """The path.

        Raises:
            OptionError: the URI has no path.
        """
        scheme, _, rest = self.uri.partition(":")
        path = rest.removeprefix("///")
        if not path or path.startswith((":", "//")):
            raise OptionError(
                f"uri={printable(self.uri)}: must name a file: '{scheme}:///folder/file.db' (relative) or '{scheme}:////folder/file.db' "
                "(absolute); an in-memory database would be lost with each batch's connection"
            )
        return path

    def connect(self, driver: Any) -> Any:
        """Connect; a new file is created in an existing folder.

        Raises:
            SinkError: the folder does not exist.
        """
        folder = Path(self.address).absolute().parent
        if not folder.is_dir():
            shown = without_secrets(str(folder), self.uri)
            raise SinkError(
                f"{self.title}: {printable(self.uri)}: the folder {shown!r} does not exist; create it first"
            )
        return super().connect(driver)
