"""The value of a pane, computed from the list of its rows.

See rules/panes.md#values-of-a-pane-without-rows, rules/output.md#order-dependent-accumulations; the docs of each accumulation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from decimal import ROUND_HALF_UP, Decimal, localcontext
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
    for column in reversed(top.by):
        found.sort(key=lambda row: spark_order(row[column]), reverse=not top.least)
    return [{**row, "row_number": number} for number, row in enumerate(found[: top.n], 1)]


def _top_by_key(top: a.TopNByKey, rows: Sequence[Row]) -> list[dict[str, Any]]:
    greatest: dict[Any, tuple[Any, Any]] = {}
    for row in rows:
        key, value = row.values.get(top.key), row.values.get(top.value)
        if value is not None:
            _, best = greatest.get(spark_order(key), (key, value))
            greatest[spark_order(key)] = (key, max(best, value, key=spark_order))
    by_key = sorted(greatest.values(), key=lambda pair: spark_order(pair[0]))
    best_first = sorted(by_key, key=lambda pair: spark_order(pair[1]), reverse=True)  # stable: equal values by key
    return [{"key": key, "value": value} for key, value in best_first[: top.n]]


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
    a.TopNByKey: _top_by_key,
    a.TopRows: _top_rows,
    a.Quantiles: _quantiles,
    a.Median: _median,
    a.Reduce: _reduce,
    a.Fold: _fold,
}
