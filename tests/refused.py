"""Refusals: right pipelines and scripts that bad input is made of, and how a message is read."""

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


def refused(error, call, fragments):
    with pytest.raises(error) as caught:
        call()
    message = str(caught.value)
    for fragment in fragments:
        assert fragment in message, f"{fragment!r} is not in: {message}"


def cases(table, *names):
    """Rows of a table as cases of a test, each by its first cell."""
    return pytest.mark.parametrize(names, [row[1:] for row in table], ids=[row[0] for row in table])
