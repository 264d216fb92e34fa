"""Law: at the end of time every (row, window) is in exactly one pane, or dropped (rules/laws.md#law-nothing-is-lost)."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beamish import AccumulationMode, PaneKind
from beamish.accumulations import Collect
from tests.declared_options import said
from tests.laws.batches import assigned, dropped, numbered, window_of
from tests.strategies.pipelines import pipelines
from tests.strategies.scripts import scripts
from tests.strategies.watermarks import bounded_out_of_orderness


@pytest.mark.of_law("law-nothing-is-lost")
@given(st.data())
def test_every_row_is_in_one_discarding_pane_of_each_of_its_windows_or_dropped(data):
    pipeline = data.draw(
        pipelines(
            mode=st.just(AccumulationMode.DISCARDING),
            watermark=bounded_out_of_orderness,
            accumulation=st.just(Collect("id")),
            with_dropped=st.just(True),  # noqa: FBT003
        )
    )
    script = numbered(data.draw(scripts(pipeline, ends=True)))
    panes = pipeline.run(script)
    shown = Counter((i, pane.window) for pane in panes if pane.kind is PaneKind.PANE for i in pane.values["v0"])
    without_time = Counter(
        {(row["id"], None): 1 for event in script.events for row in getattr(event, "rows", ()) if row["ts"] is None}
    )
    expected = Counter((row.values["id"], window_of(pipeline, bounds)) for _, bounds, row in assigned(pipeline, script))
    found = shown + dropped(panes)
    if said(pipeline).window.merging:  # a row's window has become another
        found, expected, without_time = (
            Counter(i for i, _ in pairs.elements()) for pairs in (found, expected, without_time)
        )
    assert found == expected + without_time, f"{pipeline!r}\n{script!r}"
