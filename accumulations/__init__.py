"""Accumulations: aggregations of a window's rows. One family per file; the contract is in `base/accumulation.py`."""

from typing import TYPE_CHECKING

from beamish.exports import exported

if TYPE_CHECKING:
    from beamish.accumulations.approx_count_distinct import ApproxCountDistinct
    from beamish.accumulations.base.accumulation import Accumulation
    from beamish.accumulations.collect import Collect, CollectSet, CountDistinct
    from beamish.accumulations.first_last import First, Last
    from beamish.accumulations.frequencies import Entropy, Histogram, Mode, MostFrequent
    from beamish.accumulations.joins import CoGroup, FullOuterJoin, InnerJoin, LeftOuterJoin, RightOuterJoin
    from beamish.accumulations.logical import BitAnd, BitOr, BitXor, BoolAnd, BoolOr, CountIf
    from beamish.accumulations.min_max import Max, MaxBy, Min, MinBy
    from beamish.accumulations.moments import Correlation, Covariance, Kurtosis, LinearRegression, Skewness
    from beamish.accumulations.quantiles import Median, Quantiles
    from beamish.accumulations.reduce_fold import Fold, Reduce
    from beamish.accumulations.sums import Count, Mean, Product, Sum, SumList
    from beamish.accumulations.top import BottomN, BottomNByKey, TopN, TopNByKey, TopRows
    from beamish.accumulations.variance import StdDev, Variance
else:
    __getattr__ = exported(
        __name__,
        {
            "beamish.accumulations.approx_count_distinct": "ApproxCountDistinct",
            "beamish.accumulations.base.accumulation": "Accumulation",
            "beamish.accumulations.collect": "Collect CollectSet CountDistinct",
            "beamish.accumulations.first_last": "First Last",
            "beamish.accumulations.frequencies": "Entropy Histogram Mode MostFrequent",
            "beamish.accumulations.joins": "CoGroup FullOuterJoin InnerJoin LeftOuterJoin RightOuterJoin",
            "beamish.accumulations.logical": "BitAnd BitOr BitXor BoolAnd BoolOr CountIf",
            "beamish.accumulations.min_max": "Max MaxBy Min MinBy",
            "beamish.accumulations.moments": "Correlation Covariance Kurtosis LinearRegression Skewness",
            "beamish.accumulations.quantiles": "Median Quantiles",
            "beamish.accumulations.reduce_fold": "Fold Reduce",
            "beamish.accumulations.sums": "Count Mean Product Sum SumList",
            "beamish.accumulations.top": "BottomN BottomNByKey TopN TopNByKey TopRows",
            "beamish.accumulations.variance": "StdDev Variance",
        },
    )

__all__ = [
    "Accumulation",
    "ApproxCountDistinct",
    "BitAnd",
    "BitOr",
    "BitXor",
    "BoolAnd",
    "BoolOr",
    "BottomN",
    "BottomNByKey",
    "CoGroup",
    "Collect",
    "CollectSet",
    "Correlation",
    "Count",
    "CountDistinct",
    "CountIf",
    "Covariance",
    "Entropy",
    "First",
    "Fold",
    "FullOuterJoin",
    "Histogram",
    "InnerJoin",
    "Kurtosis",
    "Last",
    "LeftOuterJoin",
    "LinearRegression",
    "Max",
    "MaxBy",
    "Mean",
    "Median",
    "Min",
    "MinBy",
    "Mode",
    "MostFrequent",
    "Product",
    "Quantiles",
    "Reduce",
    "RightOuterJoin",
    "Skewness",
    "StdDev",
    "Sum",
    "SumList",
    "TopN",
    "TopNByKey",
    "TopRows",
    "Variance",
]


def __dir__() -> list[str]:
    return list(__all__)
