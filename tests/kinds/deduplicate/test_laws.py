"""Laws of rows that come again (rules/laws.md#law-duplicates): what replays and identities come to."""

from __future__ import annotations

from collections import Counter

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

import beamish as bm
from beamish.kinds.deduplicate.option import Deduplication
from beamish.kinds.deduplicate.stage import DeduplicateStage
from beamish.local import run as run_varied
from beamish.script import as_step
from beamish.testing import TestStream
from tests.agreement import differences
from tests.cost import cost
from tests.declared_options import evolve, said
from tests.lines import line
from tests.strategies.pipelines import pipelines, rows_once
from tests.strategies.scripts import scripts


def replayed(data, script):
    """The script, and after some bundles rows again that it brought before: alone in a step, so that nothing else happens."""
    events, came = [], []
    for event in script.events:
        events.append(event)
        came += as_step(event).rows
        if came and data.draw(st.booleans()):
            events += TestStream().add(data.draw(st.lists(st.sampled_from(came), max_size=4))).events
    return events


def with_ids(script):
    """The script, whose rows have an id each."""
    events, number = [], 0
    for event in script.events:
        rows = []
        for row in as_step(event).rows:
            number += 1
            rows.append({**row, "id": number})
        events.append(attrs.evolve(event, rows=rows) if rows else event)
    return events


STEADY = st.sampled_from([bm.BoundedOutOfOrderness(0), bm.ProcessingTimeLag(2)])


@pytest.mark.of_law("law-duplicates")
@cost(2)
@given(st.data())
def test_a_replay_changes_no_pane(data):
    drawn = st.one_of(
        pipelines(once=True, watermark=STEADY, with_dropped=st.just(False)),  # noqa: FBT003
        rows_once().filter(lambda one: not said(one).with_dropped and said(one).watermark.idle_timeout is None),
    )
    pipeline = data.draw(drawn)
    known = evolved(pipeline, attrs.evolve(said(pipeline).deduplication, columns=("id",)))
    script = data.draw(scripts(pipeline))
    events = with_ids(script)
    again = replayed(data, attrs.evolve(script, events=tuple(events)))
    plain, twice = (run_varied(known.flow, one) for one in (events, again))
    assert Counter(map(line, plain)) == Counter(map(line, twice)), repr(known)


@pytest.mark.of_law("law-duplicates")
@cost(2)
@given(st.data())
def test_deduplication_of_distinct_rows_changes_nothing(data):
    pipeline = data.draw(pipelines(once=True, with_dropped=st.just(False)))  # noqa: FBT003
    events = with_ids(data.draw(scripts(pipeline)))
    known = evolve(pipeline, deduplication=Deduplication(("id",)))
    without = evolve(pipeline, deduplication=None)
    assert not differences(run_varied(known.flow, events), run_varied(without.flow, events), known)


def evolved(pipeline, deduplication):
    """The pipeline that knows rows again otherwise."""
    if isinstance(pipeline.flow.stage, DeduplicateStage):
        stage = attrs.evolve(pipeline.flow.stage, options=deduplication)
        return bm.Pipeline(attrs.evolve(pipeline.flow, stage=stage))
    return evolve(pipeline, deduplication=deduplication)
