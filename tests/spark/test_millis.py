import pytest

from beamish.spark.runtime.millis import (
    END_OF_TIME_MS,
    delay_parts,
    is_watermark,
    timer_ms,
    watermark_row_us,
    watermark_us,
)
from beamish.windows.option import END_OF_TIME_US


@pytest.mark.parametrize("due_us", [1, 999, 1000, 1001, 5_999_999, 6_000_000, 6_000_001])
def test_a_timer_fires_at_the_first_watermark_past_the_due_time(due_us):
    timer = timer_ms(due_us)
    assert watermark_us(timer) >= due_us
    assert (watermark_us(timer - 1) or 0) < due_us


def test_zero_is_no_watermark():
    assert watermark_us(0) is None
    assert watermark_us(-1) is None
    assert watermark_us(1) == 1000


def test_a_due_time_before_1970_is_reached_at_the_first_watermark():
    assert timer_ms(-5_000_000) == 1


def test_the_end_of_time_has_a_value_of_its_own():
    assert timer_ms(END_OF_TIME_US) == END_OF_TIME_MS
    assert watermark_us(END_OF_TIME_MS) == END_OF_TIME_US
    assert watermark_us(watermark_row_us(END_OF_TIME_US) // 1000) == END_OF_TIME_US
    assert watermark_row_us(5000) == 5000


def test_only_whole_milliseconds_above_zero_are_watermarks():
    assert is_watermark(1000)
    assert is_watermark(END_OF_TIME_US)
    assert not any(map(is_watermark, (0, -1000, 1, 1001, END_OF_TIME_US - 1)))


def test_a_delay_keeps_its_microseconds():
    assert delay_parts(1_500) == (1, 500)
