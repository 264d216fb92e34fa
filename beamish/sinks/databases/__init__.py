"""One file per database: its driver, its types, its SQL."""

from __future__ import annotations

from beamish.addresses import printable
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
    """The database of a URI (OptionError: unknown scheme, non-printable characters, or an in-memory database)."""
    scheme = uri.partition(":")[0].lower() if isinstance(uri, str) and uri.isprintable() else ""
    if scheme not in DATABASES or not isinstance(uri, str):
        raise OptionError(
            f"uri={printable(uri)}: must be a text such as 'postgresql://user@host/database', 'sqlite:///folder/file.db' or "
            "'duckdb:///folder/file.duckdb', without control characters"
        )
    return DATABASES[scheme](f"{scheme}{uri[len(scheme) :]}")  # drivers compare the scheme case-sensitively


__all__ = ["DATABASES", "Database", "database_of"]
