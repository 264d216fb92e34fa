"""The windows that a script stores: which are listed, and their facts; laws check their contents."""

from __future__ import annotations

import pytest

import beamish as bm
from beamish.accumulations import Count, InnerJoin
from beamish.testing import TestStream
from beamish.triggers import AfterCount

SOURCE = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("k")
ONCE = (
    SOURCE.window(bm.FixedWindows(10)).trigger(AfterCount(2), allow_data_loss=True).accumulating().accumulate(n=Count())
)
SCRIPT = TestStream().add([{"ts": ts, "k": k} for ts, k in [(1, "a"), (2, "a"), (12, "a"), (25, "b")]])


def said(kept):
    return [
        (*one.key.values(), one.window.start.second, one.values, one.new_rows, one.panes, one.closed) for one in kept
    ]


def test_a_closed_window_is_stored_without_values_until_it_expires():
    open_ = [("a", 10, {"n": 1}, 1, 0, False), ("b", 20, {"n": 1}, 1, 0, False)]
    assert said(ONCE.state(SCRIPT).windows()) == [("a", 0, None, 0, 1, True), *open_]
    assert said(ONCE.state(SCRIPT.advance_watermark_to(10)).windows()) == open_
    assert ONCE.state(TestStream()).windows() == []


def test_a_span_is_half_open_and_a_key_may_be_partial():
    state = ONCE.key_by("k", "ts").state(SCRIPT)
    assert [kept.window.start.second for kept in state.windows(10, 20)] == [10]
    assert [kept.window.start.second for kept in state.windows(9, 21, key={"k": "a"})] == [0, 0, 10]
    assert state.windows(start=30) == []


def test_a_key_is_read_in_the_type_of_its_column():
    assert said(ONCE.state(SCRIPT).windows(key="b")) == said(ONCE.state(SCRIPT).windows(key={"k": "b"})) != []
    with pytest.raises(bm.OptionError, match=r"windows\(key=\{'k': 1\}\): key column 'k' is string"):
        ONCE.state(SCRIPT).windows(key={"k": 1})
    floats = ONCE.state(TestStream().add([{"ts": 1, "k": 0.0}, {"ts": 2, "k": float("nan")}, {"ts": 3, "k": None}]))
    assert [len(floats.windows(key={"k": k})) for k in (-0.0, float("nan"), None, 1.0)] == [1, 1, 1, 0]


def test_the_pairs_of_a_join_are_one_list_per_window_and_windowings_have_their_names():
    joined = bm.merge(left=SOURCE, right=SOURCE).window(bm.FixedWindows(10)).accumulate(pair=InnerJoin("left", "right"))
    script = (
        TestStream()
        .add([{"ts": 1, "k": "a"}], input="left")
        .add([{"ts": 2, "k": "a"}, {"ts": 3, "k": "a"}], input="right")
    )
    (kept,) = joined.state(script).windows()
    assert [len(pairs) for pairs in kept.values.values()] == [2]
    both = ONCE.window({"ten": bm.FixedWindows(10), "all": bm.GlobalWindow()})
    assert [(*kept.key.values(), kept.window.start is None) for kept in both.state(SCRIPT).windows(key={"k": "b"})] == [
        ("b", "ten", False),
        ("b", "all", True),
    ]


def test_a_pipeline_with_several_stages_of_windows_wants_the_number_of_one():
    chain = ONCE.then(bm.Pipeline().key_by("n").window(bm.FixedWindows(60)).accumulating().accumulate(of=Count()))
    with pytest.raises(bm.PipelineError, match=r"stages with windows are 1, 2; name one: windows\(stage=1\)"):
        chain.state(SCRIPT).windows()
    assert said(chain.state(SCRIPT).windows(stage=2)) == [(2, 0, {"of": 1}, 1, 0, False)]
    with pytest.raises(bm.PipelineError, match="no stage has windows"):
        SOURCE.changes().state(SCRIPT).windows()
