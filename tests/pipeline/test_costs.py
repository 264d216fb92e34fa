"""Options that are legal and ruinous: a warning with the number, at the line that is to be changed, or an error."""

import re
import warnings

import pytest

import beamish as bm
from beamish.accumulations import Count
from beamish.costs import YEAR, check_shards
from beamish.durations import Duration
from beamish.triggers import AfterProcessingTime

START = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0))
# The option at its largest without a warning, and one step above with the words of the warning.
WARNED = {
    "sliding": (
        lambda above: bm.SlidingWindows(Duration(10_000 + above), Duration(1)),
        ["each row is in 10,001 windows", "longer period"],
    ),
    "sliding, not a multiple": (
        lambda above: bm.SlidingWindows(Duration(20_000 + above), Duration(2)),
        ["each row is in 10,001 windows"],
    ),
    "count": (lambda above: bm.CountWindows(10_000 + above, 1), ["CountWindows(10001, 1)", "in 10,001 windows"]),
    "shards": (lambda above: check_shards("apply(shards=...)", 10_000 + above), ["10,001 shards", "number of cores"]),
    "gap": (lambda above: bm.Sessions(Duration(YEAR.us + above)), ["Sessions(gap)=", "in seconds"]),
    "delay": (
        lambda above: bm.BoundedOutOfOrderness(Duration(YEAR.us + above)),
        ["BoundedOutOfOrderness(delay)=", "windows end as late"],
    ),
    "idle": (
        lambda above: bm.BoundedOutOfOrderness(0, idle_timeout=Duration(YEAR.us + above)),
        ["BoundedOutOfOrderness(idle_timeout)=", "idle stream"],
    ),
    "lag": (lambda above: bm.ProcessingTimeLag(Duration(YEAR.us + above)), ["ProcessingTimeLag(lag)="]),
    "wait of a trigger": (
        lambda above: AfterProcessingTime(Duration(YEAR.us + above)),
        ["AfterProcessingTime(delay)="],
    ),
    "wait of a suppress": (
        lambda above: bm.UntilTimeLimit(Duration(YEAR.us + above), clock="event"),
        ["UntilTimeLimit(wait)="],
    ),
    "lateness": (
        lambda above: START.allowed_lateness(Duration(10 * YEAR.us + above)),
        ["allowed_lateness=", "is stored"],
    ),
}
REFUSED = {
    "sliding": (lambda: bm.SlidingWindows("30 days", "1 second"), ["'30 days', '1 second'", "2,592,000 windows"]),
    "cumulative": (lambda: bm.CumulativeWindows("30 days", "1 second"), ["2,592,000 windows"]),
    "just above": (lambda: bm.SlidingWindows(Duration(1_000_001), Duration(1)), ["1,000,001 windows"]),
    "count": (lambda: bm.CountWindows(2**40, 2), ["CountWindows(1099511627776, 2)", "the maximum is 1,000,000"]),
    "shards": (lambda: check_shards("apply(shards=1000000)", 1_000_000), ["apply(shards=1000000)", "100,000"]),
}


@pytest.mark.parametrize(("option", "fragments"), WARNED.values(), ids=WARNED)
def test_costly_options_warn_at_the_callers_line(option, fragments):
    option(0)
    with pytest.warns(UserWarning, match=re.escape(fragments[0])) as caught:
        option(1)
    (warning,) = caught
    assert warning.filename == __file__
    for fragment in fragments:
        assert fragment in str(warning.message)


@pytest.mark.parametrize(("option", "fragments"), REFUSED.values(), ids=REFUSED)
def test_options_without_output_are_rejected(option, fragments):
    with pytest.raises(bm.OptionError) as caught:
        option()
    for fragment in fragments:
        assert fragment in str(caught.value)


def test_a_warned_pipeline_runs_and_is_copied_without_further_warnings():
    with pytest.warns(UserWarning, match="20,000 windows"):
        pipeline = START.window(bm.SlidingWindows(20_000, 1)).accumulate(n=Count())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        script = bm.testing.TestStream().add([{"ts": 1}]).advance_watermark_to(2)
        assert len(pipeline.discarding().run(script)) == 1
