"""Law: the engine gives what the slow twin gives, in any layout (rules/laws.md). Its rows are numbered, and what they retract is live.

A layout is a number of shards, a packing of rows, segments of state, state read back from its bytes between steps, or a rescale. See
rules/laws.md#law-order-and-shards, #law-state-round-trip, #law-edges-of-time; what is drawn is in cases.py.
"""

from __future__ import annotations

import attrs
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.agreement import FULL, check_same, outcome
from tests.cost import cost
from tests.laws.cases import AT_THE_EDGES, CASES
from tests.laws.ledger import check_rows
from tests.strategies.edges import edges
from tests.strategies.layouts import layouts


def silent(panes):
    """Panes without the messages of errors, which the twin does not know."""
    return panes if panes == FULL else [attrs.evolve(pane, message=None) for pane in panes]


def agree(case, pipeline, script, data):
    """Engine, twin and engine in a drawn layout give the same panes, or all that a buffer is full; gives the engine's."""
    how = data.draw(layouts(pipeline, script, reorders=case.reorders))
    try:
        engine = outcome(lambda: pipeline.run(script))
    except case.unless:
        assume(False)  # noqa: FBT003
    twin = outcome(lambda: case.twin(pipeline, script.events))
    check_same(silent(engine), twin, pipeline, script, "- engine, + twin")
    otherwise = outcome(lambda: how.run(pipeline, script))
    check_same(engine, otherwise, pipeline, script, how, "- as it is, + in another layout")
    return [panes for panes in (engine, otherwise) if panes != FULL]


@pytest.mark.of_law(
    "law-carried-over",
    "law-changelogs",
    "law-duplicates",
    "law-each-pair-once",
    "law-errors",
    "law-forget-after",
    "law-input-conditions",
    "law-ledger",
    "law-merge-order",
    "law-order-and-shards",
    "law-retention",
    "law-sequence",
    "law-state-round-trip",
    "law-suppress-ledger",
    "law-suppress-state",
    "law-twin",
    "law-watermark-per-key",
    "law-versions-state",
    "law-windowings",
    "law-windows-of-rows",
    "law-within",
)
@pytest.mark.parametrize("case", CASES)
@cost(2.5)
@given(data=st.data())
def test_engine_and_twin_agree_in_any_layout(case, data):
    case = CASES[case]
    pipeline = data.draw(case.pipelines)
    script = data.draw(case.scripts(pipeline))
    for panes in agree(case, pipeline, script, data):
        check_rows(pipeline, panes)


@pytest.mark.of_law("law-edges-of-time")
@pytest.mark.parametrize("case", AT_THE_EDGES)
@cost(5)
@given(data=st.data())
def test_engine_and_twin_agree_at_the_edges_of_time(case, data):
    case, edge = AT_THE_EDGES[case], data.draw(edges)
    pipeline = data.draw(case.pipelines)
    script = edge.script(pipeline, data.draw(case.scripts(pipeline)))
    moved = edge.pipeline(pipeline)
    moved.flow.check()
    agree(case, moved, script, data)
