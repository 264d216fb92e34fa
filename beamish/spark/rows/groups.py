"""Python over the groups of a DataFrame."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as t

from beamish.kernels.buffers import large_schema


def of_groups(rows: DataFrame, by: str, function: Callable[[pa.Table], pa.Table], schema: t.StructType) -> DataFrame:
    """The tables that a function makes of each group's rows, which have texts or binaries."""

    def applied(table: pa.Table) -> pa.Table:
        out = function(table)
        # under spark.sql.execution.arrow.useLargeVarTypes Spark gives and takes large texts and binaries only
        kinds = (pa.types.is_large_string, pa.types.is_large_binary)
        is_large = any(is_a(type_) for type_ in table.schema.types for is_a in kinds)
        return out.cast(large_schema(out.schema)) if is_large else out

    return rows.groupBy(by).applyInArrow(applied, schema)
