"""``bm.plot.timeline``: the picture of the Dataflow paper, from a run; a figure that can be saved and shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any, overload

import attrs

from beamish.errors import OptionError
from beamish.flow import Flow
from beamish.plot.colors import DARK, LIGHT
from beamish.plot.from_rows import Columns, picture_of_panes
from beamish.plot.from_run import picture_of_run
from beamish.plot.picture import Picture
from beamish.testing import Runnable, TestStream

SUFFIXES = (".html", ".png", ".svg", ".pdf")


@attrs.frozen
class Figure:
    """A timeline.

    Shown as a picture in a notebook. ``picture`` has its content, as plain values.

    Attributes:
        picture: rows, watermarks and panes, a panel for each stage and key.
    """

    picture: Picture = attrs.field(repr=lambda picture: f"<{len(picture.panels)} panels>")

    def save(self, path: str | Path, *, dark: bool = False, width: int = 720) -> Path:
        """Write it to a file.

        Args:
            path: its suffix determines the format: ``.html`` (an animated page that needs no network), ``.png``, ``.svg``, ``.pdf``.
            dark: light on dark; a page follows the reader's setting.
            width: pixels, at least 300; a phone has some 360. A page contains a wide and a narrow picture.

        Returns:
            the path.

        Raises:
            OptionError: unknown suffix; too narrow; or matplotlib is not installed.
        """
        path = Path(path)
        if path.suffix not in SUFFIXES:
            raise OptionError(f"save({str(path)!r}): must end with {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}")
        if type(width) is not int or width < 300:
            raise OptionError(f"save(width={width!r}): must be a whole number of at least 300 pixels")
        if path.suffix == ".html":
            path.write_text(self.html(), encoding="utf-8")
            return path
        _check_matplotlib()
        from beamish.plot.drawing import draw

        drawn = draw(self.picture, DARK if dark else LIGHT, width=width)
        path.write_bytes(drawn.written(path.suffix[1:]))
        return path

    def html(self, *, library: bool = True) -> str:
        """An animated page that needs no network; or a part of one.

        Args:
            library: False: without script and colours, for a page of several figures that includes ``library()`` once.

        Raises:
            OptionError: matplotlib is not installed.
        """
        _check_matplotlib()
        from beamish.plot.drawing import part, whole

        return whole(self.picture) if library else part(self.picture)

    def _repr_html_(self) -> str:
        _check_matplotlib()
        from beamish.plot.drawing import library, part

        return f'<div class="beamish-colors">{library()}{part(self.picture)}</div>'


def library() -> str:
    """The style and script of figures, for a page of several ``html(library=False)``.

    The page's ``<html>``, or an element around the figures, needs the class ``beamish-colors``.

    Raises:
        OptionError: matplotlib is not installed.
    """
    _check_matplotlib()
    from beamish.plot.drawing import library

    return library()


def _check_matplotlib() -> None:
    try:
        import matplotlib as mpl
    except ImportError as error:
        raise OptionError(
            f"a timeline is drawn by matplotlib, which cannot be imported ({error}): pip install matplotlib (the extra 'plot')"
        ) from error
    del mpl


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
    """Draw how a pipeline processes rows into panes: event time across, processing time up.

    A row is a circle with its value, at (event time, processing time), in the colour of its input. The step line is the watermark.
    A box is a window when it emitted a pane, up from the pane before or its first row; it contains the pane's values. Early,
    on-time and late panes differ in colour, edge and hatching; a retracted pane is struck out; a dropped row is a cross with its
    reason. A grey box without a top is a window that is open at the end of a script. There is a panel for each key and each stage
    of a chain, the last stage on top.

    Args:
        what: a pipeline, which runs ``script`` in process; or the panes written by a query: a DataFrame (Spark, pandas, ...), an
            Arrow table, or a list of ``Pane``.
        script: the script to run. If it never moves the clock, or ``clock=False``, steps are numbered instead of processing time.
        rows: with stored panes, the input rows: likewise, or a list of dicts.
        event_time, processing_time: columns of stored panes and rows: the event time of rows, and the arrival of rows and panes
            (such as ``F.current_timestamp()`` of the query). Without the second, panes are numbered in their order.
        label: of stored rows, the label column; default: their only other column.
        key: show one key only: its columns and their values, ``{"team": "red"}``, or the value of a single key column.
        title: the title.
        ideal: whether to draw the line where rows arrive without delay.
        clock: whether processing time is the script's clock; default: if the script moves it.
        initial: initial rows of a versioned table, as for ``Pipeline.run``.

    Returns:
        a figure: shown in a notebook, written by ``.save("x.html")``, ``.png``, ``.svg``; ``.picture`` has its content.

    Raises:
        OptionError: no such key, or too many keys; ``rows`` without time columns.
        ColumnError: not panes, or a column is missing.
        PipelineError: count windows; else as for ``Pipeline.run``.
        ScriptError: as for ``Pipeline.run``.

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
            raise OptionError(
                f"timeline(pipeline, script, {name}={value!r}): the script determines it; leave {name}= out"
            )
    picture = picture_of_run(
        flow.completed, script.events, key=key, title=title, ideal=ideal, clock=clock, initial=initial
    )
    return Figure(picture)
