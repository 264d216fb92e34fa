"""Laws at the edges of time: what is true of seconds is true of millennia, and of the years 1 and 9999 (rules/windows.md#event-time-range)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beamish.local import Variation
from tests.agreement import agree_otherwise
from tests.cost import cost
from tests.laws import test_forgetting, test_retention
from tests.laws.test_suppress import agree, some_buffers
from tests.strategies import chains, changes, flows, merges, pipelines, scripts, suppress, versions
from tests.strategies.edges import edges

KINDS = {
    "windows": (pipelines.pipelines(), scripts.scripts),
    "chains": (chains.chains(), scripts.scripts),
    "trees": (flows.flows(), flows.tree_scripts),
    "pairs once": (merges.merges(once=True), merges.scripts),
    "versions": (versions.versions(), versions.scripts),
    "as-of joins": (versions.as_of_joins(), versions.scripts),
    "rows once": (pipelines.rows_once(), scripts.scripts),
    "keys forgotten": (test_forgetting.forgetting(), scripts.scripts),
    "windows that fall out": (test_retention.retaining(), scripts.scripts),
    "suppressed": (suppress.suppressed(pipelines.pipelines(), buffers=suppress.patient), scripts.scripts),
    "changes": (changes.changes(buffers=suppress.patient), changes.scripts),
}
OF_ONE_SHARD = {
    "suppressed, with limits": (suppress.suppressed(pipelines.pipelines(), buffers=some_buffers), scripts.scripts),
    "changes, with limits": (changes.changes(buffers=some_buffers), changes.scripts),
}
"""What each shard does at a limit of its own depends on how many there are."""
every_kind = pytest.mark.parametrize("kind", KINDS | OF_ONE_SHARD)


def at_the_edge(data, kind):
    """A pipeline and a script of a kind, moved to an edge of time and made as much longer."""
    some, scripts_of = (KINDS | OF_ONE_SHARD)[kind]
    pipeline, edge = data.draw(some), data.draw(edges)
    moved = edge.pipeline(pipeline)
    moved.flow.check()
    return moved, edge.script(pipeline, data.draw(scripts_of(pipeline)))


@pytest.mark.of_law("law-edges-of-time")
@every_kind
@cost(4)
@given(data=st.data())
def test_engine_and_twin_give_the_same_at_the_edges_of_time(kind, data):
    agree(*at_the_edge(data, kind))


@pytest.mark.of_law("law-edges-of-time")
@cost(3)
@given(data=st.data(), kind=st.sampled_from([*KINDS]), shards=st.integers(1, 3))
def test_shards_packing_and_stored_bytes_change_nothing_at_the_edges_of_time(data, kind, shards):
    agree_otherwise(*at_the_edge(data, kind), Variation(shards=shards, packs=2, round_trip=True))
