"""Laws of retracting streams (rules/panes.md#ledger)."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from beamish import PaneKind
from tests.agreement import close
from tests.declared_options import said
from tests.laws.batches import batch, key_name, meets_a_session_gone, numbered
from tests.lines import line
from tests.own.windows import OwnGap, UntilMinute
from tests.strategies.accumulations import exact
from tests.strategies.pipelines import pipelines, retracting
from tests.strategies.scripts import scripts
from tests.strategies.watermarks import bounded_out_of_orderness
from tests.strategies.windows import calendar_windows, fixed_windows, global_windows, sessions, sliding_windows

windows_by_overlap = st.one_of(
    fixed_windows,
    sliding_windows,
    sessions,
    sessions,
    calendar_windows,
    global_windows,
    st.sampled_from([UntilMinute(), OwnGap()]),
)


def live_panes(pipeline, panes):
    """Read the rows in order, strike out what is retracted, and check each step; what is live at the end."""
    live = {}
    for pane in panes:
        at = key_name(pipeline, pane.key), pane.window
        if pane.kind is PaneKind.PANE:
            assert at not in live, f"{line(pane)}: {line(live[at])} is live"
            live[at] = pane
        elif pane.kind is PaneKind.RETRACTION:
            assert at in live, f"{line(pane)}: nothing is live"
            repeated = line(attrs.evolve(pane, kind=PaneKind.PANE))
            assert repeated == line(live[at]), f"{line(pane)} does not repeat {line(live[at])}"
            del live[at]
    return live


@pytest.mark.of_law("law-ledger")
@given(st.data())
def test_every_retraction_strikes_out_a_live_pane_and_a_window_has_at_most_one(data):
    pipeline = data.draw(pipelines(mode=st.just(retracting)))
    live_panes(pipeline, pipeline.run(data.draw(scripts(pipeline))))


@pytest.mark.of_law("law-live-panes-equal-batch")
@given(st.data())
def test_after_the_end_of_time_the_live_panes_are_those_of_a_batch(data):
    pipeline = data.draw(
        pipelines(
            window=windows_by_overlap,
            mode=st.just(retracting),
            accumulation=exact,
            watermark=bounded_out_of_orderness,
            with_dropped=st.just(True),  # noqa: FBT003
        )
    )
    script = numbered(data.draw(scripts(pipeline, ends=True)))
    if said(pipeline).window.merging:
        assume(not meets_a_session_gone(pipeline, script))
    panes = pipeline.run(script)
    live = live_panes(pipeline, panes)
    expected = batch(pipeline, script, panes)
    assert live.keys() == expected.keys(), f"{pipeline!r}\n{script!r}"
    for at, pane in live.items():
        assert close(dict(pane.values), expected[at]), f"{pipeline!r}\n{script!r}\n{line(pane)}\n{expected[at]}"
