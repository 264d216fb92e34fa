"""Where labels and the ticks of a time axis stand, so that none lies on another."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import attrs

from beamish.instants import instant


@attrs.frozen
class Area:
    """A rectangle in pixels; y grows upwards."""

    left: float
    bottom: float
    right: float
    top: float

    @classmethod
    def around(cls, x: float, y: float, width: float, height: float) -> Area:
        """A rectangle by its middle."""
        return cls(x - width / 2, y - height / 2, x + width / 2, y + height / 2)

    @property
    def width(self) -> float:
        """From left to right."""
        return self.right - self.left

    @property
    def height(self) -> float:
        """From bottom to top."""
        return self.top - self.bottom

    def shared(self, other: Area) -> float:
        """The area of the intersection, in square pixels."""
        width = min(self.right, other.right) - max(self.left, other.left)
        height = min(self.top, other.top) - max(self.bottom, other.bottom)
        return max(width, 0) * max(height, 0)


@attrs.define
class Places:
    """The occupied areas of a panel.

    Attributes:
        within: the panel.
        rows: the rectangles of its rows, which no label may hide.
        labels: those of its labels.
    """

    within: Area
    rows: list[Area] = attrs.field(factory=list)
    labels: list[Area] = attrs.field(factory=list)

    def place(
        self,
        label: Area,
        wishes: Iterable[tuple[float, float]],
        *,
        most_covered: float = 0.7,
        beside: Sequence[Area] = (),
    ) -> tuple[float, float] | None:
        """The first free middle for a label, or the one with the least overlap; marks it as occupied.

        Args:
            label: its size.
            wishes: middles, best first.
            most_covered: the maximum overlapping part of it; None is returned if it is exceeded.
            beside: additional rectangles to avoid.
        """
        best, least, size = (0.0, 0.0), float("inf"), label.width * label.height
        for number, (x, y) in enumerate(wishes):
            area = Area.around(x, y, label.width, label.height)
            outside = size - area.shared(self.within)
            bad = sum(area.shared(other) for other in (*self.labels, *beside)) + 3 * outside + number
            bad += 6 * sum(area.shared(row) for row in self.rows)
            if bad < least:
                best, least = (x, y), bad
        if least > most_covered * size + 25:
            return None
        self.labels.append(Area.around(*best, label.width, label.height))
        return best


def wishes_in(box: Area, label: Area, *, is_lowest: bool) -> list[tuple[float, float]]:
    """Middles for the label of a box: its middle, then elsewhere in it; for a low box that is the lowest, below it first."""
    middle_x, middle_y = (box.left + box.right) / 2, (box.bottom + box.top) / 2
    left, right = box.left + label.width / 2 + 3, box.right - label.width / 2 - 3
    columns = [middle_x, (middle_x + right) / 2, (middle_x + left) / 2, right, left]
    rows = [middle_y, box.top - label.height / 2 - 2, box.bottom + label.height / 2 + 2]
    if box.height < label.height:
        rows = [middle_y, box.top + label.height / 2 + 1, box.bottom - label.height / 2 - 1]
        if is_lowest:
            rows = [rows[2], *rows[:2]]
        rows.append(box.top + 3 * label.height / 2)  # beyond a row that lies on the box
    return [(x, y) for y in rows for x in columns]


def wishes_out(box: Area, label: Area) -> list[tuple[float, float]]:
    """Middles for the label of a box that has no room for it: right, left, above, below."""
    x, y = (box.left + box.right) / 2, (box.bottom + box.top) / 2
    far_x, far_y = label.width / 2 + 3, label.height / 2 + 2
    rows = [y, box.top - far_y, box.bottom + far_y]
    beside = [(side, row) for side in (box.right + far_x, box.left - far_x) for row in rows]
    return [*beside, (x, box.top + far_y), (x, box.bottom - far_y)]


def wishes_beside(x: float, y: float, label: Area, *, gap: float) -> list[tuple[float, float]]:
    """Middles for the label of a point: right, left, above, below, then at its corners."""
    far_x, far_y = label.width / 2 + gap, label.height / 2 + gap
    straight = [(x + far_x, y), (x - far_x, y), (x, y + far_y), (x, y - far_y)]
    return [*straight, *((x + i * far_x, y + j * far_y) for j in (1, -1) for i in (1, -1))]


SECOND_US = 1_000_000
_DAY_US = 86_400 * SECOND_US
_STEPS_S = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200]
_STEPS_US = [seconds * SECOND_US for seconds in _STEPS_S] + [days * _DAY_US for days in (1, 2, 7, 14, 30, 91, 365)]


@attrs.frozen
class Axis:
    """An axis of time.

    Attributes:
        ticks: positions, microseconds since the epoch.
        labels: their labels.
        day: the day, if it is a single one; empty: several days, or a script that counts from 0.
    """

    ticks: list[float]
    labels: list[str]
    day: str


def time_axis(first_us: float, last_us: float, most: int) -> Axis:
    """Up to this many ticks, at full seconds, minutes, hours or days."""
    span = max(last_us - first_us, 1)
    below_second = [10**power for power in range(6)]
    step = next((us for us in [*below_second, *_STEPS_US] if span / us <= most), 0)
    if not step:
        step = math.ceil(span / most / (365 * _DAY_US)) * 365 * _DAY_US
    ticks = [step * number for number in range(math.ceil(first_us / step), math.floor(last_us / step) + 1)]
    counts = first_us > -_DAY_US and last_us < _DAY_US  # a script that counts seconds from 0
    one_day = first_us // _DAY_US == (last_us - 1) // _DAY_US
    labels = [_counted(us, step) if counts else _written(us, step, with_day=not one_day) for us in ticks]
    day = "" if counts or not one_day else f"{instant(int(first_us)):%-d %b %Y}"
    return Axis([float(us) for us in ticks], labels, day)


def step_axis(first: float, last: float, most: int) -> Axis:
    """Up to this many ticks, at whole numbers."""
    step = max(1, math.ceil((last - first) / most))
    ticks = list(range(math.ceil(first / step) * step, math.floor(last) + 1, step))
    return Axis([float(number) for number in ticks], [str(number) for number in ticks], "")


def clock_label(us: float) -> str:
    """A time, to the second; as minutes and seconds in a script that counts from 0."""
    if abs(us) < _DAY_US:
        return _counted(int(us), SECOND_US)
    return f"{instant(int(us)):%H:%M:%S}"


def _counted(us: float, step: float) -> str:
    sign, seconds = "\N{MINUS SIGN}" if us < 0 else "", abs(us) / SECOND_US
    if step < SECOND_US:
        return f"{sign}{seconds:g} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{sign}{hours}:{minutes:02}:{rest:02}" if hours else f"{sign}{minutes}:{rest:02}"


def _written(us: float, step: float, *, with_day: bool) -> str:
    at = instant(int(us))
    if step >= _DAY_US:
        return f"{at:%-d %b}" if step < 300 * _DAY_US else f"{at:%b %Y}"
    whole = f"{at:%H:%M}" if step >= 60 * SECOND_US else f"{at:%H:%M:%S}"
    time = f"{at:%H:%M:%S.%f}".rstrip("0") if step < SECOND_US else whole
    return f"{time}\n{at:%-d %b}" if with_day else time
