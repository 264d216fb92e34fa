"""Checks that a partition of Spark's state store has its own state.

A shard belongs to partition ``hash(id) mod partitions``, whose state is in the folder ``state/<operator>/<partition>`` of the
checkpoint. Spark does not check folders: if two are exchanged, their shards find no state and start empty, while the windows in
the folders fire beside them. So each partition stores its number and stage, which is compared in the first batch of each run.

The metadata has a grouping key of its own. Spark's public API reaches only the current key, so the key is set by the client
behind the handle (docs/spark-notes.md#implicit-key); without such a client, only the shards of one task are compared.
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
        """Check that the state of the current shard belongs to this partition.

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
    """Error for a partition with another one's state.

    Args:
        shard: a shard of one of the two.
        here: the partition of the folder, as text.
        there: the partition of the state in it.
    """
    return StateError(
        f"shard {shard}: the folder of {here} in the checkpoint has the state of {there}: shards would start empty, beside their own windows; restore the folders state/<operator>/<partition>, restore the checkpoint from a copy, or start from a new one"
    )


def _partitions() -> int:
    """The number of state partitions of a task; 0: unknown."""
    context = TaskContext.get()
    said = [] if context is None else map(context.getLocalProperty, _PARTITIONS)
    return int(next(filter(None, said), 0))
