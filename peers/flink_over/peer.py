"""OVER of Flink SQL, by event time: frames, LAG, ROW_NUMBER, ranks, and Top-N by time. The program is that of ``flink``.

Normalised:

- A step is a row or a watermark. Times are tenths of seconds; a watermark of Flink is a millisecond less than ours.
- Cases with the same query run as one job, their times moved (Peer.java), but for cases ``before_1970``.
- Rows of equal time are in the order of arrival there, so ``order_by`` is their number here. Lists are sorted.
- ``frame``, ``place``: rows with their values and the watermark after which they are emitted. ``earliest``: the table at the end.
- LEAD is refused in streams, as are RANK and DENSE_RANK in a Top-N.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import attrs
import pyarrow.compute as pc
from hypothesis import strategies as st

import beamish as bm
from beamish import triggers as t
from beamish.accumulations import Accumulation, Collect, Count, CountDistinct, Max, Mean, Min, Sum
from beamish.pane import PaneKind
from peers import over
from peers.cases import NEVER, on_time, without_parts
from peers.over import SECOND
from peers.peer import Case, Peer, Row

MILLISECOND = 1000
VALUES: Mapping[str, Mapping[str, Accumulation]] = {
    "FRAME": {
        "COUNT(*)": Count(),
        "COUNT(v)": Count("v"),
        "SUM(v)": Sum("v"),
        "AVG(CAST(v AS DOUBLE))": Mean("v"),
        "MIN(v)": Min("v"),
        "MAX(part)": Max("part"),
        "COUNT(DISTINCT v)": CountDistinct("v"),
        "FIRST_VALUE(n)": bm.FirstValue("n"),
        "LAST_VALUE(n)": bm.LastValue("n"),
        "ARRAY_AGG(n)": Collect("n"),
    },
    "NULLS": {"FIRST_VALUE(v)": bm.FirstValue("v"), "LAST_VALUE(v)": bm.LastValue("v")},
    "LAG": {"LAG(v)": bm.Lag("v"), "LAG(n, 2, CAST(-1 AS BIGINT))": bm.Lag("n", 2, -1)},
    "ROW_NUMBER": {"ROW_NUMBER()": bm.RowNumber()},
    "RANK": {"RANK()": bm.Rank()},
    "DENSE_RANK": {"DENSE_RANK()": bm.DenseRank()},
}
"""Values of a query, by their SQL: those of a frame together, functions of a row's place each by itself."""


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A query, rows and watermarks."""
    kind = draw(st.sampled_from(["frame", "frame", "frame", "place", "place", "earliest"]))
    case: Case = {"kind": kind, "keys": draw(over.keys)}
    if kind == "frame":
        case |= {"frame": draw(over.frames), "function": draw(st.sampled_from(["FRAME", "FRAME", "FRAME", "NULLS"]))}
    elif kind == "place":
        case["function"] = draw(st.sampled_from(["LAG", "ROW_NUMBER", "RANK", "DENSE_RANK"]))
    else:
        case["most"] = draw(st.integers(1, 3))
    case["before_1970"] = draw(st.sampled_from([False] * 19 + [True]))
    events = draw(over.events({"part": over.parts, "v": over.few}))
    return case | {"script": list(chain.from_iterable(map(_apart, events)))}


def _apart(event: dict[str, Any]) -> list[dict[str, Any]]:
    """Each row of a bundle by itself."""
    return [{"rows": [row]} for row in event["rows"]] if "rows" in event else [event]


def given(case: Case) -> Case:
    """The case as a query."""
    script = [
        {"rows": [row | {"input": "rows"} for row in event["rows"]]} if "rows" in event else event
        for event in case["script"]
    ]
    return {
        "sql": _sql(case),
        "config": {},
        "inputs": [{"name": "rows", "upserts": False}],
        "before_1970": case["before_1970"],
        "script": [*script, {"watermark": "infinity"}],
    }


def _sql(case: Case) -> str:
    partition = f"PARTITION BY {', '.join(['`of`', *case['keys']])} ORDER BY ts"
    if case["kind"] == "earliest":
        numbered = f"SELECT *, ROW_NUMBER() OVER ({partition}) AS place FROM `rows`"
        return f"SELECT `of`, n, place FROM ({numbered}) WHERE place <= {case['most']}"
    values = ", ".join(f"{value} OVER w" for value in VALUES[case["function"]])
    return f"SELECT `of`, n, {values} FROM `rows` WINDOW w AS ({partition}{_frame(case)})"


def _frame(case: Case) -> str:
    match case.get("frame"):
        case None:
            return ""
        case {"span": span}:
            start = f"INTERVAL '{span / SECOND:.3f}' SECOND"
        case {"rows": rows}:
            start = str(rows)
        case _:
            start = "UNBOUNDED"
    return f" {case['frame']['is']} BETWEEN {start} PRECEDING AND CURRENT ROW"


def there(case: Case, answer: Mapping[str, Any]) -> list[Row]:
    """The answer of Flink."""
    if case["kind"] == "earliest":
        return _table((row["kind"] in ("+I", "+U"), row["values"]) for row in answer["rows"])
    return [
        _row(case, n, values, None if row["watermark"] is None else row["watermark"] * MILLISECOND)
        for row in answer["rows"]
        for n, *values in [row["values"]]
    ]


def _table(changes: Iterator[tuple[bool, list[Any]]]) -> list[Row]:
    """The rows of a table at the end, with their numbers."""
    left: Counter[tuple[Any, ...]] = Counter()
    for inserted, values in changes:
        left[tuple(values)] += 1 if inserted else -1
    return [{"stream": list(row), "place": [], "times": times} for row, times in left.items() if times]


def _row(case: Case, n: int, values: Sequence[Any], after: int | None) -> Row:
    plain = (sorted(value) if isinstance(value, list) else value for value in values)
    return {"stream": [n], "place": [], **dict(zip(VALUES[case["function"]], plain, strict=True)), "after": after}


def here(case: Case) -> list[Row]:
    """The answer of beamish."""
    if case["kind"] == "earliest":
        panes = over.script_of(case).trace(_earliest(case))
        return _table(
            (pane.kind is PaneKind.PANE, [pane.values["n"], pane.values["place"]]) for _, some in panes for pane in some
        )
    return list(_traced(case))


def _traced(case: Case) -> Iterator[Row]:
    """Rows with the watermark before their step."""
    values = VALUES[case["function"]]
    pipeline = over.base.key_by(*case["keys"]).over(over.frame_of(case), order_by="n").accumulate(**values)
    watermark = None
    for (_, panes), event in zip(over.script_of(case).trace(pipeline), [*case["script"], {}], strict=True):
        yield from (_row(case, pane.values["n"], [pane.values[name] for name in values], watermark) for pane in panes)
        watermark = event.get("watermark", watermark)


def predicted(case: Case) -> list[Row]:
    """Flink's output, computed by its own rules, where ours differ."""
    match case["kind"]:
        case "earliest":
            return here(case | {"script": list(on_time(case))} if case["most"] == 1 else case)
        case "place":
            return _tied(case, list(_traced(case)))
    return list(_ranges(case) if "span" in case["frame"] else _frames(case))


def _tied(case: Case, rows: list[Row]) -> list[Row]:
    """Rows of equal time have the values of the last of them, and ranks count them one by one."""
    if case["function"] == "ROW_NUMBER":
        return rows
    emitted = {row["stream"][0] for row in rows}
    given = [row for row, _ in _arrived(case) if row["n"] in emitted]
    ordered = sorted(given, key=lambda row: (row["ts"], row["n"]))
    of_row = {row["stream"][0]: row for row in rows}
    found: list[Row] = []
    for row in ordered:
        of_key = [one for one in ordered if _key(case, one) == _key(case, row)]
        last = [one for one in of_key if one["ts"] == row["ts"]][-1]
        values = {name: of_row[last["n"]][name] for name in VALUES[case["function"]]}
        if "RANK" in case["function"]:
            values = dict.fromkeys(values, of_key.index(last) + 1)
        found.append({**of_row[row["n"]], **values})
    return found


def _frames(case: Case) -> Iterator[Row]:
    """Frames: those of bounded ROWS take each row after the last one emitted of its key, from 1970 on; all of them skip nulls."""
    frame = case["frame"]
    bounded = len(frame) > 1
    least = 0 if case["before_1970"] else NEVER
    last: dict[tuple[Any, ...], int] = {}
    taken: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    waiting: list[dict[str, Any]] = []
    watermark = NEVER
    for event in [*case["script"], {"watermark": -NEVER}]:
        waiting += [
            row
            for row in event.get("rows", [])
            if (row["ts"] > last.get(_key(case, row), least) if bounded else row["ts"] >= watermark)
        ]
        now = event.get("watermark", watermark)
        if now <= watermark:
            continue
        due = sorted((row for row in waiting if row["ts"] < now), key=lambda row: (row["ts"], row["n"]))
        waiting = [row for row in waiting if row["ts"] >= now]
        for row in due:
            taken.setdefault(_key(case, row), []).append(row)
        for row in due:
            rows = _frame_of(frame, taken[_key(case, row)], row)
            yield _row(case, row["n"], _values(case, rows), None if watermark == NEVER else watermark)
            last[_key(case, row)] = row["ts"]
        watermark = now


@attrs.define
class _Range:
    """The state of a key of a bounded RANGE, which Flink forgets one and a half spans after a row.

    Attributes:
        timers: when it is looked at: at the times of rows, and when it may be forgotten.
        waiting: rows that are not emitted.
        taken: rows of the frame.
        last: the time of its last timer: rows must be later.
        until: when it is forgotten.
    """

    timers: set[int] = attrs.Factory(set)
    waiting: list[dict[str, Any]] = attrs.Factory(list)
    taken: list[dict[str, Any]] = attrs.Factory(list)
    last: int | None = None
    until: int | None = None

    def add(self, row: dict[str, Any], span: int, least: int) -> None:
        """Take a row, unless it is not after the last timer."""
        ts = row["ts"]
        if ts > (least if self.last is None else self.last):
            self.waiting.append(row)
            self.timers.add(ts)
            if self.until is None or self.until < ts + span + MILLISECOND:
                until = ts + span * 3 // 2 // MILLISECOND * MILLISECOND + MILLISECOND
                self.until = until
                self.timers.add(until)

    def due(self, now: int, span: int) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
        """The rows that a watermark emits, each with its frame."""
        for time in sorted(time for time in self.timers if time < now):
            self.timers.remove(time)
            if self.until is not None and self.until <= time:
                self.waiting, self.taken, self.last, self.until = [], [], None, None
                continue
            rows = sorted((row for row in self.waiting if row["ts"] == time), key=lambda row: row["n"])
            self.waiting = [row for row in self.waiting if row["ts"] != time]
            if rows:
                self.taken = [row for row in self.taken if time - row["ts"] <= span] + rows
            yield from ((row, list(self.taken)) for row in rows)
            self.last = time


def _ranges(case: Case) -> Iterator[Row]:
    """Bounded RANGE: rows are late by the last timer of their key, which is forgotten some time after its rows."""
    span, least = case["frame"]["span"], 0 if case["before_1970"] else NEVER
    keys: dict[tuple[Any, ...], _Range] = {}
    watermark = NEVER
    for event in [*case["script"], {"watermark": -NEVER}]:
        for row in event.get("rows", []):
            keys.setdefault(_key(case, row), _Range()).add(row, span, least)
        now = event.get("watermark", watermark)
        if now > watermark:
            after = None if watermark == NEVER else watermark
            for key in keys.values():
                yield from (_row(case, row["n"], _values(case, rows), after) for row, rows in key.due(now, span))
            watermark = now


def _frame_of(frame: Mapping[str, Any], taken: list[dict[str, Any]], row: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of the frame that ends at a row: of ROWS those before it, of unbounded RANGE those of its time too."""
    ordered = sorted(taken, key=lambda one: (one["ts"], one["n"]))
    if frame["is"] == "ROWS":
        at = ordered.index(row) + 1
        return ordered[max(0, at - frame.get("rows", at) - 1) : at]
    return [one for one in ordered if one["ts"] <= row["ts"]]


def _values(case: Case, rows: list[dict[str, Any]]) -> list[Any]:
    """The values of a frame, in the order of VALUES."""
    known = [row["v"] for row in rows if row["v"] is not None]
    first, latest = (known[0], known[-1]) if known else (None, None)
    if case["function"] == "NULLS":
        return [first, latest]
    numbers = [row["n"] for row in rows]
    some = [min(known), max(row["part"] for row in rows)] if known else [None, max(row["part"] for row in rows)]
    sums = [sum(known), sum(known) / len(known)] if known else [None, None]
    return [len(rows), len(known), *sums, *some, len(set(known)), numbers[0], numbers[-1], numbers]


def _earliest(case: Case) -> bm.Pipeline:
    numbered = over.base.key_by(*case["keys"]).over(bm.Unbounded(), order_by="n").accumulate(place=bm.RowNumber())
    every = t.AfterWatermark(early=t.Always(), late=t.Always())
    numbered = numbered.trigger(every).allowed_lateness("100 days").accumulating_and_retracting()
    return numbered.having(pc.field("place") <= case["most"])


def facts(case: Case, here: Row | None, there: Row | None) -> Mapping[str, Any]:
    """Facts for the decisions, about a row among those of its key.

    ``accepted``: one at its time or before came late, and Flink knew of no emitted row at that time or later, as bounded frames go by.
    ``skipped``: where the values differ ours are null. ``tied``: two rows on time have its time; ``tied_before``: its time, or an earlier one.
    ``before_1970``: the frame is bounded and a row of the key is from before 1970. ``late``: the first row of the key in time came late.
    """
    one = here or there or {}
    found = {"kind": case["kind"], "function": case.get("function", ""), "most": case.get("most", 0)}
    if "failed" in one:
        return found
    arrived = list(_arrived(case))
    (mine,) = (row for row, _ in arrived if row["n"] == one["stream"][0])
    of_key = [(row["ts"], watermark) for row, watermark in arrived if _key(case, row) == _key(case, mine)]
    ties = [ts for ts, times in Counter(ts for ts, watermark in of_key if ts >= watermark).items() if times > 1]
    frame = case.get("frame", {})
    forgets = frame.get("span", -NEVER)
    accepted = (
        ts < watermark
        and ts <= mine["ts"]
        and not any(other >= ts and max(other, at) < watermark <= other + forgets for other, at in of_key[:place])
        for place, (ts, watermark) in enumerate(of_key)
    )
    ours, theirs = here or {}, there or {}
    first, watermark = min(of_key)
    return found | {
        "accepted": len(frame) > 1 and any(accepted),
        "skipped": all(ours.get(name) is None for name in theirs if ours.get(name) != theirs[name]),
        "tied": mine["ts"] in ties,
        "tied_before": any(ts <= mine["ts"] for ts in ties),
        "before_1970": case["before_1970"] and len(frame) > 1 and any(ts <= 0 for ts, _ in of_key),
        "late": first < watermark,
    }


def _key(case: Case, row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in case["keys"])


def _arrived(case: Case) -> Iterator[tuple[dict[str, Any], int]]:
    """The rows, each with the watermark at which it came."""
    watermark = NEVER
    for event in case["script"]:
        watermark = event.get("watermark", watermark)
        yield from ((row, watermark) for row in event.get("rows", []))


PEER = Peer(
    "flink_over",
    "Flink SQL: OVER",
    "2.3.0",
    cases(),
    given,
    here,
    there,
    facts,
    ("kind", "function"),
    over.kinds,
    without_parts,
    program="flink",
    together=625,
    predicted=predicted,
)
