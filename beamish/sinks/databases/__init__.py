"""One file per database: its driver, its types, its SQL."""

from __future__ import annotations

from beamish.errors import OptionError
from beamish.sinks.databases.database import Database
from beamish.sinks.databases.duckdb import DuckDb
from beamish.sinks.databases.postgresql import PostgreSql
from beamish.sinks.databases.sqlite import Sqlite

DATABASES: dict[str, type[Database]] = {
    "postgresql": PostgreSql,
    "postgres": PostgreSql,
    "sqlite": Sqlite,
    "duckdb": DuckDb,
}


def database_of(uri: object) -> Database:
    """The database that a URI names.

    Raises:
        OptionError: it names none that is known, or one that is gone when its connection is.
    """
    scheme = uri.partition(":")[0].lower() if isinstance(uri, str) else ""
    if scheme not in DATABASES or not isinstance(uri, str):
        raise OptionError(
            f"uri={_shown(uri)}: must be a text such as 'postgresql://user@host/database', 'sqlite:///folder/file.db' or "
            "'duckdb:///folder/file.duckdb'"
        )
    return DATABASES[scheme](uri)


def _shown(uri: object) -> str:
    """A URI without what may be secret."""
    return f"{uri[:12]}..." if isinstance(uri, str) and len(uri) > 12 else repr(uri)


__all__ = ["DATABASES", "Database", "database_of"]
