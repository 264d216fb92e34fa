"""The opening price of a share in a window: that of the earliest trade by event time, whenever it arrives."""

from datetime import UTC, datetime

import attrs

from beamish.accumulations import Accumulation


@attrs.frozen
class OpeningPrice(Accumulation):
    column: tuple[str, str]  # time and price
    result_type = "double"

    def create(self):
        return None  # or (time, price)

    def add(self, accumulator, row):
        time, price = row
        if time is None or price is None:
            return accumulator
        return self.merge(accumulator, (time, price))

    def merge(self, a, b):
        if a is None or b is None:
            return b if a is None else a
        return min(a, b)  # the earlier; of two at the same time the lower price

    def extract(self, accumulator):
        return None if accumulator is None else accumulator[1]


def at(second):
    return datetime.fromtimestamp(second, UTC)


accumulation = OpeningPrice(("ts", "price"))
values = [(at(9), 10.5), (at(2), 11.0), (at(5), None), (at(30), 9.75), (at(1), 10.0)]
