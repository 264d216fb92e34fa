"""Marks of Spark's own ``withWatermark`` on the columns of a DataFrame.

A query has one watermark, and Spark takes no ``withWatermark`` over rows that have had one ("Redefining watermark is
disallowed"; docs/spark-notes.md#one-watermark). So where the column that a policy follows has the mark that the policy
would give it, the query's watermark is taken as it is; any other mark is refused.
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
"""The metadata of a column that Spark's watermark follows: its delay, in milliseconds."""


_PANES = "beamish.panes"
OF_PANES = {MARK: 0, _PANES: True}
"""The mark of the ``timestamp`` of panes, by which Spark's own operators know the event time; and that it is of panes."""

_UNMARKED = {"beamish.unmarked": True}
"""In place of marks that were all there was: Spark 4.0 leaves a column's metadata as they are where it is to have none."""


def marks_of(given: Given) -> dict[str, int]:
    """The delays of the columns that have had a ``withWatermark``, in milliseconds."""
    return {field.name: int(field.metadata[MARK]) for field in given.schema if MARK in field.metadata}


def without_stale_marks(given: Given) -> Given:
    """The rows without marks of another query: files keep them, but the watermark that they tell of is not in this one."""
    marks, df = marks_of(given), given.df
    if not marks or not given.streaming or _has_watermark(df):
        return given
    for field in given.schema:
        if field.name in marks:
            kept = {name: value for name, value in field.metadata.items() if name not in OF_PANES}
            df = df.withMetadata(field.name, kept or _UNMARKED)
    return Given.asked(df)


def _has_watermark(df: DataFrame) -> bool:
    """Whether there is a ``withWatermark`` in what the rows come of, as Spark's explain shows it."""
    with redirect_stdout(io.StringIO()) as text:
        df.explain(extended=True)
    return "EventTimeWatermark" in text.getvalue()


def check_marks(given: Given, policy: Watermark, followed: str | None) -> None:
    """Check that a query over these rows can have the watermark that a policy says.

    Args:
        given: the rows.
        policy: how the watermark follows them.
        followed: the column that it follows; None: it follows the clock.

    Raises:
        PipelineError: the rows have another watermark already.
    """
    marks = marks_of(given)
    if followed is None or not marks or not given.streaming:
        return
    if any(_PANES in field.metadata for field in given.schema):
        raise PipelineError(
            f"event_time({followed!r}) on a stream of another pipeline's panes: they come when the watermark has passed them, so all "
            "would be late; say first.then(second).apply(df), or write the panes to a table and read it in a query of its own"
        )
    if followed not in marks:
        (name, *_) = marks
        raise PipelineError(
            f"column {name!r} has a withWatermark of its own, and the pipeline's watermark follows {followed!r}: Spark takes one a "
            f"query (it would say: Redefining watermark is disallowed); take it out, or put it on {followed!r}: "
            f"df.withWatermark({followed!r}, ...)"
        )
    if policy.max_future is not None:
        raise PipelineError(
            f"event_time({followed!r}): the column has a withWatermark of its own, which knows no max_future; leave one of the two "
            "out"
        )
    delay_us = marks[followed] * 1000
    if delay_us != policy.delay.us:
        raise PipelineError(
            f"event_time({followed!r}): the column has a withWatermark of its own, {str(Duration(delay_us))!r}, and the pipeline "
            f"says {str(policy.delay)!r}; a query has one watermark: take it out, or say the same in both: "
            f"df.withWatermark({followed!r}, {str(policy.delay)!r})"
        )
