"""Timelines in a real browser, headless: played, stopped at three moments, read from the page and compared with the panes.

The screenshots stay in build/pictures, for whoever wants to see them.
"""

from __future__ import annotations

import runpy
from contextlib import contextmanager

import pytest

import beamish as bm
from beamish.plot.marks import LEAST_HEIGHT
from tests.chromium import shown_as, started, until

pytestmark = pytest.mark.browser

READ = """
const seen = (element) => element.getClientRects().length > 0 && getComputedStyle(element).display !== "none";
const svg = [...document.querySelectorAll(".beamish > svg")].find(seen);
return [...svg.querySelectorAll("[data-kind]")].filter(seen).map((group) => {
  const box = (group.querySelector("path, use, text") ?? group).getBoundingClientRect();
  return {...group.dataset, grows: group.classList.contains("grows"), gone: group.classList.contains("gone"),
    text: group.querySelector("text")?.textContent ?? "", left: box.left, right: box.right, top: box.top, bottom: box.bottom};
});
"""
COVERED = """
const svg = [...document.querySelectorAll(".beamish > svg")].find((svg) => svg.getClientRects().length);
const {top} = svg.getBoundingClientRect(), line = svg.querySelector(".now"), past = svg.querySelector("clipPath[id^=past] rect");
return [top + Number(line.getAttribute("y1")), top + Number(past.getAttribute("y"))];
"""
SLIDE = """
const slider = document.querySelector(".beamish input"), figure = document.querySelector(".beamish");
const svg = figure.querySelector(":scope > svg");
const first = JSON.parse(svg.dataset.times)[0], last = JSON.parse(svg.dataset.moments).at(-1);
slider.value = 1000 * (arguments[0] - first) / (last - first);
slider.dispatchEvent(new Event("input"));
return Number(figure.dataset.time);
"""


@pytest.fixture(scope="module")
def pictures(root):
    folder = root / "build" / "pictures"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="module")
def figures(root):
    shown = runpy.run_path(str(root / "examples" / "gallery.py"))["FIGURES"]
    return {name: bm.plot.timeline(one.pipeline, one.script, title=one.title) for name, one in shown.items()}


@pytest.fixture(scope="module")
def browser():
    driver = started()
    yield driver
    driver.quit()


@contextmanager
def opened(browser, figure, tmp_path, *, width=900, dark=False, calm=False):
    """A figure's page, as a reader sees it."""
    shown_as(browser, width=width, dark=dark, calm=calm)
    browser.get(figure.save(tmp_path / "figure.html").as_uri())
    yield browser
    assert browser.get_log("browser") == []


def button(browser, label):
    return browser.find_element("css selector", f"button[aria-label='{label}']")


def at(browser):
    return float(browser.find_element("css selector", ".beamish").get_attribute("data-time"))


def read(browser, kind):
    return [mark for mark in browser.execute_script(READ) if mark["kind"] == kind]


def check_shows(browser, picture, now):
    """The page shows the rows and panes up to that moment."""
    (panel,) = picture.panels
    begun = [box for box in panel.boxes if box.since <= now]
    fired = [box for box in panel.boxes if box.time <= now]
    assert [(mark["label"], mark["timing"], mark["grows"], mark["gone"]) for mark in read(browser, "pane")] == [
        (box.label, box.timing.value, box.time > now, (box.retracted_at or now + 1) <= now) for box in begun
    ]
    assert sorted((float(mark["since"]), mark["text"], mark["gone"]) for mark in read(browser, "value")) == sorted(
        (box.time, box.label, (box.retracted_at or now + 1) <= now) for box in fired
    )
    struck = [box for box in fired if box.retracted_at is not None and box.retracted_at <= now]
    assert len(read(browser, "strike")) == len(struck)
    came = [point for point in panel.points if point.time <= now]
    assert [mark["text"] for mark in read(browser, "row")] == [point.label for point in came if not point.dropped]
    assert [mark["reason"] for mark in read(browser, "dropped")] == [
        str(point.dropped) for point in came if point.dropped
    ]


def check_places(browser, picture):
    """Rows and boxes are where their times say: two rows give the scale, all else must be on it."""
    (panel,) = picture.panels
    rows = [
        (point, mark)
        for point, mark in zip([p for p in panel.points if not p.dropped], read(browser, "row"), strict=True)
    ]

    def middle(mark):
        return (mark["left"] + mark["right"]) / 2, (mark["top"] + mark["bottom"]) / 2

    (low, low_mark), (high, high_mark) = min(rows, key=lambda row: row[0].time), max(rows, key=lambda row: row[0].time)
    (x0, y0), (x1, y1) = middle(low_mark), middle(high_mark)
    across = (x1 - x0) / (high.event_us - low.event_us)
    up = (y1 - y0) / (high.time - low.time)
    assert across > 0 > up
    for point, mark in rows:
        assert middle(mark) == pytest.approx(
            (x0 + (point.event_us - low.event_us) * across, y0 + (point.time - low.time) * up), abs=1.5
        )
    for box, mark in zip(panel.boxes, read(browser, "pane"), strict=True):
        expected = [x0 + (us - low.event_us) * across for us in (box.start_us, box.end_us)]
        top, bottom = (y0 + (moment - low.time) * up for moment in (box.time, box.since))
        expected += [top, max(bottom, top + LEAST_HEIGHT)]
        assert [mark[side] for side in ("left", "right", "top", "bottom")] == pytest.approx(expected, abs=2.5)
    return lambda time: y0 + (time - low.time) * up


@pytest.mark.parametrize("name", ["accumulating-and-retracting", "sessions-with-retractions", "allowed-lateness"])
@pytest.mark.parametrize(("width", "dark"), [(900, False), (390, True)])
def test_a_page_shows_the_state_at_three_moments(  # noqa: PLR0917 - fixtures
    browser, figures, pictures, tmp_path, name, width, dark
):
    figure = figures[name]
    first, last = figure.picture.time_span
    with opened(browser, figure, tmp_path, width=width, dark=dark) as page:
        shots = []
        for number, part in enumerate((0.35, 0.7, 1.0)):
            now = page.execute_script(SLIDE, first + part * (last - first))
            check_shows(page, figure.picture, now)
            shots.append(pictures / f"{name}-{width}-{number}.png")
            page.save_screenshot(str(shots[-1]))
        assert len({shot.read_bytes() for shot in shots}) == 3
        height_of = check_places(page, figure.picture)
        now = page.execute_script(SLIDE, (first + last) / 2)
        assert page.execute_script(COVERED) == pytest.approx([height_of(now)] * 2, abs=2)


def test_play_goes_from_the_beginning_to_the_end_and_can_be_paused(browser, figures, tmp_path):
    figure = figures["early-on-time-late-heuristic"]
    with opened(browser, figure, tmp_path) as page:
        last = at(page)
        assert last == figure.picture.moments[-1]
        page.execute_script("performance.now = ((real) => () => real() * 8)(performance.now.bind(performance))")
        page.execute_script(
            "window.requestAnimationFrame = (step) => setTimeout(() => step(performance.now()), 16);"
            "window.cancelAnimationFrame = clearTimeout"
        )  # eight times as fast
        button(page, "Play").click()
        until(lambda: figure.picture.moments[0] < at(page) < last)
        button(page, "Pause").click()
        now = at(page)
        check_shows(page, figure.picture, now)
        assert at(page) == now
        button(page, "Play").click()
        until(lambda: at(page) == last)
        check_shows(page, figure.picture, last)
        assert button(page, "Play").is_displayed()


def test_reduced_motion_shows_one_moment_after_the_other(browser, figures, tmp_path):
    figure = figures["watermark-heuristic"]
    with opened(browser, figure, tmp_path, calm=True) as page:
        button(page, "Play").click()
        until(lambda: at(page) in figure.picture.moments[1:4])


def test_day_and_night_follow_the_reader_and_can_be_switched(browser, figures, tmp_path):
    def ground():
        return browser.execute_script("return getComputedStyle(document.body).backgroundColor")

    for dark, colors in [
        (False, ["rgb(255, 255, 255)", "rgb(18, 22, 30)"]),
        (True, ["rgb(18, 22, 30)", "rgb(255, 255, 255)"]),
    ]:
        with opened(browser, figures["sessions"], tmp_path, dark=dark) as page:
            seen = [ground()]
            button(page, "Light or dark").click()
            assert [*seen, ground()] == colors


def test_a_phone_shows_everything_readable(browser, figures, tmp_path):
    with opened(browser, figures["early-on-time-late-heuristic"], tmp_path, width=390) as page:
        assert page.execute_script("return document.documentElement.scrollWidth") <= 390
        shown = page.execute_script(
            "return [...document.querySelectorAll('.beamish > svg')].map((svg) => svg.getBoundingClientRect().width)"
        )
        assert shown == [0, 360]
        texts = page.execute_script(
            "return [...document.querySelectorAll('.beamish svg.narrow text')].map((text) => [text.textContent,"
            " parseFloat(getComputedStyle(text).fontSize), text.getBoundingClientRect().left, text.getBoundingClientRect().right])"
        )
        assert all(size >= 9 and left >= 0 and right <= 390 for _, size, left, right in texts), texts
        assert all(
            element.size["height"] >= 32 for element in page.find_elements("css selector", ".bar > *:not(output)")
        )


def test_in_a_notebook_each_figure_has_a_clock_of_its_own_even_twice_the_same(browser, figures, tmp_path):
    shown = figures["sessions"]._repr_html_()
    cells = tmp_path / "notebook.html"
    cells.write_text(f"<!DOCTYPE html><html><body><div>{shown}</div><div>{shown}</div></body></html>")
    browser.get(cells.as_uri())
    browser.execute_script(SLIDE, figures["sessions"].picture.moments[3])
    bars, counts = browser.execute_script(
        "const figures = [...document.querySelectorAll('.beamish')];"
        "return [figures.map((figure) => figure.querySelectorAll('.bar').length),"
        " figures.map((figure) => figure.querySelectorAll('svg.wide [data-kind=row]:not(.ahead)').length)]"
    )
    assert bars == [1, 1]
    assert counts[0] < counts[1] == 9
    covers = "return [...document.querySelectorAll('svg.wide clipPath[id^=past]')].map((one) => one.id)"
    assert len(set(browser.execute_script(covers))) == 2
    assert browser.get_log("browser") == []
