"""Rows that are dropped for their event time, and how dropped rows are counted (rules/output.md#dropped-rows)."""

import attrs
import pyarrow as pa
import pytest

import beamish as bm
from beamish.accumulations import Count
from beamish.contract.stored import DictStore
from beamish.instants import EARLIEST_US, LATEST_US
from beamish.kernels.column_names import EVENT_TIME
from beamish.kinds.window.windowings import dropped_of_windowings
from beamish.testing import TestStream
from tests.agreement import differences
from tests.twin.run import run

SCHEMA = pa.schema([("k", pa.int64())])
ROWS = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).accumulate(n=Count())
FIRST_SECOND, AFTER_THE_LAST = -62_135_596_800, 253_402_300_800
WINDOWS = [
    bm.FixedWindows(10),
    bm.SlidingWindows(10, 5),
    bm.Sessions(10),
    bm.CalendarWindows(days=1),
    bm.GlobalWindow(),
]


def dropped(option, *times_us):
    """The drop counts of a shard for rows with these event times."""
    operator = ROWS.window(option).flow.bind({None: SCHEMA}, shards=1).operator
    rows = pa.table({"k": pa.array([1] * len(times_us)), EVENT_TIME: pa.array(times_us, pa.int64())})
    shard = operator.open(DictStore())
    panes = shard.step([None], None, [payload for _, payload in operator.pack(0, rows)])
    panes = pa.concat_tables([panes, shard.step([2**63 - 1], None, [])])
    return shard.dropped, panes["n"].to_pylist()


@pytest.mark.parametrize("option", WINDOWS, ids=repr)
def test_rows_outside_the_years_1_to_9999_are_dropped_and_listed_like_rows_without_event_time(option):
    pipeline = ROWS.key_by("k").window(option).with_dropped()
    times = [0, None, FIRST_SECOND - 1, AFTER_THE_LAST, -(2**62) // 10**6, 2**62 // 10**6, 5]
    script = TestStream().advance_watermark_to(FIRST_SECOND).add([{"ts": ts, "k": 1} for ts in times])
    panes = pipeline.run(script.advance_watermark_to_infinity())
    found = [(pane.values["ts"], pane.reason, pane.window, pane.late_by_us) for pane in panes if pane.reason]
    assert found == [
        (None, "null_event_time", None, None),
        *((ts, "event_time_out_of_range", None, None) for ts in times[2:6]),
    ]
    twins = run(pipeline, script.advance_watermark_to_infinity().events)
    assert not differences(panes, twins, pipeline)


@pytest.mark.parametrize("option", WINDOWS, ids=repr)
def test_rows_left_out_of_slices_are_counted_by_reason(option):
    far = [EARLIEST_US - 1, LATEST_US + 1, 2**63 - 1, -(2**63)]
    counted, panes = dropped(option, None, *far, None, 0)
    assert counted == {"null_event_time": 2, "event_time_out_of_range": 4}
    assert sum(panes) == (2 if isinstance(option, bm.SlidingWindows) else 1)
    assert dropped(option, *far) == ({"event_time_out_of_range": 4}, [])


def test_the_first_and_the_last_microsecond_of_the_years_are_in_range():
    assert dropped(bm.Sessions(10), EARLIEST_US, LATEST_US) == ({}, [1, 1])
    assert dropped(bm.Sessions(10), EARLIEST_US - 1, EARLIEST_US, None) == (
        {"null_event_time": 1, "event_time_out_of_range": 1},
        [1],
    )
    assert dropped(bm.Sessions(10), LATEST_US + 1, 2**63 - 1, -(2**63)) == ({"event_time_out_of_range": 3}, [])


@attrs.frozen
class UntilTheYear10100(bm.WindowOption):
    """A user's windows, which end where no event time can be."""

    def assign(self, timestamp_us):
        yield timestamp_us, LATEST_US + 100 * 365 * 86_400_000_000


def test_a_pane_out_of_range_is_dropped_only_by_a_stage_with_its_own_windows():
    first = ROWS.window(UntilTheYear10100())
    count = bm.Pipeline().accumulate(panes=Count())
    assert downstream(first, count) == ({}, [1])
    assert downstream(first, count.window(bm.Sessions(10))) == ({"event_time_out_of_range": 1}, [])


def downstream(first, second):
    """The drop counts of a later stage for the panes of one row, and the output."""
    flow = first.then(second).flow.bind({None: SCHEMA}, shards=1)
    before, operator = (one.operator for one in flow.flows)
    rows = pa.table({"k": pa.array([1]), EVENT_TIME: pa.array([0])})
    end = 2**63 - 1
    source = before.open(DictStore())
    source.step([None], None, [payload for _, payload in before.pack(0, rows)])
    panes = source.step([end], None, [])
    shard = operator.open(DictStore())
    out = shard.step([source.watermark_us], None, [payload for _, payload in operator.pack(0, panes)])
    return shard.dropped, out["panes"].to_pylist()


def test_a_row_is_counted_once_over_several_windowings_and_a_row_in_a_window_once_for_each():
    counts = [
        {"expired": 3, "null_event_time": 2},
        {"expired": 1, "null_event_time": 2, "event_time_out_of_range": 1, "window_finished": 1},
        {"null_event_time": 1},  # a windowing that came later
    ]
    assert dropped_of_windowings(counts) == {
        "expired": 4,
        "null_event_time": 2,
        "event_time_out_of_range": 1,
        "window_finished": 1,
    }
    assert dropped_of_windowings([]) == {}
