"""``bm.plot.timeline``: the picture of the Dataflow paper, from a run."""

from __future__ import annotations

from typing import Any

from beamish.errors import OptionError
from beamish.flow import Flow
from beamish.plot.figure import Figure
from beamish.plot.from_run import picture_of_run
from beamish.testing import TestStream


def timeline(
    what: Any,
    script: TestStream | None = None,
    *,
    rows: Any = None,
    key: Any = None,
    title: str | None = None,
    ideal: bool = True,
    clock: bool | None = None,
    initial: Any = None,
) -> Figure:
    """Draw what a pipeline does with a script."""
    flow = getattr(what, "flow", None)
    if not isinstance(flow, Flow):
        raise OptionError(f"timeline({what!r}): must be a pipeline, or panes that a query wrote")
    if not isinstance(script, TestStream):
        raise OptionError(f"timeline(pipeline, {script!r}): must be a script: timeline(pipeline, TestStream().add(...))")
    picture = picture_of_run(
        flow.completed, script.events, key=key, title=title, ideal=ideal, clock=clock, initial=initial
    )
    return Figure(picture)
