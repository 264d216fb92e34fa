"""Sessions too far apart for one number, and users' windows that fail."""

import attrs
import numpy as np
import pytest

import beamish as bm
from beamish.accumulations import Count
from beamish.engine.windowing.keyed_windows import KeyedWindows
from beamish.engine.windowing.window_groups import group_windows
from beamish.testing import TestStream

FAR = 2**61


def test_sessions_of_all_of_time_and_many_keys_are_grouped_as_near_ones_are():
    key = np.array([0, 1, 2, 3, 0, 1, 0])
    start = np.array([-FAR, 0, FAR, -5, -FAR + 3, 10, FAR])
    group, result = group_windows(bm.Sessions(10), KeyedWindows(key, start, start + 10))
    assert group.tolist() == [0, 2, 4, 5, 0, 3, 1]
    assert result.key.tolist() == [0, 0, 1, 1, 2, 3]
    assert result.start_us.tolist() == [-FAR, FAR, 0, 10, FAR, -5]
    assert result.end_us.tolist() == [-FAR + 13, FAR + 10, 10, 20, FAR + 10, 5]


@attrs.frozen
class Failing(bm.WindowOption):
    merging = True
    empty: bool = False

    def assign(self, timestamp_us):
        yield timestamp_us, timestamp_us + (0 if self.empty else 10)

    def merge(self, windows):
        raise ZeroDivisionError("no")


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (Failing(empty=True), r"key \{'team': 'red'\}: Failing\(empty=True\)\.assign\(.*start must be before end"),
        (Failing(), r"Failing\(empty=False\)\.merge\(.*raised ZeroDivisionError: no"),
    ],
)
def test_what_a_users_window_raises_is_told_with_where(option, words):
    pipeline = (
        bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("team").window(option).accumulate(n=Count())
    )
    with pytest.raises(bm.UserFunctionError, match=words):
        pipeline.run(TestStream().add([{"ts": 1, "team": "red"}]))
