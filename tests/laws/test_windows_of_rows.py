"""Laws of windows of rows (semantics.md#law-windows-of-rows)."""

from __future__ import annotations

from typing import Any

import attrs
from hypothesis import given
from hypothesis import strategies as st

import beamish as bm
from beamish.accumulations import Collect, Count, Last, Sum
from beamish.deduplication import Deduplication
from beamish.durations import Duration
from beamish.engine.state import SegmentPolicy
from beamish.local import Variation
from beamish.local import run as run_varied
from tests.agreement import differences
from tests.laws.dear import dear
from tests.said import evolve, said
from tests.seconds import S
from tests.strategies.pipelines import pipelines
from tests.strategies.scripts import dense_scripts, scripts
from tests.strategies.windows import count_windows, row_windows
from tests.twin import run

keyed = st.sampled_from([("team",), ("team",), ("team", "part"), ("part",)])
by_score = [None, None, Deduplication(("score",), None), Deduplication(("name",), Duration(20 * S))]


@st.composite
def counted(draw: st.DrawFn, /, **what: Any) -> bm.Pipeline:
    """A pipeline whose windows are of rows; some know rows again, some have no event time."""
    option = draw(what.pop("window", row_windows))
    if option.merging:
        what["keys"] = keyed
    pipeline = draw(pipelines(window=st.just(option), **what))
    once = draw(st.sampled_from(by_score))
    idle = option.numbering.idle is not None
    needs_time = idle or (once is not None and once.within is not None)
    pipeline = evolve(pipeline, deduplication=once)
    if not needs_time and said(pipeline).combiner is bm.TimestampCombiner.END_OF_WINDOW and draw(st.booleans()):
        pipeline = bm.Pipeline(evolve(pipeline, event_time=None, watermark=None).flow.completed)
    pipeline.flow.check()
    return pipeline


def agree(pipeline, script):
    found = differences(pipeline.run(script), run(pipeline, script.events), pipeline)
    assert not found, "\n".join([repr(pipeline), repr(script), "- engine, + twin", *found])


@given(st.data())
def test_engine_and_twin_give_the_same_panes_of_rows(data):
    pipeline = data.draw(counted())
    agree(pipeline, data.draw(scripts(pipeline)))


@dear
@given(st.data())
def test_engine_and_twin_give_the_same_panes_of_rows_in_long_scripts(data):
    pipeline = data.draw(
        counted(
            window=count_windows,
            watermark=st.just(bm.BoundedOutOfOrderness(0)),
            keys=st.just(()),
            accumulation=st.sampled_from([Count(), Sum("score"), Collect("score"), Last("score")]),
        ).filter(lambda one: said(one).deduplication is None or said(one).deduplication.columns == ("score",))
    )
    agree(pipeline, data.draw(dense_scripts))


@dear
@given(st.data())
def test_shards_packing_the_way_through_bytes_and_segments_change_no_pane_of_rows(data):
    pipeline = data.draw(counted())
    script = data.draw(scripts(pipeline))
    policy = SegmentPolicy(few_segments=0, shortest_us=1, shortest_rows=1, periods=1)
    how = Variation(
        shards=data.draw(st.integers(1, 4)),
        packs=data.draw(st.integers(1, 3)),
        round_trip=data.draw(st.booleans()),
        adapt=lambda operator: attrs.evolve(operator, policy=policy),
    )
    found = differences(pipeline.run(script), run_varied(pipeline.flow, script.events, how), pipeline)
    assert not found, "\n".join([repr(pipeline), repr(script), "- as it is, + otherwise", *found])
