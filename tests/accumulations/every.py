"""All accumulations, and a user's."""

import attrs

from beamish.accumulations import (
    Accumulation,
    ApproxCountDistinct,
    BitAnd,
    BitOr,
    BitXor,
    BoolAnd,
    BoolOr,
    BottomN,
    BottomNByKey,
    Collect,
    CollectSet,
    Correlation,
    Count,
    CountDistinct,
    CountIf,
    Covariance,
    Entropy,
    First,
    Fold,
    Histogram,
    Kurtosis,
    Last,
    LinearRegression,
    Max,
    MaxBy,
    Mean,
    Median,
    Min,
    MinBy,
    Mode,
    MostFrequent,
    Product,
    Quantiles,
    Reduce,
    Skewness,
    StdDev,
    Sum,
    SumList,
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
    TopNByKey(3, "x", "y", with_ties=True),
    BottomNByKey(3, "x", "y"),
    *(kind("x") for kind in (BitAnd, BitOr, BitXor, BoolAnd, BoolOr, CountIf)),
    *(kind("x") for kind in (Skewness, Kurtosis, Product, SumList, Histogram, Mode, Entropy)),
    MostFrequent(2, "x"),
    *(kind("x", "y") for kind in (Covariance, Correlation, LinearRegression)),
    Covariance("x", "y", population=True),
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
