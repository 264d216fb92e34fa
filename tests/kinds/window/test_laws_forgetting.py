"""Laws of the expiry of idle keys (rules/laws.md#law-forget-after)."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

import beamish as bm
from beamish import AccumulationMode, PaneKind
from beamish.accumulations import Collect, Count
from beamish.durations import duration
from tests.agreement import differences
from tests.cost import cost
from tests.declared_options import evolve
from tests.kinds.window.strategy_of_forgetting import forgetting
from tests.laws.batches import numbered
from tests.strategies.scripts import scripts
from tests.strategies.watermarks import bounded_out_of_orderness
from tests.twin.run import run

EVER = duration("span", 10**9)


@pytest.mark.of_law("law-forget-after")
@cost(2)
@given(st.data())
def test_every_row_is_in_one_discarding_pane_despite_expiry(data):
    safe = st.sampled_from([bm.triggers.Never(), bm.triggers.Default(), bm.triggers.Always()])
    pipeline = data.draw(
        forgetting(
            mode=st.just(AccumulationMode.DISCARDING), accumulation=st.just(Collect("id")), trigger=safe,
            once=False, watermark=bounded_out_of_orderness, with_dropped=st.just(True),  # noqa: FBT003
        )
    )  # fmt: skip
    script = numbered(data.draw(scripts(pipeline, ends=True)))
    panes = pipeline.run(script)
    given_ = Counter(row["id"] for event in script.events for row in getattr(event, "rows", ()))
    shown = Counter(i for pane in panes if pane.kind is PaneKind.PANE for i in pane.values["v0"])
    shown.update(pane.values["id"] for pane in panes if pane.kind is PaneKind.DROPPED)
    assert shown == given_, f"{pipeline!r}\n{script!r}"


@pytest.mark.of_law("law-forget-after")
@cost(2)
@given(st.data())
def test_a_span_longer_than_all_gaps_changes_nothing(data):
    pipeline = data.draw(forgetting(watermark=st.just(bm.BoundedOutOfOrderness(0))))
    script = data.draw(scripts(pipeline, ends=False, nulls=False))
    never = evolve(pipeline, forget_after=None)
    found = differences(never.run(script), evolve(pipeline, forget_after=EVER).run(script), pipeline)
    assert not found, "\n".join([repr(pipeline), repr(script), *found])


@pytest.mark.of_law("law-forget-after")
@cost(2)
@given(st.data())
def test_no_state_of_a_key_outlives_its_end(data):
    pipeline = data.draw(forgetting(watermark=st.just(bm.BoundedOutOfOrderness(0))))
    script = data.draw(scripts(pipeline, ends=False, nulls=False)).advance_watermark_to(10**7)
    assert list(pipeline.state(script).windows()) == []


@pytest.mark.parametrize("mode", list(AccumulationMode))
def test_the_law_detects_violations(mode):
    pipeline = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("team").window(bm.GlobalWindow())
    pipeline = pipeline.trigger(bm.triggers.Always()).accumulation_mode(mode).accumulate(n=Count())
    script = (
        bm.testing.TestStream().add([{"ts": 1, "team": "a"}]).advance_watermark_to(50).add([{"ts": 49, "team": "a"}])
    )
    kept, gone = (run(one, script.events) for one in (pipeline, pipeline.forget_after(5)))
    assert differences(kept, gone, pipeline)
