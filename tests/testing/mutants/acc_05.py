"""The mean without the least and the greatest value (of three or more); ``extract`` works on a sorted copy."""

import attrs

from beamish.accumulations import Accumulation


@attrs.frozen
class TrimmedMean(Accumulation):
    column: str
    result_type = "double"

    def create(self):
        return []

    def add(self, accumulator, value):
        if value is not None:
            accumulator.append(value)
        return accumulator

    def merge(self, a, b):
        return a + b

    def extract(self, accumulator):
        numbers = sorted(accumulator)
        if len(numbers) >= 3:
            del numbers[0], numbers[-1]
        return sum(numbers) / len(numbers) if numbers else None


accumulation = TrimmedMean("millis")
values = [12.0, 15.0, 900.0, 11.0, None, 14.0, 40.0, 2.0]
