"""The value of a pane, computed from the list of its rows.

See rules/panes.md#values-of-a-pane-without-rows, rules/output.md#order-dependent-accumulations; the docs of each accumulation.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from decimal import ROUND_HALF_UP, Decimal, localcontext
from fractions import Fraction
from functools import reduce
from typing import Any, NamedTuple

from beamish import NumericOverflowError
from beamish import accumulations as a
from beamish.accumulations import Accumulation
from tests.twin.order import spark_order


class Row(NamedTuple):
    """A row in a window.

    Attributes:
        bundle: the number of its bundle.
        time_us: its event time.
        values: its columns.
        before_end: it arrived while the watermark was before the end of its window.
        input: its input, in a merge.
    """

    bundle: int
    time_us: int
    values: Mapping[str, Any]
    before_end: bool
    input: str | None = None


def value_of(accumulation: Accumulation, rows: Sequence[Row]) -> Any:
    """The value of a pane of these rows."""
    compute: Callable[[Any, Sequence[Row]], Any] = VALUES.get(type(accumulation), _own)
    return compute(accumulation, rows)


def _by_time(rows: Sequence[Row], column: str) -> list[Any]:
    """Values by (event time, then the value in Spark's sort order, nulls first).

    See rules/output.md#order-dependent-accumulations.
    """
    return [
        row.values.get(column)
        for row in sorted(rows, key=lambda row: (row.time_us, spark_order(row.values.get(column))))
    ]


def _values(rows: Sequence[Row], column: str) -> list[Any]:
    """The non-null values of a column, by event time."""
    return [value for value in _by_time(rows, column) if value is not None]


def _sorted(rows: Sequence[Row], column: str) -> list[Any]:
    return sorted(_values(rows, column), key=spark_order)


def _distinct(values: Sequence[Any]) -> list[Any]:
    """Distinct values, in Spark's order."""
    return [value for _, value in sorted({spark_order(value): value for value in values}.items())]


def _count(count: a.Count, rows: Sequence[Row]) -> int:
    return len(rows) if count.column is None else len(_values(rows, count.column))


def _total(values: Sequence[Any]) -> Any:
    with localcontext(prec=76):
        return sum(values[1:], values[0])


def _sum(sum_: a.Sum, rows: Sequence[Row]) -> Any:
    values = _values(rows, sum_.column)
    if not values:
        return None
    total = _total(values)
    if isinstance(total, int) and not -(2**63) <= total < 2**63:
        raise NumericOverflowError(f"{sum_!r}: {total} is no bigint")
    return total


def _mean(mean: a.Mean, rows: Sequence[Row]) -> Any:
    values = _values(rows, mean.column)
    if not values:
        return None
    if not isinstance(values[0], Decimal):
        return float(_total(values)) / len(values)
    scale = max(-int(value.as_tuple().exponent) for value in values) + 4
    with localcontext(prec=76):
        return (_total(values) / len(values)).quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP)


def _variance(spread: a.Variance | a.StdDev, rows: Sequence[Row]) -> float | None:
    values = [float(value) for value in _values(rows, spread.column)]
    if not values or (len(values) == 1 and not spread.population):
        return None
    mean = sum(values) / len(values)
    return sum((value - mean) ** 2 for value in values) / (len(values) - (not spread.population))


def _std_dev(spread: a.StdDev, rows: Sequence[Row]) -> float | None:
    variance = _variance(spread, rows)
    return None if variance is None else math.sqrt(variance)


def _exact(values: Sequence[Any]) -> list[Any]:
    """Numbers as doubles, and exact from there, so that equal values do not vary."""
    doubles = [float(value) for value in values]
    return list(map(Fraction, doubles)) if all(map(math.isfinite, doubles)) else [math.nan] * len(doubles)


def _moments(values: Sequence[Any], *powers: int) -> list[float]:
    exact = _exact(values)
    mean = sum(exact) / len(exact)
    return [float(sum((value - mean) ** power for value in exact)) for power in powers]


def _skewness(skewness: a.Skewness, rows: Sequence[Row]) -> float | None:
    values = _values(rows, skewness.column)
    m2, m3 = _moments(values, 2, 3) if values else (0.0, 0.0)
    return None if m2 == 0 else math.sqrt(len(values)) * m3 / m2**1.5


def _kurtosis(kurtosis: a.Kurtosis, rows: Sequence[Row]) -> float | None:
    values = _values(rows, kurtosis.column)
    m2, m4 = _moments(values, 2, 4) if values else (0.0, 0.0)
    return None if m2 == 0 else len(values) * m4 / m2**2 - 3


class _Pairs:
    """The rows that have both columns: their number, means, and sums of products."""

    def __init__(self, of: a.Covariance | a.Correlation | a.LinearRegression, rows: Sequence[Row]) -> None:
        found = [(row.values.get(of.x), row.values.get(of.y)) for row in rows]
        both = [(x, y) for x, y in found if x is not None and y is not None]
        xs, ys = (_exact(values) for values in zip(*both, strict=True)) if both else ([], [])
        self.n = len(both)
        x, y = (sum(values) / len(values) if values else 0 for values in (xs, ys))
        self.x, self.y = float(x), float(y)
        self.xy = float(sum((one - x) * (other - y) for one, other in zip(xs, ys, strict=True)))
        self.xx, self.yy = float(sum((one - x) ** 2 for one in xs)), float(sum((one - y) ** 2 for one in ys))


def _covariance(of: a.Covariance, rows: Sequence[Row]) -> float | None:
    pairs = _Pairs(of, rows)
    divisor = pairs.n if of.population else pairs.n - 1
    return pairs.xy / divisor if divisor > 0 else None


def _correlation(of: a.Correlation, rows: Sequence[Row]) -> float | None:
    pairs = _Pairs(of, rows)
    return pairs.xy / math.sqrt(pairs.xx) / math.sqrt(pairs.yy) if pairs.xx and pairs.yy else None


def _regression(of: a.LinearRegression, rows: Sequence[Row]) -> dict[str, Any]:
    pairs = _Pairs(of, rows)
    slope = pairs.xy / pairs.xx if pairs.xx else None
    line = {
        "slope": slope,
        "intercept": None if slope is None else pairs.y - slope * pairs.x,
        "r2": None if slope is None else pairs.xy**2 / pairs.xx / pairs.yy if pairs.yy else 1.0,
    }
    sums = {"avgx": pairs.x, "avgy": pairs.y, "sxx": pairs.xx, "syy": pairs.yy, "sxy": pairs.xy}
    return {"count": pairs.n, **line, **(sums if pairs.n else dict.fromkeys(sums))}


def _bits(operation: Callable[[int, int], int]) -> Callable[[Any, Sequence[Row]], int | None]:
    def compute(of: Any, rows: Sequence[Row]) -> int | None:
        values = _values(rows, of.column)
        return reduce(operation, values) if values else None

    return compute


def _if_any(combine: Callable[[Sequence[bool]], Any]) -> Callable[[Any, Sequence[Row]], Any]:
    def compute(of: Any, rows: Sequence[Row]) -> Any:
        values = _values(rows, of.column)
        return combine(values) if values else None

    return compute


def _sum_list(of: a.SumList, rows: Sequence[Row]) -> Any:
    items = [item for value in _values(rows, of.column) for item in value if item is not None]
    return _sum(a.Sum("item"), [Row(0, 0, {"item": item}, before_end=True) for item in items])


def _histogram(of: Any, rows: Sequence[Row]) -> list[dict[str, Any]]:
    values = _values(rows, of.column)
    counts = [sum(spark_order(value) == spark_order(other) for other in values) for value in _distinct(values)]
    return [{"value": value, "count": count} for value, count in zip(_distinct(values), counts, strict=True)]


def _most_frequent(of: a.MostFrequent, rows: Sequence[Row]) -> list[dict[str, Any]]:
    return sorted(_histogram(of, rows), key=lambda pair: -pair["count"])[: of.n]


def _mode(of: a.Mode, rows: Sequence[Row]) -> Any:
    pairs = sorted(_histogram(of, rows), key=lambda pair: -pair["count"])
    return pairs[0]["value"] if pairs else None


def _entropy(of: a.Entropy, rows: Sequence[Row]) -> float | None:
    counts = [pair["count"] for pair in _histogram(of, rows)]
    return -sum(n / sum(counts) * math.log2(n / sum(counts)) for n in counts) if counts else None


def _min(least: a.Min, rows: Sequence[Row]) -> Any:
    return (_sorted(rows, least.column) or [None])[0]


def _max(greatest: a.Max, rows: Sequence[Row]) -> Any:
    return (_sorted(rows, greatest.column) or [None])[-1]


def _compared(by: a.MinBy | a.MaxBy, rows: Sequence[Row]) -> list[Any]:
    """The values of the rows with something to compare, by (that, the value, null first)."""
    pairs = [(row.values.get(by.by), row.values.get(by.column)) for row in rows]
    compared = [pair for pair in pairs if pair[0] is not None]
    return [value for _, value in sorted(compared, key=lambda pair: (spark_order(pair[0]), spark_order(pair[1])))]


def _min_by(least: a.MinBy, rows: Sequence[Row]) -> Any:
    return (_compared(least, rows) or [None])[0]


def _max_by(greatest: a.MaxBy, rows: Sequence[Row]) -> Any:
    return (_compared(greatest, rows) or [None])[-1]


def _edge(edge: a.First | a.Last, rows: Sequence[Row]) -> list[Any]:
    return (_values if edge.ignore_nulls else _by_time)(rows, edge.column) or [None]


def _first(first: a.First, rows: Sequence[Row]) -> Any:
    return _edge(first, rows)[0]


def _last(last: a.Last, rows: Sequence[Row]) -> Any:
    return _edge(last, rows)[-1]


def _collect(collect: a.Collect, rows: Sequence[Row]) -> list[Any]:
    values = _in_order(collect, rows)
    return values[::-1] if collect.descending else values


def _in_order(collect: a.Collect, rows: Sequence[Row]) -> list[Any]:
    by = collect.sorted_by
    if by is not None:
        rows = [row for row in rows if row.values.get(collect.column) is not None]
        rows = sorted(
            rows,
            key=lambda row: (
                spark_order(row.values.get(by)),
                row.time_us,
                spark_order(row.values.get(collect.column)),
            ),
        )
        return [row.values.get(collect.column) for row in rows]
    return _values(rows, collect.column)


def _collect_set(collect: a.CollectSet, rows: Sequence[Row]) -> list[Any]:
    return _distinct(_values(rows, collect.column))


def _count_distinct(count: a.CountDistinct, rows: Sequence[Row]) -> int:
    found = [[row.values.get(column) for column in count.columns] for row in rows]
    return len(_distinct([values for values in found if None not in values]))


def _approx_count_distinct(count: a.ApproxCountDistinct, rows: Sequence[Row]) -> int:
    return len(_distinct(_values(rows, count.column)))


def _top(top: a.TopN, rows: Sequence[Row]) -> list[Any]:
    return _sorted(rows, top.column)[::-1][: top.n]


def _bottom(bottom: a.BottomN, rows: Sequence[Row]) -> list[Any]:
    return _sorted(rows, bottom.column)[: bottom.n]


def _top_rows(top: a.TopRows, rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Ties are by all columns, ascending; then by one column after the other, the first last, since sorting is stable."""
    found = sorted((dict(row.values) for row in rows), key=lambda row: [spark_order(value) for value in row.values()])
    each = [top.least] * len(top.by) if isinstance(top.least, bool) else top.least
    for column, least in reversed(list(zip(top.by, each, strict=True))):
        found.sort(key=lambda row: spark_order(row[column]), reverse=not least)
    last = min(len(found), top.n)
    while top.with_ties and last < len(found) and _tied_by(top, found[last]) == _tied_by(top, found[last - 1]):
        last += 1
    return [{**row, "row_number": number} for number, row in enumerate(found[:last], 1)]


def _tied_by(top: a.TopRows, row: dict[str, Any]) -> list[Any]:
    return [spark_order(row[column]) for column in top.by]


def _by_key(of: a.TopNByKey | a.BottomNByKey, rows: Sequence[Row]) -> list[dict[str, Any]]:
    greatest = isinstance(of, a.TopNByKey)
    outermost: dict[Any, tuple[Any, Any]] = {}
    for row in rows:
        key, value = row.values.get(of.key), row.values.get(of.value)
        if value is not None:
            _, best = outermost.get(spark_order(key), (key, value))
            outermost[spark_order(key)] = (key, (max if greatest else min)(best, value, key=spark_order))
    by_key = sorted(outermost.values(), key=lambda pair: spark_order(pair[0]))
    in_order = sorted(by_key, key=lambda pair: spark_order(pair[1]), reverse=greatest)  # stable: equal values by key
    last = spark_order(in_order[min(of.n, len(in_order)) - 1][1]) if in_order else None
    tied = [pair for pair in in_order[of.n :] if of.with_ties and spark_order(pair[1]) == last]
    return [{"key": key, "value": value} for key, value in [*in_order[: of.n], *tied]]


def _percentiles(values: Sequence[Any], probabilities: Sequence[float]) -> list[float] | None:
    if not values:
        return None
    found = []
    for probability in probabilities:
        place = probability * (len(values) - 1)
        low, high = math.floor(place), math.ceil(place)
        at_low, at_high = float(values[low]), float(values[high])
        found.append(
            at_low if at_low == at_high else at_low + (place - low) * (at_high - at_low) if low < high else at_low
        )
    return found


def _quantiles(quantiles: a.Quantiles, rows: Sequence[Row]) -> list[float] | None:
    return _percentiles(_sorted(rows, quantiles.column), quantiles.probabilities)


def _median(median: a.Median, rows: Sequence[Row]) -> float | None:
    found = _percentiles(_sorted(rows, median.column), [0.5])
    return found and found[0]  # type: ignore[return-value]


def _reduce(reduce_: a.Reduce, rows: Sequence[Row]) -> Any:
    values = _values(rows, reduce_.column)
    return reduce(reduce_.fn, values) if values else None


def _fold(fold: a.Fold, rows: Sequence[Row]) -> Any:
    """In the order of (event time, row) within a bundle; bundles as they came.

    See rules/output.md#order-dependent-accumulations.
    """

    def value(row: Row) -> Any:
        return dict(row.values) if fold.column is None else row.values.get(fold.column)

    accumulator = deepcopy(fold.initial)
    for row in sorted(rows, key=lambda row: (row.bundle, row.time_us, spark_order(value(row)))):
        accumulator = fold.fn(accumulator, value(row))
    return accumulator


def _own(accumulation: Accumulation, rows: Sequence[Row]) -> Any:
    """A custom accumulation: rows in the order of their event times."""

    def value(row: Row) -> Any:
        column = accumulation.column
        if column is None:
            return dict(row.values)
        return row.values.get(column) if isinstance(column, str) else tuple(row.values.get(name) for name in column)

    accumulator = accumulation.create()
    for row in sorted(rows, key=lambda row: (row.time_us, spark_order(value(row)))):
        accumulator = accumulation.add(accumulator, value(row))
    return accumulation.extract(accumulator)


VALUES: dict[type[Accumulation], Callable[[Any, Sequence[Row]], Any]] = {
    a.Count: _count,
    a.Sum: _sum,
    a.Mean: _mean,
    a.Variance: _variance,
    a.StdDev: _std_dev,
    a.Min: _min,
    a.Max: _max,
    a.MinBy: _min_by,
    a.MaxBy: _max_by,
    a.First: _first,
    a.Last: _last,
    a.Collect: _collect,
    a.CollectSet: _collect_set,
    a.CountDistinct: _count_distinct,
    a.ApproxCountDistinct: _approx_count_distinct,
    a.TopN: _top,
    a.BottomN: _bottom,
    a.TopNByKey: _by_key,
    a.BottomNByKey: _by_key,
    a.Skewness: _skewness,
    a.Kurtosis: _kurtosis,
    a.Covariance: _covariance,
    a.Correlation: _correlation,
    a.LinearRegression: _regression,
    a.BitAnd: _bits(operator.and_),
    a.BitOr: _bits(operator.or_),
    a.BitXor: _bits(operator.xor),
    a.BoolAnd: _if_any(all),
    a.BoolOr: _if_any(any),
    a.CountIf: lambda of, rows: sum(_values(rows, of.column)),
    a.Product: _if_any(lambda values: math.prod(map(float, values))),
    a.SumList: _sum_list,
    a.Histogram: _histogram,
    a.MostFrequent: _most_frequent,
    a.Mode: _mode,
    a.Entropy: _entropy,
    a.TopRows: _top_rows,
    a.Quantiles: _quantiles,
    a.Median: _median,
    a.Reduce: _reduce,
    a.Fold: _fold,
}
