"""All accumulations, and a user's."""

import attrs

from beamish.accumulations import (
    Accumulation,
    ApproxCountDistinct,
    BottomN,
    Collect,
    CollectSet,
    Count,
    CountDistinct,
    First,
    Fold,
    Last,
    Max,
    MaxBy,
    Mean,
    Median,
    Min,
    MinBy,
    Quantiles,
    Reduce,
    StdDev,
    Sum,
    TopN,
    TopNByKey,
    Variance,
)

EVERY = [
    Count(),
    Count("x"),
    *(kind("x") for kind in (Sum, Mean, Min, Max, Variance, StdDev, First, Last, Collect, CollectSet)),
    *(kind("x") for kind in (CountDistinct, ApproxCountDistinct, Quantiles, Median)),
    Variance("x", population=True),
    First("x", ignore_nulls=True),
    Collect("x", sorted_by="y"),
    Collect("x", descending=True),
    MinBy("x", by="y"),
    MaxBy("x", by="y"),
    BottomN(3, "x"),
    CountDistinct("x", "y"),
    ApproxCountDistinct("x", rsd=0.01),
    TopN(3, "x"),
    TopNByKey(3, "x", "y"),
    Quantiles("x", (0.5, 0.99)),
    Reduce(max, "x"),
    Fold(0, max, "x", merge=max),
]


@attrs.frozen
class Spread(Accumulation):
    """The distinct values seen, as a set: an accumulator that add changes in place."""

    column: str
    result_type = "array<bigint>"

    def create(self):
        return set()

    def add(self, accumulator, value):
        if value is not None:
            accumulator.add(value)
        return accumulator

    def merge(self, a, b):
        return a | b

    def extract(self, accumulator):
        return sorted(accumulator)
