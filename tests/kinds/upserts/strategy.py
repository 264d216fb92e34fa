"""Upserts: alone, of panes, and under windows, an over and a table of panes."""

from __future__ import annotations

from hypothesis import strategies as st

import beamish as bm
from beamish.accumulations import Collect, Count, Max, Sum
from beamish.triggers import Always
from tests.kinds.changes.strategy import scripts
from tests.strategies.watermarks import watermarks

KEYS = st.sampled_from([("team",), ("team",), ("team", "part"), ("part",), ("name",)])
COUNTS = {"n": Count(), "total": Sum("score"), "most": Max("score"), "all": Collect("score")}
AFTER = [
    bm.Pipeline().key_by("score").window(bm.GlobalWindow()),
    bm.Pipeline().window(bm.FixedWindows(3)).allowed_lateness(4),
    bm.Pipeline().key_by("team").window(bm.SlidingWindows(4, 2)).allowed_lateness(10),
]


OWN = ("gone", "seq")
"""The columns of scripts that delete and order."""


@st.composite
def upserts(
    draw: st.DrawFn, before: bm.Pipeline, columns: tuple[str, str] = OWN, *, with_dropped: bool = True
) -> bm.Pipeline:
    """Such a stage after a pipeline of one stage or a source; ``columns``: those that delete and order."""
    deleted = draw(st.sampled_from([None, columns[0], columns[0]]))
    pipeline = before.upserts(
        deleted=deleted,
        sequence_by=draw(st.sampled_from([None, columns[1], columns[1]])),
        keep_deleted=draw(st.sampled_from([None, 2, 6])) if deleted else None,
    )
    span = draw(st.sampled_from([None, None, None, 3, 20]))
    pipeline = pipeline if span is None else pipeline.forget_after(span)
    if columns == OWN and draw(st.booleans()):
        pipeline = pipeline.explode("tags")
    return pipeline.with_dropped() if with_dropped and draw(st.booleans()) else pipeline


@st.composite
def pipelines(draw: st.DrawFn, watermark: st.SearchStrategy[bm.Watermark] = watermarks) -> bm.Pipeline:
    """Such a stage among others."""
    source = bm.Pipeline().event_time(draw(st.sampled_from(["ts", "ts", "timestamp"])), draw(watermark))
    shape = draw(st.sampled_from(["alone", "alone", "before windows", "before windows", "before over", "of panes"]))
    if shape == "of panes":
        counts = source.key_by("team", "part").window(bm.FixedWindows(3)).trigger(Always()).accumulating()
        return counts.accumulate(n=Count(), seq=Max("score")).then(
            bm.Pipeline().key_by("team").upserts(sequence_by=draw(st.sampled_from([None, "seq"]))).with_dropped()
        )
    first = draw(upserts(source.key_by(*draw(KEYS)), with_dropped=shape == "alone"))
    if shape == "alone":
        return first
    if shape == "before over":
        over = bm.Pipeline().key_by("score").over(bm.Preceding(5)).allowed_lateness(6)
        return first.then(over.accumulating_and_retracting().accumulate(rows=Count(), sum=Sum("score")))
    after = draw(st.sampled_from(AFTER)).trigger(Always()).accumulating_and_retracting()
    return first.then(after.accumulate(**COUNTS))


CASES = {"upserts": (pipelines(), scripts)}
FLOWS = [
    upserts(bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("team"), ("flag", "score")),
    upserts(
        bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(2)).key_by("name", "team"),
        ("flag", "ratio"),
        with_dropped=False,
    ).map(lambda one: one.then(AFTER[1].trigger(Always()).accumulating_and_retracting().accumulate(**COUNTS))),
]
