"""Laws of changes taken in (rules/changelogs.md#from-changelog): after every bundle all is as over the rows that the table holds then."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

import beamish as bm
from beamish import PaneKind
from beamish.testing import TestStream
from tests.declared_options import evolve
from tests.strategies.changelogs import feeds, pipelines, scripts


@pytest.mark.of_law("law-changelogs")
@given(st.data())
def test_after_every_bundle_live_panes_equal_a_batch_of_the_table(data):
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
