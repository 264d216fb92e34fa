"""Law: firing does not depend on the mode (rules/laws.md#law-discarding-adds-up); that panes add up is among the laws for users."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beamish import AccumulationMode
from tests.declared_options import evolve, said
from tests.laws.batches import key_name
from tests.strategies.pipelines import pipelines
from tests.strategies.scripts import scripts
from tests.strategies.windows import windows

discarding = pipelines(
    mode=st.just(AccumulationMode.DISCARDING),
    with_dropped=st.just(False),  # noqa: FBT003
    window=windows.filter(lambda option: not option.merging),
)


def firings(pipeline, panes):
    """The panes of each key, without what depends on the mode; between keys no order is promised."""
    keys = {}
    for pane in panes:
        keys.setdefault(key_name(pipeline, pane.key), []).append(attrs.evolve(pane, key={}, values={}, change=None))
    return keys


@pytest.mark.of_law("law-discarding-adds-up")
@given(st.data())
def test_discarding_and_accumulating_pipelines_fire_alike(data):
    pipeline = data.draw(discarding.filter(lambda pipeline: not said(pipeline).trigger.asked_values))
    script = data.draw(scripts(pipeline))
    accumulating = evolve(pipeline, mode=AccumulationMode.ACCUMULATING)
    assert firings(pipeline, pipeline.run(script)) == firings(pipeline, accumulating.run(script))
