"""The mean speed of a car in a window, from a total and a count."""

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
        return self.merge(accumulator, (float(value), 1))

    def merge(self, a, b):
        if a is None or b is None:
            return b if a is None else a
        return a[0] + b[0], a[1] + b[1]

    def extract(self, accumulator):
        return None if accumulator is None else accumulator[0] / accumulator[1]


accumulation = MeanSpeed("speed")
values = [80.0, 120.0, 100.0, None, 95.0, 60.0]
