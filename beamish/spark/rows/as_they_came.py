"""The output of a stage that gives rows as they came, without a pane's columns."""

from __future__ import annotations

from pyspark.sql import DataFrame

from beamish.flow import BoundFlow
from beamish.spark.rows.columns import column
from beamish.spark.rows.own_watermarks import OF_PANES


def as_they_came(flow: BoundFlow, panes: DataFrame, *, marked: bool) -> DataFrame:
    """The rows of a stage that gives rows, with their own columns and ``dropped``; of other stages the panes themselves.

    Args:
        flow: that gave the panes.
        panes: what it gave.
        marked: whether their timestamp has the mark by which Spark's own operators know it; then the event time gets it.
    """
    takes = flow.operator.takes
    names = flow.stage.names_of_rows(takes)
    if not names:
        return panes
    rows = panes.select(*(column(name).alias(name) for name in names))
    time = takes[0].event_time
    return rows.withMetadata(time, OF_PANES) if marked and time in names else rows
