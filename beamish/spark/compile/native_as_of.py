"""An as-of join of batch DataFrames as Spark's own window function (docs/rules/running.md#batch-plan).

Rows and changes are sorted together by key and time, and each row is joined with the last change before it.
``why_not_native_as_of`` has the reason for unsupported plans, which the engine runs (batch.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from beamish.kernels.order import is_orderable
from beamish.kernels.reserved import PREFIX
from beamish.kinds.as_of.plan import TABLE, AsOfPlan
from beamish.kinds.versions.options import VALID_FROM
from beamish.spark.compile.native import final_pane
from beamish.spark.rows.columns import column
from beamish.spark.rows.types import spark_schema, spark_type
from beamish.spark.rows.watermark_column import is_in_range

_KEY, _TIME, _IS_CHANGE = PREFIX + "key.", PREFIX + "time_us", PREFIX + "is_change"
_SEQUENCE, _SETS, _VALUE, _ROW = PREFIX + "sequence", PREFIX + "sets", PREFIX + "value.", PREFIX + "row."
_MET, _NUMBER = PREFIX + "met", PREFIX + "number"


def why_not_native_as_of(plan: AsOfPlan) -> str:
    """Why a plan cannot use Spark's own window function; empty if it can."""
    if any(relation.is_panes for relation in plan.takes):
        return "it takes the panes of another stage"
    if any(relation.where is not None for relation in plan.takes):
        return "where(...) is not Spark's, and may treat nulls and types differently"
    if plan.options.with_dropped:
        return "with_dropped() lists the rows without event time, which Spark would not show"
    if plan.table.options.only_updated:
        return "only_updated needs the start of equal values"
    keys, values = plan.table.key_schema, plan.table.value_schema
    if not len(keys):
        return "there is a single key, which Spark would warn about"
    if any(pa.types.is_nested(key.type) or pa.types.is_floating(key.type) for key in keys):
        return "Spark compares null, -0.0 and 0.0 within such keys differently"
    for value in values:
        if not is_orderable(value.type):
            return f"Spark cannot order by {value.name!r}, which decides between changes of the same time"
    return ""


def native_joined(plan: AsOfPlan, rows: DataFrame, changes: DataFrame) -> DataFrame:
    """The final rows of an as-of join of batch DataFrames, for a supported plan."""
    both = _rows(plan, rows).unionAll(_changes(plan, changes))
    first = F.col(_IS_CHANGE).desc() if plan.options.allow_exact_matches else F.col(_IS_CHANGE).asc()
    ties = [_SEQUENCE, _SETS, *(f"{_VALUE}{name}" for name in plan.table.value_schema.names)]
    keys = [column(f"{_KEY}{number}") for number in range(len(plan.left.keys))]
    before = Window.partitionBy(*keys).orderBy(_TIME, first, *(column(name).asc_nulls_first() for name in ties))
    change = F.struct(_TIME, _SETS, *(column(f"{_VALUE}{name}") for name in plan.table.value_schema.names))
    last = F.last(F.when(F.col(_IS_CHANGE), change), ignorenulls=True)
    met = {_MET: last.over(before.rowsBetween(Window.unboundedPreceding, 0)), _NUMBER: F.row_number().over(before)}
    joined = both.withColumns(met).where(~F.col(_IS_CHANGE))
    if plan.options.how == "inner":
        joined = joined.where(_matches(plan))
    return joined.select(*_output(plan))


def _with_keys(df: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Drop rows without a key."""
    return reduce(lambda df, name: df.where(column(name).isNotNull()), keys, df)


def _rows(plan: AsOfPlan, df: DataFrame) -> DataFrame:
    time = column(str(plan.left.event_time))
    made: dict[str, Column] = {
        _TIME: F.unix_micros(time),
        _IS_CHANGE: F.lit(col=False),
        **{f"{_KEY}{number}": column(name) for number, name in enumerate(plan.left.keys)},
        **{f"{_ROW}{name}": column(name) for name in plan.left_schema.names},
    }
    if plan.options.how == "inner":  # null matches nothing
        df = _with_keys(df, plan.left.keys)
    return df.where(is_in_range(time)).select(*_columns(plan, made))


def _changes(plan: AsOfPlan, df: DataFrame) -> DataFrame:
    options, takes = plan.table.options, plan.takes[TABLE]
    time = column(str(takes.event_time))
    deletes = F.lit(col=False) if options.deleted is None else F.coalesce(column(options.deleted), F.lit(col=False))
    made: dict[str, Column] = {
        _TIME: F.unix_micros(time),
        _IS_CHANGE: F.lit(col=True),
        _SETS: ~deletes.cast("boolean"),
        **{f"{_KEY}{number}": column(name) for number, name in enumerate(takes.keys)},
        **{f"{_VALUE}{name}": column(name) for name in plan.table.value_schema.names},
    }
    if options.sequence_by is not None:
        made[_SEQUENCE] = column(options.sequence_by)
    return _with_keys(df, takes.keys).where(is_in_range(time)).select(*_columns(plan, made))


def _columns(plan: AsOfPlan, made: Mapping[str, Column]) -> Iterator[Column]:
    """The common columns of rows and changes; null where not applicable."""
    sequence = plan.table.sequence
    types = {_TIME: pa.int64(), _IS_CHANGE: pa.bool_(), _SETS: pa.bool_()}
    types[_SEQUENCE] = pa.int8() if sequence is None else sequence.type
    types |= {f"{_KEY}{number}": key.type for number, key in enumerate(plan.table.key_schema)}
    types |= {f"{_VALUE}{value.name}": value.type for value in plan.table.value_schema}
    types |= {f"{_ROW}{field.name}": field.type for field in plan.left_schema}
    for name, type_ in types.items():
        yield made.get(name, F.lit(None)).cast(spark_type(type_)).alias(name)


def _matches(plan: AsOfPlan) -> Column:
    """Whether a row has a match."""
    matches = F.coalesce(F.col(_MET)[_SETS], F.lit(col=False))
    if plan.options.tolerance is None:
        return matches
    return matches & (F.col(_TIME) - F.col(_MET)[_TIME] <= F.lit(plan.options.tolerance.us))


def _output(plan: AsOfPlan) -> Iterator[Column]:
    """The columns of the plan's output."""
    assert plan.gives.schema is not None  # noqa: S101 - it is bound
    match = [F.col(_MET)[f"{_VALUE}{name}"].alias(name) for name in plan.table.value_schema.names]
    match.append(F.timestamp_micros(F.col(_MET)[_TIME]).alias(VALID_FROM))
    made = {
        str(plan.takes[TABLE].name): F.when(_matches(plan), F.struct(*match)),
        "window": F.lit(None),
        "pane": final_pane(F.col(_NUMBER)),
        "timestamp": F.timestamp_micros(F.col(_TIME)),
    }
    for field in spark_schema(plan.gives.schema):
        made_of = made[field.name] if field.name in made else column(f"{_ROW}{field.name}")
        yield made_of.cast(field.dataType).alias(field.name)
