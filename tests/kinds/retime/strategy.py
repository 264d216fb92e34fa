"""Chains whose second stage takes its event time from a column of the panes."""

from __future__ import annotations

from hypothesis import strategies as st

import beamish as bm
from beamish.accumulations import Collect, Count, Max, Min, Sum
from beamish.triggers import AfterWatermark, Always, Default
from tests.kinds.gaps.strategy import scripts
from tests.strategies.pipelines import modes

FIRST = [bm.FixedWindows(3), bm.Sessions(2), bm.GlobalWindow(), bm.SlidingWindows(4, 2)]
TIMES = {"at": [Max("ts"), Min("ts"), Max("score"), Sum("score")]}
NEXT = [bm.FixedWindows(3), bm.SlidingWindows(6, 3), bm.GlobalWindow()]


@st.composite
def pipelines(draw: st.DrawFn) -> bm.Pipeline:
    """Windows, then windows by a time that the first ones accumulate."""
    first = (
        bm.Pipeline()
        .event_time("ts", bm.BoundedOutOfOrderness(draw(st.sampled_from([0, 3]))))
        .key_by(*draw(st.sampled_from([("team",), ("team",), ()])))
        .window(draw(st.sampled_from(FIRST)))
        .trigger(draw(st.sampled_from([Default(), Always(), AfterWatermark(early=Always(), late=Always())])))
        .allowed_lateness(draw(st.sampled_from([0, 4, 100])))
        .accumulation_mode(draw(modes))
        .accumulate(at=draw(st.sampled_from(TIMES["at"])), n=Count(), each=Collect("score"))
    )
    signed = first.flow.gives.retracts
    mode = draw(modes.filter(lambda one: not signed or one is not bm.AccumulationMode.DISCARDING))
    delay = draw(st.sampled_from([0, 0, 2, 10]))
    keys = draw(st.sampled_from([(), ("n",), ("team",) if first.flow.takes[0].keys else ()]))
    second = (
        bm.Pipeline()
        .event_time("at", bm.BoundedOutOfOrderness(delay))
        .key_by(*keys)
        .window(draw(st.sampled_from(NEXT)))
        .trigger(Always())
        .allowed_lateness(draw(st.sampled_from([0, 5, 100])))
        .accumulation_mode(mode)
        .accumulate(panes=Count(), rows=Sum("n"), last=Max("at"))
    )
    second = second.with_dropped() if draw(st.booleans()) else second
    return first.then(second)


CASES = {"times of a column": (pipelines(), scripts)}
FLOWS = [pipelines()]
