"""Law: a step is its parts (rules/laws.md#law-steps)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import beamish as bm
from beamish.script import Step, as_step
from beamish.testing import TestStream
from tests.agreement import differences
from tests.strategies import merges, scripts
from tests.strategies.pipelines import pipelines
from tests.strategies.watermarks import watermarks


def in_parts(script: TestStream, *, by_clock: bool = False) -> TestStream:
    """The script with a step for each move of the watermark, each move of the clock, and each bundle.

    Args:
        script: the script.
        by_clock: the clock moves watermarks too: a step moves the merged one once.
    """
    parts: list[Step] = []
    for step in map(as_step, script.events):
        if by_clock:
            parts.append(Step(watermark_us=step.watermark_us, input=step.input, clock_us=step.clock_us))
        else:
            parts.append(Step(watermark_us=step.watermark_us, input=step.input))
            parts.append(Step(clock_us=step.clock_us))
        parts.append(Step(step.rows, step.input))
    return TestStream(tuple(parts))


def is_steady(policy: bm.Watermark) -> bool:
    """idle_timeout counts the steps."""
    return policy.idle_timeout is None


@pytest.mark.of_law("law-steps")
@given(st.data())
def test_a_step_equals_its_watermark_clock_and_rows_one_after_another(data):
    if data.draw(st.booleans()):
        pipeline = data.draw(pipelines(watermark=watermarks.filter(is_steady)))
        script = data.draw(scripts.scripts(pipeline))
    else:
        pipeline = data.draw(merges.merges(policy=merges.policies.filter(is_steady)))
        script = data.draw(merges.scripts(pipeline))
    by_clock = any(isinstance(source.watermark, bm.ProcessingTimeLag) for source in pipeline.flow.sources)
    found = differences(pipeline.run(script), pipeline.run(in_parts(script, by_clock=by_clock)), pipeline)
    assert not found, "\n".join([repr(pipeline), repr(script), "- as it is, + in parts", *found])
