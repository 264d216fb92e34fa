"""The output of a pipeline with dropped rows, split: its panes, and its dropped rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from beamish.addresses import printable
from beamish.errors import ColumnError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ADDED = ("reason", "late_by", "message", "window")


def panes(df: DataFrame) -> DataFrame:
    """The panes and retractions of a pipeline's output, without the dropped rows.

    Args:
        df: what a pipeline gave.

    Returns:
        the columns of ``df`` but for ``dropped``; of rows that were only deduplicated those that came out.

    Raises:
        ColumnError: it is not what a pipeline gave.

    Example:
        ``bm.panes(events.transform(pipeline)).writeStream...``
    """
    if {"dropped", "pane"} & set(getattr(df, "columns", ())) == {"dropped"}:  # rows as they came
        return df.where("dropped IS NULL").drop("dropped")
    _check("panes", df, "pane")
    return df.where("pane.kind <> 'DROPPED'").drop("dropped")


def dropped(df: DataFrame) -> DataFrame:
    """The dropped rows of a pipeline's output (``with_dropped``, ``on_error``).

    Args:
        df: what a pipeline gave.

    Returns:
        ``reason`` (expired, window_finished, null_event_time, event_time_out_of_range, and what the stage may say beside them),
        ``late_by`` (the watermark less the event time, in microseconds), ``message`` (with ``on_error("drop")``: what was raised),
        ``window`` (where the pipeline has windows), and the rows' own columns, keys among them.

    Raises:
        ColumnError: it is not what a pipeline with ``with_dropped()`` gave, or the rows have columns of these names.
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
            f"{where}({printable(df)}): must be a DataFrame, what a pipeline gave: {where}(pipeline.apply(df))"
        )
    if name not in df.columns:
        fix = "; say .with_dropped() in the pipeline" if name == "dropped" and "pane" in df.columns else ""
        raise ColumnError(
            f"{where}(df): there is no column {name!r}, so this is not the output of such a pipeline{fix}"
        )
