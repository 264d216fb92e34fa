"""The log of a Delta table: which files a streaming source took between two of its offsets.

As Delta's own source counts them (``DeltaSource``, ``DeltaSourceOffset``): an offset is a version and an index. In a version the index counts the files that
its commit adds as new data, in the order of the commit; in the snapshot that a query began with, the files by modification time and path.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import attrs

T = TypeVar("T")
Action = Mapping[str, Any]
"""A line of a commit or a row of a checkpoint: its kind, such as ``add``, and what it holds."""
File = Mapping[str, Any]
"""The fields of a file's line."""
_BEFORE_FILES = -1
"""An index before the files of a version; Delta has several."""
_NAMES = {
    re.compile(r"(\d{20})\.json"): "commit",
    re.compile(r"(\d{20})\.checkpoint(\.\d{10})?(?:\.(\d{10})|\.[0-9a-f-]{36})?\.(?:parquet|json)"): "checkpoint",
}


class GoneError(Exception):
    """A commit or file that Delta has deleted."""


@attrs.frozen
class Position:
    """An offset of a Delta source.

    Attributes:
        version: of the table.
        index: of the last file that was taken in it; negative: none.
        is_snapshot: whether it is in the snapshot that the query began with.
        table: the table's id.
    """

    version: int
    index: int
    is_snapshot: bool
    table: str

    @classmethod
    def read(cls, offset: str) -> Position:
        """An offset, as the checkpoint has it."""
        held = json.loads(offset)
        return cls(held["reservoirVersion"], held["index"], held["isStartingVersion"], held["reservoirId"])


class Stored(Protocol):
    """The files of a log."""

    def names(self) -> Collection[str]:
        """Their names."""
        ...

    def commits(self, names: Sequence[str]) -> Mapping[str, str]:
        """The text of commits, by name."""
        ...

    def written(self, version: int) -> Any:
        """When a commit was written."""
        ...

    def checkpoint(self, names: Sequence[str], *, files: bool) -> Iterable[Action]:
        """The actions of a checkpoint; without ``files`` metadata and protocol only."""
        ...


@attrs.frozen
class Changes:
    """The files of a version from which the change data feed is read.

    Attributes:
        version: the version.
        files: the actions, each with its kind: ``cdc``; or ``add`` and ``remove``.
        is_whole: whether these are all of the version.
    """

    version: int
    files: Sequence[tuple[str, File]]
    is_whole: bool


@attrs.frozen
class Snapshot:
    """A version of the table.

    Attributes:
        metadata, protocol: the actions.
        files: the actions of its files.
    """

    metadata: Mapping[str, Any]
    protocol: Mapping[str, Any]
    files: Sequence[Mapping[str, Any]]


@attrs.define(eq=False)
class DeltaLog:
    """A log, read once.

    Attributes:
        stored: its files.
    """

    stored: Stored
    _names: Mapping[str, Mapping[int, list[str]]] = attrs.field(init=False)
    _commits: dict[int, list[Action]] = attrs.Factory(dict)
    _snapshots: dict[tuple[int, bool], Snapshot] = attrs.Factory(dict)

    def __attrs_post_init__(self) -> None:
        self._names = _named(self.stored.names())

    @property
    def last(self) -> int:
        """Its last version."""
        return max((*self._names["commit"], *self._names["checkpoint"]), default=-1)

    def commits(self, versions: range) -> list[tuple[int, list[Action]]]:
        """The actions of versions.

        Raises:
            GoneError: a commit is not there.
        """
        if versions:
            self.read(versions[0], versions[-1])
        missing = next((version for version in versions if version not in self._commits), None)
        if missing is not None:
            raise GoneError(f"version {missing}")
        return [(version, self._commits[version]) for version in versions]

    def snapshot(self, version: int, *, files: bool = True) -> Snapshot:
        """The table at a version; without ``files`` only those of the last commits are known.

        Raises:
            GoneError: the log no longer reaches back so far.
        """
        if (version, files) not in self._snapshots:
            checkpoints = self._names["checkpoint"]
            begun = max((one for one in checkpoints if one <= version), default=-1)
            actions = list(self.stored.checkpoint(checkpoints[begun], files=files)) if begun >= 0 else []
            for _, of in self.commits(range(begun + 1, version + 1)):
                actions += of
            self._snapshots[version, files] = _snapshot(actions)
        return self._snapshots[version, files]

    def read(self, first: int, last: int) -> None:
        """Read commits at once, as far as they are there."""
        names = {name: version for version, (name,) in self._names["commit"].items() if first <= version <= last}
        unread = [name for name, version in names.items() if version not in self._commits]
        for name, text in (self.stored.commits(unread) if unread else {}).items():
            self._commits[names[name]] = [json.loads(line) for line in text.splitlines() if line.strip()]

    def in_snapshot(self, start: Position, end: Position) -> list[File]:
        """The files between two offsets that are in the snapshot of the first.

        Raises:
            GoneError: the snapshot is no longer there.
        """
        if not start.is_snapshot:
            return []
        files = sorted(self.snapshot(start.version).files, key=lambda add: (add["modificationTime"], add["path"]))
        return _between(start.version, files, start, end)

    def versions(self, start: Position, end: Position) -> range:
        """The versions between two offsets whose commits are read."""
        last = end.version if end.index > _BEFORE_FILES and not end.is_snapshot else end.version - 1
        return range(start.version + start.is_snapshot, last + 1)

    def files(self, start: Position, end: Position, *, skips: bool | None) -> list[File]:
        """The files with new rows between two offsets, the first not included.

        Args:
            start, end: the offsets.
            skips: of commits that rewrite rows, whether they are skipped; None: unknown.

        Raises:
            GoneError: a version is no longer there.
            RewrittenError: a commit rewrites rows, and ``skips`` is unknown.
        """
        found = self.in_snapshot(start, end)
        for version, actions in self.commits(self.versions(start, end)):
            adds, removes = (_changing(actions, kind) for kind in (("add",), ("remove",)))
            if adds and removes and skips is None:
                raise RewrittenError(version, _operation(actions))
            found += _between(version, [] if removes and skips else [add for _, add in adds], start, end)
        return found

    def changes(self, start: Position, end: Position) -> list[Changes]:
        """The files from which the change data feed is read between two offsets, without those of the snapshot.

        Raises:
            GoneError: a version is no longer there.
        """
        found: list[Changes] = []
        for version, actions in self.commits(self.versions(start, end)):
            every = _changing(actions, ("cdc",)) or _changing(actions, ("add", "remove"))
            files = _between(version, every, start, end)
            found.append(Changes(version, files, is_whole=len(files) == len(every)))
        return found


class RewrittenError(Exception):
    """A commit that deletes or rewrites rows: ``version``, ``operation``."""

    def __init__(self, version: int, operation: str) -> None:
        super().__init__(f"version {version}: {operation}")
        self.version, self.operation = version, operation


def first_position(end: Position, begins: int | None) -> Position:
    """Where a query began, by its first offset."""
    if begins is not None:
        return Position(begins, _BEFORE_FILES, is_snapshot=False, table=end.table)
    return Position(
        end.version if end.is_snapshot else end.version - 1, _BEFORE_FILES, is_snapshot=True, table=end.table
    )


def _operation(actions: Sequence[Action]) -> str:
    return next((one["commitInfo"].get("operation") for one in actions if "commitInfo" in one), None) or "a change"


def _changing(actions: Sequence[Action], kinds: Collection[str]) -> list[tuple[str, File]]:
    """The files of some kinds with which a commit changes rows; others it only arranges."""
    each = [(kind, of) for action in actions for kind, of in action.items() if kind in kinds]
    return [(kind, of) for kind, of in each if kind == "cdc" or of.get("dataChange", True)]


def _between(version: int, files: Sequence[T], start: Position, end: Position) -> list[T]:
    """The files of a version between two offsets."""
    after, upto = (start.version, start.index), (end.version, end.index)
    return [file for index, file in enumerate(files) if after < (version, index) <= upto]


def _named(names: Iterable[str]) -> dict[str, dict[int, list[str]]]:
    """The names of commits and of complete checkpoints, by version."""
    found: dict[str, dict[int, list[str]]] = {"commit": {}, "checkpoint": {}}
    parts: dict[tuple[int, str], list[str]] = {}
    for name in sorted(names):
        for pattern, kind in _NAMES.items():
            of = pattern.fullmatch(name)
            if of is None:
                continue
            if kind == "checkpoint" and of[3]:
                parts.setdefault((int(of[1]), of[3]), []).append(name)
            else:
                found[kind][int(of[1])] = [name]
    for (version, count), of_parts in parts.items():
        if len(of_parts) == int(count):
            found["checkpoint"].setdefault(version, of_parts)
    return found


def _snapshot(actions: Iterable[Action]) -> Snapshot:
    kept: dict[str, Any] = {}
    files: dict[tuple[str, str], Mapping[str, Any]] = {}
    for kind, of in _kinds(actions):
        if kind in ("metaData", "protocol"):
            kept[kind] = of
        elif kind == "add":
            files[_identity(of)] = of
        elif kind == "remove":
            files.pop(_identity(of), None)
    return Snapshot(kept["metaData"], kept["protocol"], list(files.values()))


def _kinds(actions: Iterable[Action]) -> Iterator[tuple[str, Any]]:
    for action in actions:
        for kind, of in action.items():
            if of is not None:
                yield kind, of


def _identity(file: Mapping[str, Any]) -> tuple[str, str]:
    """A file is what its path and its deletion vector name."""
    vector = file.get("deletionVector")
    return file[
        "path"
    ], "" if not vector else f"{vector['storageType']}{vector['pathOrInlineDv']}@{vector.get('offset')}"
