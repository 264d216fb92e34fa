"""The runner's own metadata in each shard's state: shard count, timer, number of rows, checksums, description.

The shard count is fixed for a checkpoint: with another one a key's rows would be sent to a shard without the key's state, and its
windows would silently restart. The first shard is in every batch with rows (``source_packer``), so the first batch after a
restart compares the counts, and fails as a whole if they differ.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping

import attrs

from beamish.contract.store import ABOUT, DictStore, Store
from beamish.errors import StateError
from beamish.tables.sealed import (
    SealedStore,
    is_sealed,
    new_word,
    not_as_written,
    seal,
    unseal,
)

NOTE = "spark"
"""The entry of a shard's metadata."""


@attrs.frozen
class ShardNote:
    """The metadata of a shard.

    Attributes:
        shards: the shard count of the checkpoint.
        timer_ms: the shard's timer in Spark's milliseconds; None: none is set.
        rows: number of rows emitted so far.
        word: the seal of its values; None: older than seals.
        about: the digest of the stage's description in its state; None: none.
        sums: the checksum of each other entry; None: older than checksums.
    """

    shards: int
    timer_ms: int | None = None
    rows: int = 0
    word: str | None = None
    about: str | None = None
    sums: Mapping[str, int] | None = None

    def sealed(self, store: Store, shard: int) -> SealedStore:
        """The shard's store, which maintains checksums from here on."""
        return SealedStore(store, shard, self.word, None if self.sums is None else dict(self.sums))


def read_note(store: Store, shard: int, shards: int) -> tuple[ShardNote, bool]:
    """The metadata of a shard, and whether it is stored; initialized for a new shard.

    Raises:
        StateError: the checkpoint has another shard count, or the metadata is damaged, or from a later version.
    """
    stored = store.get(NOTE)
    if stored is None:
        return new_note(shards), False
    note = _note_of(_plain(stored, shard))
    if note.shards != shards:
        raise StateError(
            f"the checkpoint has {note.shards} shards, the pipeline is applied with {shards}: keep it at "
            f".apply(df, shards={note.shards}) (the default follows spark.sql.shuffle.partitions), or start from a new checkpoint"
        )
    return note, True


def new_note(shards: int) -> ShardNote:
    """The metadata of a new shard."""
    return ShardNote(shards, word=new_word(), sums={})


def _note_of(stored: bytes) -> ShardNote:
    """Metadata from JSON.

    Raises:
        StateError: it has fields unknown to this version.
    """
    said = json.loads(stored)
    unknown = sorted(said.keys() - attrs.fields_dict(ShardNote).keys())
    if unknown:
        raise StateError(
            f"the checkpoint's shards note {unknown[0]!r}, which this version of beamish does not know: use the version that wrote it, or a "
            "later one"
        )
    return ShardNote(**said)


def write_note(store: Store, shard: int, note: ShardNote) -> None:
    """Store the metadata."""
    later = ("word", "about", "sums")  # older metadata has none
    said = {
        name: value
        for name, value in attrs.asdict(note, recurse=False).items()
        if name not in later or value is not None
    }
    written = json.dumps(said).encode()
    store.put(NOTE, written if note.word is None else seal(written, shard, NOTE))


def _plain(stored: bytes, shard: int) -> bytes:
    """Metadata without its seal, as JSON.

    Raises:
        StateError: it is damaged.
    """
    # Before seals the value was a text that ends with a bracket.
    whole = not is_sealed(stored) and stored.endswith(b"}") and b'"word"' not in stored
    return stored if whole else unseal(stored, shard, NOTE)


def every(_: str) -> bool:
    """Selects all entries of a shard."""
    return True


def opened(entries: Mapping[str, bytes], shard: int, asked: Callable[[str], bool] = every) -> DictStore:
    """Entries of a shard, including its metadata, without their seals.

    Args:
        entries: the values.
        shard: its id.
        asked: selects the required entries among those of the shard.

    Raises:
        StateError: an entry is damaged or missing.
    """
    if NOTE not in entries:
        raise not_as_written(shard, NOTE, "it was lost")
    note = _plain(entries[NOTE], shard)
    store = _note_of(note).sealed(DictStore(entries), shard)
    for name in filter(asked, store.sums or ()):
        if name not in entries:
            store.get(name)
    return DictStore({name: store.get(name) or b"" for name in entries if name != NOTE} | {NOTE: note})


@attrs.frozen
class About:
    """The description of a stage (``description.py``), stored with the state of each shard.

    Attributes:
        text: JSON.
        stage: number of the stage, from 1.
    """

    text: str
    stage: int = 1

    @property
    def digest(self) -> str:
        """The digest by which a shard's stored description is compared."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:16]

    def kept(self, store: Store, note: ShardNote) -> ShardNote:
        """Store it, unless the shard has it; returns the updated metadata."""
        if note.about == self.digest:
            return note
        store.put(ABOUT, self.text.encode())
        return attrs.evolve(note, about=self.digest)


def noted_shards(store: Store) -> int:
    """The shard count of the checkpoint of a shard's store."""
    return int(json.loads(store.get(NOTE) or b"")["shards"])
