"""Changes of keys in SQLite, in memory or in a file: the rows of a ``VersionedTable``.

``changes`` has a row per (key, time): a value, or null for a delete. Ends are not stored: a version ends at its key's next
change. The primary key finds a key's change at a time, and the index by time finds expired changes: each is visited once, when
its time expires. ``facts`` has integers by name, defined by the table.

Times are int64 microseconds since the epoch; keys are encoded by ``plain_keys``; values are the caller's bytes.

A write is committed when the call returns. In a file (write-ahead log, ``synchronous=NORMAL``) it survives the process; after a
power failure the last transactions may be missing, as a whole. The file is locked against other processes.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

from beamish.addresses import printable
from beamish.errors import StateError
from beamish.versioned_table.plain_keys import StoredKey

Error = sqlite3.Error

_APPLICATION, _FORMAT = 0x6265_616D, 1
"""The file header: the application ("beam"), and the format."""

_LOG_PAGES = 10_000
"""Length of the write-ahead log, in pages of 4 kB: the longer, the fewer times a page is written to the file."""

_SCHEMA = (
    """CREATE TABLE changes (
        key NOT NULL, at_us INTEGER NOT NULL, written BLOB, value BLOB, PRIMARY KEY (key, at_us)
    ) WITHOUT ROWID""",
    "CREATE INDEX changes_by_time ON changes (at_us)",
    "CREATE TABLE facts (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID",
    f"PRAGMA application_id = {_APPLICATION}",
    f"PRAGMA user_version = {_FORMAT}",
)
_PUT = "INSERT OR REPLACE INTO changes (key, at_us, written, value) VALUES (?, ?, ?, ?)"
_LATEST = "SELECT value, at_us, NULL FROM changes WHERE key = ? ORDER BY at_us DESC LIMIT 1"
_AT = (
    "SELECT value, at_us, (SELECT min(at_us) FROM changes WHERE key = ?1 AND at_us > ?2) FROM changes "
    "WHERE key = ?1 AND at_us <= ?2 ORDER BY at_us DESC LIMIT 1"
)
_NEXT = "SELECT min(at_us) FROM changes WHERE key = ? AND at_us > ?"
_OF_KEY = (
    "SELECT value, at_us FROM changes WHERE key = ?1 "
    "AND at_us >= coalesce((SELECT max(at_us) FROM changes WHERE key = ?1 AND at_us <= ?2), ?2) "
    "AND at_us <= coalesce((SELECT min(at_us) FROM changes WHERE key = ?1 AND at_us > ?3), ?3) ORDER BY at_us"
)
_OF_ALL = (
    "SELECT key, written, value, at_us, next_us FROM (SELECT key, written, value, at_us, "
    "lead(at_us) OVER (PARTITION BY key ORDER BY at_us) AS next_us FROM changes) "
    "WHERE value IS NOT NULL AND at_us <= ?2 AND (next_us IS NULL OR next_us > ?1)"
)
_FORGET = (
    "DELETE FROM changes WHERE (key, at_us) IN (SELECT old.key, old.at_us FROM "
    "(SELECT key, max(at_us) + (value IS NULL) AS until_us FROM changes WHERE at_us >= ?1 AND at_us < ?2 GROUP BY key) "
    "AS ended CROSS JOIN changes AS old ON old.key = ended.key AND old.at_us < ended.until_us)"
)

Change: TypeAlias = tuple[StoredKey, int, bytes | None, bytes | None]
"""Stored key, time (microseconds), the key as written if that differs, value or None for a delete."""
Found: TypeAlias = tuple[bytes | None, int, int | None]
"""Value (None: a delete), time, and time of the key's next change (None: the latest), in microseconds."""


class ChangeStore:
    """An open store.

    Args:
        path: the file, created if it does not exist; None: in memory.

    Raises:
        StateError: the file is in use, is not a table of this format, or cannot be opened.
    """

    def __init__(self, path: Path | None) -> None:
        try:
            connection = sqlite3.connect(
                ":memory:" if path is None else path, timeout=0, isolation_level=None, check_same_thread=False
            )
        except Error as error:
            raise _cannot_open(path, error) from None
        try:
            _set_up(connection, path)
        except BaseException:
            connection.close()
            raise
        self._connection, self.close = connection, connection.close
        self._execute, self._execute_many = connection.execute, connection.executemany

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """A transaction."""
        self._execute("BEGIN IMMEDIATE")
        try:
            yield
            self._execute("COMMIT")
        except BaseException:
            self._connection.rollback()  # does nothing if SQLite has rolled back already
            raise

    def facts(self) -> dict[str, int]:
        """Read the facts."""
        return dict(self._execute("SELECT name, value FROM facts"))

    def note(self, **facts: int) -> None:
        """Write facts."""
        self._execute_many("INSERT OR REPLACE INTO facts VALUES (?, ?)", facts.items())

    def put(self, change: Change) -> None:
        """Write a change, replacing one with the same key and time."""
        self._execute(_PUT, change)

    def put_all(self, changes: Iterable[Change]) -> None:
        """Write changes in order."""
        self._execute_many(_PUT, changes)

    def last_us(self, without: int) -> int:
        """The greatest time of a change, or ``without``."""
        (last_us,) = self._execute("SELECT coalesce(max(at_us), ?) FROM changes", (without,)).fetchone()
        return int(last_us)

    def next_us(self, key: StoredKey, at_us: int) -> int | None:
        """The time of the key's first change after ``at_us``, or None."""
        next_us: int | None = self._execute(_NEXT, (key, at_us)).fetchone()[0]
        return next_us

    def latest(self, key: StoredKey) -> Found | None:
        """The key's latest change."""
        found: Found | None = self._execute(_LATEST, (key,)).fetchone()
        return found

    def at(self, key: StoredKey, at_us: int) -> Found | None:
        """The key's latest change at or before ``at_us``."""
        found: Found | None = self._execute(_AT, (key, at_us)).fetchone()
        return found

    def between(self, key: StoredKey, since_us: int, until_us: int) -> list[tuple[bytes | None, int]]:
        """The key's changes from the latest at or before ``since_us`` to the first after ``until_us``, by time.

        Returns:
            value (None: a delete) and time of each.
        """
        return self._execute(_OF_KEY, (key, since_us, until_us)).fetchall()

    def versions(self, since_us: int, until_us: int) -> list[tuple[StoredKey, bytes | None, bytes, int, int | None]]:
        """The versions of all keys that are valid at any instant of [since, until].

        Returns:
            stored key, key as written, value, begin and end (None: still valid) of each; grouped by key, each by time.
        """
        return self._execute(_OF_ALL, (since_us, until_us)).fetchall()

    def forget(self, since_us: int, until_us: int) -> None:
        """Delete versions that ended within [since, until), and deletes among the changes that ended them.

        If [.., since) has expired and nothing is written there any more, this is not observable at a time >= until.
        """
        self._execute(_FORGET, (since_us, until_us))


def _set_up(connection: sqlite3.Connection, path: Path | None) -> None:
    """Lock the file for this process, create the table if it is new, and configure writes (StateError: as for ``ChangeStore``)."""
    try:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("BEGIN EXCLUSIVE")
        _make_or_check(connection, path)
        connection.execute("COMMIT")
        if path is not None:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute(f"PRAGMA wal_autocheckpoint = {_LOG_PAGES}")
    except Error as error:
        raise _cannot_open(path, error) from None


def _make_or_check(connection: sqlite3.Connection, path: Path | None) -> None:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (found,) = connection.execute("PRAGMA user_version").fetchone()
    (is_used,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if application == _APPLICATION and found != _FORMAT:
        raise StateError(
            f"VersionedTable(path={printable(str(path))}): the file has format {found}, this version of beamish reads format "
            f"{_FORMAT}; open it with the version that wrote it, or give another path"
        )
    if application != _APPLICATION and (application or found or is_used):
        raise StateError(
            f"VersionedTable(path={printable(str(path))}): the file is another SQLite database, not a versioned table; give another path"
        )
    if application != _APPLICATION:
        for statement in _SCHEMA:
            connection.execute(statement)


def _cannot_open(path: Path | None, error: Error) -> StateError:
    where = f"VersionedTable(path={printable(path and str(path))})"
    if "locked" in str(error):
        return StateError(f"{where}: the file is in use; a table can be open only once: close() the other one first")
    if "not a database" in str(error):
        return StateError(f"{where}: the file is not a versioned table; give another path")
    return StateError(f"{where}: cannot be opened ({error}); the folder must exist, and the file must be writable")
