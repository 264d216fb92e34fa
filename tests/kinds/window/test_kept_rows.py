"""Questions for the rows that windows keep (rules/running.md#kept-rows)."""

from datetime import UTC, datetime

import pytest

import beamish as bm
from beamish.accumulations import CoGroup, Collect, Count, InnerJoin
from beamish.testing import TestStream
from beamish.triggers import Always
from tests.own.windows import OfABlock

PLAIN = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("k").accumulating().trigger(Always())
ROWS = [
    {"ts": 12, "k": "b", "v": 5},
    {"ts": 4, "k": "a", "v": 3},
    {"ts": 4, "k": "a", "v": None},
    {"ts": 4, "k": "a", "v": 3},
    {"ts": 2, "k": "a", "v": 9},
    {"ts": 18, "k": "a", "v": 1},
]
SCRIPT = TestStream().add(ROWS[:3]).add(ROWS[3:])


def shown(rows):
    return [
        (*one.key.values(), one.place.second if isinstance(one.place, datetime) else one.place, *one.row.values())
        for one in rows
    ]


ALL = [("a", 2, 9), ("a", 4, 3), ("a", 4, 3), ("a", 18, 1), ("b", 12, 5)]


@pytest.mark.parametrize(
    "window", [bm.FixedWindows(10), bm.SlidingWindows(10, 2), bm.Sessions(3), bm.GlobalWindow(), OfABlock()], ids=str
)
def test_a_row_in_several_windows_is_listed_once(window):
    pipeline = PLAIN.window(window).accumulate(vs=Collect("v"), n=Count())
    state = pipeline.state(SCRIPT)
    if not isinstance(window, OfABlock):
        assert shown(state.rows()) == ALL
    assert shown(state.rows(4, 12)) == [one for one in shown(state.rows()) if 4 <= one[1] < 12]
    assert shown(state.rows(key={"k": "b"})) == [one for one in shown(state.rows()) if one[0] == "b"]
    (first, *_) = state.rows()
    assert isinstance(first, bm.KeptRow)
    assert first.place == datetime(1970, 1, 1, 0, 0, first.place.second, tzinfo=UTC)
    assert list(first.row) == ["v"]


def test_a_row_of_an_interval_join_is_listed_though_no_window_contains_it():
    rows = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0))
    pipeline = bm.merge(a=rows, b=rows).window(bm.Within(20, of="b", after=-10)).accumulate(pair=InnerJoin("a", "b"))
    state = pipeline.state(TestStream().add([{"ts": 31, "v": 1}], input="b"))
    assert [(one.place.second, one.row["v"]) for one in state.rows(31, 32, of="b")] == [(31, 1)]


def test_rows_of_windows_of_rows_have_their_numbers():
    pipeline = (
        bm.Pipeline()
        .key_by("k")
        .window(bm.CountWindows(3, 1))
        .allowed_lateness(rows=2)
        .trigger(Always())
        .accumulating()
    )
    pipeline = pipeline.accumulate(vs=Collect("v"))
    script = TestStream().add([{"k": "a", "v": v} for v in "pqrst"])
    assert shown(pipeline.state(script).rows()) == [("a", 1, "q"), ("a", 2, "r"), ("a", 3, "s"), ("a", 4, "t")]
    assert shown(pipeline.state(script).rows(2, 4)) == [("a", 2, "r"), ("a", 3, "s")]
    with pytest.raises(bm.OptionError, match="bounded by row numbers"):
        pipeline.state(script).rows("x")


def merged(accumulation, mode="accumulating"):
    one = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("k")
    both = bm.merge(orders=one, clicks=one).window(bm.FixedWindows(10)).trigger(Always())
    return getattr(both, mode)().accumulate(met=accumulation)


MERGED = (
    TestStream()
    .add([{"ts": 1, "k": "a", "v": 5, "w": "x"}, {"ts": 3, "k": "a", "v": 4, "w": None}], input="orders")
    .add([{"ts": 2, "k": "a", "page": "p"}], input="clicks")
)


@pytest.mark.parametrize("accumulation", [InnerJoin("orders", "clicks"), CoGroup("orders", "clicks")], ids=str)
def test_rows_of_an_input_are_whole_but_for_the_key(accumulation):
    state = merged(accumulation).state(MERGED)
    assert shown(state.rows(of="orders")) == [("a", 1, 1, 5, "x"), ("a", 3, 3, 4, None)]
    assert [dict(one.row) for one in state.rows(of="clicks")] == [{"ts": 2, "page": "p"}]
    with pytest.raises(bm.PipelineError, match=r"stored for \['orders', 'clicks'\]; name one"):
        state.rows()
    assert shown(merged(Collect("v").of("orders")).state(MERGED).rows()) == [("a", 1, 5), ("a", 3, 4)]


def test_discarding_keeps_only_rows_in_no_pane_yet():
    waiting = PLAIN.discarding().trigger(bm.triggers.Repeatedly(bm.triggers.AfterCount(2)))
    pipeline = waiting.window(bm.FixedWindows(100)).accumulate(vs=Collect("v"))
    script = (
        TestStream()
        .add([{"ts": 1, "k": "a", "v": 1}])
        .add([{"ts": 2, "k": "a", "v": 2}])
        .add([{"ts": 3, "k": "a", "v": 3}])
    )
    assert shown(pipeline.state(script).rows()) == [("a", 3, 3)]
    closing = pipeline.trigger(bm.triggers.AfterCount(2), allow_data_loss=True).allowed_lateness(5)
    assert closing.state(script).rows() == []


def test_retracted_rows_are_not_stored():
    first = PLAIN.accumulating_and_retracting().window(bm.FixedWindows(10)).accumulate(n=Count())
    chain = first.then(
        bm.Pipeline().window(bm.FixedWindows(100)).trigger(Always()).accumulating().accumulate(ns=Collect("n"))
    )
    script = TestStream().add([{"ts": 1, "k": "a"}]).add([{"ts": 2, "k": "a"}, {"ts": 3, "k": "b"}])
    assert [dict(one.row) for one in chain.state(script).rows(stage=2)] == [{"n": 1}, {"n": 2}]


def test_several_windowings_are_told_apart():
    pipeline = PLAIN.window({"ten": bm.FixedWindows(10), "hop": bm.SlidingWindows(10, 5)}).accumulate(vs=Collect("v"))
    state = pipeline.state(TestStream().add([{"ts": 7, "k": "a", "v": 1}]))
    assert shown(state.rows()) == [("a", "ten", 7, 1), ("a", "hop", 7, 1)]
    assert shown(state.rows(key={"windowing": "hop"})) == [("a", "hop", 7, 1)]


def test_invalid_state_queries_are_rejected():
    state = PLAIN.window(bm.FixedWindows(10)).accumulate(n=Count()).state(SCRIPT)
    with pytest.raises(bm.PipelineError, match="no accumulation stores rows"):
        state.rows()
    state = PLAIN.window(bm.FixedWindows(10)).accumulate(vs=Collect("v")).state(SCRIPT)
    with pytest.raises(bm.PipelineError, match=r"rows\(of='orders'\): rows are stored for \['vs'\]"):
        state.rows(of="orders")
    with pytest.raises(bm.OptionError, match=r"rows\(key=\{'team': 1\}\): 'team' is not a key column"):
        state.rows(key={"team": 1})
    with pytest.raises(bm.OptionError, match="the span is empty"):
        state.rows(5, 5)
