"""Placement of labels without overlaps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs


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
        taken: the rectangles in it.
    """

    within: Area
    taken: list[Area]

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
            bad = sum(area.shared(other) for other in (*self.taken, *beside)) + 3 * outside + number
            if bad < least:
                best, least = (x, y), bad
        if least > most_covered * size + 25:
            return None
        self.taken.append(Area.around(*best, label.width, label.height))
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


def wishes_beside(x: float, y: float, label: Area, *, gap: float) -> list[tuple[float, float]]:
    """Middles for the label of a point: right, left, above, below, then at its corners."""
    far_x, far_y = label.width / 2 + gap, label.height / 2 + gap
    straight = [(x + far_x, y), (x - far_x, y), (x, y + far_y), (x, y - far_y)]
    return [*straight, *((x + i * far_x, y + j * far_y) for j in (1, -1) for i in (1, -1))]
