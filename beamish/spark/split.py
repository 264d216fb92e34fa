"""Splitting a pipeline's output: panes, dropped rows, and forwarded rows without a pane's columns."""

from __future__ import annotations

from pyspark.sql import DataFrame

from beamish.addresses import printable
from beamish.errors import ColumnError
from beamish.flow import BoundFlow
from beamish.spark.rows.columns import OF_PANES, column

_ADDED = ("reason", "late_by", "message", "window")


def panes(df: DataFrame) -> DataFrame:
    """The panes and retractions of a pipeline's output, without the dropped rows.

    Args:
        df: the output of a pipeline.

    Returns:
        the columns of ``df`` without ``dropped``; for deduplication the rows that are not dropped.

    Raises:
        ColumnError: not the output of a pipeline.

    Example:
        ``bm.panes(events.transform(pipeline)).writeStream...``
    """
    if {"dropped", "pane"} & set(getattr(df, "columns", ())) == {"dropped"}:  # forwarded rows
        return df.where("dropped IS NULL").drop("dropped")
    _check("panes", df, "pane")
    return df.where("pane.kind <> 'DROPPED'").drop("dropped")


def dropped(df: DataFrame) -> DataFrame:
    """The dropped rows of a pipeline's output (``with_dropped``, ``on_error``).

    Args:
        df: the output of a pipeline.

    Returns:
        ``reason`` (expired, window_finished, null_event_time, event_time_out_of_range, and others of the stage),
        ``late_by`` (the watermark less the event time, in microseconds), ``message`` (with ``on_error("drop")``: the error),
        ``window`` (if the pipeline has windows), and the rows' own columns, including keys.

    Raises:
        ColumnError: not the output of a pipeline with ``with_dropped()``, or the rows have columns with these names.
    """
    _check("dropped", df, "dropped")
    own = df.select("dropped.row.*").columns
    message = ["dropped.message"] if "message" in df.select("dropped.*").columns else []
    for name in _ADDED:
        if name in own and (name != "message" or message):
            raise ColumnError(
                f"dropped(df): the rows have a column {name!r} of their own; rename it, or select from the column 'dropped'"
            )
    window = ["window"] if "window" in df.columns else []
    return df.where("dropped IS NOT NULL").select(
        "dropped.reason", "dropped.late_by", *message, *window, "dropped.row.*"
    )


def _check(where: str, df: DataFrame, name: str) -> None:
    if not hasattr(df, "columns"):
        raise ColumnError(
            f"{where}({printable(df)}): must be a DataFrame, the output of a pipeline: {where}(pipeline.apply(df))"
        )
    if name not in df.columns:
        fix = "; add .with_dropped() to the pipeline" if name == "dropped" and "pane" in df.columns else ""
        raise ColumnError(
            f"{where}(df): there is no column {name!r}, so this is not the output of such a pipeline{fix}"
        )


def as_they_came(flow: BoundFlow, panes: DataFrame, *, marked: bool) -> DataFrame:
    """The rows of a stage that forwards rows, with their own columns and ``dropped``; for other stages the panes.

    Args:
        flow: of the panes.
        panes: its output.
        marked: whether their timestamp has Spark's watermark mark, which is then set on the event time.
    """
    takes = flow.operator.takes
    names = flow.stage.names_of_rows(takes)
    if not names:
        return panes
    rows = panes.select(*(column(name).alias(name) for name in names))
    time = takes[0].event_time
    return rows.withMetadata(time, OF_PANES) if marked and time in names else rows
