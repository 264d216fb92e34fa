"""The average price weighted by volume; ``merge`` adds up totals and weights."""

import attrs

from beamish.accumulations import Accumulation


@attrs.frozen
class VolumeWeightedPrice(Accumulation):
    column: tuple[str, str]  # price and volume
    result_type = "double"

    def create(self):
        return 0.0, 0.0

    def add(self, accumulator, row):
        (total, weights), (price, volume) = accumulator, row
        if price is None or volume is None:
            return accumulator
        return total + price * volume, weights + volume

    def merge(self, a, b):
        return a[0] + b[0], a[1] + b[1]

    def extract(self, accumulator):
        total, weights = accumulator
        return total / weights if weights else None


accumulation = VolumeWeightedPrice(("price", "volume"))
values = [(10.0, 100.0), (11.0, 300.0), (None, 5.0), (12.0, 50.0), (10.5, 20.0)]
