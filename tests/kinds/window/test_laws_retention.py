"""Laws of how much of its past a key keeps (rules/laws.md#law-retention)."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

import beamish as bm
from beamish import DropReason, PaneKind
from beamish.kinds.window.plan.options import Retention
from beamish.local import run as run_varied
from beamish.script import as_step
from tests.agreement import differences
from tests.cost import cost
from tests.declared_options import evolve
from tests.kinds.window.strategy_of_retention import meeting, retaining
from tests.strategies.scripts import scripts


@pytest.mark.of_law("law-retention")
@cost(2)
@given(st.data())
def test_removing_rows_listed_as_out_of_retention_changes_no_pane(data):
    window = st.one_of(st.builds(bm.FixedWindows, st.integers(1, 5)), meeting)
    pipeline = data.draw(retaining(window=window, with_dropped=st.just(True)))  # noqa: FBT003
    pipeline = evolve(pipeline, deduplication=None)
    script = data.draw(scripts(pipeline))
    events, number = [], 0
    for event in script.events:
        rows = []
        for row in as_step(event).rows:
            number += 1
            rows.append({**row, "number": number})
        events.append(attrs.evolve(event, rows=tuple(rows)) if rows else event)
    panes = run_varied(pipeline.flow, events)
    gone = {pane.values["number"] for pane in panes if pane.reason is DropReason.OUT_OF_RETENTION}
    left = [
        attrs.evolve(event, rows=tuple(row for row in as_step(event).rows if row["number"] not in gone))
        if as_step(event).rows
        else event
        for event in events
    ]
    shown = [
        [pane for pane in some if pane.kind is not PaneKind.DROPPED]
        for some in (panes, run_varied(pipeline.flow, left))
    ]
    assert not differences(*shown, pipeline), repr(pipeline)


@pytest.mark.of_law("law-retention")
@cost(2)
@given(st.data())
def test_a_budget_that_is_never_reached_changes_nothing(data):
    pipeline = data.draw(retaining())
    script = data.draw(scripts(pipeline))
    ample = evolve(pipeline, retention=Retention(10**6, 10**6, 10**9))
    found = differences(evolve(pipeline, retention=None).run(script), ample.run(script), pipeline)
    assert not found, "\n".join([repr(pipeline), repr(script), *found])
