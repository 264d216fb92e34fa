"""Whose state a partition of Spark's state store holds.

A shard belongs to partition ``hash(id) mod partitions``, whose state is in the folder ``state/<operator>/<partition>`` of the checkpoint. Spark
does not check that a folder is where it was: if two are exchanged, their shards find no state and begin anew, while the windows in the
folders fire beside them. So each partition notes its number and its stage, and the note is compared in the first batch of each run.

The note is under a grouping key that is no shard's. Spark's public calls reach only the key that is being called, so the key is set by the
client behind the handle (docs/spark-notes.md#implicit-key); where there is no such client, only the shards of one task are compared.
"""

from __future__ import annotations

import json
from typing import Any

import attrs
from pyspark import TaskContext
from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

from beamish.contract.store import Store
from beamish.errors import StateError
from beamish.spark.rows.first_batch import batch_number, in_first_batch
from beamish.spark.rows.shard_ids import partition_of
from beamish.tables.sealed import seal, unseal

NO_SHARD = -1
"""The grouping key of the partition's note; ids of shards are not negative."""
_ENTRY = "partition"
_PARTITIONS = ("spark.sql.streaming.internal.stateStore.partitions", "spark.sql.shuffle.partitions")
"""The local properties with the number of partitions that the checkpoint has: of Spark 4.3, and of those before."""


@attrs.frozen
class PartitionNote:
    """Note of a partition.

    Attributes:
        stage: number of the stage, from 1.
        partition: number of the partition, from 0.
        partitions: how many there are; of another number the note says nothing.
        since: batch in which it was written.
    """

    stage: int
    partition: int
    partitions: int
    since: int

    def check(self, stored: PartitionNote, shard: int) -> None:
        """Check that the stored note is of the same partition.

        Args:
            stored: the stored one.
            shard: the shard that is called, for the message.

        Raises:
            StateError: it is of another one.
        """
        if (stored.stage, stored.partition) != (self.stage, self.partition):
            raise other_partition(shard, self.place, f"{stored.place}, written since batch {stored.since}")

    @property
    def place(self) -> str:
        """In words."""
        return f"partition {self.partition} of {self.partitions} of stage {self.stage}"


class StatePartition:
    """The partition that a task works on.

    Args:
        handle: Spark's.
        store: the store of the shard that Spark is calling for.
        stage: number of the stage, from 1.
    """

    def __init__(self, handle: StatefulProcessorHandle, store: Store, stage: int) -> None:
        self._store, self._stage = store, stage
        self._client: Any = getattr(handle, "_statefulProcessorApiClient", None)
        self._partitions = _partitions()
        self._partition: int | None = None

    def enter(self, shard: int) -> None:
        """Check that the state of a shard that is called is this partition's.

        Raises:
            StateError: it is another partition's or stage's.
        """
        if not self._partitions:
            return
        belongs = PartitionNote(self._stage, partition_of(shard, self._partitions), self._partitions, batch_number())
        if self._partition is None:
            self._partition = belongs.partition
            self._compare(belongs, shard)
        elif self._partition != belongs.partition:
            here = attrs.evolve(belongs, partition=self._partition)
            raise other_partition(shard, here.place, belongs.place)

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
    """Error of a partition that has another's state.

    Args:
        shard: a shard of one of the two.
        here: the partition whose folder it is, in words.
        there: the one whose state is in it.
    """
    return StateError(
        f"shard {shard}: in the folder of {here} the checkpoint has the state of {there}: shards would begin anew, beside windows that are "
        "theirs; put the folders state/<operator>/<partition> back as they were, restore the checkpoint from a copy, or start from a new one"
    )


def _partitions() -> int:
    """The number of partitions of the state that a task works on; 0: it is not known."""
    context = TaskContext.get()
    said = [] if context is None else map(context.getLocalProperty, _PARTITIONS)
    return int(next(filter(None, said), 0))
