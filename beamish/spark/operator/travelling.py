"""Stateful processors that Spark can unpickle where beamish is not installed, and the engine's store on Spark's state store.

In the first batch of a query Spark starts a Python process on the driver's machine in which the processor declares its state,
without the files of ``--py-files`` and ``addPyFile`` (docs/spark-notes.md#shipped-files). There a stand-in declares it, which
also avoids importing beamish.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.serializers import CloudPickleSerializer
from pyspark.sql import types as t
from pyspark.sql.streaming.stateful_processor import MapState, StatefulProcessor, StatefulProcessorHandle

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


_serializer: Any = CloudPickleSerializer  # it has no types


class Travelling(StatefulProcessor):
    """A processor that is unpickled as itself in workers, and as a stand-in for declaring state or if its modules are missing."""

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return _loader(), (_serializer().dumps((type(self), self.__dict__)), STATE)


def _loader() -> Callable[[bytes, tuple[Any, ...]], StatefulProcessor]:
    """A function that unpickles a processor; nested, so that cloudpickle sends its code and not its name."""

    def load(pickled: bytes, state: tuple[Any, ...]) -> StatefulProcessor:
        import sys

        class StandIn(StatefulProcessor):
            def __init__(self, missing: ImportError | None = None) -> None:
                self._missing = missing or ImportError("beamish is not loaded in this process")

            def init(self, handle: Any) -> None:
                handle.getMapState(*state)

            def handleInputRows(self, *_: Any, **__: Any) -> Any:  # noqa: N802
                raise self._missing

            handleInitialState = handleExpiredTimer = handleInputRows  # noqa: N815

        if (
            getattr(sys.modules["__main__"].__spec__, "name", "")
            == "pyspark.sql.streaming.transform_with_state_driver_worker"
        ):
            return StandIn()
        try:
            kind, attributes = _serializer().loads(pickled)  # cloudpickle was just used to unpickle it
        except ImportError as error:
            return StandIn(error)
        processor: StatefulProcessor = kind.__new__(kind)
        getattr(processor, "__setstate__", processor.__dict__.update)(attributes)
        return processor

    return load
