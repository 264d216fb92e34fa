"""Joins that give each pair once, on Spark: the same as in process (rules/stages.md#each-pair-once)."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import beamish as bm
from beamish import PaneKind
from beamish.accumulations import FullOuterJoin, InnerJoin, LeftOuterJoin
from beamish.testing import TestStream
from beamish.triggers import AfterCount, AfterProcessingTime, AfterWatermark, Always, Repeatedly
from tests.agreement import differences
from tests.spark.test_laws_on_spark import FEW, agree, drawing, ends, short
from tests.strategies import merges

SOURCE = bm.Pipeline().event_time("at", bm.BoundedOutOfOrderness(0)).key_by("id")
MERGED = bm.merge(orders=SOURCE, shipments=SOURCE).trigger(Always()).discarding().with_dropped()
LATE = AfterWatermark(early=AfterCount(1), late=AfterCount(1))


def once(kind=InnerJoin, **kept):
    return {"pair": kind("orders", "shipments", once=True, **kept)}


SCRIPT = (
    TestStream()
    .add([{"at": 12, "id": 1, "item": "tea"}, {"at": 2, "id": 2, "item": "nut"}], input="orders")
    .add([{"at": 14, "id": 1, "cost": 2}, {"at": 13, "id": 3, "cost": 9}], input="shipments")
    .add([{"at": 28, "id": 1, "item": "jam"}, {"at": 11, "id": 1, "item": "old"}], input="orders")
    .step(clock=10, watermark=25)
    .add([{"at": 26, "id": 1, "cost": 3}, {"at": 9, "id": 2, "cost": 4}], input="shipments")
    .advance_watermark_to(40)
    .add([{"at": 25, "id": 1, "cost": 5}, {"at": 27, "id": 1, "cost": 6}], input="shipments")
)


@pytest.mark.parametrize(
    "pipeline",
    [
        pytest.param(
            MERGED.window(bm.SlidingWindows(20, 10)).accumulate(**once()),
            marks=pytest.mark.deep,
        ),
        pytest.param(
            MERGED.window(bm.Sessions(10)).trigger(LATE).allowed_lateness(10).accumulate(**once(FullOuterJoin)),
            marks=pytest.mark.deep,
        ),
        MERGED.window(bm.Within(10, of="orders", after=2, inclusive="left")).accumulate(
            **once(FullOuterJoin, match_if={"orders": pc.field("item") != "old"})
        ),
        pytest.param(
            MERGED.window(bm.GlobalWindow())
            .trigger(Repeatedly(AfterCount(1)))
            .accumulate(**once(LeftOuterJoin, keep_rows={"shipments": 1}, keep_for={"orders": 20})),
            marks=pytest.mark.deep,
        ),
        pytest.param(
            MERGED.window({"a": bm.FixedWindows(20), "b": bm.SlidingWindows(30, 10)})
            .trigger(AfterWatermark(early=AfterProcessingTime(5), late=Always()))
            .allowed_lateness(30)
            .accumulate(**once()),
            marks=pytest.mark.deep,
        ),
    ],
    ids=["sliding", "sessions", "within", "global", "windowings"],
)
def test_a_script_gives_the_same_on_spark_with_a_stop_in_the_middle(spark, pipeline):
    expected = pipeline.run(SCRIPT)
    assert [pane for pane in expected if pane.kind is PaneKind.PANE]
    given = SCRIPT.on_spark(spark, pipeline, restart_after=(2, 4), shards=2, partitions=1)
    found = differences(expected, given, pipeline)
    assert not found, "\n".join(found)


def test_a_checkpoint_lists_the_due_pairs(spark, tmp_path):
    pipeline = MERGED.window(bm.FixedWindows(30)).trigger(AfterWatermark(early=AfterCount(4))).accumulate(**once())
    script = TestStream(SCRIPT.events[:3])
    script.trace_on_spark(spark, pipeline, shards=2, checkpoint=tmp_path, partitions=1)

    def due(rows):
        return [
            (row["id"], [(pair["orders"]["item"], pair["shipments"]["cost"]) for pair in row["pair"]]) for row in rows
        ]

    found = pipeline.state(spark, tmp_path / "checkpoint").windows().orderBy("id").collect()
    expected = pipeline.state(script).windows()
    assert due(found) == due({**one.key, **one.values} for one in expected) == [(1, []), (2, []), (3, [])]
    before = pipeline.state(spark, tmp_path / "checkpoint", batch=1).windows().where("id = 1").collect()
    assert due(before) == [(1, [("tea", 2)])]


@pytest.mark.deep
@drawing(FEW)
@given(data=st.data())
def test_random_joins_that_emit_each_pair_once_on_spark_agree_with_the_engine(spark, data):
    pipeline = data.draw(merges.merges(once=True).filter(ends))
    script = data.draw(merges.scripts(pipeline, least=1).filter(short))
    assume(sum(pane.kind is PaneKind.PANE for pane in pipeline.run(script)) >= 2)
    agree(spark, data, pipeline, script)


START = datetime(2024, 5, 1, tzinfo=UTC)
TIME = pa.timestamp("us", "UTC")


def at(seconds):
    return START + timedelta(seconds=seconds)


@pytest.fixture
def inputs(spark):
    """Orders and shipments as batches."""
    orders = pa.Table.from_pylist(
        [
            {"at": at(12), "id": 1, "item": "tea"},
            {"at": at(28), "id": 1, "item": "jam"},
            {"at": at(5), "id": 2, "item": "nut"},
        ],
        schema=pa.schema([("at", TIME), ("id", pa.int64()), ("item", pa.string())]),
    )
    shipments = pa.Table.from_pylist(
        [{"at": at(14), "id": 1, "cost": 2}, {"at": at(16), "id": 1, "cost": 3}],
        schema=pa.schema([("at", TIME), ("id", pa.int64()), ("cost", pa.int64())]),
    )
    return {"orders": spark.createDataFrame(orders), "shipments": spark.createDataFrame(shipments)}


def pairs(df):
    rows = df.selectExpr("second(window.start) AS start", "pair.orders.item", "pair.shipments.cost").collect()
    return Counter((row.start, row.item, row.cost) for row in rows)


def test_a_batch_gives_each_pair_once_and_cuts_nothing(inputs):
    sliding = MERGED.window(bm.SlidingWindows(20, 10))
    expected = Counter([(0, "tea", 2), (0, "tea", 3), (10, "jam", 2), (10, "jam", 3)])
    assert pairs(bm.panes(sliding.accumulate(**once()).apply(**inputs))) == expected
    assert sum(pairs(bm.panes(sliding.accumulate(pair=InnerJoin("orders", "shipments")).apply(**inputs))).values()) == 6
    cut = sliding.accumulate(**once(keep_rows={"orders": 1, "shipments": 1}, keep_for={"orders": 1, "shipments": 1}))
    assert pairs(bm.panes(cut.apply(**inputs))) == expected
    outer = MERGED.window(bm.FixedWindows(20)).accumulate(**once(LeftOuterJoin, keep_rows={"orders": 1}))
    expected = Counter([(0, "tea", 2), (0, "tea", 3), (20, "jam", None), (0, "nut", None)])
    assert pairs(bm.panes(outer.apply(**inputs))) == expected


def test_explain_of_a_batch_describes_when_a_pair_is_emitted(inputs):
    words = MERGED.window(bm.SlidingWindows(20, 10)).accumulate(**once()).explain(**inputs)
    assert "in the first window with both" in " ".join(words.split())
