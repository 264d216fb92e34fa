"""Where labels stand, so that none lies on another."""

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
        """The one with this middle."""
        return cls(x - width / 2, y - height / 2, x + width / 2, y + height / 2)

    def shared(self, other: Area) -> float:
        """How large the part is that lies in both."""
        width = min(self.right, other.right) - max(self.left, other.left)
        height = min(self.top, other.top) - max(self.bottom, other.bottom)
        return max(width, 0) * max(height, 0)

    @property
    def width(self) -> float:
        """From left to right."""
        return self.right - self.left

    @property
    def height(self) -> float:
        """From bottom to top."""
        return self.top - self.bottom

    @property
    def size(self) -> float:
        """Its area."""
        return self.width * self.height


@attrs.define
class Places:
    """What is taken of a panel already.

    Attributes:
        within: the panel.
        taken: what stands in it.
    """

    within: Area
    taken: list[Area]

    def place(self, width: float, height: float, wishes: Iterable[tuple[float, float]]) -> tuple[float, float]:
        """The first middle at which a label is free, or the least bad; it is taken then.

        Args:
            width, height: of the label, pixels.
            wishes: middles, the best one first.
        """
        best, least = (0.0, 0.0), float("inf")
        for number, (x, y) in enumerate(wishes):
            area = Area.around(x, y, width + 2, height + 2)
            bad = sum(area.shared(other) for other in self.taken) + 3 * (area.size - area.shared(self.within))
            bad += number * 0.5
            if bad < least - 1e-9:
                best, least = (x, y), bad
        self.taken.append(Area.around(*best, width, height))
        return best


def wishes_in(box: Area, width: float, height: float) -> list[tuple[float, float]]:
    """Middles for the label of a box: in its middle, then elsewhere in it, then at its edges."""
    middle_x, middle_y = (box.left + box.right) / 2, (box.bottom + box.top) / 2
    left, right = box.left + width / 2 + 3, box.right - width / 2 - 3
    top, bottom = box.top - height / 2 - 3, box.bottom + height / 2 + 3
    rows: Sequence[float] = [middle_y, top, bottom]
    if box.top - box.bottom < height + 4:
        rows = [middle_y, box.top + height / 2 + 2, box.bottom - height / 2 - 2]
    columns = [middle_x, right, left, (middle_x + right) / 2, (middle_x + left) / 2]
    return [(x, y) for y in rows for x in columns]


def wishes_beside(x: float, y: float, width: float, height: float, gap: float) -> list[tuple[float, float]]:
    """Middles for what is said of a point: right of it, left, above, below, then the corners."""
    far_x, far_y = width / 2 + gap, height / 2 + gap
    straight = [(x + far_x, y), (x - far_x, y), (x, y + far_y), (x, y - far_y)]
    return [*straight, *((x + i * far_x, y + j * far_y) for j in (1, -1) for i in (1, -1))]
