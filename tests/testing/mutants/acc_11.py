"""All values of a window.

Wrong: the list of values is an attribute of the class, which all windows, keys and runs share.
"""

from typing import ClassVar

import attrs

from beamish.accumulations import Accumulation


@attrs.frozen
class SharedList(Accumulation):
    column: str
    result_type = "array<double>"
    values: ClassVar[list[float]] = []

    def create(self):
        return None

    def add(self, accumulator, value):
        self.values.append(value)
        return self.values

    def merge(self, a, b):
        a = [] if a is None else a
        a.extend(b or [])
        return a

    def extract(self, accumulator):
        return sorted(value for value in accumulator or [] if value is not None)


accumulation = SharedList("amount")
values = [0.0, 1.5, 2.0]
