"""Rows that arrive at random at given rates: a streaming source, and what it gives, for the process that measures."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, Self

import attrs
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

KEYS = 1_000
SECOND_US = 1_000_000
_SLOT_US = 50_000


@attrs.frozen
class Load:
    """Arrivals: the rates one after the other, from a beginning, which is a whole slot.

    Attributes:
        begin_us: in microseconds since the epoch.
        steps: seconds, and rows per second.
        seed: of the arrivals.
    """

    begin_us: int
    steps: Sequence[tuple[float, int]]
    seed: int = 1

    @classmethod
    def soon(cls, steps: Sequence[tuple[float, int]]) -> Self:
        """Arrivals that begin in the second after the next."""
        return cls((time.time_ns() // 1000 // SECOND_US + 2) * SECOND_US, steps)

    @property
    def bounds_us(self) -> list[int]:
        """The beginning of each step, and the end of the last."""
        return [self.begin_us + round(at * SECOND_US) for at in accumulate((s for s, _ in self.steps), initial=0.0)]

    def arrivals(self, start_us: int, end_us: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The times from one until before another at which rows arrive, in order, and their keys: the same in each call."""
        bounds, found = self.bounds_us, []
        start_us, end_us = max(start_us, bounds[0]), min(end_us, bounds[-1])
        for slot in range(start_us // _SLOT_US, -(-end_us // _SLOT_US)):
            step = max(i for i, at in enumerate(bounds[:-1]) if at <= max(slot * _SLOT_US, bounds[0]))
            chance = np.random.default_rng([self.seed, slot])
            rows = chance.poisson(self.steps[step][1] * _SLOT_US / SECOND_US)
            at_us = slot * _SLOT_US + np.sort(chance.integers(0, _SLOT_US, rows))
            keys = chance.integers(0, KEYS, rows)
            inside = (at_us >= start_us) & (at_us < end_us)
            found.append((at_us[inside], keys[inside]))
        if not found:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        return np.concatenate([at for at, _ in found]), np.concatenate([key for _, key in found])


class Arrivals(DataSource):
    """Spark's name for the source is ``arrivals``; its option ``load`` is a ``Load`` as JSON."""

    @classmethod
    def name(cls) -> str:
        return "arrivals"

    def schema(self) -> str:
        return "created_us bigint, k bigint"

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802
        return _Reader(json.loads(self.options["load"]))


class _Reader(DataSourceStreamReader):
    """An offset is a time: the rows before it have arrived."""

    def __init__(self, load: Mapping[str, Any]) -> None:
        self._load = load

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        return {"us": self._load["begin_us"]}

    def latestOffset(self, start: Any = None, limit: Any = None) -> dict[str, Any]:  # noqa: N802
        return {"us": time.time_ns() // 1000}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        middle = (start["us"] + end["us"]) // 2
        return [InputPartition(part) for part in ((start["us"], middle), (middle, end["us"]))]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        at_us, keys = Load(**self._load).arrivals(*partition.value)
        yield pa.record_batch([pa.array(at_us), pa.array(keys)], names=["created_us", "k"])
