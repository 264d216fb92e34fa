"""The stateful processors: one runs the engine for each shard of a micro-batch, one rescales the state of a stage, once.

In a batch Spark first calls ``handleInputRows`` for each shard that has rows (payloads, heartbeats, reports, calls),
then ``handleExpiredTimer`` for each timer at or below the batch's watermark. Each call is at most one step of the
engine, at the batch's watermark.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import attrs
import pandas as pd
import pyarrow as pa
from pyspark.sql import types as t
from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

from beamish.contract.operator import Operator, counts_of_step
from beamish.contract.stored import REPORTS, DictStore, Store
from beamish.contract.updates import number_rows
from beamish.kernels.column_names import UPSTREAM_WATERMARK
from beamish.spark.operator.notes import (
    NOTE,
    About,
    FusedAbout,
    ShardNote,
    StatePartition,
    new_note,
    read_note,
    write_note,
)
from beamish.spark.operator.panes import panes_to_bytes, panes_to_rows
from beamish.spark.operator.travelling import MapStore, Travelling, state_of
from beamish.spark.rows.pack import FIRST_SHARD, NO_CLOCK, NO_INPUT
from beamish.spark.runtime.millis import timer_ms, watermark_us
from beamish.spark.runtime.workers import Acknowledged, spare_memory

if TYPE_CHECKING:
    from beamish.fusion.operator import Link


class WatermarkSource(Protocol):
    """Returns the watermark of each input for a step."""

    def sources_us(self, store: Store, query_ms: int, reports: Mapping[int, int]) -> Sequence[int | None]:
        """The watermark of each input, in microseconds.

        Args:
            store: the shard's.
            query_ms: Spark's watermark, in milliseconds.
            reports: those of this batch: by input number, in microseconds.
        """
        ...


@attrs.frozen
class FromQuery:
    """Spark's watermark, the least of all ``withWatermark`` of the query.

    Attributes:
        followed: for each input whether it follows it, and not the clock.
    """

    followed: tuple[bool, ...]

    def sources_us(self, store: Store, query_ms: int, reports: Mapping[int, int]) -> Sequence[int | None]:
        return [watermark_us(query_ms) if followed else None for followed in self.followed]


@attrs.frozen
class FromReports:
    """Each input's own watermark, if one number for the query is not enough.

    Reports of a source's rows apply from the next batch on, like Spark's own watermark. A stage's report of its watermark applies
    at once: its panes of this batch precede it. Every shard receives every report and stores those for the next batch in its
    state, so that all have the same watermark, also after a restart.

    Attributes:
        stages: for each input whether it is a stage.
    """

    stages: tuple[bool, ...]

    def sources_us(self, store: Store, query_ms: int, reports: Mapping[int, int]) -> Sequence[int | None]:
        stored = store.get(REPORTS)
        before = json.loads(stored or b"{}")
        kept = {str(number): us for number, us in reports.items() if not self.stages[number]}
        if kept != before:
            store.put(REPORTS, json.dumps(kept).encode())
        return [
            reports.get(number) if is_stage else watermark_us(before.get(str(number), 0) // 1000)
            for number, is_stage in enumerate(self.stages)
        ]


OUTPUT = t.StructType([t.StructField("panes", t.BinaryType())])
OBSERVED_OUTPUT = t.StructType([*OUTPUT, t.StructField("counts", t.StringType())])
"""For an observed query: metrics beside the panes of a shard and batch, as JSON (spark/runtime/observation.py)."""
PAST_MS = (1, 2)
"""Timers in the past, used alternately: the one that fires is deleted after its call."""

Came = tuple[list[bytes], int | None, dict[int, int]]
"""Payloads, the clock and reports."""
NOTHING_CAME: Came = ([], None, {})


class WakePolicy(enum.Enum):
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
        forwards_watermark: whether each step forwards its watermark to the next stage, as a row of its own.
        observed: whether each step emits its metrics, as a row of its own.
        as_rows: whether panes are emitted as rows, not as bytes; neither with a watermark nor observed.
        about: the stage's description, to be stored with its state; None: not stored.
    """

    def __init__(
        self,
        operator: Operator,
        watermark: WatermarkSource,
        wakes: WakePolicy,
        *,
        forwards_watermark: bool = False,
        observed: bool = False,
        as_rows: bool = False,
        about: About | FusedAbout | None = None,
    ) -> None:
        self._operator, self._watermark, self._about = operator, watermark, about
        self._wakes, self._forwards_watermark, self._observed, self._as_rows = (
            wakes,
            forwards_watermark,
            observed,
            as_rows,
        )

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
        if self._wakes is WakePolicy.EVERY_BATCH:
            self._handle.registerTimer(PAST_MS[fired_ms == PAST_MS[0]])
            if key[0] in self._stepped:
                return
        self._stepped.add(key[0])
        note, _ = read_note(self._store, key[0], self._operator.shards)
        frames, now, due_us = self._step(key[0], note, timerValues, NOTHING_CAME)
        if self._wakes is WakePolicy.WHEN_DUE:
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
        table = number_rows(table, note.rows, shard.watermark_us)
        counts = []
        if self._observed:
            each = [*shard.counts_before(clock_us), ("", counts_of_step(shard, table, dropped, clock_us))]
            counts = [{"path": path, "shard": int(number), **of_stage} for path, of_stage in each]
        now = attrs.evolve(note, rows=note.rows + table.num_rows)
        if shard.handed:
            before = note.links or {}
            now = attrs.evolve(now, links={name: before.get(name, 0) + rows for name, rows in shard.handed.items()})
        if self._about is not None:
            now = self._about.kept(store, now)
        if self._forwards_watermark and shard.watermark_us is not None:
            watermark = pa.table({UPSTREAM_WATERMARK: pa.array([shard.watermark_us], pa.int64())})
            table = pa.concat_tables([table, watermark], promote_options="default")
        now = attrs.evolve(now, sums=store.sums)
        frames = panes_to_rows(table) if self._as_rows else _as_bytes(table, counts)
        return frames, now, shard.next_due_us

    def _is_only_woken(self, number: int, came: Came) -> bool:
        """Whether a shard is called to apply changes (``rows/pack.py``), which a shard without state does not need."""
        return (
            self._wakes is WakePolicy.WHEN_DUE and not self._observed and number != FIRST_SHARD and came == NOTHING_CAME
        )

    def _due_ms(self, due_us: int | None, timer_values: Any) -> int | None:
        if self._wakes is WakePolicy.EVERY_BATCH:
            return PAST_MS[0]  # for the first time; then handleExpiredTimer sets the next one
        if due_us is None or self._wakes is WakePolicy.CALLED:
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


def _as_bytes(table: pa.Table, counts: Sequence[Mapping[str, Any]]) -> Iterator[pd.DataFrame]:
    if counts:
        panes = panes_to_bytes(table)
        texts = [json.dumps(one) for one in counts]
        yield pd.DataFrame({"panes": [None] * len(texts) + panes, "counts": texts + [None] * len(panes)})
    elif table.num_rows:
        yield pd.DataFrame({"panes": panes_to_bytes(table)})


class CarryOver(Travelling):
    """Shards of one partition: deletes the state of each and stores its new entries.

    Args:
        operator: of the stage that continues.
        wakes: what wakes its shards in a batch without rows for them.
    """

    def __init__(self, operator: Operator, wakes: WakePolicy) -> None:
        self._operator, self._wakes = operator, wakes

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._map = state_of(handle)
        self._partition = StatePartition(handle, MapStore(self._map), 0)

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N802, N803
        came = _entries(rows)
        self._partition.renew(key[0])
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
        write_note(store, number, attrs.evolve(note, timer_ms=due_ms, sums=sealed.sums, **json.loads(came[NOTE])))

    def _due_ms(self, store: DictStore) -> int | None:
        if self._wakes is WakePolicy.EVERY_BATCH:
            return PAST_MS[0]
        due_us = self._operator.open(store).next_due_us
        return None if due_us is None or self._wakes is WakePolicy.CALLED else timer_ms(due_us)

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

    @staticmethod
    def entries_of(each: Sequence[RunnersEntries], links: Sequence[Link]) -> dict[str, bytes]:
        """As entries of a shard of these stages; the last one's number of rows is the shard's."""
        note: dict[str, Any] = {"rows": each[-1].rows}
        if len(links) > 1:
            note["links"] = {link.name: one.rows for link, one in zip(links[:-1], each, strict=False)}
        reports = next((one.reports for one in each if one.reports is not None), None)
        return {NOTE: json.dumps(note).encode()} | ({} if reports is None else {REPORTS: reports})
