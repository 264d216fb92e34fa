"""Initial rows are a first bundle."""

from __future__ import annotations

from beamish.script import Bundle, as_step
from beamish.testing import TestStream
from tests.agreement import differences


def begins_as_with_a_first_bundle(pipeline, script, name):
    """The first rows of an input come before all else, in a bundle or as what its table begins with."""
    steps = [(event, as_step(event)) for event in script.events]
    at = next(i for i, (_, step) in enumerate(steps) if step.rows and step.input == name)
    first = list(steps[at][1].rows)
    rest = TestStream(tuple(event for i, (event, _) in enumerate(steps) if i != at))
    (_, _), *expected = TestStream((Bundle(tuple(first), name), *rest.events)).trace(pipeline)
    found = rest.trace(pipeline, initial=first if name is None else {name: first})
    came, seen = ([pane for _, panes in each for pane in panes] for each in (found, expected))
    different = differences(came, seen, pipeline)
    assert not different, "\n".join([repr(pipeline), repr(script), "- initial, + bundle", *different])
