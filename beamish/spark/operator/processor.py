"""The stateful processor: Spark calls it for each shard of a micro-batch, and it calls the engine.

In a batch Spark first calls ``handleInputRows`` for each shard that has rows (payloads, heartbeats, reports, calls),
then ``handleExpiredTimer`` for each timer at or below the batch's watermark. Each call is at most one step of the
engine, at the batch's watermark.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Iterable, Iterator
from typing import Any

import attrs
import pandas as pd
import pyarrow as pa
from pyspark.sql import types as t
from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

from beamish.contract.operator import Operator, counts_of_step
from beamish.contract.output_sequence import came_out
from beamish.kernels.reserved import UPSTREAM_WATERMARK
from beamish.spark.operator.map_store import MapStore, state_of
from beamish.spark.operator.notes import About, ShardNote, read_note, write_note
from beamish.spark.operator.pane_bytes import panes_to_bytes
from beamish.spark.operator.pane_rows import panes_to_rows
from beamish.spark.operator.partition import StatePartition
from beamish.spark.operator.travelling import Travelling
from beamish.spark.operator.watermark_sources import WatermarkSource
from beamish.spark.rows.pack import NO_CLOCK, NO_INPUT
from beamish.spark.rows.shard_ids import FIRST_SHARD
from beamish.spark.runtime.millis import timer_ms
from beamish.spark.runtime.worker_memory import spare_memory
from beamish.spark.runtime.worker_sockets import Acknowledged

OUTPUT = t.StructType([t.StructField("panes", t.BinaryType())])
OBSERVED_OUTPUT = t.StructType([*OUTPUT, t.StructField("counts", t.StringType())])
"""For an observed query: metrics beside the panes of a shard and batch, as JSON (spark/runtime/observation.py)."""
PAST_MS = (1, 2)
"""Timers in the past, used alternately: the one that fires is deleted after its call."""

Came = tuple[list[bytes], int | None, dict[int, int]]
"""Payloads, the clock and reports."""
NOTHING_CAME: Came = ([], None, {})


class Wakes(enum.Enum):
    """The row that wakes a shard in a batch without a payload for it."""

    WHEN_DUE = "when_due"
    """A timer at the least watermark at which something in the shard is due."""
    EVERY_BATCH = "every_batch"
    """A timer in the past: it fires in every batch and is set again from its own call.

    See docs/spark-notes.md#timers-in-the-past.
    """
    CALLED = "called"
    """Heartbeats, or calls by the upstream stage: no timer is needed."""


class ShardProcessor(Acknowledged, Travelling):
    """One micro-batch of one partition.

    Args:
        operator: of the shards.
        watermark: the source of their inputs' watermarks.
        wakes: what wakes them in a batch without rows.
        hands_on: whether each step forwards its watermark to the next stage, as a row of its own.
        observed: whether each step emits its metrics, as a row of its own.
        as_rows: whether panes are emitted as rows, not as bytes; neither with a watermark nor observed.
        about: the stage's description, to be stored with its state; None: not stored.
    """

    def __init__(
        self,
        operator: Operator,
        watermark: WatermarkSource,
        wakes: Wakes,
        *,
        hands_on: bool = False,
        observed: bool = False,
        as_rows: bool = False,
        about: About | None = None,
    ) -> None:
        self._operator, self._watermark, self._about = operator, watermark, about
        self._wakes, self._hands_on, self._observed, self._as_rows = wakes, hands_on, observed, as_rows

    def init(self, handle: StatefulProcessorHandle) -> None:
        spare_memory()
        self._handle = handle
        self._store = MapStore(state_of(handle))
        self._partition = StatePartition(handle, self._store, 1 if self._about is None else self._about.stage)
        self._stepped: set[int] = set()

    def handleInitialState(self, key: Any, initialState: Any, timerValues: Any) -> None:  # noqa: N802, N803
        self._partition.enter(key[0])
        note, stored = read_note(self._store, key[0], self._operator.shards)
        store = note.sealed(self._store, key[0])
        shard = self._operator.open(store)
        shard.begin([bytes(payload) for payload in initialState["payload"]])
        now = attrs.evolve(note, sums=store.sums)
        if not stored or now != note:
            write_note(self._store, key[0], now)

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N802, N803
        came = _read(rows)
        self._partition.enter(key[0])
        note, stored = read_note(self._store, key[0], self._operator.shards)
        if not stored and self._is_only_woken(key[0], came):
            return
        self._stepped.add(key[0])
        frames, now, due_us = self._step(key[0], note, timerValues, came)
        now = self._with_timer(now, self._due_ms(due_us, timerValues))
        if not stored or now != note:
            write_note(self._store, key[0], now)
        yield from frames

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[pd.DataFrame]:  # noqa: N802, N803
        fired_ms = expiredTimerInfo.getExpiryTimeInMs()
        self._partition.enter(key[0])
        if self._wakes is Wakes.EVERY_BATCH:
            self._handle.registerTimer(PAST_MS[fired_ms == PAST_MS[0]])
            if key[0] in self._stepped:
                return
        self._stepped.add(key[0])
        note, _ = read_note(self._store, key[0], self._operator.shards)
        frames, now, due_us = self._step(key[0], note, timerValues, NOTHING_CAME)
        if self._wakes is Wakes.WHEN_DUE:
            if now.timer_ms == fired_ms:  # Spark deletes the timer that fired.
                now = attrs.evolve(now, timer_ms=None)
            now = self._with_timer(now, self._due_ms(due_us, timerValues))
        if now != note:
            write_note(self._store, key[0], now)
        yield from frames

    def _step(
        self, number: int, note: ShardNote, timer_values: Any, came: Came
    ) -> tuple[Iterator[pd.DataFrame], ShardNote, int | None]:
        """The output, the updated metadata, and the least watermark at which something is due.

        Args:
            number: the shard's.
            note: its metadata.
            timer_values: Spark's.
            came: the result of ``_read``.
        """
        payloads, clock_us, reports = came
        store = note.sealed(self._store, number)
        sources_us = self._watermark.sources_us(store, timer_values.getCurrentWatermarkInMs(), reports)
        shard = self._operator.open(store)
        dropped = dict(shard.dropped)
        table = shard.step(sources_us, clock_us, payloads)
        table = came_out(table, note.rows, shard.watermark_us)
        counts = None
        if self._observed:
            counts = {"shard": int(number), **counts_of_step(shard, table, dropped, clock_us)}
        now = attrs.evolve(note, rows=note.rows + table.num_rows)
        if self._about is not None:
            now = self._about.kept(store, now)
        if self._hands_on and shard.watermark_us is not None:
            watermark = pa.table({UPSTREAM_WATERMARK: pa.array([shard.watermark_us], pa.int64())})
            table = pa.concat_tables([table, watermark], promote_options="default")
        now = attrs.evolve(now, sums=store.sums)
        frames = panes_to_rows(table) if self._as_rows else _as_bytes(table, counts)
        return frames, now, shard.next_due_us

    def _is_only_woken(self, number: int, came: Came) -> bool:
        """Whether a shard is called to apply changes (``rows/pack.py``), which a shard without state does not need."""
        return self._wakes is Wakes.WHEN_DUE and not self._observed and number != FIRST_SHARD and came == NOTHING_CAME

    def _due_ms(self, due_us: int | None, timer_values: Any) -> int | None:
        if self._wakes is Wakes.EVERY_BATCH:
            return PAST_MS[0]  # for the first time; then handleExpiredTimer sets the next one
        if due_us is None or self._wakes is Wakes.CALLED:
            return None
        # A due time in the past waits for the next watermark. A timer at or below the current one fires in this batch,
        # and is lost.
        watermark_ms: int = timer_values.getCurrentWatermarkInMs()
        return max(timer_ms(due_us), watermark_ms + 1)

    def _with_timer(self, note: ShardNote, due_ms: int | None) -> ShardNote:
        """Replace the timer."""
        if note.timer_ms != due_ms:
            if note.timer_ms is not None:
                self._handle.deleteTimer(note.timer_ms)
            if due_ms is not None:
                self._handle.registerTimer(due_ms)
        return attrs.evolve(note, timer_ms=due_ms)


def _read(rows: Iterable[pd.DataFrame]) -> Came:
    """The payloads, the clock and the reports among a shard's rows."""
    payloads: list[bytes] = []
    clock_us = NO_CLOCK
    reports: dict[int, int] = {}
    for frame in rows:
        payloads += [bytes(payload) for payload in frame["payload"] if payload is not None]
        clock_us = max(clock_us, int(frame["clock_us"].max()))
        reporting = frame["input"].to_numpy() != NO_INPUT
        if reporting.any():
            for number, report_us in zip(frame["input"][reporting], frame["report_us"][reporting], strict=True):
                reports[int(number)] = max(int(report_us), reports.get(int(number), int(report_us)))
    return payloads, None if clock_us == NO_CLOCK else clock_us, reports


def _as_bytes(table: pa.Table, counts: dict[str, int | None] | None) -> Iterator[pd.DataFrame]:
    if counts is not None:
        panes: list[bytes | None] = [None, *panes_to_bytes(table)]
        yield pd.DataFrame({"panes": panes, "counts": [json.dumps(counts)] + [None] * (len(panes) - 1)})
    elif table.num_rows:
        yield pd.DataFrame({"panes": panes_to_bytes(table)})
