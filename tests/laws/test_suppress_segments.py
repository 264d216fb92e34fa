"""Law: how what is held is cut into segments changes nothing (rules/laws.md#law-suppress-state)."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from beamish.contract.operator import Operator
from beamish.kinds.suppress import newest_shard
from beamish.kinds.suppress.newest_shard import NewestShard
from beamish.kinds.suppress.operator import SuppressOperator
from beamish.kinds.suppress.shard import SuppressShard
from beamish.local import Variation, run
from beamish.tables.segment_policy import SegmentPolicy
from tests.cost import cost
from tests.laws.test_suppress import are_same, drawn, outcome, some_buffers
from tests.strategies import changes

POLICIES = [
    SegmentPolicy(few_segments=0, shortest_us=1),
    SegmentPolicy(few_segments=1, few_windows=2, many_windows=3, shortest_us=1),
]


@attrs.frozen
class Cut:
    """The operator of a suppressed stage, whose state is cut otherwise."""

    operator: SuppressOperator
    policy: SegmentPolicy

    def pack(self, number, rows):
        return self.operator.pack(number, rows)

    def open(self, store):
        inner = self.operator.inner
        if inner.keeps_newest:
            return NewestShard(inner, self.operator.suppress, store, self.policy)
        return SuppressShard(attrs.evolve(inner, policy=self.policy), self.operator.suppress, store, self.policy)


def cut(policy: SegmentPolicy):
    def adapt(operator: Operator):
        if isinstance(operator, SuppressOperator):
            return Cut(operator, policy)
        return attrs.evolve(operator, policy=policy)  # type: ignore[misc]

    return adapt


@pytest.mark.of_law("law-suppress-state")
@pytest.mark.parametrize("policy", POLICIES, ids=["many short ones", "spans that grow"])
@cost(2)
@given(data=st.data())
def test_how_what_is_held_is_cut_into_segments_changes_nothing(policy, data):
    pipeline, script = drawn(data, some_buffers)
    how = Variation(round_trip=True, adapt=cut(policy))
    one, other = outcome(lambda: pipeline.run(script)), outcome(lambda: run(pipeline.flow, script.events, how))
    are_same(one, other, pipeline, repr(script))


@pytest.mark.of_law("law-suppress-state")
@pytest.mark.parametrize("most", [1, 3, 9])
@settings(cost(2), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_when_recent_changes_are_taken_into_other_segments_changes_nothing(most, data, monkeypatch):
    pipeline = data.draw(changes.changes(buffers=some_buffers))
    script = data.draw(changes.scripts(pipeline))
    whole = outcome(lambda: pipeline.run(script))
    with monkeypatch.context() as patched:
        patched.setattr(newest_shard, "_FEWEST", data.draw(st.integers(0, 2)))
        patched.setattr(newest_shard, "_SHARE", 2)
        patched.setattr(newest_shard, "_LARGEST", most)
        parts = outcome(lambda: run(pipeline.flow, script.events, Variation(round_trip=True)))
    are_same(whole, parts, pipeline, repr(script))
