"""The stateful processor that repartitions a stage's state, in a single batch: its input is entries, and it emits nothing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import attrs
import pandas as pd
from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

from beamish.contract.operator import Operator
from beamish.contract.store import REPORTS, DictStore
from beamish.spark.operator.map_store import MapStore, state_of
from beamish.spark.operator.notes import NOTE, new_note, write_note
from beamish.spark.operator.processor import PAST_MS, Wakes
from beamish.spark.operator.travelling import Travelling
from beamish.spark.runtime.millis import timer_ms


class CarryOver(Travelling):
    """Shards of one partition: deletes the state of each and stores its new entries.

    Args:
        operator: of the stage that continues.
        wakes: what wakes its shards in a batch without rows for them.
    """

    def __init__(self, operator: Operator, wakes: Wakes) -> None:
        self._operator, self._wakes = operator, wakes

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._map = state_of(handle)

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N802, N803
        came = _entries(rows)
        self._map.clear()
        for timer in list(self._handle.listTimers()):
            self._handle.deleteTimer(timer)
        if came:
            self._begin(key[0], came)
        yield from ()

    def _begin(self, number: int, came: Mapping[str, bytes]) -> None:
        store, note = MapStore(self._map), new_note(self._operator.shards)
        sealed = note.sealed(store, number)
        for name, value in came.items():
            if name != NOTE:
                sealed.put(name, value)
        due_ms = self._due_ms(DictStore({name: value for name, value in came.items() if name != NOTE}))
        if due_ms is not None:
            self._handle.registerTimer(due_ms)
        rows = json.loads(came[NOTE])["rows"]
        write_note(store, number, attrs.evolve(note, timer_ms=due_ms, rows=rows, sums=sealed.sums))

    def _due_ms(self, store: DictStore) -> int | None:
        if self._wakes is Wakes.EVERY_BATCH:
            return PAST_MS[0]
        due_us = self._operator.open(store).next_due_us
        return None if due_us is None or self._wakes is Wakes.CALLED else timer_ms(due_us)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[pd.DataFrame]:  # noqa: N802, N803
        # The batch runs at no watermark, so only timers set in the past would fire, and those have been deleted.
        yield from ()


def _entries(rows: Iterable[pd.DataFrame]) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for frame in rows:
        for name, value in zip(frame["name"], frame["value"], strict=True):
            if name is not None:
                found[name] = bytes(value)
    return found


@attrs.frozen
class RunnersEntries:
    """The runner's own state in a shard, merged over all old shards.

    Attributes:
        rows: the maximum number of rows of a shard: a key's later rows are numbered from there.
        reports: watermark reports; None: no reports.
    """

    rows: int
    reports: bytes | None

    @classmethod
    def of(cls, stores: Iterable[Mapping[str, bytes]]) -> RunnersEntries:
        """From the shards' stores."""
        each = list(stores)
        rows = max((json.loads(store[NOTE])["rows"] for store in each if NOTE in store), default=0)
        return cls(rows, next((store[REPORTS] for store in each if REPORTS in store), None))

    def entries(self) -> dict[str, bytes]:
        """As entries of a shard."""
        reports = {} if self.reports is None else {REPORTS: self.reports}
        return {NOTE: json.dumps({"rows": self.rows}).encode(), **reports}
