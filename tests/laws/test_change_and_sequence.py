"""Laws of what rows do and of their numbers (rules/panes.md#pane-change, #pane-sequence); that the twin says the same of each
row is part of the law of the twin."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

import beamish as bm
from beamish import PaneChange, PaneKind
from beamish.instants import EARLIEST_US, LATEST_US, instant
from beamish.script import as_step
from tests.agreement import key_of
from tests.kinds.suppress.strategy import suppressed
from tests.kinds.versions import strategy as versions
from tests.lines import line
from tests.seconds import S
from tests.strategies import merges
from tests.strategies.flows import ANYTHING, flows, tree_scripts
from tests.strategies.pipelines import pipelines, retracting
from tests.strategies.scripts import scripts
from tests.twin.run import NO_WATERMARK, twin_of

KINDS = {
    "windows": (pipelines(), scripts),
    "retracting windows": (pipelines(mode=st.just(retracting)), scripts),
    "suppressed": (suppressed(pipelines(mode=st.just(retracting))), scripts),
    "joins": (merges.merges(mode=st.just(retracting)), merges.scripts),
    "trees": (flows(root=attrs.evolve(ANYTHING, mode=st.just(retracting))), tree_scripts),
    "versions": (versions.versions(), versions.scripts),
    "as-of joins": (versions.as_of_joins(), versions.scripts),
}
any_kind = st.sampled_from(list(KINDS))


def drawn(data, kind):
    pipelines_, scripts_ = KINDS[kind]
    pipeline = data.draw(pipelines_)
    return pipeline, data.draw(scripts_(pipeline))


def by_key(panes):
    """The rows of each key, in order, without dropped ones."""
    found = {}
    for pane in panes:
        if pane.kind is not PaneKind.DROPPED:
            found.setdefault(key_of(pane), []).append(pane)
    return found


@pytest.mark.of_law("law-change")
@given(st.data())
def test_an_update_before_is_next_to_its_update_after(data):
    pipeline, script = drawn(data, data.draw(any_kind.filter(lambda kind: kind != "windows")))
    for _, panes in script.trace(pipeline):
        for rows in by_key(panes).values():
            for one, after in pairwise([None, *rows, None]):
                before = one is not None and one.change is PaneChange.UPDATE_BEFORE
                assert before == (after is not None and after.change is PaneChange.UPDATE_AFTER), (
                    f"{pipeline!r}\n{script!r}\n{one and line(one)}, then {after and line(after)}"
                )
                if before:
                    assert (one.kind, after.kind, one.window) == (PaneKind.RETRACTION, PaneKind.PANE, after.window)


@given(st.data())
def test_live_panes_of_a_list_are_those_not_retracted(data):
    pipeline, script = drawn(data, data.draw(any_kind.filter(lambda kind: kind != "windows")))
    rows = Counter()
    panes = pipeline.run(script)
    for pane in panes:
        if pane.kind is not PaneKind.DROPPED:
            rows[line(attrs.evolve(pane, kind=PaneKind.PANE, is_last=False))] += 1 if pane.kind is PaneKind.PANE else -1
    live = Counter(line(attrs.evolve(pane, is_last=False)) for pane in bm.live(panes))
    assert live == +rows, f"{pipeline!r}\n{script!r}"


@pytest.mark.of_law("law-sequence")
@given(st.data())
def test_a_row_has_the_watermark_of_its_emission(data):
    pipeline, script = drawn(data, data.draw(any_kind))
    twin = twin_of(pipeline.flow)
    for event, panes in script.trace(pipeline):
        twin.step(as_step(event))
        assert {pane.watermark for pane in panes} <= {as_time(twin.watermark)}, f"{pipeline!r}\n{script!r}\n{event!r}"


@pytest.mark.of_law("law-sequence")
@given(st.data())
def test_live_as_of_a_watermark_equals_live_of_a_prefix(data):
    pipeline, script = drawn(data, data.draw(any_kind.filter(lambda kind: kind != "windows")))
    events = script.trace(pipeline)
    for second in data.draw(st.lists(st.integers(-10, 60), min_size=1, max_size=3)):
        until = [
            pane
            for _, panes in events
            for pane in panes
            if pane.watermark is None or pane.watermark <= instant(second * S)
        ]
        assert bm.live(until) == bm.live([pane for _, panes in events for pane in panes], as_of=second)


def as_time(watermark):
    """A watermark of the twin's as what a row says; the end of time is the last instant there is."""
    return None if watermark == NO_WATERMARK else instant(min(max(int(watermark), EARLIEST_US), LATEST_US))
