"""The mean without the least and the greatest value (of three or more).

Wrong: ``extract`` changes its argument: it sorts the accumulator and deletes two values from it. If the window fires again, these
values are gone, and two more are deleted.
"""

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
        numbers = accumulator
        numbers.sort()
        if len(numbers) >= 3:
            del numbers[0], numbers[-1]
        return sum(numbers) / len(numbers) if numbers else None


accumulation = TrimmedMean("millis")
values = [12.0, 15.0, 900.0, 11.0, None, 14.0, 40.0, 2.0]
