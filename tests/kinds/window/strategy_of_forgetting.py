"""Strategies of pipelines with ``forget_after``."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

import beamish as bm
from beamish.durations import duration
from tests.declared_options import evolve
from tests.strategies.pipelines import pipelines

spans = st.sampled_from([1, 2, 5, 12, 40]).map(lambda seconds: duration("span", seconds))


@st.composite
def forgetting(draw: st.DrawFn, /, **what: Any) -> bm.Pipeline:
    """A pipeline in the global window whose idle keys expire."""
    once = what.pop("once", draw(st.integers(0, 3)) == 3)
    pipeline = draw(pipelines(window=st.just(bm.GlobalWindow()), once=once, asks=not once, **what))
    pipeline = evolve(pipeline, forget_after=draw(spans))
    pipeline.flow.check()
    return pipeline
