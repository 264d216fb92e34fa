"""Laws of merges and joins: two or three streams with watermarks of their own, drawn."""

from __future__ import annotations

from collections import Counter

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

import beamish as bm
from beamish import PaneKind
from beamish.accumulations import InnerJoin
from beamish.testing import TestStream
from tests.declared_options import evolve, said
from tests.laws.batches import key_name
from tests.strategies.merges import merges, policies, scripts
from tests.strategies.pipelines import retracting
from tests.strategies.windows import fixed_windows

yes = st.sampled_from([True])
patient = policies.filter(lambda policy: isinstance(policy, bm.BoundedOutOfOrderness))


def words(*what):
    return "\n".join(map(repr, what))


@pytest.mark.of_law("law-live-panes-equal-batch")
@given(st.data())
def test_finally_the_live_rows_of_a_join_equal_a_batch(data):
    """Over the rows that were not dropped (rules/laws.md#law-live-panes-equal-batch)."""
    drawn = merges(window=fixed_windows, mode=st.just(retracting), policy=patient, join=yes, with_dropped=yes)
    pipeline = data.draw(drawn)
    script = data.draw(scripts(pipeline, ends=True))
    panes = pipeline.run(script)
    left_out = Counter(repr(pane.values) for pane in panes if pane.kind is PaneKind.DROPPED)
    whole = TestStream()
    for event in script.events:
        kept = []
        for row in getattr(event, "rows", ()):
            as_dropped = repr({one.name: row if one.name == event.input else None for one in pipeline.flow.inputs})
            kept += [row] * (left_out[as_dropped] == 0)
            left_out[as_dropped] -= left_out[as_dropped] > 0
        whole = whole.add(kept, input=event.input) if kept else whole
    once = evolve(bm.merge(**plain(pipeline)), **same_windows(pipeline), combiner=said(pipeline).combiner)
    expected = Counter(
        (key_name(once, pane.key), pane.window, repr(pane.values))
        for pane in once.run(whole.advance_watermark_to_infinity())
    )
    values = Counter()
    for pane in panes:
        if pane.kind is not PaneKind.DROPPED:
            by = 1 if pane.kind is PaneKind.PANE else -1
            values[key_name(pipeline, pane.key), pane.window, repr(pane.values)] += by
    assert +values == expected, words(pipeline, script)


@given(st.data())
def test_an_inner_join_is_that_of_the_rows_without_null_keys(data):
    """rules/stages.md#null-keys"""
    drawn = merges(join=yes, once=data.draw(st.booleans()), with_dropped=st.just(False))  # noqa: FBT003
    pipeline = data.draw(drawn.filter(lambda one: isinstance(said(one).accumulations["pairs"], InnerJoin)))
    join = said(pipeline).accumulations["pairs"]
    script = data.draw(scripts(pipeline))
    keys = {one.name: one.keys for one in pipeline.flow.inputs if one.name in join.names_of_inputs}
    events = [
        attrs.evolve(
            event, rows=tuple(row for row in event.rows if None not in map(row.get, keys.get(event.input, ())))
        )
        if getattr(event, "rows", ())
        else event
        for event in script.events
    ]
    unmatched, pairs = (
        evolve(pipeline, accumulations={"pairs": attrs.evolve(join, null_keys=meaning)})
        for meaning in ("unmatched", "pair")
    )
    assert unmatched.run(script) == pairs.run(TestStream(tuple(events))), words(pipeline, script)


def plain(pipeline):
    policy = bm.BoundedOutOfOrderness(0)
    return {
        one.name: bm.Pipeline().event_time(one.event_time, policy).key_by(*one.keys) for one in pipeline.flow.inputs
    }


def same_windows(pipeline):
    return {"window": said(pipeline).window, "accumulations": said(pipeline).accumulations}
