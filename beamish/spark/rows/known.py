"""Known schemas for Spark Connect.

To call Python over a DataFrame's rows, Spark Connect's client needs its columns, and requests them from the server: a round trip
for each step of a plan, which is rejected within the query functions of declarative pipelines.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import types as t


def known(df: DataFrame, schema: t.StructType) -> DataFrame:
    """The DataFrame with its schema cached.

    Args:
        df: the rows.
        schema: their columns, as they are.
    """
    connect: Any = df
    if hasattr(connect, "_cached_schema"):  # where the client caches the schema
        connect._cached_schema = schema  # noqa: SLF001
    return df
