"""Laws of rows with which something raises: they are dropped, and all else is as if they had not come (rules/output.md#errors)."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import beamish as bm
from beamish import DropReason, NumericOverflowError, UserFunctionError
from beamish.testing import TestStream
from tests.agreement import close, differences
from tests.cost import cost
from tests.declared_options import evolve, said
from tests.kinds.window.strategy_of_errors import (
    POISON,
    Picky,
    changed,
    dropping,
    poisonable,
    poisoned,
    poisoned_scripts,
)
from tests.laws.batches import batch, meets_a_session_gone
from tests.laws.ledger import live_panes
from tests.strategies.pipelines import retracting
from tests.strategies.watermarks import bounded_out_of_orderness
from tests.strategies.windows import windows, windows_by_overlap
from tests.twin.run import run


def drawn(data, **what):
    pipeline = data.draw(poisoned(**what))
    return pipeline, data.draw(poisoned_scripts(pipeline))


def test_a_row_with_an_error_merges_no_suppressed_session():
    sessions = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).window(bm.Sessions(1))
    pipeline = dropping(sessions.trigger(bm.triggers.Always()).discarding().accumulate(v=Picky()))
    script = TestStream().add([{"ts": 0.0, "score": 1}]).add([{"ts": 0.5, "score": POISON}])
    script = script.advance_watermark_to_infinity()
    held = pipeline.suppress(bm.UntilWindowCloses())
    panes = [attrs.evolve(pane, message=None) for pane in held.run(script)]
    assert not differences(panes, run(held, script.events), held)


@pytest.mark.of_law("law-errors")
@cost(2)
@given(st.data())
def test_a_row_dropped_for_an_error_has_no_effect(data):
    pipeline, script = drawn(data, window=windows.filter(lambda option: not option.may_overlap))
    panes = pipeline.run(script)
    errors = {pane.values["id"] for pane in panes if pane.reason is DropReason.ERROR}
    without = pipeline.run(changed(script, lambda row: None if row["id"] in errors else row))
    found = differences([pane for pane in panes if pane.reason is not DropReason.ERROR], without, pipeline)
    assert not found, "\n".join([repr(pipeline), repr(script), *found])


@pytest.mark.of_law("law-errors")
@cost(2)
@given(st.data())
def test_rows_are_dropped_exactly_where_the_query_would_fail(data):
    pipeline, script = drawn(data)
    strict = evolve(pipeline, on_error="fail")
    panes = pipeline.run(script)
    try:
        stops, expected = False, strict.run(script)
    except (UserFunctionError, NumericOverflowError):
        stops, expected = True, []
    assert stops == any(pane.reason is DropReason.ERROR for pane in panes), f"{pipeline!r}\n{script!r}"
    found = [] if stops else differences(panes, expected, pipeline)
    assert not found, "\n".join([repr(pipeline), repr(script), *found])


@pytest.mark.of_law("law-errors")
@cost(2)
@given(st.data())
def test_live_panes_are_a_batch_of_the_rows_that_were_not_dropped_for_errors(data):
    pipeline, script = drawn(
        data,
        accumulation=poisonable,
        mode=st.just(retracting),
        watermark=bounded_out_of_orderness,
        window=windows_by_overlap,
    )
    script = script.advance_watermark_to_infinity()
    if said(pipeline).window.merging:
        assume(not meets_a_session_gone(pipeline, script))
    panes = pipeline.run(script)
    live, expected = live_panes(pipeline, panes), batch(pipeline, script, panes)
    assert live.keys() == expected.keys(), f"{pipeline!r}\n{script!r}"
    for at, pane in live.items():
        assert close(dict(pane.values), expected[at]), f"{pipeline!r}\n{script!r}\n{pane}\n{expected[at]}"
