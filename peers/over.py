"""Cases of OVER: frames, keys, and rows in any order of their times, with watermarks between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hypothesis import strategies as st

import beamish as bm
from beamish.accumulations import Collect
from beamish.durations import Duration
from beamish.kinds.over.options import MOST_ROWS, Frame
from beamish.script import as_step
from peers.peer import Case
from tests.strategies.scripts import scripts, teams

SECOND, TENTH = 1_000_000, 100_000
base = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0))
keys = st.sampled_from([["key"], ["key"], ["key", "part"], []])
frames = st.sampled_from(
    [
        *({"is": "RANGE", "span": tenths * TENTH} for tenths in (0, 5, 25, 50, 400)),
        *({"is": "ROWS", "rows": rows} for rows in (0, 1, 3)),
        {"is": "RANGE"},
        {"is": "ROWS"},
    ]
)
"""Without a span or a number of rows they are unbounded."""
parts, few = st.sampled_from("xy"), st.sampled_from([None, 1, 1, 2, 5, -3])


def frame_of(case: Case) -> Frame:
    """The frame of a case; without one that of SQL."""
    match case.get("frame"):
        case {"span": span}:
            return bm.Preceding(Duration(span))
        case {"rows": rows}:
            return bm.PrecedingRows(rows)
        case {"is": "ROWS"}:
            return bm.PrecedingRows(MOST_ROWS)
    return bm.Unbounded()


@st.composite
def events(draw: st.DrawFn, columns: Mapping[str, st.SearchStrategy[Any]]) -> list[dict[str, Any]]:
    """Bundles of rows with a time, a key, these columns and their number ``n``; and watermarks. Times are tenths of seconds."""
    found: list[dict[str, Any]] = []
    numbers = iter(range(10**6))
    for event in draw(
        scripts(base.window(bm.GlobalWindow()).accumulate(n=Collect("n")), nulls=False, bare=True)
    ).events:
        step = as_step(event)
        if step.watermark_us is not None and step.watermark_us < 10**12:
            found.append({"watermark": step.watermark_us // TENTH * TENTH})
        rows = [
            {"ts": round(given["ts"] * SECOND) // TENTH * TENTH, "key": draw(teams)}
            | {name: draw(column) for name, column in columns.items()}
            | {"n": next(numbers)}
            for given in step.rows
        ]
        found += [{"rows": rows}] if rows else []
    return found


def script_of(case: Case) -> bm.testing.TestStream:
    """The script; it ends."""
    script = bm.testing.TestStream()
    for event in case["script"]:
        if "watermark" in event:
            script = script.advance_watermark_to(event["watermark"] / SECOND)
        else:
            script = script.add([row | {"ts": row["ts"] / SECOND} for row in event["rows"]])
    return script.advance_watermark_to_infinity()


def kinds(case: Case) -> Iterator[str]:
    """By kind, and by frame and function."""
    yield case["kind"]
    frame = case.get("frame", {})
    bounds = frame.keys() - {"is"} or {"unbounded"}
    yield " ".join(filter(None, [case["kind"], *([frame["is"], *bounds] if frame else []), case.get("function")]))
