"""Timestamps and timings of panes of windows that only a user's option makes.

See rules/panes.md#pane-timing, #pane-timestamps.
"""

import attrs
import pytest

import beamish as bm
from beamish.accumulations import Count
from beamish.testing import TestStream
from beamish.triggers import AfterWatermark, Always

SECOND = 1_000_000
ROWS = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).accumulate(n=Count())


@attrs.frozen
class Before(bm.WindowOption):
    """A row counts for the ten seconds that ended ten seconds before it."""

    def assign(self, timestamp_us):
        yield timestamp_us - 20 * SECOND, timestamp_us - 10 * SECOND


@attrs.frozen
class Absorbed(bm.WindowOption):
    """Windows of ten seconds, which a row at a full hundred takes into the first of them."""

    merging = True

    def assign(self, timestamp_us):
        start = timestamp_us // (10 * SECOND) * 10 * SECOND
        yield start, start + 10 * SECOND

    def merge(self, windows):
        if windows[-1][0] >= 100 * SECOND:
            yield windows, windows[0]


def panes(pipeline, script):
    return [(pane.timing, pane.index, pane.on_time_index, pane.values["n"]) for pane in pipeline.run(script)]


@pytest.mark.parametrize("combiner", [bm.TimestampCombiner.EARLIEST, bm.TimestampCombiner.LATEST])
def test_a_timestamp_is_never_beyond_the_windows_last_microsecond(combiner):
    pipeline = ROWS.window(Before()).timestamp_combiner(combiner)
    (pane,) = pipeline.run(TestStream().add([{"ts": 50}]).advance_watermark_to_infinity())
    assert pane.timestamp == pane.window.end - (pane.window.end.resolution)


def test_a_pane_after_one_on_time_is_late_though_a_merged_windows_row_came_before_the_end():
    pipeline = ROWS.window(Absorbed()).trigger(AfterWatermark(late=Always())).allowed_lateness(1000).discarding()
    script = TestStream().add([{"ts": 1}, {"ts": 21}]).advance_watermark_to(10).add([{"ts": 100}])
    assert panes(pipeline, script) == [("ON_TIME", 0, 0, 1), ("LATE", 1, 1, 2)]
