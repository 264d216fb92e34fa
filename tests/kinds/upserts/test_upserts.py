"""Upserts: columns of all types, keys of all types, what is stored, and stages after them (rules/upserts.md)."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import beamish as bm
from beamish import PaneChange, PaneKind
from beamish.accumulations import Count, LeftOuterJoin, Sum
from beamish.contract.stored import DictStore
from beamish.kernels.column_names import EVENT_TIME
from beamish.kinds.upserts.images import images_table
from beamish.testing import TestStream
from beamish.triggers import Always

START = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0))
UPSERTS = START.key_by("id").upserts(deleted="gone", sequence_by="n")
EVERY = bm.Pipeline().window(bm.GlobalWindow()).trigger(Always()).accumulating_and_retracting()
VALUES = {
    "price": Decimal("1.50"),
    "name": "é",
    "day": date(2024, 5, 1),
    "at": datetime(2024, 5, 1, tzinfo=UTC),
    "flag": True,
    "tags": ["a", None],
    "place": {"x": 1.5, "y": None},
    "none": None,
}


def row(id_, n, *, ts=1, gone=False, **values):
    return {"ts": ts, "id": id_, "n": n, "gone": gone, **values}


def changes(pipeline, script):
    return [(pane.change, dict(pane.key), dict(pane.values)) for pane in pipeline.run(script)]


def test_a_retraction_repeats_values_of_all_types():
    script = TestStream().add([row(1, 0, **VALUES)]).add([row(1, 1, **dict.fromkeys(VALUES))])
    first, before, after = UPSERTS.run(script)
    assert {name: first.values[name] for name in VALUES} == VALUES
    assert (before.kind, before.values, before.timestamp) == (PaneKind.RETRACTION, first.values, first.timestamp)
    assert {after.values[name] for name in VALUES} == {None}


@pytest.mark.parametrize("name", VALUES)
def test_an_equal_row_of_any_type_emits_nothing(name):
    script = TestStream().add([row(1, 0, **VALUES)]).add([row(1, 1, **VALUES)])
    assert len(UPSERTS.run(script)) == 1
    other = {**VALUES, name: None} if VALUES[name] is not None else {**VALUES, "name": "b"}
    assert len(UPSERTS.run(script.add([row(1, 2, **other)]))) == 3


def test_nan_equals_nan_and_keys_are_compared_as_in_groups():
    keyed = START.key_by("part").upserts()
    script = TestStream().add([{"ts": 1, "part": -0.0, "v": float("nan")}, {"ts": 1, "part": float("nan"), "v": 1.0}])
    assert len(keyed.run(script)) == 2
    again = script.add([{"ts": 1, "part": 0.0, "v": float("nan")}, {"ts": 1, "part": float("nan"), "v": 2.0}])
    assert [pane.change for pane in keyed.run(again)][2:] == [PaneChange.UPDATE_BEFORE, PaneChange.UPDATE_AFTER]


def test_a_table_of_keys_alone_is_a_set():
    script = TestStream().add([{"id": 1, "timestamp": 1}]).add([{"id": 1, "timestamp": 1}, {"id": 2, "timestamp": 2}])
    keyed = bm.Pipeline().event_time("timestamp", bm.BoundedOutOfOrderness(0)).key_by("id").upserts()
    assert [(pane.key["id"], pane.values) for pane in keyed.run(script)] == [(1, {}), (2, {})]


def test_a_sequence_may_be_a_nested_field():
    keyed = START.key_by("id").upserts(sequence_by="source.lsn")
    script = TestStream().add([{"ts": 1, "id": 1, "v": 2, "source": {"lsn": 5, "db": "x"}}])
    script = script.add([{"ts": 1, "id": 1, "v": 1, "source": {"lsn": 4, "db": "x"}}])
    (only,) = keyed.run(script)
    assert only.values["v"] == 2


def test_panes_of_a_stage_may_be_upserts():
    latest = (
        START.key_by("id", "page")
        .window(bm.FixedWindows(10))
        .accumulate(views=Count())
        .then(bm.Pipeline().key_by("id").upserts())
    )
    script = TestStream().add([{"ts": 1, "id": 1, "page": "a"}, {"ts": 12, "id": 1, "page": "b"}])
    assert [
        (pane.change, pane.values["page"])
        for pane in latest.run(script.advance_watermark_to(10).advance_watermark_to(20))
    ] == [
        (PaneChange.INSERT, "a"),
        (PaneChange.UPDATE_BEFORE, "a"),
        (PaneChange.UPDATE_AFTER, "b"),
    ]


def test_where_in_a_stage_after_selects_rows_of_the_table():
    is_open = bm.Pipeline().key_by().where(pc.field("status") == "open")
    counted = UPSERTS.then(attach(is_open).accumulate(n=Count()))
    script = TestStream().add([row(1, 0, status="open"), row(2, 0, status="open")]).add([row(1, 1, status="shipped")])
    assert [(str(pane.kind), pane.values["n"]) for pane in counted.run(script)] == [
        ("PANE", 2),
        ("RETRACTION", 2),
        ("PANE", 1),
    ]


def attach(stage):
    return stage.window(bm.GlobalWindow()).trigger(Always()).accumulating_and_retracting()


def test_two_mutable_tables_are_joined():
    orders = START.key_by("id").upserts(sequence_by="n")
    users = START.key_by("user").upserts(sequence_by="n")
    joined = attach(bm.merge(orders=orders.then(bm.Pipeline().key_by("user")), users=users)).accumulate(
        pair=LeftOuterJoin("orders", "users")
    )
    script = (
        TestStream()
        .add([{"ts": 1, "id": 7, "user": "ann", "n": 0}], input="orders")
        .add([{"ts": 1, "user": "ann", "city": "Rome", "n": 0}], input="users")
        .add([{"ts": 1, "user": "ann", "city": "Oslo", "n": 1}], input="users")
    )
    users_of = [pane.values["pair"]["users"] for pane in joined.run(script)]
    shown = [(str(pane.kind), user and user["city"]) for pane, user in zip(joined.run(script), users_of, strict=True)]
    assert shown == [
        ("PANE", None),
        ("RETRACTION", None),
        ("PANE", "Rome"),
        ("RETRACTION", "Rome"),
        ("PANE", "Oslo"),
    ]


def test_rolling_spans_over_a_mutable_table_are_corrected():
    spans = bm.Pipeline().key_by("city").window(bm.Rolling({"1m": "1 minute"}, step="10 seconds"))
    rolled = UPSERTS.then(spans.allowed_lateness("1 hour").accumulating_and_retracting().accumulate(total=Sum("v")))
    script = TestStream().add([row(1, 0, ts=5, city="Rome", v=5), row(2, 0, ts=6, city="Rome", v=7)])
    script = script.advance_watermark_to(20).add([row(1, 1, ts=5, city="Oslo", v=5)])
    live = {}
    for pane in rolled.run(script):
        if pane.kind is PaneKind.RETRACTION:
            live.pop(pane.key["city"])
        else:
            live[pane.key["city"]] = pane.values["total_1m"]
    assert live == {"Rome": 7, "Oslo": 5}


def columns():
    return {None: pa.schema([("ts", pa.float64()), ("id", pa.int64()), ("gone", pa.bool_()), ("n", pa.int64())])}


def test_a_key_is_stored_once_and_a_deleted_one_until_it_expires():
    pipeline = START.key_by("id").upserts(deleted="gone", keep_deleted=10)
    operator, store = pipeline.flow.bind(columns(), shards=1).operator, DictStore()
    counts = []
    steps = [(0, [(1, False), (2, False)]), (5, [(1, False), (1, True)]), (15, []), (16, [])]
    for watermark, rows in steps:
        table = pa.table(
            {
                "ts": [float(watermark)] * len(rows),
                "id": pa.array([id_ for id_, _ in rows], pa.int64()),
                "gone": pa.array([gone for _, gone in rows], pa.bool_()),
                "n": pa.array([0] * len(rows), pa.int64()),
            }
        ).append_column(EVENT_TIME, pa.array([watermark * 1_000_000 + i for i, _ in enumerate(rows)], pa.int64()))
        payloads = [payload for _, payload in operator.pack(0, table)] if rows else []
        operator.open(store).step([watermark * 1_000_000], None, payloads)
        counts.append(images_table(operator.plan, operator.policy).open(store).segments.rows)
    assert counts == [2, 2, 2, 1]


def test_a_large_table_is_cut_into_segments_of_which_a_step_writes_those_of_its_keys():
    operator, store = START.key_by("id").upserts(sequence_by="n").flow.bind(columns(), shards=1).operator, DictStore()

    def step(ids, n):
        rows = pa.table({"ts": [1.0] * len(ids), "id": ids, "gone": [False] * len(ids), "n": [n] * len(ids)})
        rows = rows.append_column(EVENT_TIME, pa.array([1_000_000] * len(ids), pa.int64()))
        before = dict(store)
        operator.open(store).step([0], None, [payload for _, payload in operator.pack(0, rows)])
        return {name for name, value in store.items() if before.get(name) != value and name.startswith("images/s")}

    step(list(range(40_000)), 0)
    step([1], 1)
    assert len(step([1, 2], 2)) <= 2
    assert len([name for name in store if name.startswith("images/s")]) >= 2
    assert images_table(operator.plan, operator.policy).open(store).segments.rows == 40_000


def test_a_changelog_of_it_is_a_table_by_key():
    relation = UPSERTS.flow.gives
    assert (relation.slot, str(relation.follows), relation.retracts) == (("id",), "retracting", True)
    assert not UPSERTS.flow.final.gives.retracts


def test_explain_tells_what_is_stored_and_for_how_long():
    words = START.key_by("id").upserts(deleted="gone", keep_deleted="1 day").forget_after("30 days").explain()
    assert "a row sets the row of id; it deletes it where gone is true; it replaces those with a smaller ts" in words
    assert (
        "the row of a key is stored until the watermark is 30 days past it; a delete until the watermark is 1 day past it"
        in " ".join(words.split())
    )


def test_a_pipeline_has_a_repr_that_evaluates_to_it():
    pipeline = START.key_by("id").upserts(deleted="gone", keep_deleted="1 day").forget_after("30 days").with_dropped()
    assert eval(repr(pipeline), vars(bm)) == pipeline


def test_the_net_change_of_a_bundle_and_its_counts():
    script = TestStream().add([row(1, 0, v=1), row(1, 1, v=2), row(1, 2, v=1)])
    assert changes(UPSERTS, script) == [(PaneChange.INSERT, {"id": 1}, {"ts": 1, "v": 1})]
    assert changes(UPSERTS, script.add([row(1, 3, v=5), row(1, 4, v=1)]))[1:] == []


@pytest.mark.parametrize(
    "keyed",
    [
        START.key_by("id").upserts(deleted="gone", sequence_by="n", keep_deleted=100),
        START.key_by("id").upserts(deleted="gone", sequence_by="n").forget_after(100),
    ],
)
def test_a_delete_without_event_time_before_the_first_watermark_is_stored(keyed):
    script = TestStream().add([row(1, 9, ts=None, gone=True)]).advance_watermark_to(50).add([row(1, 5, ts=40)])
    (dropped,) = keyed.with_dropped().run(script)
    assert (dropped.kind, dropped.reason) == (PaneKind.DROPPED, bm.DropReason.SUPERSEDED)
    later = script.add([row(1, 10, ts=60)]).add([row(1, 11, ts=70)])
    assert [pane.change for pane in keyed.run(later)] == ["INSERT", "UPDATE_BEFORE", "UPDATE_AFTER"]
