"""The clock of a query's machine is set while the query runs, by libfaketime of Debian's package faketime (rules/time.md#machine-clock)."""

import json
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from tests.servers.killing import ROOT
from tools.servers.server import install

pytestmark = pytest.mark.servers

HOUR, DAY = 3600, 86_400
A_DAY = r"(1 day, 0:00:\d\d|23:59:\d\d)"


def library():
    return next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)


@pytest.fixture
def run(tmp_path):
    """Run the query while the clock is set; gives what it printed."""
    if library() is None and (command := install("faketime")) and library() is None:
        pytest.skip(f"no libfaketime: {command}")
    faked = tmp_path / "faked"
    faked.write_text("+0")
    environment = {
        "LD_PRELOAD": str(library()),
        "FAKETIME_TIMESTAMP_FILE": str(faked),
        "FAKETIME_CACHE_DURATION": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "FAKETIME_FORCE_MONOTONIC_FIX": "0",  # with it waits of the JVM end at once
        "NO_FAKE_STAT": "1",
    }

    def run(*steps, watermark="lag"):
        told = {"folder": str(tmp_path), "faked": str(faked), "environment": environment}
        told |= {"steps": steps, "watermark": watermark}
        command = [sys.executable, "-m", "tests.servers.clocked_query", json.dumps(told)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
        return json.loads(done.stdout.rpartition("COUNTED ")[2]), done.stderr

    return run


def test_no_row_is_dropped_for_a_clock_that_is_a_day_ahead_for_a_moment(run):
    found, said = run((12, 0), (3, DAY), (25, 0))
    assert set().union(*found["panes"]) <= {"EARLY", "ON_TIME"}
    assert max(found["beats"]) <= found["last"]
    assert re.search(rf"{A_DAY} ahead of the query's", said)


def test_heartbeats_go_on_when_the_clock_was_set_back_also_after_a_restart(run):
    found, said = run((8, 0), (15, -DAY))
    assert re.search(rf"{A_DAY} behind the query's", said)
    again, said = run((15, -DAY))
    assert "behind the query's" in said
    assert again["beats"][: len(found["beats"])] == found["beats"]
    for beats in (found["beats"], again["beats"][len(found["beats"]) :]):
        assert all(later >= earlier for earlier, later in pairwise(beats))
        assert beats[-1] >= beats[0] + 5
    assert again["beats"][len(found["beats"])] >= found["beats"][-1]


@pytest.mark.parametrize(("watermark", "off"), [("lag", -HOUR), ("idle", -HOUR), ("idle", DAY)])
def test_windows_end_and_triggers_fire_after_the_clock_was_set(run, off, watermark):
    found, _ = run((12, 0), (20, off), watermark=watermark)
    before, after = found["panes"]
    assert set(before) | set(after) <= {"EARLY", "ON_TIME"}
    assert min(after["EARLY"], after["ON_TIME"]) >= 3
