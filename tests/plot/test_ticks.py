"""Where ticks are, and what stands at them."""

from datetime import UTC, datetime

import pytest

from beamish.plot.labels import clock_label, step_axis, time_axis
from tests.seconds import S

NOON = int(datetime(2024, 5, 1, 12, tzinfo=UTC).timestamp()) * S


@pytest.mark.parametrize(
    ("first", "last", "labels", "day"),
    [
        (NOON, NOON + 480 * S, ["12:00", "12:02", "12:04", "12:06", "12:08"], "1 May 2024"),
        (NOON, NOON + 90 * S, ["12:00:00", "12:00:30", "12:01:00", "12:01:30"], "1 May 2024"),
        (NOON, NOON + 36 * 3600 * S, ["12:00\n1 May", "00:00\n2 May", "12:00\n2 May", "00:00\n3 May"], ""),
        (NOON, NOON + 4 * 86_400 * S, ["2 May", "3 May", "4 May", "5 May"], ""),
        (NOON, NOON + 40 * 31_536_000 * S, ["Dec 2025", "Dec 2033", "Dec 2041", "Dec 2049", "Dec 2057"], ""),
        (-30 * S, 120 * S, ["\N{MINUS SIGN}0:30", "0:00", "0:30", "1:00", "1:30", "2:00"], ""),
        (0, 2 * 3600 * S, ["0:00", "30:00", "1:00:00", "1:30:00", "2:00:00"], ""),
        (0, 2 * S, ["0:00", "0:01", "0:02"], ""),
        (0, S // 2, ["0 s", "0.1 s", "0.2 s", "0.3 s", "0.4 s", "0.5 s"], ""),
    ],
)
def test_ticks_are_at_full_times(first, last, labels, day):
    axis = time_axis(first, last, 5)
    assert axis.labels == labels
    assert axis.day == day
    assert all(first <= tick <= last for tick in axis.ticks)


def test_steps_are_whole():
    assert step_axis(0.4, 6.3, 3).labels == ["2", "4", "6"]
    assert step_axis(0.5, 3.5, 10).labels == ["1", "2", "3"]


def test_a_time_is_shown_to_the_second():
    assert clock_label(NOON + 61 * S) == "12:01:01"
    assert clock_label(3661 * S) == "1:01:01"
