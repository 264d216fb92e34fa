"""Sessions too far apart for one number, and users' windows that fail."""

from typing import Any

import attrs
import numpy as np
import pytest

import beamish as bm
from beamish.accumulations import Count
from beamish.contract.keys import KeyedWindows
from beamish.instants import EPOCH
from beamish.kinds.window.step.merging import group_windows
from beamish.testing import TestStream

FAR = 2**61
ZERO = np.array([0])


def test_distant_sessions_are_merged_like_near_ones():
    key = np.array([0, 1, 2, 3, 0, 1, 0])
    start = np.array([-FAR, 0, FAR, -5, -FAR + 3, 10, FAR])
    group, result = group_windows(bm.Sessions(10), KeyedWindows(key, start, start + 10))
    assert group.tolist() == [0, 2, 4, 5, 0, 3, 1]
    assert result.key.tolist() == [0, 0, 1, 1, 2, 3]
    assert result.start_us.tolist() == [-FAR, FAR, 0, 10, FAR, -5]
    assert result.end_us.tolist() == [-FAR + 13, FAR + 10, 10, 20, FAR + 10, 5]


@attrs.frozen
class Given(bm.WindowOption):
    """Gives what it was told to, of whatever row; ``merged`` as what a merge becomes."""

    window: Any
    merged: Any = None

    @property
    def merging(self):
        return self.merged is not None

    def assign(self, timestamp_us):
        yield self.window

    def merge(self, windows):
        yield windows, self.merged


@attrs.frozen(eq=False)
class InColumns(bm.WindowOption):
    """The same in columns."""

    given: Any

    def assign_columns(self, timestamps_us):
        return self.given


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
        (
            Given((0.0, 60.0)),
            r"key \{'team': 'red'\}: .*assign\(1000000,\).*\(0\.0, 60\.0\): .*whole.*microseconds.*int\(seconds \* 1_000_000\)",
        ),
        (Given((EPOCH, EPOCH)), r"window \(datetime\.datetime\(1970.*whole numbers of microseconds since the epoch"),
        (Given(5), r"window 5: must be a pair.*yield start, end"),
        (Given((0, 1, 2)), r"window \(0, 1, 2\): must be a pair"),
        (Given((0, 5), (0.0, 5)), r"\.merge\(\[\(0, 5\)\]\) raised.*\(0\.0, 5\): start and end must be whole numbers"),
        (Given((0, 5), (5, 5)), r"\.merge\(.*window \(5, 5\): start must be before end"),
        (
            InColumns((ZERO, ZERO, ZERO + 0.5)),
            r"assign_columns\(\.\.\.\) returned int64, int64, float64: must be.*int64",
        ),
        (
            InColumns((ZERO, ZERO, ZERO.astype("M8[us]"))),
            r"returned int64, int64, datetime64\[us\]: .*astype\('int64'\)",
        ),
        (InColumns((ZERO, ZERO, np.array([1, 2]))), r"returned int64, int64, int64: must be.*of equal length"),
        (InColumns([ZERO, ZERO, ZERO]), r"returned list: must be row, start and end"),
        (InColumns((ZERO, ZERO, ZERO)), r"key \{'team': 'red'\}: .*the window \(0, 0\): start must be before end"),
    ],
)
def test_an_error_of_a_custom_window_is_located(option, words):
    pipeline = (
        bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("team").window(option).accumulate(n=Count())
    )
    with pytest.raises(bm.UserFunctionError, match=words):
        pipeline.run(TestStream().add([{"ts": 1, "team": "red"}]))


def test_whole_numbers_of_numpy_are_bounds_of_a_users_window():
    pipeline = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).accumulate(n=Count())
    script = TestStream().add([{"ts": 1}]).advance_watermark_to_infinity()
    of_numpy = Given((np.int64(0), np.int32(5)))
    assert pipeline.window(of_numpy).run(script) == pipeline.window(Given((0, 5))).run(script)
