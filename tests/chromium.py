"""Headless Chromium for tests of pages: Debian's ``chromium`` and ``chromium-driver``, driven by selenium."""

from __future__ import annotations

import os
import shutil
import time

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DRIVER = shutil.which("chromedriver")


def started():
    """A driver; without one the test is skipped."""
    if not (CHROMIUM and DRIVER):
        pytest.skip("no Chromium with its driver: apt-get install chromium chromium-driver")
    webdriver = pytest.importorskip("selenium.webdriver")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ("--headless=new", "--hide-scrollbars", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")  # Chromium refuses root its sandbox
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))


def shown_as(browser, *, width=900, height=760, dark=False, calm=False):
    """Set the size of the screen and what its reader prefers."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1 if width > 500 else 2, "mobile": width < 500}
    media = {
        "prefers-color-scheme": "dark" if dark else "light",
        "prefers-reduced-motion": "reduce" if calm else "no-preference",
    }
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": name, "value": value} for name, value in media.items()]}
    )


def until(condition, seconds=20):
    """Wait for a condition."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)
