"""Figures as files: what is in them, and what they need."""

import re
import subprocess
import sys
from collections import Counter
from itertools import combinations
from xml.etree import ElementTree as ET

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

import beamish as bm
from beamish.accumulations import Count, Last, Max, Mean, Min, Sum
from beamish.errors import OptionError
from beamish.plot import timeline
from beamish.plot.colors import DARK, LIGHT
from beamish.plot.drawing import draw
from beamish.testing import TestStream
from beamish.triggers import AfterCount, AfterWatermark
from tests.pages import run_page
from tests.plot.scenes import CHAIN, CHAINED, CLOCK, MERGING, SCORES, SESSIONS, SOURCE, STEPS

pytestmark = pytest.mark.dear

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def figure():
    return timeline(SCORES, CLOCK, title="Scores & <teams>")


@pytest.fixture(scope="module")
def page(figure):
    return figure.html()


def marks(svg, kind):
    return [group for group in svg.iter(f"{SVG}g") if group.get("data-kind") == kind]


def drawings(page):
    return [ET.fromstring(found) for found in re.findall(r"<svg .*?</svg>", page, re.DOTALL)]


@pytest.mark.parametrize(
    ("suffix", "begins"), [(".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF"), (".html", b"<!DOCTYPE html>")]
)
def test_the_suffix_determines_the_format(figure, tmp_path, suffix, begins):
    assert figure.save(tmp_path / f"x{suffix}").read_bytes().startswith(begins)


def test_the_same_picture_gives_the_same_bytes(figure, tmp_path):
    again = timeline(SCORES, CLOCK, title="Scores & <teams>")
    for name in ("x.svg", "x.html"):
        assert figure.save(tmp_path / name).read_bytes() == again.save(tmp_path / f"again{name}").read_bytes()


def test_a_dark_picture_has_the_dark_colours(figure, tmp_path):
    light, dark = (figure.save(tmp_path / f"{dark}.svg", dark=dark).read_text() for dark in (False, True))
    assert DARK.ground in dark
    assert not any(color in dark for color in LIGHT.named.values())
    assert not any(color in light for color in DARK.named.values())


def test_both_drawings_of_a_page_have_all_panes_and_rows(figure, page):
    panels = figure.picture.panels
    wide, narrow = drawings(page)
    assert (wide.get("class"), narrow.get("class")) == ("wide", "narrow")
    for drawing in (wide, narrow):
        assert [(one.get("data-timing"), one.get("data-label")) for one in marks(drawing, "pane")] == [
            (box.timing.value, box.label) for panel in panels for box in panel.boxes
        ]
        assert [float(one.get("data-since")) for one in marks(drawing, "pane")] == [
            box.time for panel in panels for box in panel.boxes
        ]
        assert len(marks(drawing, "strike")) == sum(
            box.retracted_at is not None for panel in panels for box in panel.boxes
        )
        assert [one.get("data-reason") for one in marks(drawing, "dropped")] == ["expired"]
        assert len(marks(drawing, "row")) == sum(point.dropped is None for panel in panels for point in panel.points)


def test_a_page_fetches_nothing_and_is_small(page):
    assert not re.findall(r"(?:src|href)=\"(?!#)", page)
    assert not re.findall(r"url\((?!#)", page)
    assert "import(" not in page
    assert "fetch(" not in page
    assert len(page) < 200_000


def test_titles_are_escaped(page):
    assert "<teams>" not in page
    assert "Scores &amp; &lt;teams&gt;" in page


def test_any_text_can_be_shown(tmp_path):
    words = ["$a$ & $", "<b>", "\x00\n\t", "\N{HIRAGANA LETTER A}", "\"'"]
    latest = SOURCE.key_by("$k").window(bm.FixedWindows(1)).accumulate(**{"$v": Last("word")})
    script = TestStream().add([{"ts": i, "$k": word, "word": word} for i, word in enumerate(words)])
    figure = timeline(latest, script.advance_watermark_to(9), title="\x01 $t$ <")
    page = figure.html()
    wide, _ = drawings(page)
    assert [one.get("data-label") for one in marks(wide, "pane")] == [
        "$a$ & $", "<b>", "\N{MIDDLE DOT}" * 3, "\N{HIRAGANA LETTER A}", '"\''
    ]  # fmt: skip
    texts = {"".join(text.itertext()) for text in wide.iter(f"{SVG}text")}
    assert {"$k = $a$ & $", "\N{MIDDLE DOT} $t$ <", "<b>"} <= texts
    assert "<b>" not in page


def test_parts_of_a_page_include_no_library(figure):
    part = figure.html(library=False)
    assert "<script" not in part
    assert "<style>" not in part
    assert "<script>" in bm.plot.library()
    assert figure._repr_html_() == f'<div class="beamish-colors">{bm.plot.library()}{part}</div>'


def test_two_figures_on_a_page_share_no_id(figure):
    ids = re.findall(r' id="([^"]+)"', figure.html(library=False) + timeline(SESSIONS, MERGING).html(library=False))
    assert len(ids) == len(set(ids))


LATE_AT_ONCE = (
    SOURCE.window(bm.FixedWindows(120))
    .allowed_lateness(300)
    .accumulating_and_retracting()
    .accumulate(word=Last("word"))
)
AT_THE_END = (
    TestStream()
    .step([{"ts": 60, "word": "[u]"}], clock=60)
    .step([{"ts": 60, "word": "[A]"}], watermark=120, clock=300)  # on time and late: the second box has no height
    .step([{"ts": 1200, "word": "[x]"}], clock=1260)
)


@pytest.mark.parametrize("width", [720, 360])
@pytest.mark.parametrize(
    ("pipeline", "script"),
    [(SCORES, CLOCK), (SCORES, STEPS), (CHAIN, CHAINED), (SESSIONS, MERGING), (LATE_AT_ONCE, AT_THE_END)],
)
def test_labels_and_rows_do_not_overlap(pipeline, script, width):
    drawn = draw(timeline(pipeline, script).picture, LIGHT, width=width)
    renderer = drawn.canvas.canvas.get_renderer()
    for axes in drawn.canvas.axes:
        inside = axes.get_window_extent().padded(8)
        extents = [(text.get_text(), text.get_window_extent(renderer)) for text in axes.texts]
        assert extents
        for number, (words, one) in enumerate(extents):
            assert inside.containsx(one.x0), words
            assert inside.containsx(one.x1), words
            assert not [other for other, extent in extents[:number] if one.overlaps(extent)], words


def test_many_rows_are_dots_and_retracted_values_are_labelled_if_they_fit():
    rows = [[{"ts": time, "team": "red", "score": 1}] for time in range(100)]
    script = TestStream()
    for time, row in enumerate(rows):
        script = script.step(row, clock=time)
    drawn = draw(timeline(SCORES, script).picture, LIGHT)
    kinds = Counter(mark.kind for mark in drawn.marks.values())
    assert (kinds["row"], kinds["pane"]) == (100, 50)
    assert 1 <= kinds["value"] < 50
    assert len(drawn.canvas.axes[0].texts) == kinds["value"]


def labels(drawn):
    """Each label of a pane with what it takes, and the boxes, in pixels: by their names in ``drawn.marks``."""
    renderer = FigureCanvasAgg(drawn.canvas).get_renderer()
    (axes,) = drawn.canvas.axes
    texts = {text.get_gid(): text for text in axes.texts if text.get_gid() in drawn.marks}
    return {name: (text.get_text(), text.get_window_extent(renderer)) for name, text in texts.items()}


def shared(one, other):
    width, height = min(one.x1, other.x1) - max(one.x0, other.x0), min(one.y1, other.y1) - max(one.y0, other.y0)
    return max(width, 0) * max(height, 0) / min(one.width * one.height, other.width * other.height)


def of_values(values, windows):
    """Two early panes, an on-time one and some late ones in each window, with this many values."""
    all_ = [Sum("score"), Count(), Max("score"), Min("score"), Mean("score"), Sum("ts")]
    pipeline = (
        bm.Pipeline()
        .event_time("ts", bm.BoundedOutOfOrderness(0))
        .window(bm.FixedWindows(120))
        .trigger(AfterWatermark(early=AfterCount(1), late=AfterCount(1)))
        .allowed_lateness(600)
        .accumulating_and_retracting()
        .accumulate(**{f"value_{i}": one for i, one in enumerate(all_[:values])})
    )
    script = TestStream()
    for window in range(windows):
        for at in (20, 90):
            script = script.step([{"ts": 120 * window + at, "score": at}], clock=120 * window + at + 40)
        script = script.step(watermark=120 * window + 1, clock=120 * window + 150)
    return timeline(pipeline, script).picture


@pytest.mark.dear
@pytest.mark.parametrize(("values", "windows"), [(1, 2), (3, 2), (6, 2), (3, 170)])
def test_labels_do_not_overlap_and_the_rest_is_in_tooltips(values, windows):
    picture = of_values(values, windows)
    drawn = draw(picture, LIGHT)
    found = labels(drawn)
    assert len(picture.panels[0].boxes) == windows * 3 - 1
    assert all(shared(one, other) < 0.2 for (_, one), (_, other) in combinations(found.values(), 2))
    if windows == 2:
        assert len([name for name in found if drawn.marks[name].kind == "value"]) == 5
    for name, (label, _) in found.items():
        if drawn.marks[name].kind == "value":
            *whole, last = label.split("\n")
            shown = [*whole, last.removesuffix(" …")]
            assert drawn.marks[name].words.startswith(", ".join(shown))  # each is whole, with its number
            assert last.endswith(" …") == (len(shown) < values)
    assert all(mark.words.count("value_") in (values, 0) for mark in drawn.marks.values() if mark.kind == "pane")


def test_rows_so_close_that_a_label_would_cover_another_are_dots():
    pipeline = (
        bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).window(bm.FixedWindows(60)).accumulate(n=Sum("x"))
    )
    script = TestStream().add([{"ts": at, "x": 500} for at in (0, 1, 58, 60.5, 61)]).advance_watermark_to_infinity()
    drawn = draw(timeline(pipeline, script).picture, LIGHT)
    shown = [extent for name, (_, extent) in labels(drawn).items() if drawn.marks[name].kind == "row"]
    assert 2 <= len(shown) < 5
    assert all(shared(one, other) < 0.1 for one, other in combinations(shown, 2))
    assert len([mark for mark in drawn.marks.values() if mark.kind == "row"]) == 5


def test_in_a_crowded_panel_the_last_pane_has_one_line():
    pipeline = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).window(bm.FixedWindows(60))
    script = TestStream()
    for at in range(0, 120 * 60, 60):
        script = script.step([{"ts": at, "x": 5}], watermark=at, clock=at)
    script = script.advance_watermark_to_infinity()
    figure = timeline(pipeline.accumulate(a=Sum("x"), b=Count(), c=Max("x")), script)
    drawn = draw(figure.picture, LIGHT)
    assert [text for name, (text, _) in labels(drawn).items() if drawn.marks[name].kind == "value"] == ["a 5 …"]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda figure: figure.save("x.gif"), ["'x.gif'", ".html", ".pdf"]),
        (lambda figure: figure.save("x.png", width=100), ["width=100", "at least 300"]),
    ],
)
def test_invalid_saves_are_rejected(figure, call, words):
    with pytest.raises(OptionError) as caught:
        call(figure)
    for word in words:
        assert word in str(caught.value)


def test_the_docs_page_prints_its_output(root, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run_page("pictures.md", (root / "docs" / "pictures.md").read_text()) == 2
    assert {path.name for path in tmp_path.iterdir()} == {"scores.html", "scores.png", "scores.svg"}


def test_beamish_loads_no_plotting_package_and_names_the_missing_one():
    program = """
import sys
import beamish as bm
from beamish.accumulations import Last
from beamish.accumulations import Count
from beamish.testing import TestStream
assert not {"matplotlib", "plotly"} & set(sys.modules)
counts = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).window(bm.FixedWindows(1)).accumulate(n=Count())
figure = bm.plot.timeline(counts, TestStream().add([{"ts": 1}]).advance_watermark_to(2))
assert not {"matplotlib", "plotly"} & set(sys.modules)
sys.modules["matplotlib"] = None
for call in (lambda: figure.save("x.png"), figure.html, figure._repr_html_, bm.plot.library):
    try:
        call()
    except bm.OptionError as error:
        print(error)
"""
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert said.count("pip install matplotlib (the extra 'plot')") == 4
