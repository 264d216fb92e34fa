"""Laws of changes taken in (rules/changelogs.md#from-changelog): after every bundle all is as over the rows that the table holds then."""

from __future__ import annotations

from collections import Counter

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

import beamish as bm
from beamish import PaneKind
from beamish.local import Variation, run
from beamish.script.events import as_step
from beamish.testing import TestStream
from tests.agreement import differences
from tests.cost import cost
from tests.said import evolve
from tests.strategies.changelogs import feeds, keeps, pipelines, scripts
from tests.twin import run as run_twin


@pytest.mark.of_law("law-changelogs")
@given(st.data())
def test_engine_and_twin_give_the_same_panes_of_a_changelog(data):
    """Removals of rows that never were among them, where accumulations keep the rows of their windows."""
    pipeline = data.draw(pipelines())
    script = data.draw(scripts(pipeline, data.draw(feeds(strays=keeps(pipeline)))))
    found = differences(pipeline.run(script), run_twin(pipeline, script.events), pipeline)
    assert not found, "\n".join([repr(pipeline), repr(script), "- engine, + twin", *found])


@pytest.mark.of_law("law-changelogs")
@given(st.data())
def test_after_every_bundle_what_is_live_is_a_batch_of_the_rows_that_the_table_holds(data):
    pipeline = data.draw(pipelines(at_once=True))
    feed = data.draw(feeds())
    script = data.draw(scripts(pipeline, feed))
    plain = evolve(
        pipeline, form=None, trigger=bm.triggers.Default(), mode=None, allowed_lateness=bm.durations.Duration(0)
    )
    rows = []
    for (_, panes), table in zip(script.trace(pipeline), feed.tables, strict=True):
        rows += panes
        batch = plain.run(TestStream().add(list(table)).advance_watermark_to_infinity())
        assert shown(bm.live(rows)) == shown(batch), f"{pipeline!r}\n{script!r}\n{table}"


def shown(panes):
    return Counter(
        repr((pane.key, pane.window, sorted(pane.values.items()))) for pane in panes if pane.kind is PaneKind.PANE
    )


@pytest.mark.of_law("law-changelogs")
@cost(1.5)
@given(st.data())
def test_shards_packing_stored_bytes_and_the_order_of_rows_change_nothing_in_a_changelog(data):
    pipeline = data.draw(pipelines())
    script = data.draw(scripts(pipeline, data.draw(feeds(strays=keeps(pipeline)))))
    shuffled = [
        attrs.evolve(as_step(event), rows=tuple(data.draw(st.permutations(as_step(event).rows))))
        for event in script.events
    ]
    how = Variation(shards=data.draw(st.integers(1, 3)), packs=data.draw(st.integers(1, 3)), round_trip=True)
    found = differences(pipeline.run(script), run(pipeline.flow, shuffled, how), pipeline)
    assert not found, "\n".join([repr(pipeline), repr(script), repr(how), "- as it is, + otherwise", *found])
