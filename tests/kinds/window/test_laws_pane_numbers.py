"""Law: panes of a window are numbered and timed EARLY* ON_TIME? LATE* (rules/panes.md#last-panes, #pane-timing)."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beamish import PaneKind, PaneTiming
from tests.declared_options import said
from tests.laws.batches import key_name
from tests.strategies.pipelines import pipelines
from tests.strategies.scripts import scripts

ORDER = [PaneTiming.EARLY, PaneTiming.ON_TIME, PaneTiming.LATE]


@pytest.mark.of_law("law-pane-numbers")
@given(st.data())
def test_panes_of_a_window_are_numbered_early_then_on_time_then_late(data):
    pipeline = data.draw(pipelines())
    script = data.draw(scripts(pipeline))
    lives = {}
    for pane in pipeline.run(script):
        if pane.kind is not PaneKind.PANE:
            continue
        panes = lives.setdefault((key_name(pipeline, pane.key), pane.window), [])
        if pane.is_first and said(pipeline).window.merging:  # sessions of these bounds may come and go
            panes.clear()
        panes.append(pane)
        check(panes)
        end = pane.window.end
        assert end is None or pane.timestamp < end


def check(panes):
    assert [pane.index for pane in panes] == list(range(len(panes)))
    assert [pane.is_first for pane in panes] == [True] + [False] * (len(panes) - 1)
    assert not any(pane.is_last for pane in panes[:-1])
    timings = [ORDER.index(pane.timing) for pane in panes]
    assert timings == sorted(timings)
    assert all(
        after.timing is not PaneTiming.ON_TIME for before, after in pairwise(panes) if before.timing is after.timing
    )
    late = [pane.on_time_index for pane in panes if pane.timing is not PaneTiming.EARLY]
    assert late == list(range(len(late)))
    assert all(pane.on_time_index == -1 for pane in panes if pane.timing is PaneTiming.EARLY)
