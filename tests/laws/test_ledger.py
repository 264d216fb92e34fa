"""Law: what is live of a retracting stream in the end is a batch (rules/panes.md#ledger)."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import beamish as bm
from tests.agreement import close
from tests.declared_options import said
from tests.laws.batches import batch, meets_a_session_gone, numbered
from tests.laws.ledger import check_rows, live_panes
from tests.lines import line
from tests.strategies.accumulations import exact
from tests.strategies.pipelines import pipelines, retracting
from tests.strategies.scripts import scripts
from tests.strategies.watermarks import bounded_out_of_orderness
from tests.strategies.windows import windows_by_overlap


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


def test_rows_that_do_not_add_up_are_found():
    pipeline = (
        bm.Pipeline()
        .event_time("ts", bm.BoundedOutOfOrderness(0))
        .window(bm.FixedWindows(9))
        .trigger(bm.triggers.Always())
        .accumulating_and_retracting()
        .accumulate(n=bm.accumulations.Count())
    )
    first, *others = panes = pipeline.run(bm.testing.TestStream().add([{"ts": 1}]).add([{"ts": 2}]))
    check_rows(pipeline, panes)
    retraction, last = others
    for wrong, words in [(others, "nothing is live"), ([first, last], "another pane is live")]:
        with pytest.raises(AssertionError, match=words):
            check_rows(pipeline, wrong)
    with pytest.raises(AssertionError):
        check_rows(pipeline, [first, last, retraction])
