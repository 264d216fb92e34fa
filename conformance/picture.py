"""The picture of a case: rows by event time, in the order of their arrival; the watermark between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from conformance.suite import Case

WIDTH, ROW, LEFT, TOP = 640, 18, 70, 26
COLOURS = ("#c0392b", "#2471a3", "#7d6608", "#6c3483", "#117864")


def svg(case: Case, *, answers: bool = False) -> str:
    """An SVG of the script: a line per event, downwards; then, if asked for, the rows of each answer."""
    events = case["script"]
    times = [row["time"] for event in events for row in event.get("rows", ())]
    times += [event["watermark"] for event in events if isinstance(event.get("watermark"), (int, float))]
    first, last = (min(times), max(times)) if times else (0, 1)
    span = max(last - first, 1)

    def x(time: float) -> float:
        return round(LEFT + (time - first) / span * (WIDTH - LEFT - 40), 1)

    shown = list(_answers(case)) if answers else []
    below = TOP + ROW * len(events) + 10
    height = below + ROW * len(shown)
    size = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="11" role="img">']
    parts += ['<rect width="100%" height="100%" fill="#fff"/>']
    parts += [f'<text x="{LEFT}" y="12" fill="#777">event time {first:g}</text>']
    parts += [f'<text x="{WIDTH - 40}" y="12" fill="#777" text-anchor="end">{last:g}</text>']
    keys = sorted({str(row.get("key")) for event in events for row in event.get("rows", ())})
    parts += list(_events(events, keys, x, below - 10))
    parts += [
        f'<text x="{4 if engine else LEFT}" y="{below + ROW * number + 4}" fill="#222">{escape(engine or row)}</text>'
        for number, (engine, row) in enumerate(shown)
    ]
    return "".join([*parts, "</svg>"])


def _answers(case: Case) -> Iterator[tuple[str, str]]:
    """The lines of each answer: an engine, then its rows."""
    for engine, answer in case["answers"].items():
        yield f"{engine}{': ' + answer['warns'] if 'warns' in answer else ''}", ""
        rows = answer.get("rows", [answer])
        yield from (("", ", ".join(_told(row))) for row in rows or [{"no rows": None}])


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


def _events(events: list[dict[str, Any]], keys: list[str], x: Any, height: int) -> Iterator[str]:
    for number, event in enumerate(events):
        y = TOP + ROW * number
        yield f'<text x="4" y="{y + 4}" fill="#777">{number}</text>'
        if "watermark" in event:
            if event["watermark"] == "infinity":
                yield f'<text x="{LEFT}" y="{y + 4}" fill="#555">watermark: end of time</text>'
                continue
            at = x(event["watermark"])
            yield f'<path d="M{at} {y}V{height}" stroke="#999" stroke-dasharray="3 3"/>'
            yield f'<text x="{at + 4}" y="{y + 4}" fill="#555">watermark {event["watermark"]:g}</text>'
        if "clock" in event:
            yield f'<text x="{LEFT}" y="{y + 4}" fill="#555">clock {event["clock"]:g}</text>'
        for row in event.get("rows", ()):
            colour = COLOURS[keys.index(str(row.get("key"))) % len(COLOURS)]
            name = " ".join(str(row[one]) for one in ("input", "key", "n") if row.get(one) not in (None, "rows"))
            name += " deleted" if row.get("deleted") else ""
            yield f'<circle cx="{x(row["time"])}" cy="{y}" r="4" fill="{colour}"/>'
            yield f'<text x="{x(row["time"]) + 7}" y="{y + 4}" fill="{colour}">{name} @{row["time"]:g}</text>'
