"""Strategies of pipelines with a watermark per key."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

import beamish as bm
from beamish.accumulations import Count
from beamish.durations import duration
from beamish.kinds.window.plan.options import KeyWatermark
from tests.declared_options import evolve, said
from tests.kinds.window.strategy import anchored
from tests.kinds.window.strategy_of_forgetting import spans
from tests.strategies.pipelines import modes, pipelines, retentions
from tests.strategies.triggers import usual_triggers
from tests.strategies.watermarks import bounded_out_of_orderness, punctuated
from tests.strategies.windows import fixed_windows, unit

some_keys = st.sampled_from([("team",), ("team", "part"), ("part",)])
delays, bounds = st.integers(0, 6), st.sampled_from([0, 1, 3, 8, 20, 1000])


@st.composite
def key_watermarks(draw: st.DrawFn, option: bm.WindowOption | None) -> KeyWatermark:
    """Any watermark per key; times in the unit of the windows."""
    scale = unit(option)
    return KeyWatermark(duration("delay", draw(delays) * scale), duration("at_most", draw(bounds) * scale))


@st.composite
def keyed(draw: st.DrawFn, /, **what: Any) -> bm.Pipeline:
    """A pipeline whose keys have watermarks of their own."""
    what = {
        "keys": some_keys,
        "watermark": st.one_of(bounded_out_of_orderness, bounded_out_of_orderness, punctuated),
        "once": draw(st.integers(0, 3)) == 3,
    } | what
    of_anchors = "window" not in what and draw(st.integers(0, 5)) == 5
    pipeline = draw(anchored(keys=what["keys"]) if of_anchors else pipelines(**what))
    window = said(pipeline).window
    assert window is not None
    ends = not window.is_all_of_time
    evicts = ends and not isinstance(window, bm.AnchoredWindows)
    pipeline = evolve(
        pipeline,
        key_watermark=draw(key_watermarks(window)),
        retention=draw(retentions) if evicts else None,
        forget_after=None if ends else draw(spans),
    )
    pipeline.flow.check()
    return pipeline


@st.composite
def under_stages(draw: st.DrawFn) -> bm.Pipeline:
    """A stage over the panes of one whose keys have watermarks of their own."""
    first = draw(keyed(window=fixed_windows, with_dropped=st.just(False), lateness=st.sampled_from([0, 3]), once=False))  # noqa: FBT003
    later = bm.Pipeline().key_by().trigger(draw(usual_triggers), allow_data_loss=True).allowed_lateness(1000)
    later = later.window(draw(fixed_windows)) if draw(st.booleans()) else later
    mode = bm.AccumulationMode.ACCUMULATING if first.flow.gives.retracts else draw(modes)
    pipeline = first.then(later.accumulation_mode(mode).accumulate(n=Count()))
    pipeline.flow.check()
    return pipeline
