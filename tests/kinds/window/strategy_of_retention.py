"""Strategies of pipelines with ``retain``, and scripts for them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

import beamish as bm
from tests.declared_options import evolve
from tests.strategies.pipelines import pipelines, retentions
from tests.strategies.windows import windows

budgets = retentions.filter(bool)
ending = windows.filter(lambda option: not option.is_all_of_time)
meeting = st.builds(bm.Sessions, st.integers(2, 6))


@st.composite
def retaining(draw: st.DrawFn, /, **what: Any) -> bm.Pipeline:
    """A pipeline whose keys keep a limited number of windows."""
    pipeline = draw(pipelines(window=what.pop("window", ending), once=draw(st.integers(0, 3)) == 3, **what))
    pipeline = evolve(pipeline, retention=draw(budgets))
    pipeline.flow.check()
    return pipeline
