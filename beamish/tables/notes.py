"""The note of a shard: state format, identity, number of shards, clocks, dropped rows; checked when the shard is opened."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from typing import Any, ClassVar

import attrs

from beamish.contract.clocks import Clocks
from beamish.contract.drops import Counts
from beamish.contract.operator import Operator, Shard
from beamish.contract.stored import INDEX, Note, Store
from beamish.durations import Duration
from beamish.errors import StateError
from beamish.kernels.identity import same_identity
from beamish.tables.entries import FUSED, WINDOWINGS

FORMAT = 4
_OLDER = 3
"""The earlier format that this version reads (older.py)."""
WITH_GENERATIONS = 1
"""Added to the format while windows are in generations, which earlier versions would not find."""
NOTE_FORMAT = 1
"""The format of the metadata of kinds other than windows."""
_USUAL = {"direction": "backward", "as_of": "event_time"}
"""Options that earlier versions did not have, as they were."""
_SPANS = ("tolerance", "within")
"""Parts of identities in microseconds."""

DUPLICATES, CHANGES, VERSIONS, GAPS, OVER, ROLLING, UPSERTS, TABLE_JOIN = (
    "duplicates",
    "changes",
    "table",
    "gaps",
    "over",
    "rolling",
    "upserts",
    "joined",
)
"""Entries that identify kinds of stages, with ``INDEX`` and ``WINDOWINGS``."""
OWN = "kind"
"""The entry of all kinds that beamish does not define; its metadata has the call that makes such a stage."""
_KINDS: Mapping[str, tuple[str, Collection[str]]] = {
    INDEX: ("a stage with windows", [WINDOWINGS]),
    WINDOWINGS: ("a stage with several windowings", [INDEX]),
    DUPLICATES: ("a stage of deduplication without windows", ()),
    CHANGES: ("a stage of changes()", ()),
    VERSIONS: ("a versioned table or a join with one", ()),
    GAPS: ("a stage of fill_gaps()", ()),
    OVER: ("a stage of over(...)", ()),
    ROLLING: ("a stage with rolling spans", ()),
    UPSERTS: ("a stage of upserts(...)", ()),
    TABLE_JOIN: ("a join of changing tables", ()),
}
"""The description of each, and entries of other forms of the kind, which it compares itself."""
KIND_ENTRIES = (*_KINDS, OWN)
"""The entries that identify kinds of stages. Nothing is added to them: a worker does not import the kinds of other stages."""


def check_format(stored: int) -> None:
    """Check that this version can read a state of this format (StateError: another format)."""
    if stored not in (_OLDER, FORMAT, FORMAT + WITH_GENERATIONS):
        raise StateError(
            f"the checkpoint has state format {stored}, this version of beamish writes {FORMAT}: start from a new "
            "checkpoint, or use the version that wrote it"
        )


def check_unnamed(store: Store) -> None:
    """Check that a store has no named windowings (StateError: it has)."""
    stored = store.get(WINDOWINGS)
    if stored is not None:
        names = ", ".join(map(repr, json.loads(stored)))
        raise StateError(
            f"the checkpoint has the windowings {names}, the pipeline has one unnamed: their windows would be lost; keep "
            f".window({...}), or start from a new checkpoint"
        )


def check_new(store: Store, entry: str, by: str = "") -> None:
    """Check that the store of a new stage does not have the state of another kind of stage, or of fused stages.

    Args:
        store: a shard's.
        entry: that identifies the stage's kind.
        by: with ``OWN``, the call of a pipeline that makes such a stage.

    Raises:
        StateError: it has.
    """
    now, beside = _words_of(entry, by), () if entry == OWN else _KINDS[entry][1]
    if (stages := store.get(FUSED)) is not None:
        raise not_fused(f"stages {', '.join(json.loads(stages))} in one operator", f"{now} in an operator of its own")
    for other in KIND_ENTRIES:
        if other not in (entry, *beside) and (about := store.get(other)):
            raise _another_kind(_words_of(other, json.loads(about)["by"] if other == OWN else ""), now)


def _words_of(entry: str, by: str) -> str:
    return f"a stage of {by}" if entry == OWN else _KINDS[entry][0]


def not_fused(then: str, now: str) -> StateError:
    """The error for a checkpoint whose stages are distributed over operators in another way."""
    return StateError(
        f"the checkpoint was written by a query with {then}, the pipeline is applied with {now}: pass apply(..., checkpoint=...), which "
        "keeps the distribution of the checkpoint; or apply(..., fuse=False) if no stages were fused; or carry it over with bm.migrate"
    )


def _another_kind(then: str, now: str) -> StateError:
    return StateError(
        f"the checkpoint has {then}, the pipeline now has {now} instead: its state would be lost; keep the stage "
        "as it was, or start from a new checkpoint"
    )


_SHARDS = "shards"
"""A part that ``entry_note`` does not compare."""
_NEW = ("having", "with_columns")
"""Parts that were not noted before, and so are not compared with what was."""


def read_note(store: Store, entry: str, identity: Mapping[str, Any], holds: str, by: str) -> dict[str, Any] | None:
    """Read a shard's metadata from JSON; None: a new shard.

    Args:
        store: the shard's.
        entry: of the metadata.
        identity: of the stage.
        holds: the shard's state in words.
        by: the call of a pipeline that makes such a stage.

    Raises:
        StateError: it was written by another stage, or in another format.
    """
    stored = store.get(entry)
    if stored is None:
        check_new(store, entry, by)
        return None
    about: dict[str, Any] = json.loads(stored)
    if entry == OWN and about["by"] != by:
        raise _another_kind(_words_of(entry, about["by"]), _words_of(entry, by))
    if about["format"] != NOTE_FORMAT:
        raise StateError(
            f"the checkpoint has {holds} in format {about['format']}, this version of beamish writes {NOTE_FORMAT}: start from a new "
            "checkpoint, or use the version that wrote it"
        )
    noted = about["identity"]
    for what in dict.fromkeys([*identity, *noted]):
        then, now = noted.get(what), identity.get(what)
        if (what in _NEW and what not in noted) or (what == _SHARDS and what not in identity):
            continue
        if not same_identity(then, now):
            raise StateError(
                f"the checkpoint was written by {by} with {what} {_shown(what, then)}, the pipeline now has {_shown(what, now)}: keep "
                "the old one, or start from a new checkpoint"
            )
    return about


def _shown(what: str, value: Any) -> Any:
    value = _USUAL.get(what) if value is None else value
    return repr(str(Duration(value))) if what in _SPANS and isinstance(value, int) else value


def check_held(held: Mapping[str, Any] | None, name: str | None) -> None:
    """Check that no other suppress has buffered updates.

    Args:
        held: the ``name`` of the stored suppress, and the number of its ``updates``.
        name: of the pipeline's suppress; None: it has none.

    Raises:
        StateError: another one has.
    """
    if held is not None and held["name"] != name and held["updates"]:
        now = "none" if name is None else f"one called {name!r}"
        raise StateError(
            f"the checkpoint's suppress {held['name']!r} has {held['updates']} buffered updates in this shard, the pipeline has {now}: they would be lost; run once with .suppress(bm.UntilTimeLimit(0, clock='event'), name={held['name']!r}), which emits all of them, or keep it"
        )


def entry_note(entry: str, identity: Mapping[str, Any], check: Callable[..., object]) -> Note:
    """Declare metadata in an entry of its own.

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

    stays = {what: value for what, value in identity.items() if what != _SHARDS}
    return Note(
        lambda _: {"identity": identity}, frozenset([entry]), read, write, lambda store: check(store, identity=stays)
    )


class NotedShard(Shard):
    """A shard that notes its clocks, its dropped rows and what a suppress holds.

    Args:
        operator, store: of the shard.
        inputs: number of inputs whose watermark counts; None: all.

    Attributes:
        ENTRY: the entry of its metadata.
        HOLDS: its state in words.
        BY: the call of a pipeline that makes such a stage; if beamish does not define the kind, it identifies it.
        stored: the metadata when it was opened; empty: a new shard.

    Raises:
        StateError: the state was written by another stage, number of shards or format.
    """

    ENTRY: ClassVar[str] = OWN
    HOLDS: ClassVar[str]
    BY: ClassVar[str]

    dropped: dict[str, int]

    def __init__(self, operator: Operator, store: Store, inputs: int | None = None) -> None:
        self.operator, self._store = operator, store
        self.clocks, self.dropped = Clocks.new(len(operator.takes) if inputs is None else inputs), {}
        self._counts = Counts()
        self.stored = about = self.read(store, operator.identity) or {}
        if about:
            self.clocks, self.dropped, self.held = Clocks.of(about["clocks"]), about["dropped"], about.get("held")

    @property
    def counts(self) -> Counts:
        return self._counts

    def noted(self) -> Mapping[str, Any]:
        """Additional metadata."""
        return {}

    @classmethod
    def read(cls, store: Store, identity: Mapping[str, Any]) -> dict[str, Any] | None:
        """The metadata in a store; None: a new shard (StateError: it is another stage's)."""
        return read_note(store, cls.ENTRY, identity, cls.HOLDS, cls.BY)

    @classmethod
    def note(cls, identity: Mapping[str, Any]) -> Note:
        """Declare the note of such shards."""
        return entry_note(cls.ENTRY, identity, cls.read)

    def save(self) -> None:
        about = {"format": NOTE_FORMAT, "identity": self.operator.identity}
        about |= {"clocks": attrs.asdict(self.clocks), "dropped": self.dropped}
        about |= self.noted()
        about |= {"by": self.BY} if self.ENTRY == OWN else {}
        about |= {} if self.held is None else {"held": dict(self.held)}
        self._store.put(self.ENTRY, json.dumps(about).encode())
