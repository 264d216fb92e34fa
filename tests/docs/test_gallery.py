"""The figures of the gallery: each pane, when it came and what it holds, worked out by hand from the plays and the watermarks.

A line is a pane: processing time, window, timing, sum; struck out at the time after it, where it is. The plays of the windows from
12:00, 12:02, 12:04 and 12:06 are 5+9, 7+3+8, 4 and 3+8+1, in the order in which they came.
"""

from __future__ import annotations

import runpy
from datetime import UTC, datetime, timedelta

import pytest

import beamish as bm
from beamish.plot.labels import clock_label

pytestmark = pytest.mark.dear

SHOWN = {
    "classic-batch": """
        12:10:00 all on_time 48
    """,
    "windowed-batch": """
        12:10:00 12:00:00-12:02:00 on_time 14
        12:10:00 12:02:00-12:04:00 on_time 18
        12:10:00 12:04:00-12:06:00 on_time 4
        12:10:00 12:06:00-12:08:00 on_time 12
    """,
    "per-record": """
        12:04:59 12:00:00-12:02:00 early 5
        12:05:39 12:02:00-12:04:00 early 7
        12:06:13 12:02:00-12:04:00 early 10
        12:06:39 12:04:00-12:06:00 early 4
        12:07:06 12:02:00-12:04:00 early 18
        12:07:19 12:06:00-12:08:00 early 3
        12:08:19 12:00:00-12:02:00 early 14
        12:08:39 12:06:00-12:08:00 early 11
        12:09:00 12:06:00-12:08:00 early 12
    """,
    "aligned-delay": """
        12:06:00 12:00:00-12:02:00 early 5
        12:06:00 12:02:00-12:04:00 early 7
        12:08:00 12:02:00-12:04:00 early 18
        12:08:00 12:04:00-12:06:00 early 4
        12:08:00 12:06:00-12:08:00 early 3
        12:10:00 12:00:00-12:02:00 early 14
        12:10:00 12:06:00-12:08:00 early 12
    """,
    "unaligned-delay": """
        12:06:59 12:00:00-12:02:00 early 5
        12:07:39 12:02:00-12:04:00 early 18
        12:08:39 12:04:00-12:06:00 early 4
        12:09:19 12:06:00-12:08:00 early 12
        12:10:19 12:00:00-12:02:00 early 14
    """,
    "watermark-perfect": """
        12:08:39 12:00:00-12:02:00 on_time 14
        12:09:00 12:02:00-12:04:00 on_time 18
        12:09:10 12:04:00-12:06:00 on_time 4
        12:09:20 12:06:00-12:08:00 on_time 12
    """,
    "watermark-heuristic": """
        12:06:00 12:00:00-12:02:00 on_time 5
        12:07:30 12:02:00-12:04:00 on_time 18
        12:07:40 12:04:00-12:06:00 on_time 4
        12:08:19 dropped 9 expired
        12:09:30 12:06:00-12:08:00 on_time 12
    """,
    "early-on-time-late-perfect": """
        12:05:00 12:00:00-12:02:00 early 5
        12:06:00 12:02:00-12:04:00 early 7
        12:07:00 12:02:00-12:04:00 early 10
        12:07:00 12:04:00-12:06:00 early 4
        12:08:00 12:02:00-12:04:00 early 18
        12:08:00 12:06:00-12:08:00 early 3
        12:08:39 12:00:00-12:02:00 on_time 14
        12:09:00 12:02:00-12:04:00 on_time 18
        12:09:00 12:06:00-12:08:00 early 11
        12:09:10 12:04:00-12:06:00 on_time 4
        12:09:20 12:06:00-12:08:00 on_time 12
    """,
    "early-on-time-late-heuristic": """
        12:05:00 12:00:00-12:02:00 early 5
        12:06:00 12:00:00-12:02:00 on_time 5
        12:06:00 12:02:00-12:04:00 early 7
        12:07:00 12:02:00-12:04:00 early 10
        12:07:00 12:04:00-12:06:00 early 4
        12:07:30 12:02:00-12:04:00 on_time 18
        12:07:40 12:04:00-12:06:00 on_time 4
        12:08:00 12:06:00-12:08:00 early 3
        12:08:19 12:00:00-12:02:00 late 14
        12:09:00 12:06:00-12:08:00 early 11
        12:09:30 12:06:00-12:08:00 on_time 12
    """,
    "allowed-lateness": """
        12:05:00 12:00:00-12:02:00 early 5
        12:06:00 12:00:00-12:02:00 on_time 5
        12:06:00 12:02:00-12:04:00 early 7
        12:06:39 12:00:00-12:02:00 late 11
        12:07:00 12:02:00-12:04:00 early 10
        12:07:00 12:04:00-12:06:00 early 4
        12:07:30 12:02:00-12:04:00 on_time 18
        12:07:40 12:04:00-12:06:00 on_time 4
        12:08:00 12:06:00-12:08:00 early 3
        12:08:19 dropped 9 expired
        12:09:00 12:06:00-12:08:00 early 11
        12:09:30 12:06:00-12:08:00 on_time 12
    """,
    "discarding": """
        12:05:00 12:00:00-12:02:00 early 5
        12:06:00 12:02:00-12:04:00 early 7
        12:07:00 12:02:00-12:04:00 early 3
        12:07:00 12:04:00-12:06:00 early 4
        12:07:30 12:02:00-12:04:00 on_time 8
        12:08:00 12:06:00-12:08:00 early 3
        12:08:19 12:00:00-12:02:00 late 9
        12:09:00 12:06:00-12:08:00 early 8
        12:09:30 12:06:00-12:08:00 on_time 1
    """,
    "accumulating-and-retracting": """
        12:05:00 12:00:00-12:02:00 early 5 12:06:00
        12:06:00 12:00:00-12:02:00 on_time 5 12:08:19
        12:06:00 12:02:00-12:04:00 early 7 12:07:00
        12:07:00 12:02:00-12:04:00 early 10 12:07:30
        12:07:00 12:04:00-12:06:00 early 4 12:07:40
        12:07:30 12:02:00-12:04:00 on_time 18
        12:07:40 12:04:00-12:06:00 on_time 4
        12:08:00 12:06:00-12:08:00 early 3 12:09:00
        12:08:19 12:00:00-12:02:00 late 14
        12:09:00 12:06:00-12:08:00 early 11 12:09:30
        12:09:30 12:06:00-12:08:00 on_time 12
    """,
    "sessions": """
        12:09:10 12:00:26-12:05:19 on_time 36
        12:10:00 12:06:39-12:08:46 on_time 12
    """,
    "sessions-with-retractions": """
        12:05:00 12:00:26-12:01:26 early 5 12:06:00
        12:06:00 12:00:26-12:01:26 on_time 5 12:08:19
        12:06:00 12:02:24-12:03:24 early 7 12:07:06
        12:07:00 12:03:39-12:05:19 early 7 12:07:06
        12:07:40 12:02:24-12:05:19 on_time 22 12:08:19
        12:08:00 12:06:39-12:07:39 early 3 12:08:39
        12:08:19 12:00:26-12:05:19 late 36
        12:09:00 12:06:39-12:08:26 early 11 12:09:00
        12:10:00 12:06:39-12:08:46 on_time 12
    """,
}
ALL_COUNTED = [name for name in SHOWN if name not in ("watermark-heuristic", "allowed-lateness")]


@pytest.fixture(scope="module")
def gallery(root):
    return runpy.run_path(str(root / "examples" / "gallery.py"))


@pytest.fixture(scope="module")
def picture_of(gallery):
    return lambda name: bm.plot.timeline(gallery["FIGURES"][name].pipeline, gallery["FIGURES"][name].script).picture


def lines_of(picture):
    (panel,) = picture.panels
    for box in panel.boxes:
        bounded = box.pane.window.start is not None
        window = f"{clock_label(box.start_us)}-{clock_label(box.end_us)}" if bounded else "all"
        gone = "" if box.retracted_at is None else f" {clock_label(box.retracted_at)}"
        yield f"{clock_label(box.time)} {window} {box.timing.lower()} {box.label}{gone}"
    for point in panel.points:
        if point.dropped:
            yield f"{clock_label(point.time)} dropped {point.label} {point.dropped}"


def test_every_figure_is_checked(gallery):
    assert list(gallery["FIGURES"]) == list(SHOWN)


@pytest.mark.parametrize("name", SHOWN)
def test_a_figure_shows_the_panes_that_must_come(picture_of, name):
    assert sorted(lines_of(picture_of(name))) == [line.strip() for line in SHOWN[name].strip().splitlines()]


def windows_of(gallery, *, sessions):
    """Sums by window, in plain Python, of plays in the order of their event times."""
    plays = sorted((gallery["at"](time), score) for score, time, _ in gallery["PLAYS"])
    found: dict[datetime, int] = {}
    start = last = datetime(1, 1, 1, tzinfo=UTC)
    for time, score in plays:
        if sessions:
            start = start if time < last + timedelta(minutes=1) else time
            last = time
        else:
            start = time.replace(minute=time.minute - time.minute % 2, second=0)
        found[start] = found.get(start, 0) + score
    return found


@pytest.mark.parametrize("name", ALL_COUNTED)
def test_the_final_total_equals_all_plays(gallery, picture_of, name):
    (panel,) = picture_of(name).panels
    last: dict[datetime | None, int] = {}
    for box in panel.boxes:
        if box.retracted_at is None:
            start, total = box.pane.window.start, box.pane.values["total"]
            last[start] = total + (last.get(start, 0) if name == "discarding" else 0)
    if name == "classic-batch":
        assert last == {None: sum(score for score, *_ in gallery["PLAYS"])}
    else:
        assert last == windows_of(gallery, sessions="sessions" in name)


def test_each_row_is_at_its_event_and_processing_time(gallery, picture_of):
    (panel,) = picture_of("per-record").panels
    shown = [(int(point.label), clock_label(point.event_us), clock_label(point.time)) for point in panel.points]
    assert shown == gallery["PLAYS"]


@pytest.mark.parametrize(("name", "moves"), [("watermark-perfect", "PERFECT"), ("watermark-heuristic", "HEURISTIC")])
def test_the_watermark_is_drawn_as_it_moved(gallery, picture_of, name, moves):
    (panel,) = picture_of(name).panels
    assert {clock_label(time): clock_label(us) for time, us in panel.watermarks[0].steps} == gallery[moves]


def test_the_page_has_all_figures_and_needs_no_network(gallery, monkeypatch):
    some = dict(list(gallery["FIGURES"].items())[-2:])
    monkeypatch.setitem(gallery["page"].__globals__, "FIGURES", some)
    page = gallery["page"]()
    assert page.count('<figure class="beamish"') == 2
    assert page.count("<script>") == 1
    assert "http" not in page.replace("http://www.w3.org", "")
