"""Accumulations of the columns of a drawn row (``scripts.rows``)."""

from __future__ import annotations

import operator

from hypothesis import strategies as st

from beamish import accumulations as a
from tests.own.accumulations import Balance, Distinct, PairsSeen, Range, add_scores, join, names_seen, sorted_names

any_column = st.sampled_from(["score", "ratio", "name", "cost", "flag"])
numbers = st.sampled_from(["score", "ratio"])
amounts = st.sampled_from(["score", "ratio", "cost"])
count = st.builds(a.Count, st.none() | any_column)
sum_ = st.builds(a.Sum, amounts)
min_by = st.builds(a.MinBy, any_column, by=any_column)
max_by = st.builds(a.MaxBy, any_column, by=any_column)
min_ = st.builds(a.Min, any_column)
max_ = st.builds(a.Max, any_column)
mean = st.builds(a.Mean, numbers)
variance = st.builds(a.Variance, numbers, population=st.booleans())
std_dev = st.builds(a.StdDev, numbers, population=st.booleans())
first = st.builds(a.First, any_column, ignore_nulls=st.booleans())
last = st.builds(a.Last, any_column, ignore_nulls=st.booleans())
collect = st.builds(a.Collect, any_column, sorted_by=st.none() | any_column, descending=st.booleans())
collect_set = st.builds(a.CollectSet, any_column)
count_distinct = st.lists(any_column, min_size=1, max_size=2, unique=True).map(lambda c: a.CountDistinct(*c))
approx_count_distinct = st.builds(a.ApproxCountDistinct, any_column, rsd=st.sampled_from([0.05, 0.2]))
top_n = st.builds(a.TopN, st.integers(1, 3), any_column)
bottom_n = st.builds(a.BottomN, st.integers(1, 3), any_column)
by_key = {"key": any_column, "value": any_column, "with_ties": st.booleans()}
top_n_by_key = st.builds(a.TopNByKey, st.integers(1, 3), **by_key)
bottom_n_by_key = st.builds(a.BottomNByKey, st.integers(1, 3), **by_key)
bits = st.sampled_from([a.BitAnd, a.BitOr, a.BitXor]).map(lambda kind: kind("score"))
booleans = st.sampled_from([a.BoolAnd, a.BoolOr, a.CountIf]).map(lambda kind: kind("flag"))
frequencies = st.builds(a.Histogram, any_column) | st.builds(a.MostFrequent, st.integers(1, 3), any_column)
mode = st.builds(a.Mode, any_column)
product = st.builds(a.Product, st.sampled_from(["score", "cost"]))
shapes = st.builds(a.Skewness, numbers) | st.builds(a.Kurtosis, numbers) | st.builds(a.Entropy, any_column)
of_two = st.sampled_from([a.Covariance, a.Correlation, a.LinearRegression]).flatmap(
    lambda kind: st.builds(kind, numbers, numbers)
)
top_rows = st.lists(st.sampled_from(["score", "name", "cost"]), min_size=1, max_size=2, unique=True).flatmap(
    lambda by: st.builds(
        a.TopRows,
        st.integers(1, 3),
        by=st.just(by),
        least=st.booleans() | st.lists(st.booleans(), min_size=len(by), max_size=len(by)),
    )
)
"""Alone in a pipeline."""
quantiles = st.builds(a.Quantiles, numbers, st.sampled_from([(0.25, 0.5, 0.75), (0.0, 1.0), (0.9,)]))
median = st.builds(a.Median, numbers)
reduce_ = st.builds(a.Reduce, st.sampled_from([operator.add, operator.xor]), st.just("score"))
fold = st.sampled_from(
    [
        a.Fold(0, add_scores, column="score", merge=operator.add),
        a.Fold([], sorted_names, merge=join, result_type="array<string>"),
    ]
)
fold_in_order = st.just(a.Fold([], names_seen, result_type="array<string>"))
"""For windows that do not merge."""
own_accumulations = st.sampled_from([Range("score"), PairsSeen(), Balance("score"), Distinct("name")])

exact = st.one_of(
    st.just(a.Count()),
    st.just(a.Sum("score")),
    count,
    st.builds(a.Sum, st.sampled_from(["score", "cost"])),
    min_,
    max_,
    min_by,
    max_by,
    first,
    last,
    collect,
    collect_set,
    count_distinct,
    top_n,
    bottom_n,
    st.one_of(top_n_by_key, bottom_n_by_key, bits, booleans, frequencies, mode),
    reduce_,
    fold,
    own_accumulations,
)
accumulations = st.one_of(
    exact, exact, sum_, mean, variance, std_dev, approx_count_distinct, quantiles, median, shapes, of_two, product
)
