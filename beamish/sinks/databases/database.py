"""The contract of a database: what a sink asks of it.

Laws (tests/laws/test_sinks.py):

1. After a batch the table holds, of each identity, the row with the greatest sequence ever given, unless it is a deletion.
2. A batch that is given again, or one whose transaction was broken off and that is given again, changes nothing.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

import attrs
import pyarrow as pa

from beamish.errors import HIDDEN, OptionError, SinkError, cause, values_are_hidden
from beamish.kernels.image_columns import DELETED, SEQUENCE
from beamish.sinks.batch import Batch
from beamish.sinks.names import TableName, quoted

STAGE = "_beamish_stage"
"""The temporary table that a batch is loaded into."""


@attrs.frozen
class Database:
    """A database that is reached by ADBC.

    Attributes:
        uri: as the user gave it.
        title: its name.
        driver: the module of its driver.
        package: what pip installs to have it.
        extra: the extra of beamish that brings it.
        json_type: the type of a column of JSON.
    """

    uri: str = attrs.field(repr=False)
    title: ClassVar[str]
    driver: ClassVar[str]
    package: ClassVar[str]
    extra: ClassVar[str]
    json_type: ClassVar[str]

    # What each says

    @property
    def address(self) -> str:
        """What the driver takes."""
        return self.uri

    def check(self, table: TableName, columns: Iterable[str]) -> None:
        """Check names.

        Raises:
            OptionError, ColumnError: it cannot have a table, or columns, of these names.
        """

    def type_name(self, type_: pa.DataType) -> str | None:
        """The type of a column; None: it has none."""
        raise NotImplementedError

    def fits(self, wanted: str, declared: str) -> bool:
        """Whether a column that is declared so takes all that one of the wanted type would."""
        raise NotImplementedError

    def as_stored(self, batch: Batch) -> pa.Table:
        """The rows in types that the driver takes."""
        return batch.rows

    def begin(self, cursor: Any, table: TableName) -> None:
        """Make this transaction the only one that writes the table."""

    def columns(self, cursor: Any, table: TableName) -> Mapping[str, str]:
        """The columns of a table with their types; empty: there is no such table."""
        raise NotImplementedError

    def create(self, batch: Batch, table: TableName, types: Mapping[str, str]) -> Iterator[str]:
        """Statements that make the table.

        Args:
            batch: what will be put into it.
            table: its name.
            types: its columns with their types.
        """
        raise NotImplementedError

    def check_unique(self, cursor: Any, batch: Batch, table: TableName) -> None:
        """Check that a table lets rows be found by their identity.

        Raises:
            SinkError: it does not.
        """

    def merge(
        self, batch: Batch, table: TableName, declared: Mapping[str, str], *, keep_deleted: bool
    ) -> Iterator[str]:
        """Statements that take the stage's rows into the table.

        Args:
            batch: what is in the stage.
            table: where they go.
            declared: the table's columns with their types.
            keep_deleted: whether deleted rows stay, marked.
        """
        raise NotImplementedError

    # What is the same for all

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        """A cursor in a transaction of its own connection: all of it is done, or nothing.

        Raises:
            OptionError: the driver is not installed.
            SinkError: the database says no.
        """
        dbapi = self._dbapi()
        try:
            with dbapi.connect(self.address) as connection:
                with connection.cursor() as cursor:
                    yield cursor
                connection.commit()
        except dbapi.Error as error:
            raise SinkError(
                f"{self.title}: {HIDDEN if values_are_hidden() else str(error).strip()}; nothing of the batch was written"
            ) from cause(error)

    def _dbapi(self) -> Any:
        try:
            return importlib.import_module(f"{self.driver}.dbapi")
        except ImportError as error:
            raise OptionError(
                f"sinks.sql: the driver for {self.title} is not installed ({error}): pip install {self.package} "
                f"(the extra '{self.extra}')"
            ) from None


def rows_of(cursor: Any, query: str) -> list[tuple[Any, ...]]:
    """What a small query gives."""
    cursor.execute(query)
    return list(cursor.fetchall())


def literal(text: str) -> str:
    """A text as SQL reads it."""
    return "'" + text.replace("'", "''") + "'"


def names(columns: Iterable[str], of: str = "") -> str:
    """Columns, quoted, of a table or an alias."""
    return ", ".join(f"{of}{quoted(column)}" for column in columns)


def equal(identity: Iterable[str], same: str, of: str = "t", to: str = "s") -> str:
    """The condition that two rows have one identity; ``same`` is what compares, and takes null as equal to null."""
    return " AND ".join(f"{of}.{quoted(name)} {same} {to}.{quoted(name)}" for name in identity)


def newer(of: str = "s", than: str = "t") -> str:
    """The condition that a row is of a later change than another."""
    return f"{of}.{quoted(SEQUENCE)} > {than}.{quoted(SEQUENCE)}"


def written(batch: Batch, *, keep_deleted: bool) -> list[str]:
    """The columns of the table that are written."""
    return [*batch.data, *([DELETED] if keep_deleted else [])]
