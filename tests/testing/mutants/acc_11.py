"""All values of a window, each in a list of its own."""

import attrs

from beamish.accumulations import Accumulation


@attrs.frozen
class AllValues(Accumulation):
    column: str
    result_type = "array<double>"

    def create(self):
        return None

    def add(self, accumulator, value):
        return [*(accumulator or []), value]

    def merge(self, a, b):
        a = [] if a is None else a
        a.extend(b or [])
        return a

    def extract(self, accumulator):
        return sorted(value for value in accumulator or [] if value is not None)


accumulation = AllValues("amount")
values = [0.0, 1.5, 2.0]
