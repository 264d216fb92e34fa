"""The pictures of the lessons, wide and as on a phone: nothing is hidden, and what a lesson is about is in its picture."""

import contextlib
import io
import runpy
import sys
from itertools import combinations
from pathlib import Path

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.patches import Rectangle

from beamish.plot import timeline
from beamish.plot.colors import LIGHT
from beamish.plot.drawing import draw
from beamish.plot.marks import LEAST_HEIGHT
from beamish.testing import TestStream
from tests.plot.scenes import SCORES, play

LESSONS = sorted((Path(__file__).parents[2] / "examples" / "lessons").glob("0[1-8]_*.py"))


@pytest.fixture(scope="module")
def pictures():
    """The picture of each lesson, by its number."""
    found = {}
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()):
        for path in LESSONS:
            patch.setattr(sys, "argv", [str(path)])
            found[int(path.name[:2])] = runpy.run_path(str(path))["picture"].picture
    return found


@pytest.fixture(scope="module")
def drawn(pictures):
    """Each drawing, by the number of the lesson and the width."""
    return {(number, width): draw(pictures[number], LIGHT, width=width) for number in pictures for width in (720, 360)}


def extents(drawing, *kinds):
    """The extent of each mark of these kinds, per panel, in pixels."""
    renderer = FigureCanvasAgg(drawing.canvas).get_renderer()
    return [
        {
            artist.get_gid(): artist.get_window_extent(renderer)
            for artist in axes.get_children()
            if artist.get_gid() and drawing.marks[artist.get_gid()].kind in kinds
        }
        for axes in drawing.canvas.axes
    ]


def test_no_label_covers_a_row_or_another_label(drawn):
    for which, drawing in drawn.items():
        for labels, rows in zip(
            extents(drawing, "value", "so-far", "reason"), extents(drawing, "row", "dropped"), strict=True
        ):
            for label, one in labels.items():
                covered = [row for row, extent in rows.items() if shared(one, extent) > 0.15]
                assert not covered, (which, drawing.marks[label].words, covered)
            assert all(shared(one, other) < 0.2 for one, other in combinations(labels.values(), 2)), which


def shared(one, other):
    """The part of the smaller one that they share."""
    width, height = min(one.x1, other.x1) - max(one.x0, other.x0), min(one.y1, other.y1) - max(one.y0, other.y0)
    return max(width, 0) * max(height, 0) / min(one.width * one.height, other.width * other.height)


def test_each_pane_has_a_box_of_a_least_height_and_a_label(drawn):
    flat = set()
    for (number, _), drawing in drawn.items():
        boxes = {name: extent for of in extents(drawing, "pane") for name, extent in of.items()}
        assert all(extent.height >= LEAST_HEIGHT - 0.1 for extent in boxes.values())
        flat |= {number for name in boxes if f"{name}-ground" in drawing.marks}
        assert len([mark for mark in drawing.marks.values() if mark.kind == "value"]) == len(boxes)
    assert flat == {3, 5, 6, 7}


def test_panes_of_one_window_and_time_are_stacked():
    script = TestStream().step([play(10, "red", 5)], clock=20).step(watermark=130, clock=140)
    for score in (1, 2):
        script = script.step([play(30, "red", score)], clock=140)
    drawing = draw(timeline(SCORES, script.step(clock=400)).picture, LIGHT)
    (boxes,) = extents(drawing, "pane")
    on_time, late, later = boxes.values()
    assert on_time.height > 40
    assert on_time.y1 == pytest.approx(later.y1)
    assert later.y0 == pytest.approx(late.y1)
    assert late.height == pytest.approx(later.height) == pytest.approx(LEAST_HEIGHT)


def test_the_windows_that_wait_for_ever_are_in_the_picture(pictures, drawn):
    (panel,) = pictures[2].panels
    assert [(f"{window.since / 60e6 % 1440:.0f}", window.label) for window in panel.open_windows] == [
        ("726", "6"), ("728", "7")
    ]  # fmt: skip
    for width in (720, 360):
        ((first, last),) = [of.values() for of in extents(drawn[2, width], "open")]
        top = drawn[2, width].panels[0].top
        assert min(first.y1, last.y1) > top
        assert [drawn[2, width].marks[name].words for of in extents(drawn[2, width], "so-far") for name in of] == [
            "open window [12:04:00, 12:06:00); a pane would have 6",
            "open window [12:06:00, 12:08:00); a pane would have 7",
        ]


def test_each_input_has_a_colour_of_its_own(pictures, drawn):
    assert pictures[8].inputs == ["plays", "payments"]
    drawing = drawn[8, 720]
    colors = {
        words: {artist.get_color() for artist in drawing.canvas.axes[0].get_children() if words in words_of(drawing, artist)}
        for words in ("of plays", "of payments")
    }  # fmt: skip
    assert colors == {"of plays": {LIGHT.input_1}, "of payments": {LIGHT.input_2}}
    legend = [text.get_text() for text in drawing.canvas.legends[0].get_texts()]
    assert [words for words in legend if " of " in words] == [
        "row of plays", "row of payments", "watermark of plays", "watermark of payments"
    ]  # fmt: skip
    assert "row" not in legend


def words_of(drawing, artist):
    mark = drawing.marks.get(artist.get_gid() or "")
    return "" if mark is None or isinstance(artist, Rectangle) else mark.words.partition(":")[0]
