"""Initial rows of versioned tables: batch DataFrames of changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from beamish.errors import ColumnError, PipelineError
from beamish.spark.compile.inputs import NamedInputs
from beamish.spark.rows.columns import column, name_columns
from beamish.spark.rows.given import Given
from beamish.spark.rows.watermark_column import SourceRows


def name_initial(inputs: NamedInputs, initial: Mapping[str | None, Any]) -> dict[str | None, SourceRows]:
    """The initial rows of each table, checked, with the columns of its source.

    Raises:
        PipelineError: not a batch DataFrame.
        ColumnError: columns of the source are missing, or have other types.
    """
    return {name: _like(inputs, name, df) for name, df in initial.items()}


def _like(inputs: NamedInputs, name: str | None, df: Any) -> SourceRows:
    if not isinstance(df, DataFrame) or df.isStreaming:
        raise PipelineError(
            f"apply(initial={df!r}): must be a batch DataFrame with the table's changes (spark.read), not a stream: it is loaded once, before the first batch"
        )
    rows = inputs.named[name]
    named = name_columns(rows.source, Given.asked(df), list(rows.schema.names), whole_rows=False)
    for field in rows.schema:
        if field.name not in named.schema.names:
            raise ColumnError(
                f"apply(initial=...): there is no column {field.name!r}; it must have those of the table's changes"
            )
        if named.schema.field(field.name).type != field.type:
            raise ColumnError(
                f"apply(initial=...): {field.name!r} is {named.schema.field(field.name).type}, in the table's changes {field.type}; "
                "cast one of them"
            )
    like = named.df.select(*map(column, rows.df.columns))
    return SourceRows(like, F.unix_micros(column(rows.source.event_time)))


def with_initial(
    frames: Mapping[str | None, DataFrame], initial: Mapping[str | None, SourceRows]
) -> Mapping[str | None, DataFrame]:
    """The rows of a batch, including the initial rows of its tables."""
    return {name: df.unionAll(initial[name].df) if name in initial else df for name, df in frames.items()}
