"""Windows of rows on Spark: streams, restarts, batches and questions (rules/windows.md#windows-of-rows)."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import Window
from pyspark.sql import functions as F

import beamish as bm
from beamish.accumulations import CoGroup, Collect, Count, Sum
from beamish.testing import TestStream
from beamish.triggers import AfterProcessingTime, AfterWatermark, Always
from tests.agreement import differences
from tests.cost import deep_after
from tests.kinds.window.strategy_of_rows import counted
from tests.spark.test_laws_on_spark import EXAMPLES, agree, drawing, ends, short
from tests.spark.writing import written
from tests.strategies.scripts import scripts

COLUMNS = {"i": pa.int64(), "k": pa.string(), "v": pa.int64()}
THREES = bm.Pipeline().key_by("k").window(bm.CountWindows(3, order_by="i")).accumulate(total=Sum("v"), n=Count())
KEPT = THREES.allowed_lateness(rows=6).trigger(AfterWatermark(late=Always())).accumulating()


def row(i, k, v=1):
    return {"i": i, "k": k, "v": v}


FILES = [
    [row(0, "a", 1), row(1, "b", 10), row(2, "a", 2)],
    [row(4, "a", 4), row(3, "a", 3), row(5, "b", 20)],
    [row(6, "a", 5), row(7, "a", 6), row(8, "b", 30), row(9, None, 7)],
]
FULL = {("a", 0, 6), ("a", 3, 15), ("b", 0, 60)}


@pytest.fixture
def events(files):
    made = files(**COLUMNS)
    for batch in FILES:
        made.add(*batch)
    return made


def test_full_windows_are_emitted_without_event_time(events, tmp_path):
    out = events.stream().transform(THREES)
    assert out.schema["window"].dataType.simpleString() == "struct<start:bigint,end:bigint>"
    found = written(out, tmp_path)
    assert {(row.k, row.window.start, row.total) for row in found.collect()} == FULL
    events.add(row(10, "a", 100), row(11, "a", 200), row(12, "a", 300), row(13, None, 8), row(14, None, 9))
    again = written(events.stream().transform(THREES), tmp_path)
    assert {(row.k, row.window.start, row.total) for row in again.collect()} == FULL | {("a", 6, 600), (None, 0, 24)}
    assert {row.timestamp for row in again.collect()} == {None}


def test_checkpoint_lookup_by_number_key_and_batch(spark, events, tmp_path):
    written(events.stream().transform(KEPT), tmp_path)
    state = KEPT.state(spark, tmp_path / "checkpoint")
    kept = {(row.k, row.window.start): (row.total, row.panes, row.new_rows) for row in state.windows().collect()}
    assert kept == {("a", 0): (6, 1, 0), ("a", 3): (15, 1, 0), ("b", 0): (60, 1, 0), (None, 0): (7, 0, 1)}
    assert {(row.k, row.window.start) for row in state.windows(3, 7).collect()} == {("a", 3)}
    assert {(row.k, row.window.start) for row in state.windows(key={"k": "b"}).collect()} == {("b", 0)}
    (before,) = KEPT.state(spark, tmp_path / "checkpoint", batch=0).windows(key={"k": "a"}).collect()
    assert (before.window.start, before.total, before.new_rows) == (0, 3, 2)
    script = TestStream()
    for batch in FILES:
        script = script.add(batch)
    assert {
        (one.key["k"], one.window.start): (one.values["total"], one.panes, one.new_rows)
        for one in KEPT.state(script).windows()
    } == kept
    assert [one.window for one in KEPT.state(script).windows(3, 7)] == [bm.RowWindow(3, 6)]
    with pytest.raises(bm.OptionError, match="bounded by row numbers"):
        state.windows(0.5)


def test_the_rows_that_a_checkpoint_keeps_are_those_of_a_script(spark, events, tmp_path):
    lasts = (
        bm.Pipeline()
        .key_by("k")
        .window(bm.CountWindows(2, 1, order_by="i"))
        .trigger(Always())
        .accumulating()
        .accumulate(vs=Collect("v"))
    )
    written(events.stream().transform(lasts), tmp_path)
    rows = lasts.state(spark, tmp_path / "checkpoint").rows()
    assert dict(rows.dtypes) == {"k": "string", "number": "bigint", "row": "struct<v:bigint>"}
    script = TestStream()
    for batch in FILES:
        script = script.add(batch)
    kept = {(one.key["k"], one.place, one.row["v"]) for one in lasts.state(script).rows()}
    assert (
        {(row.k, row.number, row.row.v) for row in rows.collect()} == kept == {("a", 5, 6), ("b", 2, 30), (None, 0, 7)}
    )
    some = lasts.state(spark, tmp_path / "checkpoint").rows(2, 6, key={"k": "a"}, of="vs")
    assert [(row.k, row.number) for row in some.collect()] == [("a", 5)]


def test_a_batch_numbers_its_rows_as_spark_does(spark, events):
    rows = spark.read.parquet(str(events.folder))
    lasts = bm.Pipeline().key_by("k").window(bm.CountWindows(2, 1, order_by="i")).accumulate(vs=Collect("v"))
    frame = Window.partitionBy("k").orderBy("i")
    theirs = rows.select("k", F.row_number().over(frame).alias("n"), F.collect_list("v").over(frame.rowsBetween(-1, 0)))
    panes = rows.transform(lasts)
    ends = {(key, n): values for key, n, values in theirs.collect()}
    ours = {(row.k, row.window.end): row.vs for row in panes.collect()}
    assert {at: values for at, values in ours.items() if at in ends} == ends
    assert "rows are numbered in the shard" not in lasts.explain(rows)
    assert "rows are numbered 0, 1, 2" in " ".join(lasts.explain(rows).split())


def test_live_and_changelog_support_count_windows(events, tmp_path):
    retracting = THREES.trigger(Always()).accumulating_and_retracting()
    panes = written(events.stream().transform(retracting), tmp_path)
    live = {(row.k, row.window.start): row.total for row in bm.live(panes).collect()}
    assert live == {("a", 0): 6, ("a", 3): 15, ("b", 0): 60, (None, 0): 7}
    upserts = bm.changelog(panes, format="upsert")
    assert dict(upserts.dtypes)["window_start"] == "bigint"


SCRIPT = (
    TestStream()
    .add([{"ts": 1, "k": "a", "i": 2}, {"ts": 5, "k": "b", "i": 0}, {"ts": None, "k": "a", "i": 1}])
    .advance_processing_time_to(60)
    .add([{"ts": 2, "k": "a", "i": 4}, {"ts": 9, "k": "c", "i": 9}, {"ts": 3, "k": "a", "i": None}])
    .advance_watermark_to(30)
    .add([{"ts": 40, "k": "a", "i": 3}, {"ts": 41, "k": "b", "i": 7}, {"ts": 41, "k": "b", "i": 7}])
    .advance_processing_time_to(120)
    .add([{"ts": 44, "k": "b", "i": 12}, {"ts": 45, "k": "a", "i": 0}])
)
TIMED = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness(0))
    .key_by("k")
    .accumulate(n=Count(), of=Collect("i"))
    .with_dropped()
)
EARLY = AfterWatermark(early=AfterProcessingTime(aligned_to="1 minute"), late=Always())


@pytest.mark.parametrize(
    "pipeline",
    deep_after(
        1,
        [
            TIMED.window(bm.CountWindows(2, 1, idle=20)).trigger(EARLY).accumulating_and_retracting(),
            TIMED.window(bm.CountWindows(3, numbered_by="i", delay=1))
            .allowed_lateness(rows=3)
            .trigger(EARLY)
            .accumulating(),
            TIMED.window(bm.CountWindows(4, over="stream", order_by="i")).discarding(),
            TIMED.window(bm.CountSessions(1)).deduplicate("i", within=25).trigger(EARLY).accumulating_and_retracting(),
        ],
    ),
    ids=["idle", "brought", "stream", "sessions"],
)
def test_a_script_gives_the_same_on_spark_with_a_stop_in_the_middle(spark, pipeline):
    found = differences(
        pipeline.run(SCRIPT), SCRIPT.on_spark(spark, pipeline, restart_after=(2,), shards=2, partitions=1), pipeline
    )
    assert not found, "\n".join(found)


def test_rows_of_two_inputs_without_event_time_count_together(spark):
    rows = bm.Pipeline().key_by("k")
    both = bm.merge(left=rows, right=rows).window(bm.CountWindows(3)).accumulate(n=Count(), of=CoGroup("left", "right"))
    script = (
        TestStream()
        .add([{"k": "a", "v": 1}, {"k": "b", "v": 2}], input="left")
        .add([{"k": "a", "w": 1}], input="right")
        .add([{"k": "a", "w": 2}, {"k": "b", "w": 3}], input="right")
        .add([{"k": "b", "v": 4}], input="left")
    )
    panes = both.run(script)
    assert [(pane.key["k"], pane.values["n"]) for pane in panes] == [("a", 3), ("b", 3)]
    found = differences(panes, script.on_spark(spark, both, restart_after=(2,), shards=2, partitions=1), both)
    assert not found, "\n".join(found)


@pytest.mark.deep
@drawing(max(EXAMPLES // 6, 1))
@given(st.data())
def test_drawn_windows_of_rows_give_the_same_on_spark(spark, data):
    pipeline = data.draw(counted().filter(ends))
    agree(spark, data, pipeline, data.draw(scripts(pipeline, ends=False, least=1).filter(short)))
