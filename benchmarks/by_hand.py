"""Hand-written fixed windows with early, on-time and late panes: one group per key.

Count and sum per minute and key; a pane for each window changed by a batch, and one when the watermark passes its end. Windows
expire ten minutes after their end.
"""

from __future__ import annotations

import bisect
import json
from collections.abc import Iterator
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame, GroupedData
from pyspark.sql import functions as F
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

MINUTE_MS = 60_000
LATENESS_MS = 10 * MINUTE_MS
PANES = "k string, start_ms bigint, n bigint, s bigint, timing string"
_STATE = "windows string"  # JSON: Spark 4.3 cannot read an array in the state of applyInPandasWithState
_COLUMNS = ["k", "start_ms", "n", "s", "timing"]


def _prepared(df: DataFrame) -> DataFrame:
    minute = F.floor(F.unix_millis("ts") / MINUTE_MS) * MINUTE_MS
    return df.withWatermark("ts", "1 minute").withColumn("start_ms", minute.cast("bigint"))


def apply_in_pandas_with_state(df: DataFrame) -> DataFrame:
    """One call per key and batch, the windows of the key in one state tuple."""
    return (
        _prepared(df)
        .groupBy("k")
        .applyInPandasWithState(_call, PANES, _STATE, "append", GroupStateTimeout.EventTimeTimeout)
    )


def _windows(state: GroupState) -> dict[int, tuple[int, int]]:
    stored = json.loads(state.get[0]) if state.exists else {}
    return {int(start): (n, s) for start, (n, s) in stored.items()}


def _call(key: tuple[str], frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    windows = _windows(state)
    watermark = state.getCurrentWatermarkMs()
    changed = set()
    for frame in frames:
        sums = frame.groupby("start_ms")["x"].agg(["size", "sum"])
        for start, n, s in zip(sums.index.tolist(), sums["size"].tolist(), sums["sum"].tolist(), strict=True):
            if start + MINUTE_MS + LATENESS_MS > watermark:
                before = windows.get(start, (0, 0))
                windows[start] = (before[0] + n, before[1] + s)
                changed.add(start)
    ended = {start for start in windows if start + MINUTE_MS <= watermark} - changed if state.hasTimedOut else set()
    panes = [
        (key[0], start, *windows[start], "EARLY" if start + MINUTE_MS > watermark else "LATE")
        for start in sorted(changed)
    ]
    panes += [(key[0], start, *windows[start], "ON_TIME") for start in sorted(ended)]
    windows = {start: sums for start, sums in windows.items() if start + MINUTE_MS + LATENESS_MS > watermark}
    if windows:
        state.update((json.dumps(windows),))
        state.setTimeoutTimestamp(max(watermark + 1, min(windows) + MINUTE_MS))
    elif state.exists:
        state.remove()
    yield pd.DataFrame(panes, columns=_COLUMNS)


def transform_with_state(df: DataFrame) -> DataFrame:
    """One call per key and batch, a map from window to sums, a timer per window."""
    return (
        _prepared(df)
        .groupBy("k")
        .transformWithStateInPandas(_Sums(), outputStructType=PANES, outputMode="Append", timeMode="EventTime")
    )


class _Sums(StatefulProcessor):
    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._windows = handle.getMapState("windows", "start_ms bigint", "n bigint, s bigint")

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N802, N803
        watermark = timerValues.getCurrentWatermarkInMs()
        panes = []
        for frame in rows:
            sums = frame.groupby("start_ms")["x"].agg(["size", "sum"])
            for start, n, s in zip(sums.index.tolist(), sums["size"].tolist(), sums["sum"].tolist(), strict=True):
                if start + MINUTE_MS + LATENESS_MS <= watermark:
                    continue
                before = self._windows.getValue((start,)) if self._windows.containsKey((start,)) else None
                if before is None:
                    self._handle.registerTimer(max(watermark + 1, start + MINUTE_MS))
                else:
                    n, s = n + before[0], s + before[1]  # noqa: PLW2901
                self._windows.updateValue((start,), (n, s))
                panes.append((key[0], start, n, s, "EARLY" if start + MINUTE_MS > watermark else "LATE"))
        yield pd.DataFrame(panes, columns=_COLUMNS)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[pd.DataFrame]:  # noqa: N802, N803
        watermark = timerValues.getCurrentWatermarkInMs()
        panes = []
        for (start,), (n, s) in list(self._windows.iterator()):
            if start + MINUTE_MS + LATENESS_MS <= watermark:
                self._windows.removeKey((start,))
            elif start + MINUTE_MS <= watermark:
                panes.append((key[0], start, n, s, "ON_TIME"))
        yield pd.DataFrame(panes, columns=_COLUMNS)


def product_by_hand(df: DataFrame) -> DataFrame:
    """A custom accumulation (sum of squares, row by row) with applyInPandasWithState."""
    return (
        _prepared(df)
        .groupBy("k")
        .applyInPandasWithState(_call_squares, PANES, _STATE, "append", GroupStateTimeout.NoTimeout)
    )


def _call_squares(key: tuple[str], frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    windows = _windows(state)
    changed = set()
    for frame in frames:
        for start, x in zip(frame["start_ms"].tolist(), frame["x"].tolist(), strict=True):
            n, s = windows.get(start, (0, 0))
            windows[start] = (n + 1, s + x * x)
            changed.add(start)
    watermark = state.getCurrentWatermarkMs()
    panes = [(key[0], start, *windows[start], "EARLY") for start in sorted(changed)]
    windows = {start: sums for start, sums in windows.items() if start + MINUTE_MS + LATENESS_MS > watermark}
    state.update((json.dumps(windows),))
    yield pd.DataFrame(panes, columns=_COLUMNS)


def limited_by_hand(df: DataFrame) -> DataFrame:
    """The newest row of a key at most once per second: one call per key and batch, a value and a timer."""
    return (
        df.withWatermark("ts", "1 minute")
        .groupBy("k")
        .transformWithStateInPandas(
            _Newest(),
            outputStructType="k string, ts timestamp, x bigint",
            outputMode="Append",
            timeMode="ProcessingTime",
        )
    )


class _Newest(StatefulProcessor):
    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._newest = handle.getValueState("newest", "ts timestamp, x bigint")

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N802, N803
        held = self._newest.get()
        newest = held
        for frame in rows:
            row = frame.loc[frame["ts"].idxmax()]
            if newest is None or row["ts"] >= newest[0]:
                newest = (row["ts"], int(row["x"]))
        self._newest.update(newest)
        if held is None:
            self._handle.registerTimer(timerValues.getCurrentProcessingTimeInMs() + 1000)
        yield from ()

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[pd.DataFrame]:  # noqa: N802, N803
        time, x = self._newest.get()
        self._newest.clear()
        yield pd.DataFrame({"k": [key[0]], "ts": [time], "x": [x]})


_AS_OF = "k string, at timestamp, x bigint, rate bigint"


def as_of_by_hand(rows: DataFrame, rates: DataFrame) -> DataFrame:
    """An as-of join: one call per key and batch, lists of versions and of waiting rows."""
    return _rows_and_rates(rows, rates).transformWithStateInPandas(
        _AsOf(), outputStructType=_AS_OF, outputMode="Append", timeMode="EventTime"
    )


def as_of_in_pandas_with_state(rows: DataFrame, rates: DataFrame) -> DataFrame:
    """The same by ``applyInPandasWithState``."""
    return _rows_and_rates(rows, rates).applyInPandasWithState(
        _call_as_of, _AS_OF, "versions string, waiting string", "append", GroupStateTimeout.EventTimeTimeout
    )


def _rows_and_rates(rows: DataFrame, rates: DataFrame) -> GroupedData:
    left = rows.withWatermark("ts", "1 minute").select(
        "k", F.col("ts").alias("at"), "x", F.lit(None).cast("long").alias("rate")
    )
    right = rates.withWatermark("changed", "1 minute").select(
        "k", F.col("changed").alias("at"), F.lit(None).cast("long").alias("x"), "rate"
    )
    return left.unionAll(right).groupBy("k")


class _Table:
    """The versions of a key in the last ten minutes and the latest before, and the rows that wait for the watermark."""

    def __init__(self, stored: tuple[str, str] | None) -> None:
        self.versions: list[list[int]] = [] if stored is None else json.loads(stored[0])
        self.waiting: list[list[int]] = [] if stored is None else json.loads(stored[1])

    def take(self, frames: Iterator[pd.DataFrame]) -> None:
        for frame in frames:
            for at, x, rate in zip(frame["at"], frame["x"], frame["rate"], strict=True):
                us = at.value // 1000
                if pd.isna(x):
                    bisect.insort(self.versions, [us, int(rate)])
                else:
                    self.waiting.append([us, int(x)])

    def leave(self, key: str, watermark_ms: int) -> pd.DataFrame:
        now_us = watermark_ms * 1000
        due = sorted(row for row in self.waiting if row[0] < now_us)
        found = [bisect.bisect_right(self.versions, [us, 2**62]) - 1 for us, _ in due]
        joined = [(key, us, x, self.versions[at][1]) for (us, x), at in zip(due, found, strict=True) if at >= 0]
        first = max(bisect.bisect_right(self.versions, [now_us - 10 * MINUTE_MS * 1000, 2**62]) - 1, 0)
        self.versions, self.waiting = self.versions[first:], [row for row in self.waiting if row[0] >= now_us]
        frame = pd.DataFrame(joined, columns=["k", "at", "x", "rate"])
        return frame.assign(at=pd.to_datetime(frame["at"], unit="us"))

    @property
    def due_ms(self) -> int | None:
        """When the last waiting row is due."""
        return max(us for us, _ in self.waiting) // 1000 + 1 if self.waiting else None

    @property
    def stored(self) -> tuple[str, str]:
        return json.dumps(self.versions), json.dumps(self.waiting)


class _AsOf(StatefulProcessor):
    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._state = handle.getValueState("all", "versions string, waiting string")

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N802, N803
        table = _Table(self._state.get())
        table.take(rows)
        if table.due_ms is not None:
            self._handle.registerTimer(table.due_ms)
        self._state.update(table.stored)
        yield from ()

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[pd.DataFrame]:  # noqa: N802, N803
        table = _Table(self._state.get())
        joined = table.leave(key[0], timerValues.getCurrentWatermarkInMs())
        self._state.update(table.stored)
        if len(joined):
            yield joined


def _call_as_of(key: tuple[str], frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    table, watermark_ms = _Table(state.get if state.exists else None), state.getCurrentWatermarkMs()
    table.take(frames)
    yield table.leave(key[0], watermark_ms)
    state.update(table.stored)
    if table.due_ms is not None:
        state.setTimeoutTimestamp(max(table.due_ms, watermark_ms + 1))


HUNDREDS = "k string, start bigint, n bigint, s bigint"
_SIZE = 100


def rows_by_hand(df: DataFrame) -> DataFrame:
    """Count and sum of every hundred rows per key, one call per key and batch."""
    return df.groupBy("k").applyInPandasWithState(
        _call_rows, HUNDREDS, "came bigint, n bigint, s bigint", "append", GroupStateTimeout.NoTimeout
    )


def _call_rows(key: tuple[str], frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    came, n, s = state.get if state.exists else (0, 0, 0)
    full = []
    for frame in frames:
        values = frame.sort_values(["ts", "x"])["x"].to_numpy()
        at = 0
        while at < len(values):
            part = values[at : at + _SIZE - n]
            at, came, n, s = at + len(part), came + len(part), n + len(part), s + int(part.sum())
            if n == _SIZE:
                full.append((key[0], came - _SIZE, n, s))
                n = s = 0
    state.update((came, n, s))
    yield pd.DataFrame(full, columns=["k", "start", "n", "s"])


SPANS = "k string, until_ms bigint, n1 bigint, s1 bigint, n12 bigint, s12 bigint, n24 bigint, s24 bigint"
_SPANS_MS = [hours * 60 * MINUTE_MS for hours in (1, 12, 24)]


def rolling_by_hand(df: DataFrame) -> DataFrame:
    """Count and sum of the last 1, 12 and 24 hours, a row per key and minute with rows: the state has totals per minute."""
    return (
        _prepared(df)
        .groupBy("k")
        .applyInPandasWithState(_call_spans, SPANS, _STATE, "append", GroupStateTimeout.EventTimeTimeout)
    )


def _call_spans(key: tuple[str], frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    minutes = _windows(state)
    due = minutes.pop(-1, (0, 0))[0]  # the first minute of which no row was emitted
    watermark = state.getCurrentWatermarkMs()
    for frame in frames:
        sums = frame.groupby("start_ms")["x"].agg(["size", "sum"])
        for start, n, s in zip(sums.index.tolist(), sums["size"].tolist(), sums["sum"].tolist(), strict=True):
            if start + MINUTE_MS > watermark:
                before = minutes.get(start, (0, 0))
                minutes[start] = (before[0] + n, before[1] + s)
    rows = []
    for until in sorted(start + MINUTE_MS for start in minutes if due <= start <= watermark - MINUTE_MS):
        row: list[Any] = [key[0], until]
        for span in _SPANS_MS:
            within = [sums for start, sums in minutes.items() if until - span <= start < until]
            row += [sum(n for n, _ in within), sum(s for _, s in within)]
        rows.append(row)
        due = until
    minutes = {start: sums for start, sums in minutes.items() if start + _SPANS_MS[-1] > watermark}
    state.update((json.dumps({**minutes, -1: (due, 0)}),))
    waiting = [start for start in minutes if start >= due]
    if waiting:
        state.setTimeoutTimestamp(max(watermark + 1, min(waiting) + MINUTE_MS))
    yield pd.DataFrame(rows, columns=[column.split()[0] for column in SPANS.split(", ")])


OVER = "k string, ts timestamp, x bigint, total bigint, before bigint"
_HOUR_US = 60 * MINUTE_MS * 1000


def over_by_hand(df: DataFrame) -> DataFrame:
    """Each row, once the watermark has passed it, with the sum of the hour before it and the value before."""
    return (
        df.withWatermark("ts", "1 minute")
        .groupBy("k")
        .applyInPandasWithState(_call_over, OVER, "rows string", "append", GroupStateTimeout.EventTimeTimeout)
    )


def _call_over(key: tuple[str], frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    done, waiting = json.loads(state.get[0]) if state.exists else ([], [])
    watermark_ms = state.getCurrentWatermarkMs()
    now_us = watermark_ms * 1000
    for frame in frames:
        waiting += [
            [at.value // 1000, x]
            for at, x in zip(frame["ts"], frame["x"].tolist(), strict=True)
            if at.value // 1000 >= now_us
        ]
    waiting.sort()
    ready = bisect.bisect_left(waiting, [now_us])
    at = pd.to_datetime([us for us, _ in waiting[:ready]], unit="us")
    rows = [*done, *waiting[:ready]]
    first, total, found = 0, 0, []
    for number, (us, x) in enumerate(rows):
        total += x
        while rows[first][0] < us - _HOUR_US:
            total -= rows[first][1]
            first += 1
        found.append((x, total, rows[number - 1][1] if number else None))
    emitted = pd.DataFrame(found[len(done) :], columns=["x", "total", "before"]).astype({"before": "Int64"})
    emitted.insert(0, "k", key[0])
    emitted.insert(1, "ts", at)
    kept = bisect.bisect_left(rows, [now_us - _HOUR_US])
    state.update((json.dumps([rows[min(kept, max(len(rows) - 1, 0)) :], waiting[ready:]]),))
    if waiting[ready:]:
        state.setTimeoutTimestamp(max(watermark_ms + 1, waiting[-1][0] // 1000 + 1))
    yield emitted
