"""The page in a real browser, headless: refreshed beside a query, by keyboard, wide and narrow, light and dark.

The screenshots stay in build/pictures/watch.
"""

from __future__ import annotations

import json
import shutil
import socket
import threading
from contextlib import contextmanager
from datetime import UTC, datetime

import pyarrow as pa
import pytest
import uvicorn

import beamish as bm
from beamish.accumulations import Count, Max
from beamish.dashboard.server import application
from beamish.dashboard.source import SparkSource
from beamish.dashboard.watched import Watched
from beamish.errors import StateError
from beamish.testing import TestStream
from tests.chromium import shown_as, started, until
from tests.dashboard.scenes import SCORES, SCRIPT, row
from tests.dashboard.scripted import ScriptSource, batch, sharded, stages_of

pytestmark = pytest.mark.browser

ORDERS = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(10)).key_by("team")
MERGED = (
    bm.merge(orders=ORDERS, payments=ORDERS)
    .window(bm.FixedWindows(60))
    .allowed_lateness(600)
    .accumulating()
    .accumulate(n=Count())
)
CHAINED = SCORES.accumulating_and_retracting().then(
    bm.Pipeline().key_by().window(bm.FixedWindows(600)).accumulate(rounds=Count())
)


@pytest.fixture(scope="module")
def pictures(root):
    folder = root / "build" / "pictures" / "watch"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="module")
def browser():
    driver = started()
    yield driver
    driver.quit()


@contextmanager
def served(browser, *sources, every=1.0):
    """The address of the page, while it is served; then the browser leaves it."""
    listening = socket.create_server(("127.0.0.1", 0))
    app = application([Watched(source, every) for source in sources])
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        browser.get("about:blank")
    finally:
        server.should_exit = True
        thread.join(10)
        listening.close()


@contextmanager
def at_time(browser, ms):
    """Pages that are opened see this time."""
    source = {"source": f"Date.now = () => {ms}"}
    added = browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", source)
    yield
    browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", added)


def words(browser, selector="#facts"):
    return browser.execute_script("return document.querySelector(arguments[0])?.textContent ?? ''", selector)


def check_quiet(browser):
    """Nothing was refused by the policy, and no script failed."""
    assert [one for one in browser.get_log("browser") if one["level"] == "SEVERE"] == []


def test_facts_follow_the_query_while_the_page_is_open(browser):
    source = ScriptSource.after(SCORES, SCRIPT)
    with served(browser, source) as address:
        shown_as(browser)
        browser.get(address)
        until(lambda: "blue" in words(browser, "#rows-1"))
        assert "Batch 2 is the last committed one" in words(browser)
        assert "ago" in words(browser, ".status")
        browser.find_element("css selector", "#shards-1 summary, #ends-1 summary").click()
        source.log, source.stages = [*source.log, batch(3)], stages_of(SCORES, SCRIPT.add([row("green", 75)]))
        until(lambda: "Batch 3 is the last committed one" in words(browser))
        until(lambda: "green" in words(browser, "#rows-1"))
        assert browser.execute_script("return document.querySelectorAll('#facts details[open]').length") == 1
        assert browser.title.startswith("batch 3")
        source.fails = StateError("checkpoint '/checkpoints/scores': it is gone")
        until(lambda: "it is gone" in words(browser))
        source.fails = None
        until(lambda: "it is gone" not in words(browser))
        source.log, source.stages = [*source.log, batch(4)], stages_of(CHAINED, SCRIPT)
        until(lambda: "Stage 2 of 2" in words(browser))
        until(lambda: words(browser, "#rows-2") != "")
        check_quiet(browser)


def test_the_page_beside_a_running_query_has_the_numbers_of_inspect(spark, tmp_path, files, browser):
    source = files(team=pa.string(), ts=pa.timestamp("us", "UTC"), score=pa.int64())

    def add(*rows):
        source.add(*({**one, "ts": datetime.fromtimestamp(1_700_000_000 + one["ts"], UTC)} for one in rows))

    def shown():
        found = bm.inspect(spark, checkpoint)
        (stage,) = found.stages().collect()
        text = words(browser)
        numbers = f"{stage.kept_windows:,} stored", f"{stage.bytes:,} bytes in", f"Batch {found.batch} is"
        return all(number in text for number in numbers)

    def start(rows):
        writer = rows.writeStream.format("noop").option("checkpointLocation", checkpoint)
        return writer.trigger(processingTime="1 second").start()

    add(row("red", 5), row("blue", 70))
    checkpoint = str(tmp_path / "checkpoint")
    query = start(SCORES.apply(source.stream(), shards=2))
    try:
        query.processAllAvailable()
        with served(browser, SparkSource(spark, checkpoint)) as address:
            shown_as(browser)
            browser.get(address)
            until(shown, 60)
            add(*(row(team, second * 10) for second in range(60) for team in ("red", "green")))
            query.processAllAvailable()
            until(lambda: "green" in words(browser, "#rows-1"), 60)
            query.stop()
            until(shown, 60)
            for pipeline in (SCORES, SCORES.accumulate(best=Max("score"))):  # restarted, then upgraded
                query = start(pipeline.apply(source.stream(), shards=2))
                add(row("red", 700))
                query.processAllAvailable()
                query.stop()
                until(shown, 60)
            assert "best" in words(browser)
            shutil.rmtree(checkpoint)
            until(lambda: "give the folder of the query" in words(browser), 60)
            query = start(source.stream())  # a query without beamish
            query.processAllAvailable()
            query.stop()
            until(lambda: "was not written by a beamish pipeline" in words(browser), 60)
            check_quiet(browser)
    finally:
        query.stop()


def test_a_page_whose_server_has_stopped_reports_that(browser):
    with served(browser, ScriptSource.after(SCORES, SCRIPT)) as address:
        shown_as(browser)
        browser.get(address)
        is_gone = "return !document.getElementById('gone').hidden"
        assert not browser.execute_script(is_gone)
        browser.execute_script("window.fetch = () => Promise.reject(new TypeError('Failed to fetch'))")
        until(lambda: browser.execute_script(is_gone))
        browser.get_log("browser")


def test_a_window_is_explained_by_keyboard_alone(browser):
    from selenium.webdriver.common.keys import Keys  # type: ignore[import-not-found, unused-ignore]

    with served(browser, ScriptSource.after(SCORES, SCRIPT)) as address:
        shown_as(browser)
        browser.get(address)
        until(lambda: "blue" in words(browser, "#rows-1"))
        active = "return document.activeElement"
        for _ in range(60):
            browser.switch_to.active_element.send_keys(Keys.TAB)
            if browser.execute_script(f"{active}.id.startsWith('row-1-')"):
                break
        browser.switch_to.active_element.send_keys(Keys.ENTER)
        until(lambda: "It waits for" in words(browser, "#why") or "is open" in words(browser, "#why"))
        assert browser.execute_script(f"{active}.textContent") == "Why"
        key = browser.find_element("css selector", "input[name=key0]")
        key.send_keys("blue", Keys.ENTER)
        until(lambda: "red" not in words(browser, "#rows-1"))
        browser.find_element("css selector", "button[formaction]").send_keys(Keys.ENTER)
        until(lambda: "of team='blue' is open" in words(browser, "#why"))
        check_quiet(browser)


def test_the_page_asks_no_other_host(browser):
    with served(browser, ScriptSource.after(SCORES, SCRIPT)) as address:
        browser.execute_cdp_cmd("Network.enable", {})
        shown_as(browser)
        browser.get(address)
        until(lambda: "blue" in words(browser, "#rows-1"))
        asked = json.loads(
            browser.execute_script(
                "return JSON.stringify(performance.getEntriesByType('resource').map((one) => one.name))"
            )
        )
        assert asked
        assert all(one.startswith(address) for one in asked)
        blocked = "const s = document.createElement('script'); s.textContent = 'window.ran = 1'; document.body.append(s); return window.ran"
        assert browser.execute_script(blocked) is None
        browser.get_log("browser")


def scenes():
    """Queries to look at: on time, one with an idle input, one with skew, a chain."""
    start, teams = 1_700_000_000, ["red", "blue", "green"]
    rows = [row(team, start + second * 7, second % 5) for second in range(85) for team in teams]
    on_time = TestStream().add(rows).advance_watermark_to(start + 510)
    idle = TestStream().add(rows, input="orders").add(rows[:12], input="payments").advance_watermark_to(start + 11)
    timely = [batch(number, start + number * 60 - 90, seconds=1 + number % 4) for number in range(11)]
    standing = [batch(number, start + 11 if number else None, seconds=1 + number % 5) for number in range(31)]
    shards = [
        TestStream()
        .add([row(f"team {shard}", start + second * 7) for second in range(700 if shard == 3 else 90)])
        .advance_watermark_to(start + 510)
        for shard in range(8)
    ]
    return {
        "on-time": ScriptSource(timely, stages_of(SCORES, on_time)),
        "idle": ScriptSource(standing, stages_of(MERGED, idle)),
        "skew": ScriptSource(timely, [sharded(SCORES, shards)]),
        "chain": ScriptSource(timely, stages_of(CHAINED, on_time)),
    }


@pytest.mark.parametrize("name", ["on-time", "idle", "skew", "chain"])
@pytest.mark.parametrize(("width", "dark"), [(1100, False), (1100, True), (390, False), (390, True)])
def test_the_page_fits_wide_and_narrow(browser, pictures, name, width, dark):
    scene = scenes()[name]
    with served(browser, scene) as address, at_time(browser, scene.log[-1].clock_us / 1000 + 12_000):
        shown_as(browser, width=width, height=900, dark=dark)
        browser.get(address)
        until(lambda: "team" in words(browser, "#explore"))
        until(lambda: "windows" in words(browser, "#rows-1"))
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        small = browser.execute_script(
            "return [...document.querySelectorAll('p, dd, dt, td, th, label, button')].filter((one) => one.getClientRects().length"
            " && parseFloat(getComputedStyle(one).fontSize) < 12).map((one) => one.textContent)"
        )
        assert small == []
        height = browser.execute_script("return document.documentElement.scrollHeight")
        shown_as(browser, width=width, height=min(height, 4000), dark=dark)
        browser.save_screenshot(str(pictures / f"{name}-{width}-{'dark' if dark else 'light'}.png"))
        ground = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
        assert ground == ("rgb(18, 22, 30)" if dark else "rgb(255, 255, 255)")
        assert "12 s ago" in words(browser, ".status")
        check_quiet(browser)
