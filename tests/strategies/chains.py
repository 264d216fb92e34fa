"""Chains of two stages, with and without retractions between them."""

from __future__ import annotations

from hypothesis import strategies as st

import beamish as bm
from beamish import accumulations as a
from beamish.durations import Duration
from tests.declared_options import declared, evolve, said
from tests.seconds import S
from tests.strategies.pipelines import combiners, modes, pipelines
from tests.strategies.triggers import ASKED, usual_triggers
from tests.strategies.windows import taking, windows

FIRST = {"v0": a.Sum("score"), "v1": a.Count(), "v2": a.Collect("score")}
LATER = st.sampled_from(
    [
        a.Count(),
        a.Count("v0"),
        a.Sum("v0"),
        a.Mean("v1"),
        a.Min("v0"),
        a.Max("v0"),
        a.CollectSet("v0"),
        a.Collect("v0"),
        a.TopN(2, "v0"),
        a.CountDistinct("v0", "v1"),
        a.First("v0"),
        a.Last("v1"),
        a.Median("v0"),
        a.StdDev("v1"),
        a.SumList("v2"),
    ]
)
KEYS = st.sampled_from([(), ("v0",), ("v1",), ("v0", "v1")])
NOT_MERGING = st.one_of(
    st.none(),
    st.none(),
    st.builds(bm.FixedWindows, st.integers(1, 12)),
    st.builds(bm.SlidingWindows, st.integers(1, 12), st.integers(2, 5)),
    st.just(bm.GlobalWindow()),
)


ANY_FIRST = pipelines(accumulation=st.just(a.Count()))


@st.composite
def chains(
    draw: st.DrawFn,
    *,
    first: st.SearchStrategy[bm.Pipeline] = ANY_FIRST,
    mode: st.SearchStrategy[bm.AccumulationMode] = modes,
    with_dropped: st.SearchStrategy[bool] = st.booleans(),  # noqa: B008
) -> bm.Pipeline:
    """Any chain of two stages; the first emits ``FIRST``."""
    before = draw(first)
    asked = {ASKED: a.Count()} if said(before).trigger.asked_values else {}
    before = evolve(before, accumulations=FIRST | asked, with_dropped=False)
    signed = said(before).retracts
    drawn = draw(NOT_MERGING if signed else st.one_of(NOT_MERGING, windows.filter(lambda w: not w.columns)))
    window = taking(drawn, before.flow)
    kind = draw(mode.filter(lambda mode: mode is not bm.AccumulationMode.DISCARDING) if signed else mode)
    second = declared(
        keys=draw(st.one_of(KEYS, KEYS, st.just(said(before).keys))),
        window=window,
        trigger=draw(usual_triggers),
        allow_data_loss=True,
        allowed_lateness=Duration(max(draw(st.sampled_from([0, 5, 1000])) * S, before.flow.gives.behind_us)),
        mode=kind,
        combiner=draw(combiners),
        with_dropped=draw(with_dropped),
        only_updated=kind not in (None, bm.AccumulationMode.DISCARDING) and draw(st.booleans()),
        accumulations={f"w{i}": one for i, one in enumerate(draw(st.lists(LATER, min_size=1, max_size=3)))},
    )
    return before.then(second)
