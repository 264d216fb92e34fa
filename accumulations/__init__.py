"""Accumulations: aggregations of a window's rows. One family per file; the contract is in `base/accumulation.py`."""

from typing import TYPE_CHECKING

from beamish.exports import exported

if TYPE_CHECKING:
    from beamish.accumulations.approx_count_distinct import ApproxCountDistinct
    from beamish.accumulations.base.accumulation import Accumulation
    from beamish.accumulations.collect import Collect, CollectSet, CountDistinct
    from beamish.accumulations.first_last import First, Last
    from beamish.accumulations.joins import CoGroup, FullOuterJoin, InnerJoin, LeftOuterJoin, RightOuterJoin
    from beamish.accumulations.min_max import Max, MaxBy, Min, MinBy
    from beamish.accumulations.quantiles import Median, Quantiles
    from beamish.accumulations.reduce_fold import Fold, Reduce
    from beamish.accumulations.sums import Count, Mean, Sum
    from beamish.accumulations.top import BottomN, TopN, TopNByKey, TopRows
    from beamish.accumulations.variance import StdDev, Variance
else:
    __getattr__ = exported(
        __name__,
        {
            "beamish.accumulations.approx_count_distinct": "ApproxCountDistinct",
            "beamish.accumulations.base.accumulation": "Accumulation",
            "beamish.accumulations.collect": "Collect CollectSet CountDistinct",
            "beamish.accumulations.first_last": "First Last",
            "beamish.accumulations.joins": "CoGroup FullOuterJoin InnerJoin LeftOuterJoin RightOuterJoin",
            "beamish.accumulations.min_max": "Max MaxBy Min MinBy",
            "beamish.accumulations.quantiles": "Median Quantiles",
            "beamish.accumulations.reduce_fold": "Fold Reduce",
            "beamish.accumulations.sums": "Count Mean Sum",
            "beamish.accumulations.top": "BottomN TopN TopNByKey TopRows",
            "beamish.accumulations.variance": "StdDev Variance",
        },
    )

__all__ = [
    "Accumulation",
    "ApproxCountDistinct",
    "BottomN",
    "CoGroup",
    "Collect",
    "CollectSet",
    "Count",
    "CountDistinct",
    "First",
    "Fold",
    "FullOuterJoin",
    "InnerJoin",
    "Last",
    "LeftOuterJoin",
    "Max",
    "MaxBy",
    "Mean",
    "Median",
    "Min",
    "MinBy",
    "Quantiles",
    "Reduce",
    "RightOuterJoin",
    "StdDev",
    "Sum",
    "TopN",
    "TopNByKey",
    "TopRows",
    "Variance",
]


def __dir__() -> list[str]:
    return list(__all__)
