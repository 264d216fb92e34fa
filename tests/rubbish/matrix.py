"""Cells of the matrix: an accumulation of a column, and the same by plain Spark SQL."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import attrs
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import beamish as bm
from beamish import accumulations as a
from tests.rubbish.values import TYPES

WINDOWS: dict[str, tuple[bm.WindowOption, Any]] = {
    "fixed": (bm.FixedWindows("10 seconds"), lambda: F.window("ts", "10 seconds")),
    "sliding": (bm.SlidingWindows("20 seconds", "10 seconds"), lambda: F.window("ts", "20 seconds", "10 seconds")),
    "sessions": (bm.Sessions("10 seconds"), lambda: F.session_window("ts", "10 seconds")),
    "global": (bm.GlobalWindow(), None),
}
_IN_TIME = (
    "transform(array_sort(collect_list(struct(ts AS t, {c} AS v)) FILTER (WHERE {c} IS NOT NULL), "
    "(l, r) -> CASE WHEN l.t < r.t THEN -1 WHEN l.t > r.t THEN 1 ELSE 0 END), x -> x.v)"
)
ACCUMULATIONS: dict[str, tuple[Any, str]] = {
    "count": (a.Count, "count({c})"),
    "sum": (a.Sum, "sum({c})"),
    "mean": (a.Mean, "avg({c})"),
    "variance": (a.Variance, "var_samp({c})"),
    "min": (a.Min, "min({c})"),
    "max": (a.Max, "max({c})"),
    "first": (a.First, "min_by({c}, ts)"),
    "last": (a.Last, "max_by({c}, ts)"),
    "min_by": (lambda c: a.MinBy(c, by="ts"), "min_by({c}, ts)"),
    "max_by": (lambda c: a.MaxBy(c, by="ts"), "max_by({c}, ts)"),
    "collect": (a.Collect, _IN_TIME),
    "collect_set": (a.CollectSet, "sort_array(collect_set({c}))"),
    "count_distinct": (a.CountDistinct, "CAST(size(collect_set({c})) AS bigint)"),
    "top": (lambda c: a.TopN(3, c), "slice(sort_array(collect_list({c}), false), 1, 3)"),
    "median": (a.Median, "percentile({c}, 0.5)"),
}
NUMBERS = [name for name in TYPES if name.endswith("int") or name.startswith(("float", "double", "decimal"))]


@attrs.frozen
class Cell:
    """An accumulation of the column of a type.

    Attributes:
        name: of its output column.
        accumulation: what beamish computes.
        sql: what Spark does.
    """

    name: str
    type: str
    accumulation: a.Accumulation
    sql: str

    @property
    def is_taken(self) -> bool:
        """Whether beamish takes it: numbers are added up, and what has no order is only counted."""
        of_numbers = self.name.startswith(("sum", "mean", "variance", "median"))
        is_number = self.type in NUMBERS
        return is_number if of_numbers else self.type != "map" or self.name.startswith("count_map")


def cells() -> Iterator[Cell]:
    """All of them."""
    for type_ in TYPES:
        column = f"v_{type_}"
        for name, (make, sql) in ACCUMULATIONS.items():
            yield Cell(f"{name}_{type_}", type_, make(column), sql.format(c=column))


def pipeline_of(window: bm.WindowOption, accumulations: Mapping[str, a.Accumulation]) -> bm.Pipeline:
    pipeline = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness("1 hour")).key_by("k").window(window)
    return pipeline.accumulate(**accumulations)


def refused(rows: DataFrame, cell: Cell) -> str | None:
    """What beamish says of a cell before it runs; None: it takes it."""
    try:
        pipeline_of(bm.FixedWindows(10), {cell.name: cell.accumulation}).apply(rows)
    except bm.ColumnError as error:
        return str(error)
    return None


def spark_cannot(rows: DataFrame, cell: Cell) -> bool:
    """Whether Spark refuses the same aggregate."""
    try:
        rows.agg(F.expr(cell.sql)).schema  # noqa: B018 - it is analysed
    except Exception:  # noqa: BLE001 - Spark's
        return True
    return False


def by_sql(rows: DataFrame, window: str, taken: list[Cell]) -> pa.Table:
    """The same by plain Spark SQL."""
    of = WINDOWS[window][1]
    groups = ["k"] if of is None else ["k", of().alias("window")]
    return rows.groupBy(*groups).agg(*(F.expr(cell.sql).alias(cell.name) for cell in taken)).toArrow()


def canon(value: Any) -> Any:
    """A value by which equal ones are found: NaN is one, and so is zero."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    if isinstance(value, dict):
        return {name: canon(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [canon(one) for one in value]
    return value


def same(ours: Any, theirs: Any) -> bool:
    ours, theirs = canon(ours), canon(theirs)
    if isinstance(ours, float) and isinstance(theirs, float):
        return ours == theirs or math.isclose(ours, theirs, rel_tol=1e-9)
    return bool(ours == theirs)


def differences(ours: pa.Table, theirs: pa.Table, taken: list[Cell]) -> list[str]:
    """What differs, in words."""

    def by_group(out: pa.Table) -> dict[str, dict[str, Any]]:
        found = {}
        for row in out.to_pylist():
            window = row.get("window") or {"start": None}
            bounds = None if window["start"] is None else (window["start"].isoformat(), window["end"].isoformat())
            found[repr((canon(row["k"]), bounds))] = row
        return found

    mine, spark_s = by_group(ours), by_group(theirs)
    found = [f"group {at} is only {'ours' if at in mine else 'Sparks'}" for at in mine.keys() ^ spark_s.keys()]
    for at in mine.keys() & spark_s.keys():
        for cell in taken:
            x, y = mine[at][cell.name], spark_s[at][cell.name]
            if cell.name.startswith("collect_set"):
                x, y = sorted(map(repr, canon(x))), sorted(map(repr, canon(y)))
            if not same(x, y):
                found.append(f"{cell.name} in {at[:80]}: {repr(x)[:200]}, Spark: {repr(y)[:200]}")
    for cell in taken:
        x, y = (str(out.schema.field(cell.name).type).replace(" not null", "") for out in (ours, theirs))
        if x != y:
            found.append(f"{cell.name}: {x}, Spark: {y}")
    return found
