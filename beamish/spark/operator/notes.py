"""What the operator notes in each shard's state beside the engine's: shard count, timer, number of rows that came out, what it is.

The shard count belongs to the checkpoint: with another one a key's rows would go to a shard that does not know the
key, and its windows would silently begin anew. The first shard is in every batch that has rows (``source_packer``), so
the first batch after a restart compares the counts, and fails as a whole if they differ.
"""

from __future__ import annotations

import hashlib
import json

import attrs

from beamish.engine.stage_facts import ABOUT
from beamish.engine.state import Store
from beamish.errors import StateError

_NAME = "spark"


@attrs.frozen
class ShardNote:
    """What is noted of a shard.

    Attributes:
        shards: the shard count of the checkpoint.
        timer_ms: the shard's timer in Spark's milliseconds; None: none is set.
        rows: how many rows it gave so far.
        about: the digest of the stage's description that its state has; None: it has none.
    """

    shards: int
    timer_ms: int | None = None
    rows: int = 0
    about: str | None = None


def read_note(store: Store, shards: int) -> tuple[ShardNote, bool]:
    """The note of a shard, and whether it is stored; a new one for a new shard.

    Raises:
        StateError: the checkpoint has another shard count.
    """
    stored = store.get(_NAME)
    if stored is None:
        return ShardNote(shards), False
    note = ShardNote(**json.loads(stored))
    if note.shards != shards:
        raise StateError(
            f"the checkpoint has {note.shards} shards, the pipeline is applied with {shards}: keep it at "
            f".apply(df, shards={note.shards}) (the default follows spark.sql.shuffle.partitions), or start from a new checkpoint"
        )
    return note, True


@attrs.frozen
class About:
    """The description of a stage (``description.py``), kept with the state of each shard.

    Attributes:
        text: JSON.
    """

    text: str

    @property
    def digest(self) -> str:
        """By which it is known whether a shard has this one."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:16]

    def kept(self, store: Store, note: ShardNote) -> ShardNote:
        """Keep it, unless the shard has it; gives the note."""
        if note.about == self.digest:
            return note
        store.put(ABOUT, self.text.encode())
        return attrs.evolve(note, about=self.digest)


def noted_shards(store: Store) -> int:
    """The shard count of the checkpoint that a shard's store is of."""
    return int(json.loads(store.get(_NAME) or b"")["shards"])


def write_note(store: Store, note: ShardNote) -> None:
    """Store a note."""
    about = {} if note.about is None else {"about": note.about}
    said = {"shards": note.shards, "timer_ms": note.timer_ms, "rows": note.rows, **about}
    store.put(_NAME, json.dumps(said).encode())
