"""The output of a stage that forwards rows, without pane columns."""

from __future__ import annotations

from pyspark.sql import DataFrame

from beamish.flow import BoundFlow
from beamish.spark.rows.columns import column
from beamish.spark.rows.own_watermarks import OF_PANES


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
