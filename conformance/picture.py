"""The picture of a case: rows by event time, a line each, in the order of their arrival; the watermark between them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from html import escape
from textwrap import wrap
from typing import Any

from conformance.suite import Case

WIDTH, ROW, LEFT, TOP = 640, 18, 70, 26
NEAR_THE_EDGE, LETTERS = 460, 105
"""Labels of rows beyond the first are to their left; the second is the length of a line of text."""
COLOURS = ("#c0392b", "#2471a3", "#7d6608", "#6c3483", "#117864")


def svg(case: Case, *, answers: bool = False) -> str:
    """An SVG of the script, a line per row, downwards; then, if asked for, the pipeline and the rows of each answer."""
    events = case["script"]
    times = [row["time"] for event in events for row in event.get("rows", ())]
    times += [event["watermark"] for event in events if isinstance(event.get("watermark"), (int, float))]
    first, last = (min(times), max(times)) if times else (0, 1)

    def x(time: float) -> float:
        return round(LEFT + (time - first) / max(last - first, 1) * (WIDTH - LEFT - 40), 1)

    below = TOP + ROW * sum(max(1, len(event.get("rows", ()))) for event in events) + 10
    shown = [*_pipeline(case), *_answers(case)] if answers else []
    height = below + ROW * len(shown)
    size = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
    return "".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="11" role="img">',
            '<rect width="100%" height="100%" fill="#fff"/>',
            _text(LEFT, 12, f"event time {first:g}", "#777"),
            _text(WIDTH - 40, 12, f"{last:g}", "#777", left=True),
            *_events(events, x, below - 10),
            *(
                _text(4 if head else LEFT, below + ROW * number + 4, head or line, "#222")
                for number, (head, line) in enumerate(shown)
            ),
            "</svg>",
        ]
    )


def _text(x: float, y: float, text: str, colour: str, *, left: bool = False) -> str:
    anchor = ' text-anchor="end"' if left else ""
    return f'<text x="{x}" y="{y}" fill="{colour}"{anchor}>{escape(text)}</text>'


def _events(events: list[dict[str, Any]], x: Callable[[float], float], height: int) -> Iterator[str]:
    keys = sorted({str(row.get("key")) for event in events for row in event.get("rows", ())})
    y = TOP
    for number, event in enumerate(events):
        yield _text(4, y + 4, str(number), "#777")
        if event.get("watermark") == "infinity":
            yield _text(LEFT, y + 4, "watermark: end of time", "#555")
        elif "watermark" in event:
            at = x(event["watermark"])
            yield f'<path d="M{at} {y}V{height}" stroke="#999" stroke-dasharray="3 3"/>'
            yield _beside(at, y, f"watermark {event['watermark']:g}", "#555")
        if "clock" in event:
            yield _text(LEFT, y + 4, f"clock {event['clock']:g}", "#555")
        rows = event.get("rows", ())
        for line, row in enumerate(rows):
            colour = COLOURS[keys.index(str(row.get("key"))) % len(COLOURS)]
            name = " ".join(str(row[one]) for one in ("input", "key", "n") if row.get(one) not in (None, "rows"))
            name += " deleted" if row.get("deleted") else ""
            at, height_of = x(row["time"]), y + ROW * line
            yield f'<circle cx="{at}" cy="{height_of}" r="4" fill="{colour}"/>'
            yield _beside(at, height_of, f"{name} @{row['time']:g}", colour)
        y += ROW * max(1, len(rows))


def _beside(x: float, y: float, text: str, colour: str) -> str:
    edge = x > NEAR_THE_EDGE
    return _text(x - 7 if edge else x + 7, y + 4, text, colour, left=edge)


def _pipeline(case: Case) -> Iterator[tuple[str, str]]:
    """The lines of the pipeline, with its options that are not null."""
    options = {name: value for name, value in case["pipeline"].items() if value not in (None, False)}
    text = json.dumps(options).translate(str.maketrans("", "", '{}"'))
    yield from (("", line) for line in wrap(text, LETTERS))


def _answers(case: Case) -> Iterator[tuple[str, str]]:
    """The lines of each answer: an engine, then its rows."""
    for engine, answer in case["answers"].items():
        yield f"{engine}{': ' + answer['warns'] if 'warns' in answer else ''}", ""
        rows = answer.get("rows", [answer])
        for row in rows or [{"no rows": None}]:
            yield from (("", line) for line in wrap(", ".join(_told(row)), LETTERS))


def _told(row: Mapping[str, Any]) -> Iterator[str]:
    """A row in a few words."""
    if "start" in row:
        bounds = "all time" if row["start"] is None else f"[{row['start']:g}, {row['end']:g})"
        yield f"{row.get('key')} {bounds}"
    hidden = {"start", "end", "key"} if "start" in row else set()
    hidden |= {"on_time_index", "is_first", "is_last"}
    for name, value in row.items():
        if name not in hidden:
            yield name if value is None and " " in name else f"{name} {value}"
