"""The operator: Spark calls it for each shard of a micro-batch, it calls the engine.

In a batch Spark first calls ``handleInputRows`` for each shard that has rows (payloads, heartbeats), then
``handleExpiredTimer`` for each timer at or below the batch's watermark. Each call is at most one step of the engine,
at the batch's watermark; a shard is stepped at most once a batch.

A shard has at most one timer: the least watermark at which something in it is due. Under ``idle_timeout`` each
batch is a step for each shard (RULES.md 3), rows or none: then it is a timer in the past, which fires in every
batch and is set again from its own call (SPARK.md S15).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from beamish.engine.windowing.several import open_shard
from beamish.kernels.reserved import UPSTREAM_WATERMARK
from beamish.plan import Plan
from beamish.spark.millis import timer_ms, watermark_us
from beamish.spark.operator.map_store import MapStore
from beamish.spark.operator.notes import ShardNote, read_note, write_note
from beamish.spark.operator.pane_bytes import to_bytes
from beamish.spark.rows.pack import NO_CLOCK
from beamish.watermarks import BoundedOutOfOrderness, ProcessingTimeLag

OUTPUT = "panes binary"
_PAST_MS = (1, 2)
"""Timers in the past, in turns: the one that fires is deleted after its call."""


class ShardProcessor(StatefulProcessor):
    """One micro-batch of one partition.

    Args:
        plan: the pipeline's plan.
        tells: whether each step's watermark goes to the stage after, as a row of its own.
    """

    def __init__(self, plan: Plan, *, tells: bool = False) -> None:
        policy = plan.options.watermark
        self._plan = plan
        self._tells = tells
        self._follows_clock = isinstance(policy, ProcessingTimeLag)
        self._steps_always = isinstance(policy, BoundedOutOfOrderness) and policy.idle_timeout is not None

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._store = MapStore(handle.getMapState("shard", "name string", "value binary"))
        self._stepped: set[int] = set()

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N802, N803
        payloads, clock_us = self._read(rows)
        note, stored = read_note(self._store, self._plan.shards)
        self._stepped.add(key[0])
        table, due_us = self._step(timerValues, None if clock_us == NO_CLOCK else clock_us, payloads)
        self._set_timer(note, self._due_ms(due_us), stored=stored)
        yield from _frames(table)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[pd.DataFrame]:  # noqa: N802, N803
        fired_ms = expiredTimerInfo.getExpiryTimeInMs()
        if self._steps_always:
            self._handle.registerTimer(_PAST_MS[fired_ms == _PAST_MS[0]])
            if key[0] in self._stepped:
                return
        self._stepped.add(key[0])
        note, _ = read_note(self._store, self._plan.shards)
        table, due_us = self._step(timerValues, None, [])
        if not self._steps_always:
            # Spark deletes the timer that fired.
            note = ShardNote(note.shards, None if note.timer_ms == fired_ms else note.timer_ms)
            self._set_timer(note, self._due_ms(due_us), stored=False)
        yield from _frames(table)

    def _read(self, rows: Iterable[Any]) -> tuple[list[bytes], int]:
        """The payloads and the clock (NO_CLOCK: none) of a shard's rows."""
        payloads: list[bytes] = []
        clock_us = NO_CLOCK
        for frame in rows:
            payloads += [bytes(payload) for payload in frame["payload"] if payload is not None]
            clock_us = max(clock_us, int(frame["clock_us"].max()))
        return payloads, clock_us

    def _step(self, timer_values: Any, clock_us: int | None, payloads: list[bytes]) -> tuple[pa.Table, int | None]:
        watermark = self._watermark(timer_values, clock_us)
        shard = open_shard(self._plan, self._store)
        table = shard.step(watermark, clock_us, payloads)
        if self._tells:
            told = pa.table({UPSTREAM_WATERMARK: pa.array([] if watermark is None else [watermark], pa.int64())})
            table = pa.concat_tables([table, told], promote_options="default")
        return table, None if self._follows_clock else shard.next_due_us

    def _watermark(self, timer_values: Any, clock_us: int | None) -> int | None:
        """The watermark the shard steps to. Under ProcessingTimeLag the engine has it from the clock."""
        return None if self._follows_clock else watermark_us(timer_values.getCurrentWatermarkInMs())

    def _due_ms(self, due_us: int | None) -> int | None:
        if self._steps_always:
            return _PAST_MS[0]  # for the first time; then handleExpiredTimer sets the next one
        return None if due_us is None else timer_ms(due_us)

    def _set_timer(self, note: ShardNote, due_ms: int | None, *, stored: bool) -> None:
        if note.timer_ms != due_ms:
            if note.timer_ms is not None:
                self._handle.deleteTimer(note.timer_ms)
            if due_ms is not None:
                self._handle.registerTimer(due_ms)
        if not stored or note.timer_ms != due_ms:
            write_note(self._store, ShardNote(note.shards, due_ms))


def _frames(table: pa.Table) -> Iterator[pd.DataFrame]:
    if table.num_rows:
        yield pd.DataFrame({"panes": to_bytes(table)})
