"""Null keys in joins (rules/stages.md#null-keys): such a row has no match."""

import pyarrow as pa
import pytest

import beamish as bm
from beamish import DropReason, PaneKind
from beamish.accumulations import CoGroup, FullOuterJoin, InnerJoin, LeftOuterJoin, RightOuterJoin
from beamish.testing import TestStream
from beamish.triggers import Always
from tests.upgrades.carried import in_two_runs

SCHEMA = pa.schema([("ts", pa.int64()), ("k", pa.int64()), ("v", pa.string())])
NAN = float("nan")
JOINS = {"inner": InnerJoin, "left": LeftOuterJoin, "right": RightOuterJoin, "full": FullOuterJoin}
ALONE = {"inner": [], "left": ["l1-", "l2-"], "right": ["-r1"], "full": ["l1-", "l2-", "-r1"]}
DROPPED = {"inner": ["l1", "l2", "r1"], "left": ["r1"], "right": ["l1", "l2"], "full": []}


def source(*keys):
    return bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by(*keys)


def merged(*keys):
    return bm.merge(left=source(*keys), right=source(*keys))


def script(key):
    """Two left rows and a right one of a key, then the end."""
    rows = [("left", {"ts": 1, "v": "l1"}), ("left", {"ts": 2, "v": "l2"}), ("right", {"ts": 2, "v": "r1"})]
    given = TestStream()
    for name, row in rows:
        given = given.add([row | key], input=name)
    return given.advance_watermark_to_infinity()


def shown(panes):
    """The joined rows: l1-r1; of a retraction with R."""
    found = []
    for pane in panes:
        if pane.kind is not PaneKind.DROPPED:
            left, right = ((pane.values["pair"][name] or {"v": ""})["v"] for name in ("left", "right"))
            found.append("R " * (pane.kind is PaneKind.RETRACTION) + f"{left}-{right}")
    return found


def dropped(panes):
    return [
        row["v"]
        for pane in panes
        if pane.reason is DropReason.NULL_KEY
        for row in pane.values.values()
        if row is not None
    ]


WINDOWS = {
    "fixed": bm.FixedWindows(10),
    "sliding": bm.SlidingWindows(20, 10, offset=10),
    "sessions": bm.Sessions(10),
    "global": bm.GlobalWindow(),
    "counted": bm.CountWindows(5),
    "counted over the stream": bm.CountWindows(5, over="stream"),
}


@pytest.mark.parametrize("once", [False, True])
@pytest.mark.parametrize("window", [name for name in WINDOWS if name != "sliding"])
@pytest.mark.parametrize("how", JOINS)
def test_rows_of_a_null_key_come_alone_or_are_dropped(how, window, once):
    pipeline = merged("k").window(WINDOWS[window]).accumulate(pair=JOINS[how]("left", "right", once=once))
    panes = pipeline.with_dropped().run(script({"k": None}))
    assert sorted(shown(panes)) == sorted(ALONE[how])
    assert dropped(panes) == DROPPED[how]
    assert all(pane.window is None for pane in panes if pane.kind is PaneKind.DROPPED)


@pytest.mark.parametrize(("how", "once"), [("inner", False), ("inner", True), ("left", False)])
def test_rows_of_a_null_key_match_none_within_a_span(how, once):
    pipeline = merged("k").window(bm.Within(5, of="right")).accumulate(pair=JOINS[how]("left", "right", once=once))
    panes = pipeline.with_dropped().run(script({"k": None}))
    assert (shown(panes), dropped(panes)) == (ALONE[how], DROPPED[how])


@pytest.mark.parametrize("how", JOINS)
@pytest.mark.parametrize("once", [False, True])
def test_null_keys_pair_on_request(how, once):
    pair = JOINS[how]("left", "right", once=once, null_keys="pair")
    panes = merged("k").window(bm.FixedWindows(10)).accumulate(pair=pair).with_dropped().run(script({"k": None}))
    assert sorted(shown(panes)) == ["l1-r1", "l2-r1"]
    assert dropped(panes) == []


@pytest.mark.parametrize(
    ("key", "pairs"),
    [
        ({"k": "a", "j": None}, False),
        ({"k": None, "j": None}, False),
        ({"k": "a", "j": 1.0}, True),
        ({"k": "a", "j": NAN}, True),
    ],
)
@pytest.mark.parametrize("once", [False, True])
def test_a_key_with_a_null_column_pairs_no_more_than_a_null_one_and_nan_pairs(key, pairs, once):
    joined = merged("k", "j").window(bm.FixedWindows(10)).accumulate(pair=FullOuterJoin("left", "right", once=once))
    assert sorted(shown(joined.run(script(key)))) == sorted(["l1-r1", "l2-r1"] if pairs else ALONE["full"])


@pytest.mark.parametrize("window", ["fixed", "sliding", "sessions"])
def test_a_full_join_retracts_no_row_of_a_null_key_when_the_other_side_comes(window):
    joined = merged("k").window(WINDOWS[window]).trigger(Always()).accumulating_and_retracting()
    joined = joined.only_updated_panes().accumulate(pair=FullOuterJoin("left", "right"))
    panes = joined.run(script({"k": None}))
    assert sorted(shown(bm.live(panes))) == sorted(ALONE["full"] * (2 if window == "sliding" else 1))


def test_without_keys_all_rows_meet():
    joined = merged().window(bm.FixedWindows(10)).accumulate(pair=InnerJoin("left", "right"))
    assert shown(joined.run(script({}))) == ["l1-r1", "l2-r1"]


def test_an_input_beside_the_join_keeps_its_rows():
    """It belongs to no side, and holds windows open as every row does."""
    inputs = {name: source("k") for name in ("left", "right", "other")}
    joined = bm.merge(**inputs).window(bm.Sessions(10)).accumulate(pair=InnerJoin("left", "right")).with_dropped()
    state = joined.state(TestStream().add([{"ts": 1, "k": None}], input="other").advance_watermark_to(2))
    assert len(state.windows()) == 1


@pytest.mark.parametrize("how", JOINS)
def test_only_rows_that_come_alone_are_stored(how):
    joined = merged("k").window(bm.FixedWindows(10)).accumulate(pair=JOINS[how]("left", "right"))
    rows = TestStream().add([{"ts": 1, "k": None, "v": 1}], input="left").advance_watermark_to(1)
    assert len(joined.state(rows).windows()) == (how in ("left", "full"))


def test_null_keys_are_judged_after_the_event_time_and_before_lateness():
    joined = merged("k").window(bm.FixedWindows(10)).accumulate(pair=InnerJoin("left", "right")).with_dropped()
    late = [{"ts": None, "k": None, "v": 1}, {"ts": 5, "k": None, "v": 2}, {"ts": 5, "k": 1, "v": 3}]
    panes = joined.run(TestStream().advance_watermark_to(30).add(late, input="left"))
    assert {pane.values["left"]["v"]: str(pane.reason) for pane in panes} == {
        1: "null_event_time",
        2: "null_key",
        3: "expired",
    }


def test_cogroup_groups_null_keys():
    grouped = merged("k").window(bm.FixedWindows(10)).accumulate(rows=CoGroup("left", "right"))
    (pane,) = grouped.run(script({"k": None}))
    assert {name: [row["v"] for row in rows] for name, rows in pane.values["rows"].items()} == {
        "left": ["l1", "l2"],
        "right": ["r1"],
    }


def test_a_row_of_a_null_key_takes_no_number():
    joined = merged("k").window(bm.CountWindows(2, over="stream")).accumulate(pair=InnerJoin("left", "right"))
    rows = TestStream().add([{"ts": 1, "k": 1, "v": "a"}], input="left").add([{"ts": 1, "k": None}], input="right")
    panes = joined.run(rows.add([{"ts": 1, "k": 1, "v": "b"}], input="right"))
    assert shown(panes) == ["a-b"]


@pytest.mark.parametrize("once", [False, True])
def test_a_full_join_without_keys_pairs(once):
    joined = merged().window(bm.FixedWindows(10)).accumulate(pair=FullOuterJoin("left", "right", once=once))
    assert sorted(shown(joined.run(script({})))) == ["l1-r1", "l2-r1"]


def retracting(**how):
    joined = merged("k").window(bm.FixedWindows(10)).trigger(Always()).accumulating_and_retracting()
    return joined.accumulate(pair=FullOuterJoin("left", "right", **how))


PAIRING = retracting(null_keys="pair")
END = TestStream().advance_watermark_to_infinity()


def in_runs(then, now, script):
    """The output of a second run after the bundles of a script."""
    whole = TestStream((*script.events, *END.events))
    return shown(in_two_runs(then, now, whole, len(script.events))[1])


def both_sides(key):
    return TestStream().add([{"ts": 1, "v": "l", **key}], input="left").add([{"ts": 1, "v": "r", **key}], input="right")


@pytest.mark.parametrize(("then", "now"), [(PAIRING, retracting()), (retracting(), PAIRING)])
def test_joined_rows_of_null_keys_that_could_not_be_retracted_stop_a_later_run(then, now):
    assert in_runs(then, now, both_sides({"k": 1})) == in_runs(then, then, both_sides({"k": 1}))
    one_side = TestStream().add([{"ts": 1, "v": "l", "k": None}], input="left")
    assert in_runs(then, now, one_side) == in_runs(then, then, one_side)
    with pytest.raises(
        bm.StateError, match=r"1 stored windows of null keys, the first of key .*set null_keys=.* until they"
    ):
        in_runs(then, now, both_sides({"k": None}))
    ended = both_sides({"k": None}).advance_watermark_to(10)
    assert in_runs(then, now, ended) == []


@pytest.mark.parametrize("how", [name for name in JOINS if name != "full"])
def test_other_joins_continue_with_rows_of_null_keys(how):
    then, now = (
        merged("k").window(bm.FixedWindows(10)).accumulate(pair=JOINS[how]("left", "right", null_keys=nulls))
        for nulls in ("pair", "unmatched")
    )
    script = TestStream().add([{"ts": 1, "v": "l", "k": None}], input="left")
    assert in_runs(then, now, script) == (["l-"] if how == "left" else [])


def test_the_spec_of_a_join_that_pairs_null_keys_is_that_of_earlier_versions():
    specs = [
        retracting(**how).flow.bind({"left": SCHEMA, "right": SCHEMA}, shards=1).operator.plan.spec
        for how in ({}, {"null_keys": "pair"})
    ]
    assert [spec.get("null_keys") for spec in specs] == ["unmatched", None]
    assert specs[0]["options"] == specs[1]["options"]
    assert "null_keys" not in str(specs[1])
