"""A source without event time in all of time, where nothing closes by it (rules/windows.md#untimed)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import beamish as bm
from beamish.accumulations import Count, InnerJoin, Last, Sum
from beamish.local import Variation
from beamish.testing import TestStream
from beamish.triggers import AfterCount, AfterWatermark, Always, Never, Repeatedly
from tests.agreement import agree, agree_otherwise

COUNTS = (
    bm.Pipeline().key_by("k").window(bm.GlobalWindow()).accumulating().accumulate(n=Count(), s=Sum("x"), l=Last("x"))
)
TRIGGERS = [Always(), Repeatedly(AfterCount(2)), AfterWatermark(early=Always()), Never()]


@pytest.mark.parametrize("trigger", [Always(), Repeatedly(AfterCount(1))], ids=str)
def test_all_of_time_needs_no_event_time(trigger):
    script = TestStream().add([{"k": "a", "x": 1}, {"k": None, "x": 2}]).add([{"k": "a", "x": 3}])
    panes = COUNTS.trigger(trigger).run(script)
    assert [(pane.key["k"], pane.values) for pane in panes] == [
        ("a", {"n": 1, "s": 1, "l": 1}),
        (None, {"n": 1, "s": 2, "l": 2}),
        ("a", {"n": 2, "s": 4, "l": 3}),
    ]
    assert {pane.timestamp for pane in panes} == {None}
    assert "no event time" in COUNTS.trigger(trigger).explain()


@given(
    st.sampled_from(TRIGGERS),
    st.lists(
        st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 3)), min_size=1, max_size=3), min_size=1, max_size=5
    ),
    st.booleans(),
)
def test_engine_and_twin_agree_without_event_time(trigger, bundles, ends):
    script = TestStream()
    for bundle in bundles:
        script = script.add([{"k": key, "x": value} for key, value in bundle])
    script = script.advance_watermark_to_infinity() if ends else script
    pipeline = COUNTS.trigger(trigger)
    agree(pipeline, script)
    completed = bm.Pipeline(pipeline.flow.completed)
    agree_otherwise(completed, script, Variation(shards=3, packs=2, round_trip=True))


def test_streams_join_without_event_time():
    inputs = {name: bm.Pipeline().key_by("k") for name in ("a", "b")}
    pairs = bm.merge(**inputs).window(bm.GlobalWindow()).trigger(Always()).discarding()
    pairs = pairs.accumulate(of=InnerJoin("a", "b", once=True))
    script = TestStream().add([{"k": 1, "x": 1}], input="a").add([{"k": 1, "y": 2}], input="b")
    assert [pane.values["of"] for pane in pairs.run(script)] == [{"a": {"x": 1}, "b": {"y": 2}}]
    agree(pairs, script)


@pytest.mark.parametrize(
    "closes",
    [
        COUNTS.forget_after("1 day"),
        COUNTS.deduplicate("x", within="1 day"),
        COUNTS.timestamp_combiner(bm.TimestampCombiner.LATEST),
        COUNTS.window(bm.FixedWindows(1)),
        COUNTS.window({"all": bm.GlobalWindow(), "tens": bm.FixedWindows(10)}),
    ],
    ids=str,
)
def test_closing_by_event_time_needs_one(closes):
    with pytest.raises(bm.PipelineError, match="no event time"):
        closes.trigger(Always()).explain()
