"""The user's own ``withWatermark`` on columns of a DataFrame.

A query has one watermark, and Spark rejects a second ``withWatermark`` ("Redefining watermark is
disallowed"; docs/spark-notes.md#one-watermark). So if the column that a policy follows has an equivalent mark, the query's
watermark is used as it is; any other mark is rejected.
"""

from __future__ import annotations

import io
from contextlib import redirect_stdout

from pyspark.sql import DataFrame

from beamish.durations import Duration
from beamish.errors import PipelineError
from beamish.spark.rows.given import Given
from beamish.watermarks import Watermark

MARK = "spark.watermarkDelayMs"
"""The metadata of a column with a watermark: its delay, in milliseconds."""


_PANES = "beamish.panes"
OF_PANES = {MARK: 0, _PANES: True}
"""The mark of the ``timestamp`` of panes, which identifies the event time for Spark's own operators; and that it belongs to panes."""

_UNMARKED = {"beamish.unmarked": True}
"""Replaces metadata that consisted of marks only: Spark 4.0 cannot remove a column's metadata."""


def marks_of(given: Given) -> dict[str, int]:
    """The delays of the columns with a ``withWatermark``, in milliseconds."""
    return {field.name: int(field.metadata[MARK]) for field in given.schema if MARK in field.metadata}


def without_stale_marks(given: Given) -> Given:
    """The rows without marks of another query: files keep them, but their watermark is not in this query."""
    marks, df = marks_of(given), given.df
    if not marks or not given.streaming or _has_watermark(df):
        return given
    for field in given.schema:
        if field.name in marks:
            kept = {name: value for name, value in field.metadata.items() if name not in OF_PANES}
            df = df.withMetadata(field.name, kept or _UNMARKED)
    return Given.asked(df)


def _has_watermark(df: DataFrame) -> bool:
    """Whether the plan of the rows has a ``withWatermark``, by Spark's explain."""
    with redirect_stdout(io.StringIO()) as text:
        df.explain(extended=True)
    return "EventTimeWatermark" in text.getvalue()


def check_marks(given: Given, policy: Watermark, followed: str | None) -> None:
    """Check that a query over these rows can have a policy's watermark.

    Args:
        given: the rows.
        policy: the watermark policy.
        followed: the column that it follows; None: it follows the clock.

    Raises:
        PipelineError: the rows have another watermark already.
    """
    marks = marks_of(given)
    if followed is None or not marks or not given.streaming:
        return
    if any(_PANES in field.metadata for field in given.schema):
        raise PipelineError(
            f"event_time({followed!r}) on a stream of another pipeline's panes: they are emitted when the watermark has passed them, so all would be late; use first.then(second).apply(df), or write the panes to a table and read it in a query of its own"
        )
    if followed not in marks:
        (name, *_) = marks
        raise PipelineError(
            f"column {name!r} has a withWatermark of its own, and the pipeline's watermark follows {followed!r}: Spark allows one per query (Redefining watermark is disallowed); remove it, or put it on {followed!r}: "
            f"df.withWatermark({followed!r}, ...)"
        )
    if policy.max_future is not None:
        raise PipelineError(
            f"event_time({followed!r}): the column has a withWatermark of its own, which has no max_future; leave one of the two out"
        )
    delay_us = marks[followed] * 1000
    if delay_us != policy.delay.us:
        raise PipelineError(
            f"event_time({followed!r}): the column has a withWatermark of its own, {str(Duration(delay_us))!r}, and the pipeline has {str(policy.delay)!r}; a query has one watermark: remove it, or use the same delay in both: "
            f"df.withWatermark({followed!r}, {str(policy.delay)!r})"
        )
