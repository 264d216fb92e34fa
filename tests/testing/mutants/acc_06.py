"""The mean value of the open orders, where orders can be deleted again. ``retract`` undoes all that ``add`` does."""

import attrs

from beamish.accumulations import Accumulation


@attrs.frozen
class MeanOrder(Accumulation):
    column: str
    result_type = "double"

    def create(self):
        return 0, 0  # total, orders

    def add(self, accumulator, cents):
        total, orders = accumulator
        return accumulator if cents is None else (total + cents, orders + 1)

    def retract(self, accumulator, cents):
        total, orders = accumulator
        return accumulator if cents is None else (total - cents, orders - 1)

    def merge(self, a, b):
        return a[0] + b[0], a[1] + b[1]

    def extract(self, accumulator):
        total, orders = accumulator
        return total / orders if orders else None


accumulation = MeanOrder("cents")
values = [1250, 990, None, 4000, 15, 990]
