"""The figures of "Streaming Systems" (chapters 2 and 4), drawn from runs: nine plays of a team, in windows of two minutes.

Each figure is a pipeline and a script; nothing in it is typed by hand but the plays and the moves of the watermark. Retractions
are among them, which the book could only draw. tests/docs/test_gallery.py checks the panes of each.

    python examples/gallery.py [FOLDER]        writes FOLDER/index.html, by default build/gallery/index.html

It needs matplotlib: pip install '.[plot]' in a clone.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from html import escape
from pathlib import Path

import attrs

import beamish as bm
from beamish.accumulations import Sum
from beamish.testing import TestStream
from beamish.triggers import AfterCount, AfterProcessingTime, AfterWatermark, Repeatedly


def at(time: str) -> datetime:
    """A time of that day, such as 12:04:59."""
    return datetime.strptime(f"2015-10-21 {time}", "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)


Play = tuple[int, str, str]
"""Score, event time, processing time."""
PLAYS: list[Play] = [
    (5, "12:00:26", "12:04:59"),
    (7, "12:02:24", "12:05:39"),
    (3, "12:03:39", "12:06:13"),
    (4, "12:04:19", "12:06:39"),
    (8, "12:03:06", "12:07:06"),
    (3, "12:06:39", "12:07:19"),
    (9, "12:01:25", "12:08:19"),
    (8, "12:07:26", "12:08:39"),
    (1, "12:07:46", "12:09:00"),
]
ONE_MORE = (6, "12:00:53", "12:06:39")

Moves = dict[str, str]
"""The watermark, by processing time."""
PERFECT = {"12:08:39": "12:02:00", "12:09:00": "12:04:00", "12:09:10": "12:06:00", "12:09:20": "12:08:00"}
HEURISTIC = {"12:06:00": "12:02:00", "12:07:30": "12:04:00", "12:07:40": "12:06:00", "12:09:30": "12:08:00"}
AT_THE_END = {"12:10:00": "12:10:00"}


def script(watermark: Moves, *more: Play, end: str = "12:10:00") -> TestStream:
    """The plays one by one, and the watermark updates; in between the clock ticks if a trigger may wait.

    At each time the watermark moves first, then the clock, then a row arrives. Only at 12:09:00 the perfect watermark moves after
    the row, which it anticipates.
    """
    rows = [(at(came), {"at": at(time), "score": score}) for score, time, came in (*PLAYS, *more)]
    moves = [(at(came), at(to)) for came, to in watermark.items()]
    minutes = {at("12:05:00") + timedelta(minutes=minute) for minute in range(6)}
    waited = {came + timedelta(minutes=2) for came, _ in rows}
    stream = TestStream()
    for now in sorted({*(came for came, _ in rows), *(came for came, _ in moves), *minutes, *waited}):
        here = [row for came, row in rows if came == now]
        moved = [to for came, to in moves if came == now]
        if now > at(end):
            break
        if here and moved and moved[0] == at("12:04:00"):
            stream = stream.step(here, clock=now).step(watermark=moved[0])
        else:
            stream = stream.step(here, watermark=moved[0] if moved else None, clock=now)
    return stream


SCORES = bm.Pipeline().event_time("at", bm.BoundedOutOfOrderness(0)).accumulating().accumulate(total=Sum("score"))
BY_TWO_MINUTES = SCORES.window(bm.FixedWindows("2 minutes"))
ON_TIME = BY_TWO_MINUTES.trigger(AfterWatermark())
EVERY_MINUTE = AfterWatermark(early=AfterProcessingTime(aligned_to="1 minute"), late=AfterCount(1))
REFINED = BY_TWO_MINUTES.trigger(EVERY_MINUTE).allowed_lateness("1 hour")
SESSIONS = SCORES.window(bm.Sessions("1 minute"))


@attrs.frozen
class Shown:
    """A figure: pipeline, script, and caption."""

    title: str
    words: str
    pipeline: bm.Pipeline
    script: TestStream


FIGURES = {
    "classic-batch": Shown(
        "Classic batch",
        "One window for all of time. The answer comes when all rows are in.",
        SCORES.window(bm.GlobalWindow()).trigger(AfterWatermark()),
        script({}).advance_watermark_to_infinity(),
    ),
    "windowed-batch": Shown(
        "Windowed batch",
        "The same, in windows of two minutes: four answers, still all at the end.",
        ON_TIME,
        script({}).advance_watermark_to_infinity(),
    ),
    "per-record": Shown(
        "A pane per record",
        "Every row brings the newest sum of its window. No watermark is needed, and nobody knows when a sum is the last.",
        BY_TWO_MINUTES.trigger(Repeatedly(AfterCount(1))),
        script({}),
    ),
    "aligned-delay": Shown(
        "Aligned delay",
        "At every full two minutes of the clock the windows that changed give a pane, all at once.",
        BY_TWO_MINUTES.trigger(Repeatedly(AfterProcessingTime(aligned_to="2 minutes"))),
        script({}),
    ),
    "unaligned-delay": Shown(
        "Unaligned delay",
        "Two minutes after its first new row a window gives a pane: the work is spread over time.",
        BY_TWO_MINUTES.trigger(Repeatedly(AfterProcessingTime("2 minutes"))),
        script({}, end="12:10:19"),
    ),
    "watermark-perfect": Shown(
        "Perfect watermark",
        "A watermark that knows what is still to come waits for the 9, and all windows after it wait too.",
        ON_TIME,
        script(PERFECT),
    ),
    "watermark-heuristic": Shown(
        "Heuristic watermark",
        "A watermark that guesses is faster. The 9 comes after its window has expired: it is dropped.",
        ON_TIME,
        script(HEURISTIC),
    ),
    "early-on-time-late-perfect": Shown(
        "Early, on time and late: perfect watermark",
        "Early panes each minute make up for a slow watermark. There is never anything late.",
        REFINED,
        script(PERFECT),
    ),
    "early-on-time-late-heuristic": Shown(
        "Early, on time and late: heuristic watermark",
        "The late pane makes up for a watermark that was too fast: the 9 is counted after all.",
        REFINED,
        script(HEURISTIC),
    ),
    "allowed-lateness": Shown(
        "Allowed lateness",
        "Windows are kept until the watermark is a minute past their end: the 6 is in time for that, the 9 is not.",
        REFINED.allowed_lateness("1 minute"),
        script(HEURISTIC, ONE_MORE),
    ),
    "discarding": Shown(
        "Discarding",
        "A pane holds what came since the pane before. Who adds them up has the sum.",
        REFINED.discarding().on_time_behavior(bm.OnTimeBehavior.FIRE_IF_NON_EMPTY),
        script(HEURISTIC),
    ),
    "accumulating-and-retracting": Shown(
        "Accumulating and retracting",
        "Each pane retracts the one before. What is not struck out holds each emitted row once.",
        REFINED.accumulating_and_retracting(),
        script(HEURISTIC),
    ),
    "sessions": Shown(
        "Sessions",
        "A session ends where nothing happens for a minute. With a perfect watermark each gives one pane.",
        SESSIONS.trigger(AfterWatermark()),
        script(PERFECT | AT_THE_END),
    ),
    "sessions-with-retractions": Shown(
        "Sessions with retractions",
        "Early panes show sessions that still grow. When the 8 joins two of them, and the 9 two more, their panes are "
        "retracted at once, before the merged session has one.",
        SESSIONS.trigger(EVERY_MINUTE).allowed_lateness("1 hour").accumulating_and_retracting(),
        script(HEURISTIC | AT_THE_END),
    ),
}


def page() -> str:
    """All figures on one page, which needs no network."""
    sections = "".join(
        f'<section id="{name}"><h2>{escape(shown.title)}</h2><p>{escape(shown.words)}</p>'
        f"{bm.plot.timeline(shown.pipeline, shown.script).html(library=False)}</section>"
        for name, shown in FIGURES.items()
    )
    links = "".join(f'<li><a href="#{name}">{escape(shown.title)}</a></li>' for name, shown in FIGURES.items())
    return f"""<!DOCTYPE html>
<html lang="en" class="beamish-colors"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>Gallery of timelines</title>
{bm.plot.library()}<style>
body {{ font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }}
main {{ max-width: 720px; margin: 0 auto; padding: 12px; }}
h2 {{ margin: 56px 0 0; }} a {{ color: var(--watermark); }} ul {{ columns: 2 260px; padding-left: 20px; }}
</style></head><body><main>
<h1>Event time and processing time</h1>
<p>Nine plays of a team: each circle is a row with its score, across when it happened, up when it came. A box is a window when a
pane of it came, with the sum that the pane says. No row is below the dashed line, since none arrives before it happens.
These are the figures of chapters 2 and 4 of <em>Streaming Systems</em> (Akidau, Chernyak, Lax), run and not drawn.</p>
<ul>{links}</ul>
{sections}
</main></body></html>
"""


def main(folder: Path) -> None:
    """Write the page."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "index.html"
    file.write_text(page(), encoding="utf-8")
    print(f"{len(FIGURES)} figures, {file.stat().st_size / 1e6:.1f} MB: {file}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "build/gallery"))
