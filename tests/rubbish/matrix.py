"""Cells of the matrix: an accumulation of a column, and the same by plain Spark SQL."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import attrs
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import FractionalType

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
ORDERED = (a.Min, a.Max, a.TopN, a.Median)
"""These order values, and 0.0 equals -0.0: which of the two comes where both did is not said (docs/rules/output.md#keys), nor does Spark say it."""
FLOATS = ("float", "double")
_BOTH_ZEROS = "size(collect_set(CAST({c} AS string)) FILTER (WHERE {c} = 0)) > 1"
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
    """The error of beamish about a cell before it runs, or None."""
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
    """The same by plain Spark SQL, and of each type of floats whether both zeros came."""
    of = WINDOWS[window][1]
    groups = ["k"] if of is None else ["k", of().alias("window")]
    if window == "sessions" and isinstance(rows.schema["k"].dataType, FractionalType):
        rows = rows.withColumn("k", F.expr("IF(k = 0, abs(k), k)"))  # session_window takes 0.0 and -0.0 for two keys
    both = [F.expr(_BOTH_ZEROS.format(c=f"v_{name}")).alias(f"both_zeros_{name}") for name in FLOATS]
    return rows.groupBy(*groups).agg(*(F.expr(cell.sql).alias(cell.name) for cell in taken), *both).toArrow()


def canon(value: Any, *, one_zero: bool = False) -> Any:
    """A value by which equal ones are found: NaN is one; 0.0 and -0.0 are only if there is ``one_zero``."""
    if isinstance(value, float):
        if value == 0 and math.copysign(1, value) < 0:
            return 0.0 if one_zero else "-0.0"
        return "NaN" if math.isnan(value) else value
    if isinstance(value, dict):
        return {name: canon(one, one_zero=one_zero) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [canon(one, one_zero=one_zero) for one in value]
    return value


def same(ours: Any, theirs: Any) -> bool:
    """Whether two canonical values are, floats but for rounding."""
    if isinstance(ours, float) and isinstance(theirs, float):
        return ours == theirs or math.isclose(ours, theirs, rel_tol=1e-9)
    return bool(ours == theirs)


def differences(ours: pa.Table, theirs: pa.Table, taken: list[Cell]) -> list[str]:
    """The differences, in words."""
    found: list[str] = []

    def by_group(out: pa.Table, whose: str) -> dict[str, dict[str, Any]]:
        groups: dict[str, dict[str, Any]] = {}
        for row in out.to_pylist():
            window = row.get("window") or {"start": None}
            bounds = None if window["start"] is None else (window["start"].isoformat(), window["end"].isoformat())
            at = repr((canon(row["k"]), bounds))
            if at in groups:
                found.append(f"group {at[:80]} comes twice, {whose}")
            groups[at] = row
        return groups

    mine, spark_s = by_group(ours, "ours"), by_group(theirs, "Sparks")
    found += [f"group {at[:80]} is only {'ours' if at in mine else 'Sparks'}" for at in mine.keys() ^ spark_s.keys()]
    for at in mine.keys() & spark_s.keys():
        for cell in taken:
            one_zero = isinstance(cell.accumulation, ORDERED) and spark_s[at].get(f"both_zeros_{cell.type}", False)
            x, y = (canon(row[cell.name], one_zero=one_zero) for row in (mine[at], spark_s[at]))
            if isinstance(cell.accumulation, a.CollectSet):
                x, y = sorted(map(repr, x)), sorted(map(repr, y))
            if not same(x, y):
                found.append(f"{cell.name} in {at[:80]}: {repr(x)[:200]}, Spark: {repr(y)[:200]}")
    for cell in taken:
        x, y = (str(out.schema.field(cell.name).type).replace(" not null", "") for out in (ours, theirs))
        if x != y:
            found.append(f"{cell.name}: {x}, Spark: {y}")
    return found
