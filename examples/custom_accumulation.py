"""A custom accumulation: the average price paid, weighted by quantity.

It is four plain functions: create an accumulator, add a row, merge two accumulators, and extract the value. It works
wherever a built-in one does: pre-aggregated before the shuffle, across merging sessions, and after a restart.

    python examples/custom_accumulation.py
"""

import attrs

import beamish as bm
from beamish.accumulations import Accumulation, Count
from beamish.testing import TestStream


@attrs.frozen
class WeightedMean(Accumulation):
    """The mean of a column weighted by another column; null if all weights are 0."""

    column: tuple[str, str]  # value and weight: passed to `add` for each row
    result_type = "double"

    def create(self) -> tuple[float, float]:
        return 0.0, 0.0

    def add(self, accumulator: tuple[float, float], row: tuple[float, float]) -> tuple[float, float]:
        (total, weights), (value, weight) = accumulator, row
        return total + value * weight, weights + weight

    def merge(self, a: tuple[float, float], b: tuple[float, float]) -> tuple[float, float]:
        return a[0] + b[0], a[1] + b[1]

    def extract(self, accumulator: tuple[float, float]) -> float | None:
        total, weights = accumulator
        return total / weights if weights else None


prices = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness("5 seconds"))
    .key_by("share")
    .window(bm.FixedWindows("1 minute"))
    .accumulate(trades=Count(), price=WeightedMean(("price", "volume")))
)

script = (
    TestStream()
    .add(
        [
            {"ts": 1, "share": "ACME", "price": 10.0, "volume": 100.0},
            {"ts": 20, "share": "ACME", "price": 11.0, "volume": 300.0},
            {"ts": 70, "share": "ACME", "price": 12.0, "volume": 50.0},
        ]
    )
    .advance_watermark_to_infinity()
)

for pane in prices.run(script):
    print(f"{pane.start:%H:%M} {pane.key['share']}: {pane.values['trades']} trades, {pane.values['price']} on average")
