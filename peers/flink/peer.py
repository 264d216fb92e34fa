"""Flink SQL on an embedded cluster: windows, changelogs, Top-N, deduplication, joins.

Normalised:

- A step is a row or a watermark. Times are tenths of seconds; a watermark of Flink is a millisecond less than ours.
- Cases with the same query run as one job: the column ``of`` tells them apart, and their times are moved (Peer.java), but for cases ``before_1970``.
- Sessions of Flink merge at the gap too: its gap is 1 ms shorter, and its sessions end 1 ms earlier; but for cases that ``touch``.
- ``window``: final rows, with the watermark after which they are emitted. ``updates``: the rows of each window, one after the
  other, with those that they replace; equal ones once. All others: the table at the end.
- Two inputs of Flink are read in any order, so rows of joins are not late. Upserts are in the order of their times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from operator import itemgetter
from typing import Any

from hypothesis import strategies as st

import beamish as bm
from beamish import triggers as t
from beamish.accumulations import (
    BottomN,
    Collect,
    Count,
    First,
    FullOuterJoin,
    InnerJoin,
    Last,
    LeftOuterJoin,
    RightOuterJoin,
    Sum,
    TopN,
)
from beamish.durations import Duration
from beamish.instants import instant_us
from beamish.pane import Pane, PaneKind
from beamish.script import as_step
from beamish.testing import TestStream
from peers.cases import NEVER, on_time, without_parts
from peers.peer import Case, Peer, Row
from tests.strategies.scripts import scripts

SECOND, MILLISECOND, TENTH = 1_000_000, 1000, 100_000
JOINS = {"inner": InnerJoin, "left": LeftOuterJoin, "right": RightOuterJoin, "full": FullOuterJoin}
TWO_INPUTS = ("as_of", "join", "window_join")

_windows = st.sampled_from(
    [
        {"is": "TUMBLE", "size": 5, "offset": 0},
        {"is": "TUMBLE", "size": 2.5, "offset": 1},
        {"is": "TUMBLE", "size": 12, "offset": -3},
        {"is": "HOP", "size": 6, "period": 2},
        {"is": "HOP", "size": 7.5, "period": 2.5},
        {"is": "CUMULATE", "size": 6, "period": 2},
        {"is": "CUMULATE", "size": 10, "period": 2.5},
        {"is": "SESSION", "size": 1},
        {"is": "SESSION", "size": 4},
        {"is": "SESSION", "size": 7.5},
    ]
)
_options: Mapping[str, Mapping[str, st.SearchStrategy[Any]]] = {
    "window": {"window": _windows, "touch": st.sampled_from([False] * 7 + [True])},
    "updates": {
        "window": _windows.filter(lambda window: window["is"] in ("TUMBLE", "HOP") and not window.get("offset")),
        "lateness": st.sampled_from([0, 3, 1000]),
    },
    "first": {"by": st.sampled_from(["arrival", "ts"])},
    "last": {"by": st.sampled_from(["arrival", "ts"])},
    "over": {"preceding": st.integers(0, 3)},
    "totals": {},
    "top": {"n": st.integers(1, 3), "order": st.sampled_from(["ASC", "DESC"]), "upserts": st.booleans()},
    "as_of": {"how": st.sampled_from(["inner", "left"])},
    "join": {"how": st.sampled_from(["inner", "left"]), "span": st.sampled_from([(3, 0), (0, 4), (2, 5), (0.5, 0)])},
    "window_join": {"how": st.sampled_from([*JOINS]), "window": st.just({"is": "TUMBLE", "size": 5, "offset": 0})},
}
_base = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A query, rows and watermarks."""
    kind = draw(st.sampled_from(["window", "window", "window", *_options]))
    case: Case = {"kind": kind, **{name: draw(option) for name, option in _options[kind].items()}}
    case["before_1970"] = draw(st.sampled_from([False] * 19 + [True]))
    script = draw(scripts(_base.window(bm.GlobalWindow()).accumulate(n=Collect("n")), nulls=False, bare=True))
    case["script"] = list(draw(_events(case, script)))
    return case


@st.composite
def _events(draw: st.DrawFn, case: Case, script: TestStream) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []
    names = ["left", "right"] if case["kind"] in TWO_INPUTS else ["rows"]
    changes = case["kind"] == "totals" or case.get("upserts") or case["kind"] == "as_of"
    watermark = latest = NEVER
    rows = 0
    for event in script.events:
        step = as_step(event)
        if step.watermark_us is not None and watermark < step.watermark_us < 1e12:
            watermark = step.watermark_us // TENTH * TENTH
            events.append({"watermark": watermark})
        for given in step.rows:
            row = {"ts": round(given["ts"] * SECOND) // TENTH * TENTH, "key": given["team"], "n": rows}
            row |= {"input": draw(st.sampled_from(names)), "part": "", "gone": False}
            if len(names) == 2:
                row["ts"] = max(row["ts"], watermark)
            if changes and row["input"] != "left":
                row["ts"] = latest = max(row["ts"], watermark, latest)
            if changes:
                row["key"] = row["key"] or "none"
                row["gone"] = row["input"] != "left" and draw(st.sampled_from([False, False, False, True]))
                row["part"] = draw(st.sampled_from(["x", "x", "y"]))
            events.append({"rows": [row]})
            rows += 1
    return events


def given(case: Case) -> Case:
    """The case as a query."""
    names = ("left", "right") if case["kind"] in TWO_INPUTS else ("rows",)
    upserts = {"totals": "rows", "as_of": "right", "top": "rows" if case.get("upserts") else ""}.get(case["kind"])
    config: dict[str, str] = {}
    if case["kind"] == "updates":
        for fire in ("early-fire", "late-fire") if case["lateness"] else ("early-fire",):
            config |= {f"table.exec.emit.{fire}.enabled": "true", f"table.exec.emit.{fire}.delay": "0 ms"}
        config["table.exec.emit.allow-lateness"] = f"{round(case['lateness'] * 1000)} ms"
    return {
        "sql": _sql(case),
        "config": config,
        "inputs": [{"name": name, "upserts": name == upserts} for name in names],
        "before_1970": case["before_1970"],
        "script": [*case["script"], {"watermark": "infinity"}],
    }


def _interval(seconds: float) -> str:
    return f"INTERVAL '{seconds:.3f}' SECOND"


def _ranked(order: str, most: int) -> str:
    return f"""
        SELECT `of`, key, n
        FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY `of`, key ORDER BY {order}) AS place FROM `rows`)
        WHERE place <= {most}
    """


def _of_windows(case: Case, table: str) -> str:
    """A windowing table function."""
    window = case["window"]
    size, period = _interval(window["size"]), _interval(window.get("period", 0))
    match window["is"]:
        case "TUMBLE":
            offset = f", {_interval(window['offset'])}" if window["offset"] else ""
            return f"TABLE(TUMBLE(TABLE `{table}`, DESCRIPTOR(ts), {size}{offset}))"
        case "SESSION":
            size = _interval(window["size"] - (0 if case["touch"] else 0.001))
            return f"TABLE(SESSION(TABLE `{table}` PARTITION BY (`of`, key), DESCRIPTOR(ts), {size}))"
    return f"TABLE({window['is']}(TABLE `{table}`, DESCRIPTOR(ts), {period}, {size}))"


def _sql(case: Case) -> str:
    """The query of a case."""
    pair = f"{case.get('how', '').upper()} JOIN"
    match case["kind"]:
        case "window":
            return f"""
                SELECT `of`, key, window_start, window_end, ARRAY_AGG(n)
                FROM {_of_windows(case, "rows")}
                GROUP BY `of`, key, window_start, window_end
            """
        case "updates":
            window = case["window"]
            arguments = ", ".join(_interval(window[name]) for name in ("period", "size") if name in window)
            group = f"{window['is']}(ts, {arguments})"
            bounds = ", ".join(f"{window['is']}_{bound}(ts, {arguments})" for bound in ("START", "END"))
            return f"SELECT `of`, key, {bounds}, ARRAY_AGG(n) FROM `rows` GROUP BY `of`, key, {group}"
        case "first":
            return _ranked(f"{case['by']} ASC", 1)
        case "last":
            return _ranked(f"{case['by']} DESC", 1)
        case "top":
            return _ranked(f"n {case['order']}", case["n"])
        case "over":
            return f"""
                SELECT `of`, key, n, SUM(n) OVER (
                    PARTITION BY `of`, key ORDER BY arrival ROWS BETWEEN {case["preceding"]} PRECEDING AND CURRENT ROW)
                FROM `rows`
            """
        case "totals":
            return "SELECT `of`, part, COUNT(*), SUM(n) FROM `rows` GROUP BY `of`, part"
        case "as_of":
            return f"""
                SELECT l.`of`, l.n, r.n FROM `left` l {pair} `right` FOR SYSTEM_TIME AS OF l.ts AS r
                ON l.`of` = r.`of` AND l.key = r.key
            """
        case "join":
            before, after = map(_interval, case["span"])
            return f"""
                SELECT COALESCE(l.`of`, r.`of`), l.n, r.n FROM `left` l {pair} `right` r
                ON l.`of` = r.`of` AND l.key = r.key AND r.ts BETWEEN l.ts - {before} AND l.ts + {after}
            """
    return f"""
        SELECT COALESCE(l.`of`, r.`of`), l.n, r.n
        FROM (SELECT * FROM {_of_windows(case, "left")}) l {pair} (SELECT * FROM {_of_windows(case, "right")}) r
        ON l.`of` = r.`of` AND l.key = r.key AND l.window_start = r.window_start AND l.window_end = r.window_end
    """


def there(case: Case, answer: Mapping[str, Any]) -> list[Row]:
    """The answer of Flink."""
    if case["kind"] in ("window", "updates"):
        touch = 0 if case["window"]["is"] != "SESSION" or case["touch"] else MILLISECOND
        return _in_windows(
            case,
            _replacing(
                (
                    (key, start * MILLISECOND, end * MILLISECOND + touch),
                    row["kind"] in ("-U", "-D"),
                    sorted(rows),
                    None if row["watermark"] is None else row["watermark"] * MILLISECOND,
                )
                for row in answer["rows"]
                for key, start, end, rows in [row["values"]]
            ),
        )
    return _table((row["kind"] in ("+I", "+U"), row["values"]) for row in answer["rows"])


Change = tuple[tuple[Any, ...], bool, list[Any], int | None]
"""A window, whether it is a retraction, the rows, and the watermark before."""


def _replacing(changes: Iterator[Change]) -> Iterator[tuple[Any, ...]]:
    """The rows of windows with what they replace: a retraction, and the row after it if it is of the same window, are one update."""
    retracted: Change | None = None
    for change in changes:
        window, retracts, rows, watermark = change
        replaced = retracted[2] if retracted and retracted[0] == window and not retracts else None
        if retracted and replaced is None:
            yield (*retracted[0], None, *retracted[2:])
        retracted = change if retracts else None
        if not retracts:
            yield (*window, rows, replaced, watermark)
    if retracted:
        yield (*retracted[0], None, *retracted[2:])


def _table(changes: Iterator[tuple[bool, list[Any]]]) -> list[Row]:
    """The rows of a table at the end, with their numbers."""
    left: dict[tuple[Any, ...], int] = {}
    for inserted, values in changes:
        row = tuple(values)
        left[row] = left.get(row, 0) + (1 if inserted else -1)
    return [{"stream": list(row), "place": [], "times": times} for row, times in left.items() if times]


def _in_windows(case: Case, rows: Iterator[tuple[Any, ...]]) -> list[Row]:
    """Final rows of windows; or all updates of each."""
    found = list(rows)
    if case["kind"] == "window":
        merging = case["window"]["is"] == "SESSION"
        return [
            {"stream": [key] if merging else [key, start, end], "place": [start, end], "rows": values, "after": after}
            for key, start, end, values, _, after in found
        ]
    windows: dict[tuple[Any, ...], list[Any]] = {}
    for *window, values, replaced, _ in found:
        windows.setdefault(tuple(window), []).append((values, replaced))
    return [
        {"stream": list(window), "place": [place], "rows": values, "replaced": next(some)[1]}
        for window, updates in windows.items()
        for place, (values, some) in enumerate(groupby(updates, itemgetter(0)))
    ]


def here(case: Case) -> list[Row]:
    """The answer of beamish."""
    traced = list(_traced(case))
    if case["kind"] in ("window", "updates"):
        return _in_windows(case, _replacing(_changes_of(traced)))
    return _table(
        (pane.kind is PaneKind.PANE, values) for _, pane in traced for values in _RESULTS[case["kind"]][1](pane)
    )


def _traced(case: Case) -> Iterator[tuple[int | None, Pane]]:
    """Panes, each with the watermark before its step."""
    watermark = None
    for (_, panes), event in zip(
        script_of(case).trace(_RESULTS[case["kind"]][0](case)), [*case["script"], {}], strict=False
    ):
        yield from ((watermark, pane) for pane in panes if pane.kind is not PaneKind.DROPPED)
        watermark = event.get("watermark", watermark)


def script_of(case: Case) -> TestStream:
    """The script, a row per bundle; it ends, but for windows of rows, which would be emitted partly filled."""
    script = TestStream()
    for event in case["script"]:
        if "watermark" in event:
            script = script.advance_watermark_to(event["watermark"] / SECOND)
            continue
        (row,) = event["rows"]
        two = case["kind"] in TWO_INPUTS
        values = {name: value for name, value in row.items() if name != "input"} | {"ts": row["ts"] / SECOND}
        if case["kind"] in ("join", "window_join"):
            values[row["input"]] = values.pop("n")
        script = script.add([values], **({"input": row["input"]} if two else {}))
    return script if case["kind"] == "over" else script.advance_watermark_to_infinity()


def _changes_of(traced: list[tuple[int | None, Pane]]) -> Iterator[Change]:
    """The panes and retractions of windows."""
    for watermark, pane in traced:
        assert pane.window is not None
        window = pane.key["key"], instant_us("start", pane.window.start), instant_us("end", pane.window.end)
        yield window, pane.kind is PaneKind.RETRACTION, sorted(pane.values["rows"]), watermark


def predicted(case: Case) -> list[Row]:
    """Flink's output, computed by its own rules, where ours differ."""
    match case:
        case {"kind": "window", "touch": True, "window": {"is": "SESSION"}}:
            return _in_windows(case, _touching(case))
        case {"kind": "over", "preceding": 0}:
            return _table(_with_one_before(case))
        case {"kind": "as_of"}:
            return here(case | {"script": list(_deleted_at_their_version(case))})
        case {"kind": "first", "by": "ts"}:
            return here(case | {"script": list(on_time(case))})
        case {"kind": "window" | "join", "before_1970": True}:
            return [row for row in here(case) if not _before_1970(case, row)]
    return here(case)


def _touching(case: Case) -> Iterator[tuple[Any, ...]]:
    """Sessions that merge when they touch."""
    gap = round(case["window"]["size"] * SECOND)
    sessions: list[tuple[str | None, int, int, list[int]]] = []
    watermark: int | None = None
    for event in [*case["script"], {"watermark": -NEVER}]:
        for row in event.get("rows", []):
            key, start, end = row["key"], row["ts"], row["ts"] + gap
            met = [one for one in sessions if one[0] == key and one[1] <= end and start <= one[2]]
            start, end = min([start, *(one[1] for one in met)]), max([end, *(one[2] for one in met)])
            if end > (NEVER if watermark is None else watermark):
                rows = sorted([row["n"], *(n for one in met for n in one[3])])
                sessions = [one for one in sessions if one not in met] + [(key, start, end, rows)]
        if "watermark" in event:
            due = [one for one in sessions if one[2] <= event["watermark"]]
            sessions = [one for one in sessions if one not in due]
            yield from ((key, start, end, rows, None, watermark) for key, start, end, rows in due)
            watermark = event["watermark"]


def _with_one_before(case: Case) -> Iterator[tuple[bool, list[Any]]]:
    """From a key's third row on the sum has the row before."""
    sums = {row["stream"][1]: row["stream"][2] for row in here(case)}
    before: dict[str | None, list[int]] = {}
    for row in _rows(case):
        rows = before.setdefault(row["key"], [])
        yield True, [row["key"], row["n"], sums[row["n"]] + (rows[-1] if len(rows) > 1 else 0)]
        rows.append(row["n"])


def _deleted_at_their_version(case: Case) -> Iterator[dict[str, Any]]:
    """The script with deletes at the time of what they delete; without a row nothing is deleted."""
    versions: dict[str, int] = {}
    for event in case["script"]:
        (row,) = event.get("rows", [{"input": "left"}])
        if row["input"] == "left":
            yield event
        elif not row["gone"]:
            versions[row["key"]] = row["ts"]
            yield event
        elif row["key"] in versions:
            yield {"rows": [row | {"ts": versions.pop(row["key"])}]}


def _before_1970(case: Case, row: Row) -> bool:
    """Whether Flink loses a row of a result: its window starts before 1970, or a row of a pair is from before."""
    if case["kind"] == "window":
        return bool(row["place"][0] < 0)
    return any(one["ts"] < 0 for one in _rows(case) if one["n"] in row["stream"])


def _window(case: Case) -> bm.WindowOption:
    window = case["window"]
    match window["is"]:
        case "TUMBLE":
            return bm.FixedWindows(window["size"], window["offset"])
        case "HOP":
            return bm.SlidingWindows(window["size"], window["period"])
        case "SESSION":
            return bm.Sessions(window["size"], late_rows="session")
    return bm.CumulativeWindows(window["size"], window["period"])


def _windowed(case: Case) -> bm.Pipeline:
    pipeline = _base.key_by("key").window(_window(case)).accumulate(rows=Collect("n"))
    if case["kind"] == "window":
        return pipeline
    return (
        pipeline.trigger(t.AfterWatermark(early=t.Always(), late=t.Always()))
        .allowed_lateness(case["lateness"])
        .accumulating_and_retracting()
    )


def _edge(case: Case) -> bm.Pipeline:
    first = case["kind"] == "first"
    if case["by"] == "ts":
        return _in_all((First if first else Last)("n"))
    return _base.deduplicate("key", within="forever") if first else _in_all(TopN(1, "n"))


def _in_all(accumulation: Any) -> bm.Pipeline:
    return _base.key_by("key").window(bm.GlobalWindow()).accumulate(n=accumulation)


def _top(case: Case) -> bm.Pipeline:
    top = (TopN if case["order"] == "DESC" else BottomN)(case["n"], "n")
    if not case["upserts"]:
        return _in_all(top)
    return _changes().then(bm.Pipeline().key_by("key").window(bm.GlobalWindow()).accumulate(n=top))


def _changes() -> bm.Pipeline:
    return _base.key_by("key").versions(1000, values=["n", "part"], deleted="gone", latest_only=True)


def _totals(_: Case) -> bm.Pipeline:
    parts = bm.Pipeline().key_by("part").window(bm.GlobalWindow())
    return _changes().then(parts.accumulate(count=Count(), total=Sum("n")))


def _over(case: Case) -> bm.Pipeline:
    windows = bm.CountWindows(case["preceding"] + 1, 1)
    return _base.key_by("key").window(windows).accumulate(n=TopN(1, "n"), total=Sum("n"))


def _as_of(case: Case) -> bm.Pipeline:
    table = _base.key_by("key").versions(Duration(1000 * SECOND), values=["n"], deleted="gone")
    return bm.as_of_join(left=_base, right=table, on="key", how=case["how"], grace=0, early=False)


def _joined(case: Case) -> bm.Pipeline:
    before, after = case.get("span", (0, 0))
    windows = _window(case) if "window" in case else bm.Within(before, of="right", after=after)
    return (
        bm.merge(left=_base.key_by("key"), right=_base.key_by("key"))
        .window(windows)
        .accumulate(pair=JOINS[case["how"]]("left", "right"))
    )


def _pair(pane: Pane) -> list[list[Any]]:
    pairs = _listed(pane.values["pair"])
    return [[(pair[name] or {name: None})[name] for name in ("left", "right")] for pair in pairs]


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


_RESULTS: Mapping[str, tuple[Callable[[Case], bm.Pipeline], Callable[[Pane], list[list[Any]]]]] = {
    "window": (_windowed, lambda _: []),
    "updates": (_windowed, lambda _: []),
    "first": (_edge, lambda pane: [[pane.key["key"], pane.values["n"]]]),
    "last": (_edge, lambda pane: [[pane.key["key"], n] for n in _listed(pane.values["n"])]),
    "over": (_over, lambda pane: [[pane.key["key"], *pane.values["n"], pane.values["total"]]]),
    "totals": (_totals, lambda pane: [[pane.key["part"], pane.values["count"], pane.values["total"]]]),
    "top": (_top, lambda pane: [[pane.key["key"], n] for n in pane.values["n"]]),
    "as_of": (_as_of, lambda pane: [[pane.values["n"], (pane.values["right"] or {"n": None})["n"]]]),
    "join": (_joined, _pair),
    "window_join": (_joined, _pair),
}
"""Per kind: its pipeline, and the rows of a pane."""


def facts(case: Case, here: Row | None, there: Row | None) -> Mapping[str, Any]:
    """Facts for the decisions.

    ``deleted``: the key is deleted. ``late``: the first row of the key in time came late. ``before_1970``: the difference is about rows
    before 1970.
    """
    one = here or there or {}
    found = {
        "kind": case["kind"],
        "window": case.get("window", {"is": ""})["is"],
        "touch": case.get("touch", False),
        "preceding": case.get("preceding"),
        "deleted": False,
        "late": False,
        "before_1970": False,
    }
    if "failed" in one:
        return found
    if case["kind"] in ("join", "window_join"):
        rows = [row for row in _rows(case) if row["n"] in one["stream"]]
        early = case["before_1970"] and any(row["ts"] < 0 for row in rows)
        return found | {"before_1970": early}
    if case["kind"] == "first":
        of_key = [
            (row["ts"], row["ts"] < watermark) for row, watermark in _arrived(case) if row["key"] == one["stream"][0]
        ]
        return found | {"late": case["by"] == "ts" and min(of_key, key=itemgetter(0))[1]}
    if case["kind"] == "as_of":
        (key,) = {row["key"] for row in _rows(case) if row["n"] == one["stream"][0]}
        return found | {"deleted": any(row["gone"] and row["key"] == key for row in _rows(case))}
    if case["kind"] == "window":
        return found | {"before_1970": case["before_1970"] and one["place"][0] < 0}
    return found


def _rows(case: Case) -> Iterator[dict[str, Any]]:
    yield from (row for row, _ in _arrived(case))


def _arrived(case: Case) -> Iterator[tuple[dict[str, Any], int]]:
    """The rows, each with the watermark at which it came."""
    watermark = NEVER
    for event in case["script"]:
        watermark = event.get("watermark", watermark)
        yield from ((row, watermark) for row in event.get("rows", []))


def kinds(case: Case) -> Iterator[str]:
    """By kind, window and join."""
    yield case["kind"]
    yield " ".join(filter(None, (case["kind"], case.get("how"), case.get("by"), case.get("window", {}).get("is"))))


PEER = Peer(
    "flink",
    "Flink SQL",
    "2.3.0",
    cases(),
    given,
    here,
    there,
    facts,
    ("kind", "window"),
    kinds,
    without_parts,
    together=625,
    predicted=predicted,
)
