"""Stages that fill gaps: alone, over windows and under windows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

import beamish as bm
from beamish.accumulations import Count, Max, Sum
from beamish.testing import TestStream
from tests.kinds.window.strategy_of_errors import changed
from tests.strategies.scripts import dense_scripts

SOURCE = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0))
COUNTS = bm.Pipeline().window(bm.FixedWindows(3)).accumulate(n=Count(), most=Max("score"))


@st.composite
def filling(draw: st.DrawFn, before: bm.Pipeline) -> bm.Pipeline:
    """A stage that fills gaps, after a pipeline of one stage or a source."""
    step = draw(st.sampled_from([1, 2, 3, 0.5]))
    pipeline = before.fill_gaps(
        step,
        by=draw(st.sampled_from(["last", "linear", "null"])),
        within=step * draw(st.sampled_from([1, 1, 2, 3, 7])) + draw(st.sampled_from([0, 0.25])),
        offset=draw(st.sampled_from([0, 0, 0.5])),
    )
    late = draw(st.sampled_from([0, 0, 2, 6]))
    pipeline = pipeline.allowed_lateness(late) if late else pipeline
    return pipeline.with_dropped() if draw(st.booleans()) else pipeline


@st.composite
def pipelines(draw: st.DrawFn) -> bm.Pipeline:
    """Such a stage among others."""
    key = draw(st.sampled_from([(), ("team",)]))
    source = SOURCE.key_by(*key) if key else SOURCE
    shape = draw(st.sampled_from(["alone", "alone", "alone", "before", "after"]))
    if shape == "after":
        counts = source.window(bm.FixedWindows(3)).accumulate(n=Count(), sum=Sum("score"))
        return counts.then(draw(filling(bm.Pipeline())))
    first = draw(filling(source))
    if shape == "alone":
        return first
    bare = draw(filling(source).filter(lambda one: not one.flow.stage.with_dropped))
    return bare.then(COUNTS)


def scripts(_pipeline: bm.Pipeline) -> st.SearchStrategy[TestStream]:
    """Long scripts of two keys."""
    return dense_scripts.map(lambda script: changed(script, of_two_keys))


def of_two_keys(row: Mapping[str, Any]) -> dict[str, Any]:
    return {**row, "team": "ab"[int(row["ts"]) % 5 == 0], "name": None if row["score"] is None else f"n{row['score']}"}


CASES = {"gaps filled": (pipelines(), scripts)}
FLOWS = [pipelines()]
