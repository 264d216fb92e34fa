"""Spark's own operators: groupBy(window), session_window, dropDuplicatesWithinWatermark, stream-stream joins.

Normalised:

- A step is a batch. Spark judges its rows by the watermark of the batch before, and emits and evicts by its own: here rows, then a watermark.
- A row at the gap's end joins a session of Spark: its gap is 1 microsecond shorter, and its sessions end so much earlier.
- Each batch has a row of the key "clock" per input, at or after all others, which moves the watermark; a last batch has one far ahead. They are
  left out. So many cases share a query: few clocks are drawn.
- Full joins with a time range are refused here, and not drawn.
- Rows of a ``window_join`` are of the same window. Spark takes no row of a join or of dropDuplicatesWithinWatermark that is behind the watermark, so none is drawn; and no time before 1970,
  where its watermark begins.
- ``window``, ``session``, ``updates``: rows with their batch. ``first``, ``join``: all rows, in any order.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyspark
from hypothesis import strategies as st

import beamish as bm
from beamish.accumulations import Collect, FullOuterJoin, InnerJoin, LeftOuterJoin, RightOuterJoin
from beamish.durations import Duration
from beamish.instants import instant_us
from beamish.pane import Pane
from beamish.testing import TestStream
from beamish.triggers import Always
from peers.cases import without_parts
from peers.peer import Case, Peer, Row
from peers.spark.batches import CLOCK, JOINS, sides_of, watermarks
from tests.strategies.scripts import teams

SECOND, TENTH = 1_000_000, 100_000
BEGIN, END = 10_000 * SECOND, 10**6 * SECOND
"""Added to drawn times, and the time of the last row."""
PAIRS = {"inner": InnerJoin, "left": LeftOuterJoin, "right": RightOuterJoin, "full": FullOuterJoin}
CLOCKS = 3
"""Clocks per query."""
_LEAPS = [1, 5, 10, 10, 20, 30, 50, 100, 400]
"""Tenths of seconds from batch to batch."""

_windows = st.sampled_from(
    [
        {"size": size * TENTH, "period": period * TENTH, "offset": offset * TENTH}
        for size, period, offset in [(50, 50, 0), (25, 25, 10), (120, 120, -30), (60, 20, 0), (75, 25, 5), (70, 30, 0)]
    ]
)
_spans = st.sampled_from([(30, 0), (0, 40), (20, 50), (5, 0)])
_base = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A query and batches of rows."""
    kind = draw(st.sampled_from(["window", "updates", "session", "first", "join", "window_join"]))
    case: Case = {"kind": kind, "delay": draw(st.sampled_from([0, 10, 50])) * TENTH}
    if kind in ("window", "updates"):
        case |= draw(_windows)
    if kind == "session":
        case["gap"] = draw(st.sampled_from([10, 40, 75])) * TENTH
    if kind == "join":
        case["how"] = draw(st.sampled_from(["inner", "left", "right"]))
        case["before"], case["after"] = (TENTH * side for side in draw(_spans))
    if kind == "window_join":
        case |= {"how": draw(st.sampled_from([*PAIRS])), "size": 50 * TENTH, "period": 50 * TENTH, "offset": 0}
    if kind == "first":
        case["delay"] = max(case["delay"], TENTH)
    clock = random.Random(json.dumps([case, draw(st.integers(1, CLOCKS))]))
    return case | {"script": list(draw(_batches(case, clock)))}


_lags = st.one_of(st.integers(0, 40), st.integers(0, 10), st.sampled_from([45, 50, 51, 75, 80, 120, 250]))


@st.composite
def _batches(draw: st.DrawFn, case: Case, clock: random.Random) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []
    sides = sides_of(case)
    now, number = dict.fromkeys(sides, BEGIN), 0
    for _ in range(clock.randrange(2, 10)):
        behind = watermarks({**case, "script": events})[-1]
        now = {side: time + clock.choice(_LEAPS) * TENTH for side, time in now.items()}
        batch: list[dict[str, Any]] = []
        for _ in range(draw(st.sampled_from([0, 1, 1, 2, 3]))):
            side = draw(st.sampled_from(sides))
            ts = now[side] - draw(_lags) * TENTH
            if case["kind"] in ("first", *JOINS):
                ts = max(ts, behind + TENTH)
            batch.append({"ts": ts, "key": draw(teams), "input": side})
        batch.sort(key=lambda row: row["ts"])
        rows = [{**row, "n": number + at} for at, row in enumerate(batch)]
        number += len(rows)
        events.append({"rows": rows + [_tick(side, time) for side, time in now.items()]})
    return events


def _tick(side: str, ts: int) -> dict[str, Any]:
    return {"ts": ts, "key": CLOCK, "n": -1, "input": side}


def given(case: Case) -> Case:
    """The case as its program gets it: options, the clock's rows of each batch, its own rows; a last batch ends all windows."""
    shorter = {"gap": case["gap"] - 1} if case["kind"] == "session" else {}
    options = {name: value for name, value in case.items() if name != "script"} | shorter
    batches = [event["rows"] for event in case["script"]] + [[_tick(side, END) for side in ("left", "right")]]
    clock = [[row for row in batch if row["key"] == CLOCK] for batch in batches]
    return {"options": options, "clock": clock, "batches": [_own(batch) for batch in batches]}


def _own(batch: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for row in batch if row["key"] != CLOCK]


def there(case: Case, answer: Mapping[str, Any]) -> list[Row]:
    """The answer of Spark."""
    if case["kind"] in ("first", *JOINS):
        return _unordered(row[1:] for row in answer["rows"])
    return _in_windows(case, (tuple(row) for row in answer["rows"]))


def _unordered(rows: Iterator[list[Any]]) -> list[Row]:
    times: dict[tuple[Any, ...], int] = {}
    for row in rows:
        times[tuple(row)] = times.get(tuple(row), 0) + 1
    return [{"stream": list(row), "place": [], "times": count} for row, count in times.items()]


def _in_windows(case: Case, rows: Iterator[tuple[Any, ...]]) -> list[Row]:
    session = case["kind"] == "session"
    return [
        {"stream": [key] if session else [key, start, end], "place": [batch, start, end], "rows": values}
        for batch, key, start, end, values in rows
    ]


def here(case: Case) -> list[Row]:
    """The answer of beamish."""
    batches = list(_traced(case))
    if case["kind"] == "first":
        return _unordered([pane.key["key"], pane.values["n"]] for _, pane in batches)
    if case["kind"] in JOINS:
        return _unordered(pair for _, pane in batches for pair in _pairs(pane))
    return _in_windows(case, (_row(case, batch, pane) for batch, pane in batches))


def _row(case: Case, batch: int, pane: Pane) -> tuple[Any, ...]:
    assert pane.window is not None
    end = instant_us("end", pane.window.end) - (1 if case["kind"] == "session" else 0)
    return batch, pane.key["key"], instant_us("start", pane.window.start), end, sorted(pane.values["rows"])


def _pairs(pane: Pane) -> Iterator[list[Any]]:
    pairs = pane.values["pair"]
    for pair in pairs if isinstance(pairs, list) else [pairs]:
        yield [(pair[side] or {side: None})[side] for side in ("left", "right")]


def _traced(case: Case) -> Iterator[tuple[int, Pane]]:
    """Panes, each with its batch."""
    script, batches, join = TestStream(), [], case["kind"] in JOINS
    for number, (event, watermark) in enumerate(zip(case["script"], watermarks(case), strict=False)):
        for side in sides_of(case):
            rows = [_given(row, join) for row in _own(event["rows"]) if row["input"] == side]
            script = script.add(rows, **({"input": side} if join else {}))
            batches.append(number)
        script = script.advance_watermark_to(watermark / SECOND)
        batches.append(number)
    last = len(case["script"])
    script = script.advance_watermark_to(watermarks(case)[-1] / SECOND).advance_watermark_to_infinity()
    batches += [last, last + 1]
    for (_, panes), batch in zip(script.trace(_pipeline(case)), batches, strict=False):
        yield from ((batch, pane) for pane in panes if pane.kind == "PANE")


def _given(row: Mapping[str, Any], join: bool) -> dict[str, Any]:
    return {"ts": row["ts"] / SECOND, "key": row["key"], (row["input"] if join else "n"): row["n"]}


def _pipeline(case: Case) -> bm.Pipeline:
    kind = case["kind"]
    if kind == "first":
        return _base.deduplicate("key", within=Duration(case["delay"]))
    rows = _base.key_by("key")
    if kind == "window_join":
        pair = PAIRS[case["how"]]("left", "right")
        return bm.merge(left=rows, right=rows).window(bm.FixedWindows(Duration(case["size"]))).accumulate(pair=pair)
    if kind == "join":
        before, after = (Duration(case[name]) for name in ("before", "after"))
        right = case["how"] == "right"
        within = bm.Within(after, of="left", after=before) if right else bm.Within(before, of="right", after=after)
        pair = PAIRS[case["how"]]("left", "right")
        return bm.merge(left=rows, right=rows).window(within).accumulate(pair=pair)
    if kind == "session":
        return rows.window(bm.Sessions(Duration(case["gap"]))).accumulate(rows=Collect("n"))
    size, period, offset = (Duration(case[name]) for name in ("size", "period", "offset"))
    windows = bm.FixedWindows(size, offset) if size == period else bm.SlidingWindows(size, period, offset)
    pipeline = rows.window(windows).accumulate(rows=Collect("n"))
    if kind == "window":
        return pipeline
    return pipeline.trigger(Always()).accumulating().on_time_behavior(bm.OnTimeBehavior.FIRE_IF_NON_EMPTY)


def _pairs_without_key(case: Case) -> list[list[Any]]:
    """The rows of a full join that Spark pairs although their key is null: those of a window."""
    if case.get("how") != "full":
        return []
    rows = [row for event in case["script"] for row in event["rows"] if row["key"] is None]
    left, right = ([row for row in rows if row["input"] == side] for side in ("left", "right"))
    return [[a["n"], b["n"]] for a in left for b in right if a["ts"] // case["size"] == b["ts"] // case["size"]]


def predicted(case: Case) -> list[Row]:
    """Spark's output, computed by its own rules, where ours differ: in a full join null equals null."""
    pairs = _pairs_without_key(case)
    alone = [[left, None] for left, _ in pairs] + [[None, right] for _, right in pairs]
    return [row for row in here(case) if row["stream"] not in alone] + list(_unordered(iter(pairs)))


def facts(case: Case, _: Row | None, __: Row | None) -> Mapping[str, Any]:
    """Facts for the decisions: the kind; ``null_pairs``: rows of both sides without a key are in one window."""
    return {"kind": case["kind"], "null_pairs": bool(_pairs_without_key(case))}


def kinds(case: Case) -> Iterator[str]:
    """By kind and join."""
    yield case["kind"]
    yield " ".join(filter(None, (case["kind"], case.get("how"))))


def command() -> list[str | Path]:
    """The program, in this environment."""
    return [sys.executable, "-m", "peers.spark.program"]


PEER = Peer(
    "spark",
    "Spark's own operators",
    pyspark.__version__,
    cases(),
    given,
    here,
    there,
    facts,
    ("kind",),
    kinds,
    without_parts,
    command=command,
    processes=1,
    together=2_500,
    predicted=predicted,
)
