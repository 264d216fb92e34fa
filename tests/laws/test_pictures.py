"""A picture shows each pane of a run once, where and when it was emitted, and strikes out retracted ones."""

from __future__ import annotations

from collections import Counter

from hypothesis import assume, given
from hypothesis import strategies as st

import beamish as bm
from beamish.errors import OptionError
from tests.cost import cost
from tests.plot.drawn import boxes_in, boxes_of
from tests.strategies.chains import chains
from tests.strategies.pipelines import pipelines
from tests.strategies.scripts import scripts

few = cost(8)  # each runs a script twice


def drawn(pipeline, script):
    """The picture, its steps numbered; none of what is too much to draw."""
    try:
        return bm.plot.timeline(pipeline, script, clock=False).picture
    except OptionError:
        return None


@few
@given(st.data())
def test_a_picture_shows_each_pane_once_and_strikes_out_retracted_ones(data):
    pipeline = data.draw(st.one_of(pipelines(), chains()))
    script = data.draw(scripts(pipeline))
    picture = drawn(pipeline, script)
    assume(picture is not None)
    last = len(pipeline.flow.flows) - 1
    shown = Counter({box: count for box, count in boxes_in(picture).items() if box[0] == last})
    steps = [float(number) for number in range(1, len(script.events) + 1)]
    assert shown == boxes_of(script.trace(pipeline), steps, last)


@few
@given(st.data())
def test_a_picture_shows_each_row_once_and_crosses_out_those_that_are_dropped(data):
    pipeline = data.draw(pipelines(with_dropped=st.just(True)))  # noqa: FBT003
    script = data.draw(scripts(pipeline))
    picture = drawn(pipeline, script)
    assume(picture is not None)
    points = [point for panel in picture.panels for point in panel.points]
    assert len(points) == sum(len(event.rows) for event in script.events if hasattr(event, "rows"))
    dropped = [pane for pane in pipeline.run(script) if pane.kind is bm.PaneKind.DROPPED]
    several = [pane for pane in dropped if said_twice(pane, dropped)]
    crossed = sum(point.dropped is not None for point in points)
    assert len(dropped) - len(several) <= crossed <= len(dropped)


def said_twice(pane, dropped):
    """Whether it is one of several rows of output for a row dropped from several windows."""
    return sum(repr(pane.values) == repr(other.values) for other in dropped) > 1
