"""Refusals: right pipelines and scripts that bad input is made of, and the messages that each folder's refused.txt holds."""

import os
import re
from functools import cache
from pathlib import Path

import pytest

import beamish as bm
from beamish.accumulations import Count
from beamish.testing import TestStream
from beamish.triggers import AfterWatermark, Always

CHANGE = {"ts": 1, "cur": "EUR", "rate": 1, "gone": False, "tags": ["a"]}
ONE_CHANGE = TestStream().add([CHANGE])
START = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness("30 seconds"))
PLAIN = START.key_by("team").window(bm.FixedWindows("1 minute")).accumulate(plays=Count())
ROW = {"ts": 1, "team": "red", "score": 3, "name": "ann", "tags": ["a"]}
ONE_ROW = TestStream().add([ROW])
MEETING = bm.merge(a=START.key_by("k"), b=START.key_by("k"))
CHANGES = START.key_by("cur")
RATES = CHANGES.versions("1 day")
ORDERS = bm.Pipeline().event_time("at", bm.BoundedOutOfOrderness(0))
ONE_ORDER = TestStream().add([CHANGE], input="rates")
PLAIN_STAGE = bm.Pipeline().window(bm.GlobalWindow()).accumulate(n=Count())
RETRACTING = PLAIN.trigger(AfterWatermark(late=Always())).allowed_lateness(5).accumulating_and_retracting()
TIMELESS = PLAIN.window(bm.GlobalWindow()).trigger(Always()).accumulating()
COUNTED = bm.Pipeline().key_by("team").window(bm.CountWindows(3)).accumulate(n=Count())


def joined(orders=ORDERS, rates=RATES, **options):
    return bm.as_of_join(orders=orders, rates=rates, **options)


def join_of(**order):
    return joined().run(ONE_ORDER.add([{"at": 1, "cur": "EUR", **order}], input="orders"))


_TABLE = "refused.txt"
_HEAD = "=== "
_SOME = "[...]"
"""In a recorded message: text that differs between versions of Python, Arrow or pandas."""
_ADDRESS = re.compile(r"0x[0-9a-f]{6,}")


def refused(file, name, call):
    """Check that a call is refused with the message of its name in ``refused.txt``, beside the test's file.

    ``BEAMISH_RECORD=1 pytest -n 0 tests/<folder>`` writes the messages of a folder again.
    """
    with pytest.raises(bm.BeamishError) as caught:
        call()
    said = _ADDRESS.sub("0x...", f"{type(caught.value).__name__}: {caught.value}")
    path = Path(file).with_name(_TABLE)
    known = messages(path)
    if _agree(known.get(name, ""), said):
        return
    if not os.environ.get("BEAMISH_RECORD"):
        assert said == known.get(name), (
            f"{name}: not as in {path}; BEAMISH_RECORD=1 pytest -n 0 {path.parent} records it"
        )
    known[name] = said
    path.write_text("".join(f"{_HEAD}{one}\n{text}\n" for one, text in known.items()), "utf-8")
    messages.cache_clear()


def _agree(recorded, said):
    return re.fullmatch(".*".join(map(re.escape, recorded.split(_SOME))), said, re.DOTALL) is not None


@cache
def messages(path):
    """The recorded refusals, by name: class and message."""
    parts = path.read_text("utf-8").removeprefix(_HEAD).split(f"\n{_HEAD}") if path.exists() else []
    return {name: text.rstrip("\n") for name, _, text in (part.partition("\n") for part in parts)}


def raises_with(error, call, fragments):
    """Check that a call raises an error whose message has these parts."""
    with pytest.raises(error) as caught:
        call()
    message = str(caught.value)
    for fragment in fragments:
        assert fragment in message, f"{fragment!r} is not in: {message}"


def cases(table):
    """The names of a table of refusals as cases of a test."""
    return pytest.mark.parametrize("name", table)
