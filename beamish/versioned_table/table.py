"""A versioned table: what was valid for each key when, by event time, in memory or in a file, without Spark.

Each change of a key that is not a delete is a version, valid from its time until that of the next change. The table stores the
history, counted back from its stream time; before it, only each key's latest change.

Expiry is not observable: at ``oldest`` and later, a change that ended before ``oldest`` is never returned, and nothing is written
before ``oldest`` any more.
"""

from __future__ import annotations

import logging
import os
import threading
import weakref
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from itertools import zip_longest
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import attrs
import pyarrow as pa

from beamish.addresses import printable
from beamish.durations import Duration, DurationLike, not_negative, positive
from beamish.errors import ClosedError, ColumnError, OptionError, PipelineError, StateError
from beamish.instants import EARLIEST_US, END_OF_TIME_US, LATEST_US, InstantLike, instant, instant_us
from beamish.kernels import codec
from beamish.kernels.python_columns import UnfitValueError, python_column
from beamish.python_values import NotPlainError, python_value
from beamish.versioned_table import plain_keys

if TYPE_CHECKING:
    from beamish.versioned_table.change_store import Change, ChangeStore, Found
    from beamish.versioned_table.plain_keys import StoredKey


_SPARE_US = 24 * 3_600_000_000


def compacted_topic(history_us: int) -> dict[str, str]:
    """The settings of a compacted topic from which a versioned table can be restored.

    Args:
        history_us: its history, microseconds.

    Returns:
        ``cleanup.policy``, and in ``min.compaction.lag.ms`` the history and 24 hours, so that compaction keeps what the history
        needs (KIP-889).
    """
    return {"cleanup.policy": "compact", "min.compaction.lag.ms": str(-(-(history_us + _SPARE_US) // 1_000))}


_LOG = logging.getLogger(__name__)
_NEVER_US = -END_OF_TIME_US
"""Before all times."""
_CHUNK = 10_000
"""Number of changes that ``load`` writes between two checks for expiry."""
_SECOND, _MINUTE = Duration(1_000_000), Duration(60_000_000)


@attrs.frozen
class Validity:
    """The validity of a change: from ``valid_from``, until before ``valid_to``.

    Args:
        valid_from: the change's time.
        valid_to: the time of the key's next change; None: the latest change.

    Example:
        >>> from datetime import UTC, datetime
        >>> import beamish as bm
        >>> bm.Validity(datetime(2024, 1, 1, tzinfo=UTC), None).valid_to is None
        True
    """

    valid_from: datetime
    valid_to: datetime | None


@attrs.frozen
class Version:
    """A value and its validity: from ``valid_from``, until before ``valid_to``.

    Args:
        value: the value; not None, which is a delete.
        valid_from: the time given to ``put``.
        valid_to: the time of the key's next change; None: the latest change.

    Raises:
        OptionError: the value is None.

    Example:
        >>> from datetime import UTC, datetime
        >>> import beamish as bm
        >>> bm.Version(1.08, datetime(2024, 1, 1, tzinfo=UTC), None).value
        1.08
    """

    value: Any = attrs.field()
    valid_from: datetime
    valid_to: datetime | None

    @value.validator
    def _check_value(self, _: Any, value: Any) -> None:
        if value is None:
            raise OptionError("Version(value=None): a version has a value; without one, get() returns None")


class VersionedTable:
    """The value of each key over event time, in memory or in a file; a context manager that closes it.

    Times are aware datetimes or seconds since the epoch, of the years 1 to 9999; results have aware datetimes in UTC. The stream
    time is the greatest time written, or advanced to; it never goes back. Thread-safe: calls are serialized.

    Keys are text, numbers, bytes, dates and times, and tuples and frozensets of these. Keys that are equal in Python are one key:
    ``1``, ``1.0`` and ``True``; ``0.0`` and ``-0.0``; datetimes of one instant. All NaN are one key. Values are None (a delete),
    or any of these types, lists, sets and dicts; results are copies.

    A write to a file is committed when the call returns and survives the process. After a power failure the last writes may be
    missing; after ``close()`` none can be. Only one table may have a file open at a time.

    Args:
        history: how far behind the stream time reads are exact, at least 0. A file may be opened with another history; if it is
            longer, ``oldest`` stays until the stream time has caught up.
        path: the file, created if it does not exist; None: in memory.
        allowed_lateness: how far behind the stream time a write is accepted, at least 0; default and maximum: ``history``.
        segment: granularity of expiry, above 0: affects speed, not results. Default: for a history up to 1 minute a third (at
            least 2 seconds), up to 5 minutes a fifth (20 seconds), up to an hour a twelfth (1 minute), above a 24th.

    Raises:
        OptionError: a negative history or lateness, a segment that is not above 0, an invalid path.
        PipelineError: a lateness above the history.
        StateError: the file is in use, is not a versioned table of this format, or cannot be opened.

    Example:
        >>> import beamish as bm
        >>> with bm.VersionedTable("1 hour") as rates:
        ...     _ = rates.put("EUR", 1.08, 10)
        ...     _ = rates.put("EUR", 1.09, 30)
        ...     rates.get("EUR", as_of=29).value
        1.08
    """

    def __init__(
        self,
        history: DurationLike,
        *,
        path: str | os.PathLike[str] | None = None,
        allowed_lateness: DurationLike | None = None,
        segment: DurationLike | None = None,
    ) -> None:
        from beamish.versioned_table.change_store import ChangeStore

        self._history = not_negative("VersionedTable(history)", history)
        self._lateness = self._history
        if allowed_lateness is not None:
            self._lateness = not_negative("VersionedTable(allowed_lateness)", allowed_lateness)
        if self._lateness > self._history:
            raise PipelineError(
                f"VersionedTable(allowed_lateness={str(self._lateness)!r}) above history {str(self._history)!r}: the version that such a late write would correct has expired; give a longer history"
            )
        if segment is None:
            self._segment = _default_segment(self._history)
        else:
            self._segment = positive("VersionedTable(segment)", segment)
        self._path = _read_path(path)
        self._store: ChangeStore = ChangeStore(self._path)
        self._close = weakref.finalize(self, self._store.close)
        self._turn = _Turn(repr(self), self._close)
        self._dropped = 0
        self._has_warned = False
        self._stream_us = self._floor_us = self._forgotten_us = _NEVER_US
        with self._turn, self._writing():
            self._take_up(self._store.facts())

    def _take_up(self, facts: dict[str, int]) -> None:
        """Continue from the state in the file."""
        self._stream_us = max(facts.get("advanced_us", _NEVER_US), self._store.last_us(_NEVER_US))
        before_us = facts.get("history_us", self._history.us)
        self._floor_us = max(facts.get("floor_us", _NEVER_US), self._stream_us - before_us)
        self._forgotten_us = facts.get("forgotten_us", _NEVER_US)
        self._store.note(history_us=self._history.us, floor_us=self._floor_us)
        self._forget()

    @property
    def history(self) -> Duration:
        """How far behind the stream time reads are exact.

        Example:
            >>> import beamish as bm
            >>> bm.VersionedTable("1 day").history
            '1 day'
        """
        return self._history

    @property
    def segment(self) -> Duration:
        """The granularity of expiry.

        Example:
            >>> import beamish as bm
            >>> bm.VersionedTable("1 day").segment
            '1 hour'
        """
        return self._segment

    @property
    def stream_time(self) -> datetime | None:
        """The greatest time written or advanced to; None: none yet.

        Example:
            >>> import beamish as bm
            >>> table = bm.VersionedTable("1 day")
            >>> _ = table.put("EUR", 1.08, 10), table.put("EUR", 1.07, 5)
            >>> table.stream_time.isoformat()
            '1970-01-01T00:00:10+00:00'
        """
        return None if self._stream_us == _NEVER_US else instant(self._stream_us)

    @property
    def oldest(self) -> datetime | None:
        """The first instant at which all reads are exact: the stream time less the history; None: no stream time yet.

        Example:
            >>> import beamish as bm
            >>> table = bm.VersionedTable("4 seconds")
            >>> _ = table.put("EUR", 1.08, 10)
            >>> table.oldest.isoformat()
            '1970-01-01T00:00:06+00:00'
        """
        return None if self._stream_us == _NEVER_US else instant(self._oldest_us)

    @property
    def dropped(self) -> int:
        """Number of calls of ``put`` and ``delete`` rejected since the table was opened.

        Example:
            >>> import beamish as bm
            >>> table = bm.VersionedTable("4 seconds")
            >>> _ = table.put("EUR", 1.08, 10), table.put("EUR", 1.07, 5)
            >>> table.dropped
            1
        """
        return self._dropped

    def put(self, key: Hashable, value: Any, ts: InstantLike) -> Validity | None:
        """Set a key's value from a time on; replaces a change with the same key and time.

        Args:
            key: the key.
            value: the value; None deletes, as do ``NaT`` and ``pandas.NA``.
            ts: its start. A time ahead of the stream time advances it.

        Returns:
            its validity: ``valid_to`` is None if it is the key's latest change. None: the write was rejected, since it is further
            behind the stream time than ``allowed_lateness``, or before ``oldest``; nothing has changed.

        Raises:
            OptionError: an unsupported key or value, or an invalid time.
            ClosedError: the table was closed.

        Example:
            >>> import beamish as bm
            >>> table = bm.VersionedTable("1 day")
            >>> table.put("EUR", 1.08, 10).valid_to is None
            True
            >>> table.put("EUR", 1.07, 5).valid_to.isoformat()
            '1970-01-01T00:00:10+00:00'
        """
        change = _change("put", key, value, ts)
        with self._turn:
            if self._refuses(change[1]):
                self._dropped += 1
                return None
            to_us = None if change[1] >= self._stream_us else self._store.next_us(change[0], change[1])
            self._write(change)
        return Validity(instant(change[1]), None if to_us is None else instant(to_us))

    def delete(self, key: Hashable, ts: InstantLike) -> Version | None:
        """Delete a key from a time on, until its next change; a missing key is fine.

        Args:
            key: the key.
            ts: the time of the delete. A time ahead of the stream time advances it.

        Returns:
            the previous result of ``get(key, as_of=ts)``; None: no version, or the write was rejected, as for ``put``.

        Raises:
            OptionError: an unsupported key, or an invalid time.
            ClosedError: the table was closed.

        Example:
            >>> import beamish as bm
            >>> table = bm.VersionedTable("1 day")
            >>> _ = table.put("EUR", 1.08, 10)
            >>> table.delete("EUR", 20).value
            1.08
            >>> table.get("EUR") is None, table.get("EUR", as_of=19).value
            (True, 1.08)
        """
        change = _change("delete", key, None, ts)
        with self._turn:
            if self._refuses(change[1]):
                self._dropped += 1
                return None
            before = self._read(change[0], change[1])
            self._write(change)
        return before

    def get(self, key: Hashable, as_of: InstantLike | None = None) -> Version | None:
        """The version of a key valid at a time.

        Args:
            key: the key.
            as_of: the time, which may be ahead of the stream time; None: the latest.

        Returns:
            the version; None if none is valid. Before ``oldest`` only the key's latest version is available, if it began that
            early; the first such call that returns None logs a warning.

        Raises:
            OptionError: an unsupported key, or an invalid time.
            ClosedError: the table was closed.

        Example:
            >>> import beamish as bm
            >>> table = bm.VersionedTable("1 day")
            >>> _ = table.put("EUR", 1.08, 10), table.put("EUR", 1.09, 20)
            >>> table.get("EUR").value, table.get("EUR", as_of=19).value, table.get("EUR", as_of=9)
            (1.09, 1.08, None)
        """
        _, stored = _stored_key("get", key)
        at_us = None if as_of is None else _time_us("get(as_of)", as_of)
        with self._turn:
            return self._read(stored, at_us)

    def versions(
        self,
        key: Hashable,
        since: InstantLike | None = None,
        until: InstantLike | None = None,
        *,
        newest_first: bool = False,
    ) -> list[Version]:
        """The versions of a key valid at any instant from ``since`` to ``until``, both included.

        Args:
            key: the key.
            since: the first instant; None, or before ``oldest``: from ``oldest`` on.
            until: the last instant; None: all from ``since`` on. Before ``oldest`` the result is that of ``get``.
            newest_first: latest first.

        Returns:
            the versions by time, not clipped to the range.

        Raises:
            OptionError: an unsupported key, or an invalid time, or ``since`` after ``until``.
            ClosedError: the table was closed.

        Example:
            >>> import beamish as bm
            >>> table = bm.VersionedTable("1 day")
            >>> _ = table.put("EUR", 1.08, 10), table.put("EUR", 1.09, 20), table.put("EUR", 1.1, 30)
            >>> [version.value for version in table.versions("EUR", 15, 20)]
            [1.08, 1.09]
            >>> [version.value for version in table.versions("EUR", newest_first=True)]
            [1.1, 1.09, 1.08]
        """
        _, stored = _stored_key("versions", key)
        since_us = _NEVER_US if since is None else _time_us("versions(since)", since)
        until_us = END_OF_TIME_US if until is None else _time_us("versions(until)", until)
        if since_us > until_us:
            raise OptionError(f"versions(since={since!r}, until={until!r}): since must not be after until; swap them")
        with self._turn:
            found = self._read_all(stored, since_us, until_us)
        return found[::-1] if newest_first else found

    def load(self, changes: Iterable[tuple[Hashable, Any, InstantLike]]) -> int:
        """Write many changes in order, in one transaction.

        Args:
            changes: triples (key, value, ts), each as for ``put``; the iterable may not write to this table.

        Returns:
            how many were rejected, as by ``put``; ``dropped`` does not count them.

        Raises:
            OptionError: not such triples.
            ClosedError: the table was closed.

        Example:
            >>> import beamish as bm
            >>> table = bm.VersionedTable("15 seconds")
            >>> table.load([("EUR", 1.08, 10), ("EUR", 1.09, 30), ("USD", 1, 14), ("EUR", None, 40)])
            1
            >>> table.get("EUR", as_of=30).value, table.get("USD"), table.dropped
            (1.09, None, 0)
        """
        refused, taken = 0, []
        with self._turn, self._writing():
            for change in _changes(changes):
                if self._refuses(change[1]):
                    refused += 1
                    continue
                taken.append(change)
                self._stream_us = max(change[1], self._stream_us)
                if len(taken) == _CHUNK:
                    self._store.put_all(taken)
                    self._forget()
                    taken.clear()
            self._store.put_all(taken)
            self._forget()
        return refused

    def advance_to(self, ts: InstantLike) -> None:
        """Advance the stream time without a write; an earlier time changes nothing.

        Args:
            ts: the time, such as the watermark of the changes' source.

        Raises:
            OptionError: an invalid time.
            ClosedError: the table was closed.

        Example:
            >>> import beamish as bm
            >>> table = bm.VersionedTable("10 seconds")
            >>> table.advance_to(100)
            >>> table.oldest.isoformat(), table.put("EUR", 1.08, 89)
            ('1970-01-01T00:01:30+00:00', None)
        """
        at_us = _time_us("advance_to(ts)", ts)
        with self._turn:
            if at_us <= self._stream_us:
                return
            with self._writing():
                self._store.note(advanced_us=at_us)
                self._stream_us = at_us
                self._forget()

    def to_arrow(self, as_of: InstantLike | None = None) -> pa.Table:
        """The versions of all keys as an Arrow table.

        Args:
            as_of: versions valid at this time, not before ``oldest``; None: all versions valid at ``oldest`` or later.

        Returns:
            ``key`` and ``value``, of types inferred by Arrow, ``valid_from``, and ``valid_to`` (null: the
            latest), UTC timestamps of microseconds. Grouped by key, each by time. A key is as it was written with the version.

        Raises:
            OptionError: an invalid time, or one before ``oldest``.
            ColumnError: keys, or values, do not have a common Arrow type.
            ClosedError: the table was closed.

        Example:
            >>> import beamish as bm
            >>> table = bm.VersionedTable("1 day")
            >>> _ = table.put("EUR", 1.08, 10), table.put("EUR", 1.09, 20), table.put("USD", 1.0, 15)
            >>> table.to_arrow().column("value").to_pylist()
            [1.08, 1.09, 1.0]
            >>> table.to_arrow(as_of=table.stream_time).column("value").to_pylist()
            [1.09, 1.0]
        """
        at_us = None if as_of is None else _time_us("to_arrow(as_of)", as_of)
        with self._turn:
            oldest_us = self._oldest_us
            if at_us is not None and at_us < oldest_us:
                raise OptionError(
                    f"to_arrow(as_of={as_of!r}): before oldest, {instant(oldest_us).isoformat()}, the table is incomplete; use that time or a later one, or a longer history"
                )
            rows = self._store.versions(*((oldest_us, END_OF_TIME_US) if at_us is None else (at_us, at_us)))
        time = pa.timestamp("us", tz="UTC")
        return pa.table(
            {
                "key": _column("key", [plain_keys.written_key(row[0], row[1]) for row in rows]),
                "value": _column("value", [codec.decode(row[2]) for row in rows]),
                "valid_from": pa.array([row[3] for row in rows], time),
                "valid_to": pa.array([row[4] for row in rows], time),
            }
        )

    def topic_config(self) -> dict[str, str]:
        """The settings of a compacted Kafka topic from which ``load`` can restore the table.

        Returns:
            ``cleanup.policy``, and in ``min.compaction.lag.ms`` the history and 24 hours, so that compaction keeps what the history needs.

        Raises:
            ClosedError: the table was closed.

        Example:
            >>> import beamish as bm
            >>> bm.VersionedTable("1 hour").topic_config()
            {'cleanup.policy': 'compact', 'min.compaction.lag.ms': '90000000'}
        """
        with self._turn:
            return compacted_topic(self._history.us)

    def close(self) -> None:
        """Close the table; a table in memory is lost, one in a file is on disk. Idempotent.

        Example:
            >>> import beamish as bm
            >>> table = bm.VersionedTable("1 hour")
            >>> table.close()
            >>> table.get("EUR")
            Traceback (most recent call last):
            beamish.errors.ClosedError: VersionedTable('1 hour') is closed; open it again, or close it later
        """
        with self._turn.lock:
            self._close()

    def __enter__(self) -> Self:
        with self._turn:
            return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        said = [repr(str(self._history))]
        said += [] if self._path is None else [f"path={str(self._path)!r}"]
        said += [] if self._lateness == self._history else [f"allowed_lateness={str(self._lateness)!r}"]
        said += [] if self._segment == _default_segment(self._history) else [f"segment={str(self._segment)!r}"]
        return f"VersionedTable({', '.join(said)})"

    @property
    def _oldest_us(self) -> int:
        return max(self._stream_us - self._history.us, self._floor_us)

    def _refuses(self, at_us: int) -> bool:
        """Whether a write is too late."""
        return at_us < self._stream_us - self._lateness.us or at_us < self._floor_us

    def _write(self, change: Change) -> None:
        """Write an accepted change."""
        stream_us = max(self._stream_us, change[1])
        if self._due_us(stream_us) <= self._forgotten_us:
            self._store.put(change)
            self._stream_us = stream_us
            return
        with self._writing():
            self._store.put(change)
            self._stream_us = stream_us
            self._forget()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """A transaction that also restores the stream time on failure."""
        before = self._stream_us, self._forgotten_us
        try:
            with self._store.transaction():
                yield
        except BaseException:
            self._stream_us, self._forgotten_us = before
            raise

    def _due_us(self, stream_us: int) -> int:
        """The start of the oldest stored segment at a stream time."""
        oldest_us = max(stream_us - self._history.us, self._floor_us)
        return oldest_us - oldest_us % self._segment.us

    def _forget(self) -> None:
        """Drop expired segments; within a transaction."""
        due_us = self._due_us(self._stream_us)
        if due_us > self._forgotten_us:
            self._store.forget(self._forgotten_us, due_us)
            self._store.note(forgotten_us=due_us)
            self._forgotten_us = due_us

    def _read(self, key: StoredKey, at_us: int | None) -> Version | None:
        """The version at a time; None: the latest."""
        if at_us is None or at_us >= self._stream_us:
            return _version(self._store.latest(key))
        if at_us >= self._oldest_us:
            return _version(self._store.at(key, at_us))
        found = self._store.latest(key)
        if found is not None and found[0] is not None and found[1] <= at_us:
            return _version(found)
        self._warn(at_us)
        return None

    def _read_all(self, key: StoredKey, since_us: int, until_us: int) -> list[Version]:
        oldest_us = self._oldest_us
        if until_us < oldest_us:
            found = self._read(key, until_us)
            return [] if found is None else [found]
        changes = self._store.between(key, max(since_us, oldest_us), until_us)
        ends = (at_us for _, at_us in changes[1:])
        return [
            Version(codec.decode(value), instant(at_us), None if to_us is None else instant(to_us))
            for (value, at_us), to_us in zip_longest(changes, ends)
            if value is not None and at_us <= until_us
        ]

    def _warn(self, at_us: int) -> None:
        if not self._has_warned:
            self._has_warned = True
            _LOG.warning(
                "%r: a key was read as of %s, before oldest, %s, where only latest versions are stored: the result is None. Keep a longer history if it matters. (Logged once.)",
                self,
                instant(at_us).isoformat(),
                instant(self._oldest_us).isoformat(),
            )


class _Turn:
    """A lock for one call on an open table; SQLite errors become StateErrors."""

    def __init__(self, table: str, close: weakref.finalize[Any, Any]) -> None:
        from beamish.versioned_table.change_store import Error

        self.lock = threading.RLock()
        self._table, self._close, self._error = table, close, Error

    def __enter__(self) -> None:
        self.lock.acquire()
        if not self._close.alive:
            self.lock.release()
            raise ClosedError(f"{self._table} is closed; open it again, or close it later")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.lock.release()
        if isinstance(error, self._error):
            raise StateError(f"{self._table}: {error}; this call wrote nothing") from error


def _default_segment(history: Duration) -> Duration:
    if history <= _MINUTE:
        return max(history // 3, 2 * _SECOND)
    if history <= 5 * _MINUTE:
        return max(history // 5, 20 * _SECOND)
    if history <= 60 * _MINUTE:
        return max(history // 12, _MINUTE)
    return max(history // 24, 5 * _MINUTE)


def _read_path(path: Any) -> Path | None:
    if path is None:
        return None
    text = os.fspath(path) if isinstance(path, (str, os.PathLike)) else None
    if not isinstance(text, str) or text in {"", ":memory:"}:
        raise OptionError(
            f"VersionedTable(path={printable(path)}): must be the path of a file; leave it out for a table in memory"
        )
    return Path(text).absolute()


def _time_us(where: str, value: InstantLike) -> int:
    us = instant_us(where, value, OptionError)
    if not EARLIEST_US <= us <= LATEST_US:
        raise OptionError(f"{where}={value!r}: outside the years 1 to 9999; give seconds, not milli- or microseconds")
    return us


def _stored_key(call: str, key: Any) -> tuple[Any, StoredKey]:
    """A key as a Python value, and as stored."""
    plain = _plain(f"{call}(key={key!r})", key)
    if plain is None:
        raise OptionError(
            f"{call}(key={key!r}): a key must not be None; leave such rows out, or give them a key of their own"
        )
    try:
        return plain, plain_keys.stored_key(plain)
    except TypeError as refused:
        raise OptionError(
            f"{call}(key={key!r}): {refused}; a key is {plain_keys.ALLOWED}: convert it to one of these"
        ) from None


def _plain(where: str, value: Any) -> Any:
    try:
        return python_value(value)
    except NotPlainError as refused:
        raise OptionError(f"{where}: {refused}") from None


def _change(call: str, key: Any, value: Any, ts: InstantLike) -> Change:
    plain_key, stored = _stored_key(call, key)
    at_us = _time_us(f"{call}(ts)", ts)
    plain_value = _plain(f"{call}(value={value!r})", value)
    try:
        written = None if plain_value is None else codec.encode(plain_value)
    except TypeError as refused:
        raise OptionError(f"{call}(value): {refused}; a value is {codec.ALLOWED}: convert it to one of these") from None
    return stored, at_us, plain_keys.key_as_written(plain_key, stored), written


def _changes(triples: Iterable[Any]) -> Iterable[Change]:
    try:
        items = iter(triples)
    except TypeError:
        raise OptionError(
            f"load(changes={triples!r}): must be triples (key, value, ts), such as a list of them"
        ) from None
    for number, triple in enumerate(items):
        try:
            key, value, ts = triple
        except (TypeError, ValueError):
            raise OptionError(
                f"load(changes): #{number} is {triple!r}, but must be a triple (key, value, ts)"
            ) from None
        try:
            change = _change("load", key, value, ts)
        except OptionError as refused:
            raise OptionError(f"load(changes): #{number}: {refused}") from None
        yield change


def _version(found: Found | None) -> Version | None:
    if found is None or found[0] is None:
        return None
    return Version(codec.decode(found[0]), instant(found[1]), None if found[2] is None else instant(found[2]))


def _column(name: str, values: list[Any]) -> pa.Array:
    try:
        return python_column(values)
    except UnfitValueError as unfit:
        raise ColumnError(
            f"to_arrow(): column {name!r}: {unfit.said(lambda row: f'version {row + 1}')}; write values of one type"
        ) from None
