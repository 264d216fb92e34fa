"""The operator's notes in each shard's state, beside the engine's, and the shards that a partition of Spark's state store holds.

The shard count is fixed for a checkpoint: with another one a key's rows would be sent to a shard without the key's state, and its
windows would silently restart. The first shard is in every batch with rows (``source_packer``), so the first batch after a
restart compares the counts, and fails as a whole if they differ.

Checks that a partition of Spark's state store has its own state. A shard belongs to partition ``hash(id) mod partitions``, whose state is
in the folder ``state/<operator>/<partition>`` of the checkpoint. Spark does not check folders: if two are exchanged, their shards find no
state and start empty, while the windows in the folders fire beside them. So each partition stores its number and stage, which is compared
in the first batch of each run.

The metadata has a grouping key of its own. Spark's public API reaches only the current key, so the key is set by the client
behind the handle (docs/spark-notes.md#implicit-key); without such a client, only the shards of one task are compared.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

import attrs
from pyspark import TaskContext
from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

from beamish.contract.stored import ABOUT, RUNNER, DictStore, Store
from beamish.errors import StateError
from beamish.spark.rows.pack import batch_number, in_first_batch, partition_of
from beamish.tables.entries import SealedStore, StoreUnder, is_sealed, new_word, not_as_written, seal, unseal

NOTE = RUNNER
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
        links: with fused stages, number of rows that each but the last has handed over, by its name; None: a single stage.
    """

    shards: int
    timer_ms: int | None = None
    rows: int = 0
    word: str | None = None
    about: str | None = None
    sums: Mapping[str, int] | None = None
    links: Mapping[str, int] | None = None

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
    """Metadata from JSON (StateError: it has fields unknown to this version)."""
    said = json.loads(stored)
    unknown = sorted(said.keys() - attrs.fields_dict(ShardNote).keys())
    if unknown:
        raise StateError(
            f"the checkpoint's shards have metadata {unknown[0]!r}, which this version of beamish does not know: use the version "
            "that wrote it, or a later one"
        )
    return ShardNote(**said)


def write_note(store: Store, shard: int, note: ShardNote) -> None:
    """Store the metadata."""
    later = ("word", "about", "sums", "links")  # older metadata has none
    said = {
        name: value
        for name, value in attrs.asdict(note, recurse=False).items()
        if name not in later or value is not None
    }
    written = json.dumps(said).encode()
    store.put(NOTE, written if note.word is None else seal(written, shard, NOTE))


def _plain(stored: bytes, shard: int) -> bytes:
    """Metadata without its seal, as JSON (StateError: it is damaged)."""
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
    """The description of a stage (``flow.py``), stored with the state of each shard.

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


@attrs.frozen
class FusedAbout:
    """The descriptions of fused stages, each among the entries of its stage.

    Attributes:
        each: by the names of the stages.
    """

    each: Mapping[str, About]

    @property
    def stage(self) -> int:
        """The number of the last stage."""
        return max(about.stage for about in self.each.values())

    def kept(self, store: Store, note: ShardNote) -> ShardNote:
        """Store them, unless the shard has them; returns the updated metadata."""
        digest = hashlib.sha256("".join(about.text for about in self.each.values()).encode()).hexdigest()[:16]
        if note.about == digest:
            return note
        for name, about in self.each.items():
            StoreUnder(name, store).put(ABOUT, about.text.encode())
        return attrs.evolve(note, about=digest)


def noted_shards(store: Store) -> int:
    """The shard count of the checkpoint of a shard's store."""
    return int(json.loads(store.get(NOTE) or b"")["shards"])


NO_SHARD = -1
"""The grouping key of the partition's metadata; shard ids are not negative."""
_ENTRY = "partition"
_PARTITIONS = ("spark.sql.streaming.internal.stateStore.partitions", "spark.sql.shuffle.partitions")
"""Local properties with the number of partitions of the checkpoint: in Spark 4.3, and before."""


@attrs.frozen
class PartitionNote:
    """Metadata of a partition.

    Attributes:
        stage: number of the stage, from 1.
        partition: number of the partition, from 0.
        partitions: number of partitions; with another number it is not comparable.
        since: batch in which it was written.
    """

    stage: int
    partition: int
    partitions: int
    since: int

    def check(self, stored: PartitionNote, shard: int) -> None:
        """Check that the stored metadata belongs to the same partition.

        Args:
            stored: the stored metadata.
            shard: the current shard, for the message.

        Raises:
            StateError: it belongs to another partition.
        """
        if (stored.stage, stored.partition) != (self.stage, self.partition):
            raise other_partition(shard, self.place, f"{stored.place}, written since batch {stored.since}")

    @property
    def place(self) -> str:
        """As text."""
        return f"partition {self.partition} of {self.partitions} of stage {self.stage}"


class StatePartition:
    """The partition of a task.

    Args:
        handle: Spark's.
        store: the store of the current shard.
        stage: number of the stage, from 1.
    """

    def __init__(self, handle: StatefulProcessorHandle, store: Store, stage: int) -> None:
        self._store, self._stage = store, stage
        self._client: Any = getattr(handle, "_statefulProcessorApiClient", None)
        self._partitions = _partitions()
        self._partition: int | None = None

    def enter(self, shard: int) -> None:
        """Check that the state of the current shard belongs to this partition (StateError: it is another partition's or stage's)."""
        if not self._partitions:
            return
        belongs = PartitionNote(self._stage, partition_of(shard, self._partitions), self._partitions, batch_number())
        if self._partition is None:
            self._partition = belongs.partition
            self._compare(belongs, shard)
        elif self._partition != belongs.partition:
            here = attrs.evolve(belongs, partition=self._partition)
            raise other_partition(shard, here.place, belongs.place)

    def renew(self, shard: int) -> None:
        """Remove the stored metadata, if it has not been done; ``shard``: the current one."""
        if self._partition is None and self._client is not None:
            self._partition = NO_SHARD
            self._client.set_implicit_key((NO_SHARD,))
            self._store.remove(_ENTRY)
            self._client.set_implicit_key((int(shard),))

    def _compare(self, here: PartitionNote, shard: int) -> None:
        if self._client is None or not in_first_batch((here.stage, here.partition)):
            return
        self._client.set_implicit_key((NO_SHARD,))
        sealed = self._store.get(_ENTRY)
        stored = None if sealed is None else PartitionNote(**json.loads(unseal(sealed, NO_SHARD, _ENTRY)))
        if stored is None or stored.partitions != here.partitions:
            self._store.put(_ENTRY, seal(json.dumps(attrs.asdict(here)).encode(), NO_SHARD, _ENTRY))
        else:
            here.check(stored, shard)
        self._client.set_implicit_key((int(shard),))


def other_partition(shard: int, here: str, there: str) -> StateError:
    """Error for a partition with another one's state.

    Args:
        shard: a shard of one of the two.
        here: the partition of the folder, as text.
        there: the partition of the state in it.
    """
    return StateError(
        f"shard {shard}: the folder of {here} in the checkpoint has the state of {there}: shards would start empty although their "
        "windows are stored; restore the folders state/<operator>/<partition> or the stages of the pipeline, restore the checkpoint "
        "from a copy, or start from a new one"
    )


def _partitions() -> int:
    """The number of state partitions of a task; 0: unknown."""
    context = TaskContext.get()
    said = [] if context is None else map(context.getLocalProperty, _PARTITIONS)
    return int(next(filter(None, said), 0))
