"""The mean speed of a car in a window.

Wrong: an average of averages. The accumulator is the mean so far, and a new value or the other side of a merge counts as half
of it, however many rows stand behind either.
"""

import attrs

from beamish.accumulations import Accumulation


@attrs.frozen
class MeanSpeed(Accumulation):
    column: str
    result_type = "double"

    def create(self):
        return None

    def add(self, accumulator, value):
        if value is None:
            return accumulator
        return self.merge(accumulator, float(value))

    def merge(self, a, b):
        if a is None or b is None:
            return b if a is None else a
        return (a + b) / 2

    def extract(self, accumulator):
        return accumulator


accumulation = MeanSpeed("speed")
values = [80.0, 120.0, 100.0, None, 95.0, 60.0]
