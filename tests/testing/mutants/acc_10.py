"""The highest temperature of a window; null without a reading."""

import attrs

from beamish.accumulations import Accumulation


@attrs.frozen
class Highest(Accumulation):
    column: str
    result_type = "double"

    def create(self):
        return None

    def add(self, accumulator, value):
        return accumulator if value is None else self.merge(accumulator, value)

    def merge(self, a, b):
        if a is None or b is None:
            return b if a is None else a
        return max(a, b)

    def extract(self, accumulator):
        return accumulator


accumulation = Highest("celsius")
values = [-3.5, -1.0, None, -12.25, -7.0]
