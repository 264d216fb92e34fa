"""The note of a shard: state format, identity, number of shards, each checked when the shard is opened."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from typing import Any

from beamish.contract.kept import Note
from beamish.contract.store import Store
from beamish.errors import StateError
from beamish.kernels.identity import same_identity
from beamish.tables.stored_tables import WINDOWINGS

FORMAT = 4
_OLDER = 3
"""The earlier format that this version reads (older.py)."""
NOTE_FORMAT = 1
"""Of the notes of kinds other than windows."""

_KINDS: dict[str, tuple[str, Collection[str]]] = {}
"""What kinds declare of themselves, by ``kind_entry``."""


def kind_entry(entry: str, words: str, *, beside: Collection[str] = ()) -> str:
    """Declare the entry that only the shards of a kind of stage keep; gives the entry.

    Args:
        entry: its name. If it is a JSON object with ``clocks`` and ``dropped``, ``bm.inspect`` shows them.
        words: what such a stage is.
        beside: entries of other forms of the kind, which it compares itself.
    """
    _KINDS[entry] = words, beside
    return entry


def kind_entries() -> tuple[str, ...]:
    """The entries that kinds of stages are known by."""
    return tuple(_KINDS)


def check_format(stored: int) -> None:
    """Check that this version can read a state of this format.

    Raises:
        StateError: it cannot.
    """
    if stored not in (_OLDER, FORMAT):
        raise StateError(
            f"the checkpoint has state format {stored}, this version of beamish writes {FORMAT}: start from a new "
            "checkpoint, or use the version that wrote it"
        )


def check_unnamed(store: Store) -> None:
    """Check that a store does not hold several windowings.

    Raises:
        StateError: it does.
    """
    stored = store.get(WINDOWINGS)
    if stored is not None:
        names = ", ".join(map(repr, json.loads(stored)))
        raise StateError(
            f"the checkpoint has the windowings {names}, the pipeline has one without a name: their windows would be "
            "forgotten; keep .window({...}), or start from a new checkpoint"
        )


def check_new(store: Store, kind: str) -> None:
    """Check that a store in which a stage begins is not of a stage of another kind, whose state it would not see.

    Args:
        store: a shard's.
        kind: the entry that the stage keeps (``kind_entry``).

    Raises:
        StateError: it is.
    """
    words, beside = _KINDS[kind]
    found = next((entry for entry in _KINDS if entry not in (kind, *beside) and store.get(entry)), None)
    if found is not None:
        raise StateError(
            f"the checkpoint is of {_KINDS[found][0]}, and at its place the pipeline now has {words}: what it keeps would be forgotten; "
            "keep the stage as it was, or start from a new checkpoint"
        )


def read_json(store: Store, entry: str, holds: str) -> dict[str, Any] | None:
    """What a shard notes about itself in JSON; None: it begins.

    Args:
        store: the shard's.
        entry: of the note (``kind_entry``).
        holds: in words what the shard keeps.

    Raises:
        StateError: it was written by another kind of stage, or in another format.
    """
    stored = store.get(entry)
    if stored is None:
        check_new(store, entry)
        return None
    about: dict[str, Any] = json.loads(stored)
    if about["format"] != NOTE_FORMAT:
        raise StateError(
            f"the checkpoint has {holds} in format {about['format']}, this version of beamish writes {NOTE_FORMAT}: start from a new "
            "checkpoint, or use the version that wrote it"
        )
    return about


def read_note(store: Store, entry: str, identity: Mapping[str, Any], holds: str, by: str) -> dict[str, Any] | None:
    """The same of a stage with this identity; ``by``: the call of a pipeline that makes such a stage."""
    if (about := read_json(store, entry, holds)) is None:
        return None
    for what, now in identity.items():
        then = about["identity"].get(what)
        if not same_identity(then, now):
            raise StateError(
                f"the checkpoint was written by {by} with {what} {then}, the pipeline now has {now}: keep the old one, or start from a "
                "new checkpoint"
            )
    return about


def check_held(held: Mapping[str, Any] | None, name: str | None) -> None:
    """Check that no suppress but the one of this name holds anything.

    Args:
        held: what the state says: the ``name`` of a suppress, and how many ``updates`` it holds.
        name: of the suppress that the pipeline has; None: it has none.

    Raises:
        StateError: another one does.
    """
    if held is not None and held["name"] != name and held["updates"]:
        now = "none" if name is None else f"one called {name!r}"
        raise StateError(
            f"the checkpoint's suppress {held['name']!r} holds {held['updates']} updates in this shard, the pipeline has "
            f"{now}: they would be lost; run once with .suppress(bm.UntilTimeLimit(0, clock='event'), name={held['name']!r}), "
            "which lets all of them through, or keep it"
        )


def entry_note(entry: str, identity: Mapping[str, Any], check: Callable[..., object]) -> Note:
    """Declare metadata that is an entry of its own.

    Args:
        entry: its name.
        identity: the identity of the stage.
        check: ``check(store, identity=...)`` raises StateError if a stage of this identity cannot continue from the store.
    """

    def read(store: Store) -> dict[str, Any] | None:
        stored = store.get(entry)
        return None if stored is None else json.loads(stored)

    def write(store: Store, about: Mapping[str, Any]) -> None:
        store.put(entry, json.dumps(about).encode())

    stays = {what: value for what, value in identity.items() if what != "shards"}
    return Note(
        lambda _: {"identity": identity}, frozenset([entry]), read, write, lambda store: check(store, identity=stays)
    )
