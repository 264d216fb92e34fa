"""Laws: shard count, packing and the state's way through bytes change nothing (RULES 33, 37)."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beamish.engine.state import SegmentPolicy
from beamish.local import Variation, run
from tests.agreement import differences
from tests.strategies.pipelines import pipelines
from tests.strategies.scripts import scripts


def changes_nothing(data, **how):
    pipeline = data.draw(pipelines())
    script = data.draw(scripts(pipeline))
    found = differences(pipeline.run(script), run(pipeline.flow, script.events, Variation(**how)), pipeline)
    assert not found, "\n".join([repr(pipeline), repr(script), "- as it is, + otherwise", *found])


@given(st.data())
def test_the_number_of_shards_changes_nothing(data):
    changes_nothing(data, shards=data.draw(st.integers(2, 5)))


@given(st.data())
def test_how_rows_are_packed_changes_nothing(data):
    changes_nothing(data, packs=data.draw(st.integers(2, 4)))


@given(st.data())
def test_beginning_every_step_from_the_stored_bytes_changes_nothing(data):
    changes_nothing(data, round_trip=True)


@pytest.mark.parametrize(
    "policy",
    [
        SegmentPolicy(few_segments=0, shortest_us=1),
        SegmentPolicy(few_segments=1, few_windows=2, many_windows=3, shortest_us=1),
    ],
)
@given(data=st.data())
def test_how_state_is_cut_into_segments_changes_nothing(policy, data):
    changes_nothing(data, round_trip=True, adapt=lambda operator: attrs.evolve(operator, policy=policy))
