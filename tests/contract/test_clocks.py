"""Where the watermark goes when nothing moves it (rules/time.md#idle-timeout, #processing-time-lag)."""

import beamish as bm
from beamish.contract.clocks import Clocks
from beamish.watermarks import NO_WATERMARK_US

SECOND = 1_000_000


def after(policy, *steps):
    clocks = Clocks.new(inputs=1)
    for watermark, clock in steps:
        clocks.step([policy], [watermark], clock)
    return clocks.watermark_us


IDLE = bm.BoundedOutOfOrderness(0, idle_timeout=10)


def test_idle_watermark_advances_one_step_after_the_timeout():
    rose = (100 * SECOND, 0)
    assert after(IDLE, rose, (None, 10 * SECOND)) == 100 * SECOND
    assert after(IDLE, rose, (None, 10 * SECOND), (None, None)) == 110 * SECOND
    assert after(IDLE, rose, (None, 10 * SECOND - 1), (None, None)) == 100 * SECOND


def test_idle_watermark_never_goes_back():
    assert after(IDLE, (100 * SECOND, 0), (None, 50 * SECOND), (None, None), (120 * SECOND, None)) == 150 * SECOND


def test_idle_timeout_needs_a_first_watermark():
    assert after(IDLE, (None, 50 * SECOND), (None, 90 * SECOND)) == NO_WATERMARK_US


def test_lagging_watermark_is_the_clock_less_the_lag_and_never_goes_back():
    lag = bm.ProcessingTimeLag(5)
    assert after(lag, (None, 20 * SECOND)) == 15 * SECOND
    assert after(lag, (None, 20 * SECOND), (None, 10 * SECOND)) == 15 * SECOND
    assert after(lag, (None, None)) == NO_WATERMARK_US
