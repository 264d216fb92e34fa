"""The highest temperature of a window.

Wrong: it starts at 0, so a window of a winter night has a maximum of 0 degrees, and a window without a reading too.
"""

import attrs

from beamish.accumulations import Accumulation


@attrs.frozen
class Highest(Accumulation):
    column: str
    result_type = "double"

    def create(self):
        return 0.0

    def add(self, accumulator, value):
        return accumulator if value is None else self.merge(accumulator, value)

    def merge(self, a, b):
        return max(a, b)

    def extract(self, accumulator):
        return accumulator


accumulation = Highest("celsius")
values = [-3.5, -1.0, None, -12.25, -7.0]
