"""Trees on Spark: merges of the panes of other stages, and of sources, in one query; the same as in process."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest

import beamish as bm
from beamish.accumulations import Count, FullOuterJoin, Sum
from beamish.testing import TestStream
from beamish.triggers import AfterCount, AfterWatermark
from tests.agreement import differences
from tests.spark.conftest import Files

OFTEN = AfterWatermark(early=AfterCount(1), late=AfterCount(1))


def source(watermark=None):
    return bm.Pipeline().event_time("ts", watermark or bm.BoundedOutOfOrderness(0)).key_by("team")


def retracting(pipeline):
    return pipeline.trigger(OFTEN).allowed_lateness(100).accumulating_and_retracting()


def counts(watermark=None):
    return retracting(source(watermark).window(bm.FixedWindows(10))).accumulate(n=Count(), x=Sum("x"))


def joined(left=None, right=None):
    """Two windowed aggregates by key and window."""
    merged = bm.merge(left=left or counts(), right=right or counts())
    return retracting(merged).accumulate(pair=FullOuterJoin("left", "right"))


def with_source():
    """A stage's panes beside rows."""
    merged = bm.merge(counts=counts(), clicks=source()).window(bm.FixedWindows(20))
    return retracting(merged).accumulate(
        panes=Count().of("counts"), x=Sum("x").of("counts"), clicks=Count().of("clicks")
    )


def merge_of_a_merge():
    inner = bm.merge(a=source(), b=source()).window(bm.FixedWindows(10))
    inner = retracting(inner).accumulate(a=Sum("x").of("a"), rows=Count())
    outer = retracting(bm.merge(inner=inner, c=counts()))
    return outer.accumulate(rows=Sum("rows").of("inner"), a=Sum("a").of("inner"), c=Sum("n").of("c"))


def rows(*of):
    return [{"ts": ts, "team": team, "x": x} for ts, team, x in of]


def two(left, right):
    """A script for two sources: rows and watermarks of each by itself, late rows of either."""
    return (
        TestStream()
        .add(rows((1, "a", 1)), input=left)
        .add(rows((2, "a", 2), (3, "b", 4)), input=right)
        .advance_watermark_to(12, input=left)
        .add(rows((13, "a", 8), (4, "a", 16)), input=left)
        .advance_watermark_to(15, input=right)
        .add(rows((5, "b", 32)), input=left)
        .add(rows((6, "a", 64)), input=right)
        .advance_watermark_to_infinity()
    )


IDLE = (
    TestStream()
    .advance_processing_time_to(100)
    .add(rows((1, "a", 1), (2, "b", 2)), input="left")
    .add(rows((3, "a", 4)), input="right")
    .advance_watermark_to(4, input="right")
    .advance_watermark_to(12, input="left")
    .advance_processing_time_to(103)
    .advance_processing_time_to(130)
    .add(rows((5, "b", 8)), input="right")
    .advance_processing_time_to(131)
    .advance_watermark_to(40, input="left")
)
LAGGING = (
    TestStream()
    .add(rows((1, "a", 1), (2, "b", 2)), input="left")
    .advance_processing_time_to(9)
    .add(rows((3, "a", 4)), input="right")
    .advance_watermark_to(11, input="left")
    .advance_processing_time_to(14)
    .add(rows((5, "b", 8)), input="right")
    .add(rows((4, "b", 16)), input="left")
)
THREE = (
    TestStream()
    .add(rows((1, "a", 1)), input="a")
    .add(rows((2, "a", 2), (3, "b", 4)), input="c")
    .advance_watermark_to(12, input="a")
    .add(rows((4, "b", 8)), input="b")
    .advance_watermark_to(11, input="b")
    .add(rows((5, "a", 16)), input="a")
    .advance_watermark_to(30, input="c")
    .add(rows((6, "b", 32)), input="c")
)
TREES = {
    "two aggregates by key and window": (joined(), two("left", "right")),
    "a source beside a stage": (with_source(), two("clicks", "counts")),
    "a merge of a merge": (merge_of_a_merge(), THREE),
    "a side that falls quiet": (joined(right=counts(bm.BoundedOutOfOrderness(0, idle_timeout=5))), IDLE),
    "a side that follows the clock": (joined(right=counts(bm.ProcessingTimeLag(2))), LAGGING),
}


SAMPLE = ("a side that follows the clock",)  # the others in ``make test-deep``


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in SAMPLE else [pytest.mark.deep]) for name in TREES]
)
def test_a_tree_on_spark_agrees_with_an_in_process_run_event_by_event(spark, name):
    pipeline, script = TREES[name]
    expected = script.trace(pipeline)
    assert {pane.kind.value for _, panes in expected for pane in panes} == {"PANE", "RETRACTION"}
    # Each partition of each stage costs a process of its own in every batch.
    found = script.trace_on_spark(spark, pipeline, shards=2, partitions=1, restart_after=(3,))
    for (event, ours), (_, theirs) in zip(found, expected, strict=True):
        assert not differences(ours, theirs, pipeline), event


def test_retractions_come_from_either_side():
    pipeline, script = TREES["two aggregates by key and window"]
    by_event = [(getattr(event, "input", None), panes) for event, panes in script.trace(pipeline)]
    assert {name for name, panes in by_event if any(pane.kind is bm.PaneKind.RETRACTION for pane in panes)} >= {
        "left",
        "right",
    }


TIMESTAMP = pa.timestamp("us", "UTC")


@pytest.fixture
def sides(spark, tmp_path):
    schema = pa.schema({"ts": TIMESTAMP, "team": pa.string(), "x": pa.int64()})
    return [Files(spark, tmp_path / name, schema) for name in ("left", "right")]


def timed(*of):
    return [{**row, "ts": datetime.fromtimestamp(row["ts"], UTC)} for row in rows(*of)]


def shown(df):
    values = ("left.n", "left.x", "right.n", "right.x")
    return df.selectExpr(
        "team", "cast(window.start as long) start", "pane.kind kind", *(f"pair.{value}" for value in values)
    )


def test_live_rows_after_two_runs_over_files_equal_a_batch(spark, sides, tmp_path):
    """Rows of the second run are late for the first."""
    left, right = sides
    panes = []

    def run():
        query = (
            joined()
            .apply(left=left.stream(), right=right.stream(), shards=2)
            .writeStream.foreachBatch(lambda batch, _: panes.extend(map(tuple, shown(batch).collect())))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    left.add(*timed((1, "a", 1), (2, "b", 2))).add(*timed((31, "a", 4)))
    right.add(*timed((3, "a", 8))).add(*timed((33, "b", 16)))
    run()
    first = list(panes)
    left.add(*timed((4, "a", 32), (5, "c", 64)))
    right.add(*timed((6, "b", 128), (7, "a", 256)))
    run()
    assert "RETRACTION" in {kind for _, _, kind, *_ in panes[len(first) :]}
    live = []
    for team, start, kind, *pair in panes:
        (live.remove if kind == "RETRACTION" else live.append)((team, start, *pair))
    frames = {one.folder.name: spark.read.parquet(str(one.folder)) for one in sides}
    batch = [(team, start, *pair) for team, start, _, *pair in map(tuple, shown(joined().apply(**frames)).collect())]
    assert sorted(live, key=repr) == sorted(batch, key=repr)
    assert ("a", 0, 2, 33, 2, 264) in live
