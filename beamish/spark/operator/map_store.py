"""The engine's store on Spark's state store: a map from names to bytes for each shard."""

from __future__ import annotations

from pyspark.sql import types as t
from pyspark.sql.streaming.stateful_processor import MapState, StatefulProcessorHandle

# With a type as text each task would have the JVM parse it, twice each.
_NAME = t.StructType([t.StructField("name", t.StringType())])
_VALUE = t.StructType([t.StructField("value", t.BinaryType())])
STATE = ("shard", _NAME, _VALUE)
"""Name and types of the state variable with the state of a partition's shards."""


def state_of(handle: StatefulProcessorHandle) -> MapState:
    """Spark's handle of the variable declared in ``STATE``."""
    return handle.getMapState(*STATE)


class MapStore:
    """Names to bytes for the current shard; every call is a round trip to the JVM."""

    def __init__(self, state: MapState) -> None:
        self._state = state

    def get(self, name: str) -> bytes | None:
        found = self._state.getValue((name,))
        return None if found is None else bytes(found[0])

    def put(self, name: str, value: bytes) -> None:
        self._state.updateValue((name,), (value,))

    def remove(self, name: str) -> None:
        self._state.removeKey((name,))
