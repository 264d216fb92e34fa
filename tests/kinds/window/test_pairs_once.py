"""Joins that emit each pair once: their state, their descriptions, changes between runs; laws check the pairs."""

from __future__ import annotations

import pickle

import attrs
import pyarrow as pa
import pytest

import beamish as bm
from beamish.accumulations import FullOuterJoin, InnerJoin, LeftOuterJoin
from beamish.contract.stored import DictStore
from beamish.kinds.window.state.segments import LAYOUT
from beamish.tables.segments import SegmentStore
from beamish.testing import TestStream
from beamish.triggers import AfterCount, AfterWatermark, Always, Repeatedly

SOURCE = bm.Pipeline().event_time("at", bm.BoundedOutOfOrderness(0)).key_by("id")
MERGED = bm.merge(orders=SOURCE, shipments=SOURCE).trigger(Always()).discarding()


def once(kind=InnerJoin, window=bm.GlobalWindow(), **kept):  # noqa: B008
    return MERGED.window(window).accumulate(pair=kind("orders", "shipments", once=True, **kept))


def order(at, item, id_=1):
    return {"at": at, "id": id_, "item": item}


def shipment(at, cost, id_=1):
    return {"at": at, "id": id_, "cost": cost}


def found(panes):
    return [
        (pane.values["pair"]["orders"]["item"], pane.values["pair"]["shipments"]["cost"])
        for pane in panes
        if pane.kind is bm.PaneKind.PANE
    ]


def test_repr_of_joins_with_and_without_once():
    join = FullOuterJoin("a", "b", once=True, keep_rows={"a": 3}, keep_for={"b": "10 minutes"})
    said = "FullOuterJoin(left='a', right='b', once=True, keep_rows={'a': 3}, keep_for={'b': '10 minutes'})"
    assert repr(join) == said
    assert eval(said) == join
    assert hash(eval(said)) == hash(join)
    assert pickle.loads(pickle.dumps(join)) == join
    assert join != FullOuterJoin("a", "b", once=True)
    assert repr(InnerJoin("a", "b")) == "InnerJoin(left='a', right='b')"


def test_early_panes_give_each_pair_once_unlike_a_plain_discarding_join():
    script = (
        TestStream()
        .add([order(1, "tea")], input="orders")
        .add([shipment(2, 5)], input="shipments")
        .add([shipment(3, 6)], input="shipments")
    )
    plain = MERGED.window(bm.FixedWindows(10)).accumulate(pair=InnerJoin("orders", "shipments"))
    assert found(plain.run(script)) == []
    assert found(once(window=bm.FixedWindows(10)).run(script)) == [("tea", 5), ("tea", 6)]


@attrs.frozen
class InOne(bm.WindowOption):
    """Windows of one second each, of which a row is in one."""

    overlaps = False

    def assign(self, timestamp_us):
        yield timestamp_us // 1_000_000 * 1_000_000, timestamp_us // 1_000_000 * 1_000_000 + 1_000_000


@attrs.frozen
class InTwo(bm.WindowOption):
    """Windows of which a row is in two, at most one of which it has in common with a row of another second."""

    def assign(self, timestamp_us):
        second = timestamp_us // 1_000_000 * 1_000_000
        yield second, second + 2_000_000
        yield second + 1_000_000, second + 3_000_000


def test_windows_of_ones_own_give_each_pair_once():
    both = [shipment(5, 1), shipment(6, 2)]
    script = TestStream().add([order(5, "tea")], input="orders").add(both, input="shipments")
    panes = once(window=InTwo()).run(script)
    assert found(panes) == [("tea", 1), ("tea", 2)]
    assert [pane.start.timestamp() for pane in panes] == [5, 6]
    alone = once(FullOuterJoin, InOne()).run(script.advance_watermark_to(10))
    assert [pane.values["pair"]["orders"] is None for pane in alone] == [False, True]


def test_each_of_several_windowings_gives_each_pair_once():
    pipeline = once(window={"short": bm.FixedWindows(10), "long": bm.SlidingWindows(20, 10)})
    script = TestStream().add([order(12, "tea")], input="orders").add([shipment(14, 5)], input="shipments")
    panes = pipeline.run(script)
    assert [(pane.key["windowing"], pane.start.timestamp()) for pane in panes] == [("short", 10), ("long", 0)]


def test_a_window_stores_the_due_pairs():
    pipeline = once(LeftOuterJoin, bm.FixedWindows(10)).trigger(AfterWatermark(early=AfterCount(3))).allowed_lateness(0)
    script = TestStream().add([order(1, "tea"), order(2, "jam", 2)], input="orders")
    kept = pipeline.state(script.add([shipment(3, 5)], input="shipments")).windows()
    pairs = [[(pair["orders"]["item"], pair["shipments"]["cost"]) for pair in one.values["pair"]] for one in kept]
    assert pairs == [[("tea", 5)], []]
    assert [one.new_rows for one in kept] == [2, 1]


def columns(*names):
    return pa.schema([("at", pa.int64()), ("id", pa.int64()), *((name, pa.int64()) for name in names)])


def open_shard(pipeline, store):
    schemas = {"orders": columns("item"), "shipments": columns("cost")}
    return pipeline.flow.bind(schemas, shards=1).operator.open(store)


@pytest.mark.parametrize(
    "second",
    [
        MERGED.window(bm.GlobalWindow()).accumulate(pair=InnerJoin("orders", "shipments")),
        once(),
        once(keep_rows={"orders": 4}, keep_for={"shipments": 60}),
        once(keep_rows={"orders": 3}, keep_for={"shipments": 61}),
        once(LeftOuterJoin, keep_rows={"orders": 3}, keep_for={"shipments": 60}),
    ],
    ids=lambda pipeline: repr(pipeline.flow.stage.options.accumulations),
)
def test_a_checkpoint_continues_only_with_the_same_join(second):
    first, store = once(keep_rows={"orders": 3}, keep_for={"shipments": 60}), DictStore()
    open_shard(first, store).step([1, 1], None, [])
    open_shard(first, store)
    with pytest.raises(bm.StateError) as refused:
        open_shard(second, store)
    assert "written with accumulation pair=InnerJoin(" in str(refused.value)
    assert "keep_rows={'orders': 3}" in str(refused.value)
    now = second.flow.stage.options.accumulations["pair"]
    assert f"the pipeline now has {type(now).__name__}(" in str(refused.value)


def kept_rows(store):
    """How many rows of each side the windows in a store keep, and for how long none of them goes."""
    rows = []
    segments = SegmentStore(store, LAYOUT)
    for number in segments.index["segment"].tolist():
        segment = segments.read(number)
        lists = [segment[f"state.pair.{side}"].to_pylist() for side in (0, 1)]
        rows += list(zip(*([len(one) for one in side] for side in lists), strict=True))
    return sorted(rows)


def steps(pipeline, store, *moves):
    """Steps of one shard: (watermark, rows of orders, rows of shipments)."""
    operator = pipeline.flow.bind({"orders": columns("item"), "shipments": columns("cost")}, shards=1).operator
    for watermark, *inputs in moves:
        payloads = []
        for number, rows in enumerate(inputs):
            table = pa.Table.from_pylist(rows, operator.takes[number].columns)
            times = pa.array([row["at"] * 1_000_000 for row in rows], pa.int64())
            payloads += [
                payload for _, payload in operator.pack(number, table.append_column("__beamish_event_time_us", times))
            ]
        operator.open(store).step([watermark * 1_000_000] * 2, None, payloads)


def test_rows_past_retention_are_dropped_without_input():
    pipeline, store = once(keep_for={"orders": 10, "shipments": 20}), DictStore()
    steps(pipeline, store, (0, [order(1, 1), order(5, 2), order(1, 3, 2)], [shipment(2, 9)]))
    assert kept_rows(store) == [(1, 0), (2, 1)]
    (due,) = set(SegmentStore(store, LAYOUT).index["due_us"].tolist()[:1])
    assert due == 11_000_000
    steps(pipeline, store, (11, [], []))
    assert kept_rows(store) == [(0, 0), (1, 1)]
    steps(pipeline, store, (30, [], []))
    assert kept_rows(store) == [(0, 0), (0, 0)]


def test_a_window_of_an_outer_join_is_due_at_its_end():
    pipeline = once(LeftOuterJoin, bm.FixedWindows(100)).trigger(Repeatedly(AfterCount(1))).allowed_lateness(50)
    store = DictStore()
    steps(pipeline.on_time_behavior(bm.OnTimeBehavior.FIRE_IF_NON_EMPTY), store, (0, [order(1, 1)], []))
    assert SegmentStore(store, LAYOUT).index["due_us"].tolist() == [100_000_000]


def test_a_window_that_has_closed_keeps_no_rows():
    pipeline = once(window=bm.FixedWindows(100), keep_for={"orders": 10}).trigger(AfterCount(1), allow_data_loss=True)
    store = DictStore()
    steps(pipeline.allowed_lateness(50), store, (0, [order(1, 1)], []))
    assert kept_rows(store) == [(0, 0)]
    assert SegmentStore(store, LAYOUT).index["due_us"].tolist() == [150_000_000]


def test_explain_of_pairs_once():
    def pairs(pipeline):
        words = pipeline.explain()
        return " ".join(words.partition("\npairs ")[2].partition("\nwatermark ")[0].split())

    assert (
        pairs(once(window=bm.FixedWindows(10)))
        == "each is emitted once, when its second row arrives; a window stores its rows"
    )
    assert "in the first window with both" in pairs(once(window=bm.SlidingWindows(20, 10)))
    assert "first window" not in pairs(once(window=bm.Within(10, of="orders")))
    assert "or their windows merge" in pairs(once(window=bm.Sessions(10)))
    words = pairs(once(FullOuterJoin, keep_rows={"orders": 3}, keep_for={"shipments": "10 minutes"}))
    assert "an unmatched row of orders or shipments is emitted once, in the last pane or when it expires" in words
    assert words.endswith(
        "stored per key and window: the latest 3 rows of orders and rows of shipments until the watermark is 10 minutes past them"
    )
    assert "rows older than the keep_for of their input" in once(keep_for={"orders": 3}).explain()
    assert "older than what" not in once(keep_rows={"orders": 3}).explain()


@pytest.mark.parametrize("name", ["orders", "shipments"])
def test_rows_of_an_input_that_comes_in_one_bundle_meet_all_before_they_are_cut(name):
    pipeline = once(keep_rows={name: 1})
    script = (
        TestStream()
        .add([order(at, at) for at in range(3)], input="orders")
        .add([shipment(at, at) for at in range(3)], input="shipments")
    )
    kept = 1 if name == "orders" else 3
    assert len(found(pipeline.run(script))) == 3 * kept
