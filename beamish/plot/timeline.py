"""``bm.plot.timeline``: the picture of the Dataflow paper, from a run."""

from __future__ import annotations

from typing import Any, overload

from beamish.errors import OptionError
from beamish.flow import Flow
from beamish.plot.figure import Figure
from beamish.plot.from_rows import Columns, picture_of_panes
from beamish.plot.from_run import picture_of_run
from beamish.testing import Runnable, TestStream


@overload
def timeline(
    what: Runnable,
    script: TestStream,
    *,
    key: Any = None,
    title: str | None = None,
    ideal: bool = True,
    clock: bool | None = None,
    initial: Any = None,
) -> Figure: ...
@overload
def timeline(
    what: Any,
    script: None = None,
    *,
    rows: Any = None,
    event_time: str | None = None,
    processing_time: str | None = None,
    label: str | None = None,
    key: Any = None,
    title: str | None = None,
    ideal: bool = True,
) -> Figure: ...
def timeline(
    what: Any,
    script: TestStream | None = None,
    *,
    rows: Any = None,
    event_time: str | None = None,
    processing_time: str | None = None,
    label: str | None = None,
    key: Any = None,
    title: str | None = None,
    ideal: bool = True,
    clock: bool | None = None,
    initial: Any = None,
) -> Figure:
    """Draw how a pipeline takes rows in and gives panes: event time across, processing time up.

    A row is a circle with what is accumulated of it, at (when it happened, when it came). The line of steps is the watermark. A box is a
    window as it was when a pane of it came, up from the pane before or its first row; in it are the pane's values. Early, on time
    and late panes differ in colour, edge and hatching; a pane that is taken back is struck out; a dropped row is a cross with its
    reason. Each key has a panel, and so has each stage of a chain, the last one on top.

    Args:
        what: a pipeline, which runs ``script`` in process; or the panes that a query wrote: a DataFrame (Spark, pandas, ...), an Arrow
            table, or a list of ``Pane``.
        script: what the pipeline runs. Where it never moves the clock, or ``clock=False``, its steps are numbered in place of
            processing time.
        rows: beside stored panes, the rows that came: alike, or a list of dicts.
        event_time, processing_time: of stored panes and rows, the columns that say when a row happened and came, and when a pane came
            (such as ``F.current_timestamp()`` of the query). Without the second panes are numbered in their order.
        label: of stored rows, the column whose value is written at them; default: their only other column.
        key: one key only: its columns and their values, ``{"team": "red"}``, or the value of the only key column.
        title: what is written above.
        ideal: whether the line is drawn on which rows come when they happen.
        clock: whether processing time is the script's clock; default: where the script moves it.
        initial: rows that a versioned table begins with, as of ``Pipeline.run``.

    Returns:
        a figure: it shows itself in a notebook, ``.save("x.html")``, ``.png``, ``.svg`` writes it, ``.picture`` is what it shows.

    Raises:
        OptionError: there is no such key, or there are too many to draw; ``rows`` without their times.
        ColumnError: these are no panes, or a column is missing.
        PipelineError: windows are counted in rows; else as ``Pipeline.run``.
        ScriptError: as ``Pipeline.run``.

    Example:
        >>> import beamish as bm
        >>> from beamish.accumulations import Sum
        >>> from beamish.testing import TestStream
        >>> totals = (
        ...     bm.Pipeline()
        ...     .event_time("ts", bm.BoundedOutOfOrderness(0))
        ...     .window(bm.FixedWindows(10))
        ...     .accumulate(total=Sum("score"))
        ... )
        >>> script = TestStream().step([{"ts": 1, "score": 3}], clock=4).step(watermark=10, clock=12)
        >>> [box.label for panel in bm.plot.timeline(totals, script).picture.panels for box in panel.boxes]
        ['3']
    """
    flow = getattr(what, "flow", None)
    if not isinstance(flow, Flow):
        if script is not None:
            raise OptionError(
                f"timeline({what!r}, script): must be a pipeline, such as bm.Pipeline()...accumulate(n=Count())"
            )
        columns = Columns(event_time, processing_time, label)
        return Figure(picture_of_panes(what, rows, columns, key=key, title=title, ideal=ideal))
    if not isinstance(script, TestStream):
        raise OptionError(
            f"timeline(pipeline, {script!r}): must be a script, such as timeline(pipeline, TestStream().add(rows))"
        )
    of_panes = {"rows": rows, "event_time": event_time, "processing_time": processing_time, "label": label}
    for name, value in of_panes.items():
        if value is not None:
            raise OptionError(f"timeline(pipeline, script, {name}={value!r}): the script says that; leave {name}= out")
    picture = picture_of_run(
        flow.completed, script.events, key=key, title=title, ideal=ideal, clock=clock, initial=initial
    )
    return Figure(picture)
