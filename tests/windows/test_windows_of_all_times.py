"""Every event time of the years 1 to 9999 is in its windows, whatever the option and however long."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import attrs
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import beamish as bm
from beamish.durations import LONGEST_US, Duration
from beamish.instants import EARLIEST_US, END_OF_TIME_US, EPOCH, LATEST_US, instant, instant_us
from beamish.windows.option import WindowOption
from tests.strategies.windows import calendar_windows, cumulative_windows, fixed_windows, sessions, sliding_windows

durations = st.integers(1, LONGEST_US).map(Duration)
offsets = st.integers(-LONGEST_US, LONGEST_US).map(Duration)
counts = st.one_of(st.integers(1, 500), st.integers(1, 10**30))
times = st.one_of(
    st.integers(EARLIEST_US, LATEST_US),
    st.integers(0, 3 * 86_400_000_000).map(lambda us: EARLIEST_US + us),
    st.integers(0, 3 * 86_400_000_000).map(lambda us: LATEST_US - us),
)
zones = st.sampled_from(
    ["UTC", "Pacific/Kiritimati", "Etc/GMT+12", "Europe/Paris", "America/Sao_Paulo", "Asia/Kathmandu"]
)


@st.composite
def long_sliding_windows(draw):
    period = draw(durations)
    return bm.SlidingWindows(Duration(min(period.us * draw(st.integers(1, 5)), LONGEST_US)), period, draw(offsets))


@st.composite
def long_cumulative_windows(draw):
    step = draw(durations)
    steps = draw(st.integers(1, max(1, min(5, LONGEST_US // max(1, step.us)))))
    return bm.CumulativeWindows(Duration(step.us * steps), step, draw(offsets))


def calendars(unit):
    return st.builds(
        lambda count, timezone, starting: bm.CalendarWindows(**{unit: count}, timezone=timezone, starting=starting),
        counts,
        zones,
        st.one_of(st.none(), st.dates()),
    )


windows = st.one_of(
    fixed_windows,
    sliding_windows,
    sessions,
    calendar_windows,
    st.builds(bm.FixedWindows, durations, offsets),
    long_sliding_windows(),
    cumulative_windows,
    long_cumulative_windows(),
    st.builds(bm.Sessions, durations),
    *map(calendars, ["days", "weeks", "months", "years"]),
)


@given(windows, st.lists(times, min_size=1, max_size=5))
@example(bm.FixedWindows(Duration(LONGEST_US), Duration(-LONGEST_US)), [EARLIEST_US, LATEST_US])
@example(bm.SlidingWindows(Duration(LONGEST_US), Duration(LONGEST_US), -1), [EARLIEST_US, LATEST_US])
@example(bm.Sessions(Duration(LONGEST_US)), [EARLIEST_US, LATEST_US])
@example(bm.CalendarWindows(days=1, timezone="Pacific/Kiritimati"), [EARLIEST_US, LATEST_US])
@example(bm.CalendarWindows(days=1, timezone="Etc/GMT+12"), [EARLIEST_US, LATEST_US])
@example(bm.CalendarWindows(months=1, starting=date.max), [EARLIEST_US, LATEST_US])
@example(bm.CalendarWindows(weeks=10**30, starting=date.min), [EARLIEST_US, LATEST_US])
def test_a_window_holds_each_of_its_rows_at_any_time_there_is(option, times_us):
    row, start, end = option.assign_columns(np.array(times_us, dtype=np.int64))
    at = np.array(times_us, dtype=np.int64)[row]
    assert ((start <= at) & (at < end)).all()
    if not isinstance(option, bm.SlidingWindows) or option.period <= option.size:
        assert set(row.tolist()) == set(range(len(times_us)))
    for i, time_us in enumerate(times_us):
        here = list(zip(start[row == i].tolist(), end[row == i].tolist(), strict=True))
        assert sorted(here) == sorted(option.assign(time_us))


@given(windows.filter(lambda option: not option.merging), times)
@example(bm.GlobalWindow(), EARLIEST_US)
def test_a_slice_and_its_start_are_in_the_same_windows(option, time_us):
    assert option.preaggregates
    (start,) = option.slices(np.array([time_us])).tolist()
    assert sorted(option.assign(start)) == sorted(option.assign(time_us))


def test_the_first_and_the_last_calendar_window_end_with_the_years_there_are():
    for timezone in ["UTC", "Europe/Paris", "America/Sao_Paulo"]:
        option = bm.CalendarWindows(years=1, timezone=timezone)
        ((start, _),) = option.assign(EARLIEST_US)
        ((_, end),) = option.assign(LATEST_US)
        assert (start, end) == (EARLIEST_US, LATEST_US + 1)
    west = bm.CalendarWindows(days=1, timezone="Etc/GMT+12")
    morning_us = (datetime(1, 1, 1, tzinfo=ZoneInfo("Etc/GMT+12")) - EPOCH) // timedelta(microseconds=1)
    assert list(west.assign(EARLIEST_US)) == [(EARLIEST_US, morning_us)]


def test_bounds_outside_the_years_there_are_show_as_the_nearest_time():
    assert instant(EARLIEST_US - 1) == instant(EARLIEST_US) == datetime.min.replace(tzinfo=UTC)
    assert instant(LATEST_US + 1) == instant(END_OF_TIME_US) == datetime.max.replace(tzinfo=UTC)
    assert instant_us("t", instant(LATEST_US)) == LATEST_US


@pytest.mark.parametrize("value", [1e30, -(2**63), 10**18])
def test_a_time_beyond_64_bits_is_refused(value):
    with pytest.raises(bm.ScriptError, match="beyond 292,000 years; give seconds"):
        instant_us("row['ts']", value)


class TwoWindows(WindowOption):
    """Two windows per row, and no word of slices."""

    def assign(self, timestamp_us, *values):
        start = timestamp_us - timestamp_us % 10
        yield start, start + 10
        yield start, start + 20


class OddTimes(bm.FixedWindows):
    """A reimplementation of the assignment of rows to windows."""

    def assign_columns(self, timestamps_us, *columns):
        row, start, end = super().assign_columns(timestamps_us)
        odd = timestamps_us % 2 == 1
        return row[odd], start[odd], end[odd]


class OwnSlices(TwoWindows):
    def slices(self, timestamps_us):
        return timestamps_us - timestamps_us % 10


class NoSlices(bm.FixedWindows):
    def slices(self, timestamps_us):
        return None


class BySize(bm.FixedWindows):
    """Only another name."""


def test_an_option_without_slices_is_not_preaggregated():
    assert [option.preaggregates for option in (TwoWindows(), OddTimes(10), NoSlices(10), bm.Sessions(10))] == [
        False
    ] * 4
    assert [option.preaggregates for option in (OwnSlices(), BySize(10), bm.GlobalWindow())] == [True] * 3
    assert bm.Sessions(10).slices(np.array([5])) is None


@attrs.frozen
class Ends(WindowOption):
    """A user's windows from the row to a given end."""

    end: int

    def assign(self, timestamp_us, *values):
        yield timestamp_us, self.end


def test_a_users_window_beyond_64_bits_is_refused_with_the_window():
    row, start, end = Ends(END_OF_TIME_US).assign_columns(np.array([5]))
    assert (row.tolist(), start.tolist(), end.tolist()) == ([0], [5], [END_OF_TIME_US])
    for far in (END_OF_TIME_US + 1, 5):
        with pytest.raises(bm.UserFunctionError, match=rf"window \(5, {far}\): start must be before end"):
            Ends(far).assign_columns(np.array([5]))


@attrs.frozen
class WakesAt(bm.triggers.Trigger):
    """Waits for a moment that no clock may reach."""

    us: int

    def create(self):
        return 0

    def on_rows(self, state, count, context):
        return state + count

    def should_fire(self, state, context):
        return context.clock_us >= self.us

    def on_fire(self, state, context):
        return 0, False

    def wakes_at(self, state):
        return self.us


@pytest.mark.parametrize(
    ("trigger", "fires"),
    [
        (WakesAt(2**63), False),
        (WakesAt(-(2**64)), True),
        (bm.triggers.AfterProcessingTime(Duration(LONGEST_US)), False),
        (bm.triggers.AfterProcessingTime(Duration(LONGEST_US), aligned_to=Duration(LONGEST_US)), False),
    ],
    ids=repr,
)
def test_a_wait_that_ends_beyond_64_bits_never_ends(trigger, fires):
    pipeline = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).window(bm.GlobalWindow())
    pipeline = pipeline.trigger(bm.triggers.Repeatedly(trigger)).discarding().accumulate(n=bm.accumulations.Count())
    latest = instant(LATEST_US)
    script = bm.testing.TestStream().step([{"ts": latest}], clock=latest).step(clock=latest)
    assert [pane.values for pane in pipeline.run(script)] == [{"n": 1}] * fires
    assert pipeline.run(script.advance_watermark_to_infinity())[0].values == {"n": 1}


def test_a_scripts_clock_beyond_the_years_there_are_is_refused():
    script = bm.testing.TestStream().advance_processing_time_to(instant(LATEST_US))
    for moves_on in (lambda: script.advance_processing_time_by(1e-6), lambda: script.step(clock=1_700_000_000_000)):
        with pytest.raises(bm.ScriptError, match="beyond the year 9999; give seconds"):
            moves_on()
