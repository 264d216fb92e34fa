"""Output that a query has stored: the panes of a key, and the last dropped rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from beamish.addresses import printable
from beamish.errors import OptionError
from beamish.instants import EARLIEST_US, LATEST_US
from beamish.spark.rows.columns import column
from beamish.spark.split import dropped


def stored(spark: SparkSession, where: str) -> DataFrame:
    """A table, or a folder of Parquet files.

    Args:
        spark: the session.
        where: a table's name, such as ``results.scores`` or ``delta.`/results/scores```; with a ``/`` and no ````` a folder.

    Raises:
        OptionError: no such table or folder.
    """
    try:
        return spark.read.parquet(where) if "/" in where and "`" not in where else spark.read.table(where)
    except AnalysisException as error:
        words = str(error).partition("\n")[0]
        raise OptionError(
            f"watch: Spark finds neither a table nor Parquet files at {printable(where)}: {words}"
        ) from None


def panes_of(
    spark: SparkSession, where: str, key: Mapping[str, Any], window: tuple[int | None, int | None], most: int
) -> tuple[pa.Table, str | None]:
    """The panes and retractions of a key in the windows around one, and the column with the time of writing, if the query added one.

    Args:
        spark, where: as for ``stored``.
        key: values of key columns.
        window: its bounds in microseconds; None: any.
        most: the maximum number of rows.

    Raises:
        OptionError: no such table, or it does not have panes of these keys.
    """
    output = stored(spark, where)
    missing = [name for name in ("window", "pane", "timestamp", *key) if name not in output.columns]
    if missing:
        raise OptionError(
            f"watch: {printable(where)} has no column {missing[0]!r}; give the table that the query writes panes to"
        )
    wanted = output.where("pane.kind <> 'DROPPED'")
    for name, value in key.items():
        wanted = wanted.where(column(name).eqNullSafe(F.lit(value)))
    start, end = window
    if start is not None and end is not None and EARLIEST_US < start < end < LATEST_US:
        around = 3 * (end - start)
        near = (F.col("window.start") < _instant(end + around)) & (F.col("window.end") > _instant(start - around))
        wanted = wanted.where(near)
    last = wanted.orderBy(F.desc("window.end"), F.desc("pane.sequence")).limit(most)
    after = output.columns[output.columns.index("timestamp") + 1 :]
    times = [name for name in after if dict(output.dtypes)[name] == "timestamp"]
    return last.toArrow(), next(iter(times), None)


def _instant(us: int) -> Column:
    return F.timestamp_micros(F.lit(min(max(us, EARLIEST_US), LATEST_US)))


def last_dropped(spark: SparkSession, where: str, most: int) -> pa.Table:
    """The last dropped rows: of a pipeline's output with ``with_dropped()``, or of a table of ``bm.dropped(...)``.

    They are ordered by the watermark at which they were dropped, or else by the time of the table's files.

    Args:
        spark, where: as for ``stored``.
        most: the maximum number of rows.

    Raises:
        OptionError: no such table, or no dropped rows are written to it.
    """
    rows = stored(spark, where)
    if "dropped" in rows.columns and "pane" in rows.columns:
        latest = rows.where("dropped IS NOT NULL").orderBy(F.desc("pane.watermark"), F.desc("pane.sequence"))
        return dropped(latest.limit(most)).toArrow()
    if not {"reason", "late_by"} <= set(rows.columns):
        raise OptionError(
            f"watch: {printable(where)} has no columns 'reason' and 'late_by'; give the table that the query writes bm.dropped(...) to, "
            "or its whole output with .with_dropped()"
        )
    try:
        return rows.orderBy(F.desc("_metadata.file_modification_time")).limit(most).toArrow()
    except AnalysisException:
        return rows.limit(most).toArrow()
