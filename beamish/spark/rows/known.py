"""Columns that are known here, said to Spark Connect.

To call Python over a DataFrame's rows, Spark Connect's client must know its columns, and asks the server for them: a round trip
for each step of a plan, which within the query functions of declarative pipelines is refused.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import types as t


def known(df: DataFrame, schema: t.StructType) -> DataFrame:
    """The DataFrame, which has these columns.

    Args:
        df: the rows.
        schema: their columns, as they are.
    """
    connect: Any = df
    if hasattr(connect, "_cached_schema"):  # where the client keeps what it asked for
        connect._cached_schema = schema  # noqa: SLF001
    return df
