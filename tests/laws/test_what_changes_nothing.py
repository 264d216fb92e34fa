"""Laws: shard count, packing and the state's way through bytes change nothing.

See rules/laws.md#law-order-and-shards, #law-state-round-trip.
"""

from __future__ import annotations

import attrs
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from beamish.contract.operator import Operator
from beamish.local import Variation, run
from beamish.tables.segment_policy import SegmentPolicy
from tests.agreement import differences
from tests.cost import cost
from tests.strategies import merges
from tests.strategies.flows import flows
from tests.strategies.pipelines import pipelines
from tests.strategies.scripts import scripts


def changes_nothing(data, **how):
    pipeline = data.draw(pipelines())
    script = data.draw(scripts(pipeline))
    found = differences(pipeline.run(script), run(pipeline.flow, script.events, Variation(**how)), pipeline)
    assert not found, "\n".join([repr(pipeline), repr(script), "- as it is, + otherwise", *found])


@pytest.mark.of_law("law-order-and-shards")
@given(st.data())
def test_the_number_of_shards_changes_nothing(data):
    changes_nothing(data, shards=data.draw(st.integers(2, 5)))


@pytest.mark.of_law("law-order-and-shards")
@given(st.data())
def test_how_rows_are_packed_changes_nothing(data):
    changes_nothing(data, packs=data.draw(st.integers(2, 4)))


@pytest.mark.of_law("law-state-round-trip")
@given(st.data())
def test_reopening_a_shard_from_the_bytes_in_its_store_between_two_steps_changes_nothing(data):
    changes_nothing(data, round_trip=True)


@attrs.frozen
class Idling:
    """An operator whose shards make a step of nothing after each step, which must leave all as it is."""

    operator: Operator

    def pack(self, source, rows):
        return self.operator.pack(source, rows)

    def open(self, store):
        return IdlingShard(self.operator, self.operator.open(store), store)


class IdlingShard:
    def __init__(self, operator, shard, store):
        self.operator, self.shard, self.store = operator, shard, store

    @property
    def watermark_us(self):
        return self.shard.watermark_us

    def step(self, *what):
        out = self.shard.step(*what)
        stored, watermark_us = dict(self.store), self.watermark_us
        nothing = self.shard.step([None] * len(self.operator.takes), None, [])
        assert nothing.num_rows == 0
        assert (dict(self.store), self.watermark_us) == (stored, watermark_us)
        return out


@pytest.mark.of_law("law-state-round-trip")
@given(st.data())
def test_a_step_of_nothing_no_payload_no_clock_that_moves_gives_nothing_and_leaves_the_stored_bytes(data):
    pipeline = data.draw(st.one_of(pipelines(), flows()))
    script = data.draw(scripts_of(pipeline))
    assume(not any(getattr(source.watermark, "idle_timeout", None) for source in pipeline.flow.sources))
    run(pipeline.flow, script.events, Variation(shards=2, adapt=Idling))


def scripts_of(pipeline):
    return merges.scripts(pipeline) if len(pipeline.flow.sources) > 1 else scripts(pipeline)


@pytest.mark.of_law("law-state-round-trip")
@cost(2)
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
