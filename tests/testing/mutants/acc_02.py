"""The opening price of a share in a window: that of the earliest trade, by event time.

Wrong: it keeps the first trade that it meets. Trades that arrive out of order, in another bundle, or from the other side of a
merge are earlier and are ignored: the price depends on the order of arrival.
"""

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
        return a if a is not None else b

    def extract(self, accumulator):
        return None if accumulator is None else accumulator[1]


def at(second):
    return datetime.fromtimestamp(second, UTC)


accumulation = OpeningPrice(("ts", "price"))
values = [(at(9), 10.5), (at(2), 11.0), (at(5), None), (at(30), 9.75), (at(1), 10.0)]
