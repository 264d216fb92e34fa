"""The range of temperatures in a window: the greatest less the least. ``merge`` looks at both sides."""

import attrs

from beamish.accumulations import Accumulation


@attrs.frozen
class Range(Accumulation):
    column: str
    result_type = "double"

    def create(self):
        return None  # or (least, greatest)

    def add(self, accumulator, value):
        if value is None:
            return accumulator
        if accumulator is None:
            return value, value
        least, greatest = accumulator
        return min(least, value), max(greatest, value)

    def merge(self, a, b):
        if a is None or b is None:
            return b if a is None else a
        return min(a[0], b[0]), max(a[1], b[1])

    def extract(self, accumulator):
        return None if accumulator is None else accumulator[1] - accumulator[0]


accumulation = Range("celsius")
values = [21.5, 19.0, None, 24.25, 20.0, 18.5]
