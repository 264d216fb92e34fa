"""Chained stages on Spark, in one query: the same panes as in process."""

from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import functions as F

import beamish as bm
from beamish.accumulations import CollectSet, Count, Max, Sum
from beamish.testing import TestStream
from beamish.triggers import AfterProcessingTime, AfterWatermark, Always, Default
from tests.agreement import differences
from tests.cost import deep_after

pytestmark = pytest.mark.spark

TOTALS = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness(0))
    .key_by("user")
    .window(bm.FixedWindows(10))
    .trigger(AfterWatermark(early=Always(), late=Always()))
    .allowed_lateness(100)
    .accumulating_and_retracting()
    .accumulate(total=Sum("score"))
)
BY_TOTAL = (
    bm.Pipeline()
    .key_by("total")
    .trigger(AfterWatermark(early=Always(), late=Always()))
    .allowed_lateness(100)
    .accumulating_and_retracting()
    .accumulate(users=Count(), names=CollectSet("user"), last=Max("user"))
)
COUNT_PER_MINUTE = (
    bm.Pipeline()
    .window(bm.FixedWindows(60))
    .trigger(AfterWatermark(late=Always()))
    .allowed_lateness(1000)
    .accumulating()
    .with_dropped()
    .accumulate(groups=Count(), users=Sum("users"))
)
SESSIONS = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness(0))
    .key_by("user")
    .window(bm.Sessions(10))
    .trigger(AfterWatermark(early=AfterProcessingTime(5), late=Always()))
    .allowed_lateness(30)
    .accumulating_and_retracting()
    .accumulate(rows=Count())
)


def rows(*scores):
    return [{"ts": ts, "user": user, "score": score} for ts, user, score in scores]


SCRIPT = (
    TestStream()
    .add(rows((1, "ann", 1), (2, "bob", 1), (3, "cid", 2)))
    .add(rows((3, "ann", 1), (12, "bob", 5)))
    .advance_watermark_to(10)
    .add(rows((5, "bob", 1)))
    .advance_processing_time_by(7)
    .add(rows((14, "dan", 5), (40, "ann", 3), (8, "eve", 1)))
    .advance_watermark_to(55)
    .advance_processing_time_by(7)
    .add(rows((50, "ann", 3), (12, "bob", 1)))
    .advance_watermark_to_infinity()
)
CHAINS = {
    "totals by total": TOTALS.then(BY_TOTAL),
    "three stages": TOTALS.then(BY_TOTAL).then(COUNT_PER_MINUTE),
    "sessions, with the clock, into fixed windows": SESSIONS.then(
        bm.Pipeline()
        .window(bm.FixedWindows(60))
        .trigger(AfterWatermark(early=AfterProcessingTime(3), late=Always()))
        .allowed_lateness(60)
        .accumulating_and_retracting()
        .accumulate(sessions=Count(), rows=Sum("rows"))
    ),
}


BEFORE = rows((1, "ann", 1), (2, "bob", 1), (3, "cid", 2), (12, "bob", 5))
AGAIN = rows((3, "ann", 1), (5, "bob", 1))
LATE = rows((4, "eve", 1), (8, "cid", 0))
SHORT = TestStream().add(BEFORE).add(AGAIN).advance_watermark_to(10).add(LATE).advance_watermark_to_infinity()
SHORT_WITH_CLOCK = (
    TestStream()
    .add(BEFORE)
    .advance_processing_time_by(7)  # sessions come early
    .add(AGAIN)  # and grow
    .advance_processing_time_by(7)  # the second stage comes early, and takes them back
    .add(LATE)
    .advance_watermark_to_infinity()
)


@pytest.mark.parametrize(
    ("name", "script", "restart_after", "timings"),
    deep_after(
        1,
        [
            ("totals by total", SHORT, (), {"EARLY", "ON_TIME", "LATE"}),
            ("three stages", SHORT, (1,), {"ON_TIME"}),
            ("sessions, with the clock, into fixed windows", SHORT_WITH_CLOCK, (2,), {"EARLY", "ON_TIME"}),
        ],
    ),
)
def test_chain_on_spark_equals_chain_in_process(spark, name, script, restart_after, timings):
    chain = CHAINS[name]
    expected = chain.run(script)
    assert {str(pane.timing) for pane in expected} == timings
    on_spark = script.on_spark(spark, chain, shards=3, restart_after=restart_after, partitions=1)
    assert not differences(on_spark, expected, chain)


def test_retraction_moves_a_key_from_one_group_to_another():
    live = bm.live(CHAINS["totals by total"].run(SCRIPT))
    assert {(pane.key["total"], pane.window.start.timestamp()): pane.values["names"] for pane in live} == {
        (2, 0): ["ann", "bob", "cid"],
        (1, 0): ["eve"],
        (6, 10): ["bob"],
        (5, 10): ["dan"],
        (3, 40): ["ann"],
        (3, 50): ["ann"],
    }


def test_chain_on_a_batch_dataframe_aggregates_twice(spark):
    scores = [
        (datetime.fromtimestamp(ts, UTC), user, score) for ts, user, score in ((1, "a", 1), (2, "b", 1), (3, "a", 1))
    ]
    df = spark.createDataFrame(scores, "ts timestamp, user string, score int")
    panes = CHAINS["totals by total"].apply(df).select("total", "users", "pane.timing").collect()
    assert sorted(map(tuple, panes)) == [(1, 1, "ON_TIME"), (2, 1, "ON_TIME")]


@pytest.mark.deep
def test_conditions_and_computed_columns_between_stages_are_the_same_on_spark(spark):
    first = TOTALS.where(pc.field("score") > 0).with_columns(half=pc.field("total").cast("double") / 2)
    second = BY_TOTAL.where(pc.field("half") < 3).accumulate(halves=Sum("half")).having(pc.field("users") > 0)
    chain = first.having(pc.field("user") != "eve").then(second)
    assert not differences(chain.run(SHORT), SHORT.on_spark(spark, chain, shards=2, partitions=1), chain)
    rows = [(datetime.fromtimestamp(r["ts"], UTC), r["user"], r["score"]) for r in BEFORE + AGAIN + LATE]
    df = spark.createDataFrame(rows, "ts timestamp, user string, score long")
    panes = chain.apply(df).select("total", "users", "halves", "pane.timing").collect()
    assert sorted(map(tuple, panes)) == [(2, 3, 3.0, "ON_TIME"), (5, 1, 2.5, "ON_TIME")]
    native = TOTALS.with_columns(half=pc.field("total") / 2).having(pc.field("total") > 2)
    assert "Spark's own aggregation" in native.explain(df)
    assert [tuple(row) for row in native.apply(df).select("user", "total", "half").collect()] == [("bob", 5, 2)]


@pytest.fixture
def scored(files):
    stream = files(ts=pa.timestamp("us", "UTC"), user=pa.string(), score=pa.int64())
    for bundle in (((1, "ann", 1), (2, "bob", 1)), ((3, "ann", 1), (12, "bob", 1)), ((4, "bob", 1), (25, "cid", 7))):
        stream.add(*({"ts": datetime.fromtimestamp(ts, UTC), "user": u, "score": s} for ts, u, s in bundle))
    return stream


def live_on_spark(panes, folder):
    """The live rows after an AvailableNow run, which must end by itself."""
    query = (
        panes.writeStream.option("path", str(folder / "panes"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    live = bm.live(panes.sparkSession.read.parquet(str(folder / "panes"))).collect()
    return {(row["total"], row["window"]["start"].second): (row["users"], row["names"]) for row in live}


LIVE = {(2, 0): (2, ["ann", "bob"]), (1, 10): (1, ["bob"]), (7, 20): (1, ["cid"])}


@pytest.mark.deep
def test_chain_ends_under_available_now(scored, tmp_path):
    panes = CHAINS["totals by total"].apply(scored.stream(), shards=2)
    assert live_on_spark(panes, tmp_path) == LIVE


def test_chain_that_needs_the_clock_ends_under_available_now(scored, tmp_path):
    now_and_then = AfterWatermark(early=AfterProcessingTime(0), late=Always())
    panes = TOTALS.then(BY_TOTAL.trigger(now_and_then)).apply(scored.stream(), shards=2)
    assert live_on_spark(panes, tmp_path) == LIVE


def test_a_stage_applied_to_panes_agrees_with_the_chain(scored, tmp_path):
    panes = BY_TOTAL.apply(TOTALS.apply(scored.stream(), shards=3), shards=2)
    assert live_on_spark(panes, tmp_path) == LIVE


def test_sparks_own_operators_stand_before_and_after_a_pipeline_in_one_query(scored, tmp_path, spark):
    """Without duplicates, as Spark has it; then a pipeline; then Spark's own windows, by the one watermark of the query."""
    rows = [(30, "ann", 2), (30, "ann", 2), (95, "cid", 0), (190, "cid", 0)]
    for ts, user, score in rows:
        scored.add({"ts": datetime.fromtimestamp(ts, UTC), "user": user, "score": score})
    once = scored.stream().withWatermark("ts", "5 seconds").dropDuplicatesWithinWatermark(["user", "score"])
    pipeline = TOTALS.event_time("ts", bm.BoundedOutOfOrderness("5 seconds")).trigger(Default()).allowed_lateness(0)
    panes = once.transform(pipeline.discarding())
    run_into(panes.groupBy(F.window("timestamp", "30 seconds")).agg(F.sum("total"), F.count("*")), tmp_path / "all")
    found = spark.read.parquet(str(tmp_path / "all")).orderBy("window.start").collect()
    assert [(row[0].start.second, *row[1:]) for row in found] == [(0, 9, 3), (30, 2, 1), (30, 0, 1)]


SECOND = (
    bm.Pipeline()
    .event_time("timestamp", bm.BoundedOutOfOrderness(0))
    .key_by("user")
    .window(bm.FixedWindows(20))
    .accumulate(panes=Count())
)


def test_an_event_time_over_a_stream_of_panes_is_refused_and_the_way_out_runs(scored, spark, tmp_path):
    panes = scored.stream().transform(TOTALS)
    with pytest.raises(bm.PipelineError, match=r"'timestamp'.*one watermark.*first\.then\(second\).*from_panes\(\)"):
        panes.transform(SECOND)
    for alone in (panes.select("user", "timestamp"), panes.withColumnRenamed("pane", "first_pane")):
        with pytest.raises(
            bm.PipelineError, match=r"'timestamp'.*another pipeline's panes.*all would be late.*first\.then"
        ):
            alone.transform(SECOND)
    run_into(panes, tmp_path / "first")
    written = spark.read.parquet(str(tmp_path / "first"))
    stream = spark.readStream.schema(written.schema).parquet(str(tmp_path / "first"))
    run_into(stream.transform(SECOND.from_panes()), tmp_path / "second")
    counted = bm.live(written).where("window.end <= timestamp_seconds(20)").groupBy("user").count()
    second = spark.read.parquet(str(tmp_path / "second")).where("window.start = timestamp_seconds(0)")
    found = dict(map(tuple, second.select("user", "panes").collect()))
    assert found == dict(map(tuple, counted.collect()))
    assert found.keys() == {"ann", "bob"}


def run_into(panes, folder):
    """An AvailableNow run into parquet files."""
    sink = panes.writeStream.format("parquet").option("checkpointLocation", f"{folder}-checkpoint")
    sink.trigger(availableNow=True).start(str(folder)).awaitTermination()


def test_a_stored_table_of_panes_is_refused_as_plain_rows_and_each_way_out_runs(scored, spark, tmp_path):
    run_into(scored.stream().transform(TOTALS), tmp_path / "first")
    written = spark.read.parquet(str(tmp_path / "first"))
    plain = SECOND.window(bm.FixedWindows(100))

    def counted(df, pipeline=plain):
        return {row["user"]: row["panes"] for row in df.transform(pipeline).collect()}

    words = r"event_time\('timestamp'\) over a table of panes.*retractions.*from_panes\(\).*df\.drop\('pane'\)"
    for df in (written, written.select("user", "pane", "timestamp"), spark.createDataFrame(written.collect())):
        with pytest.raises(bm.PipelineError, match=words):
            df.transform(plain)
    each = dict(map(tuple, written.groupBy("user").count().collect()))
    assert counted(written.drop("pane")) == counted(written.withColumnRenamed("pane", "was")) == each
    net = {"ann": 1, "bob": 2, "cid": 1}
    assert counted(written, plain.from_panes()) == counted(bm.live(written)) == net
    assert counted(bm.live(written), plain.from_panes()) == net
    stream = spark.readStream.schema(written.schema).parquet(str(tmp_path / "first"))
    for df in (stream, stream.drop("window")):
        with pytest.raises(bm.PipelineError, match=r"reads such a table already, add from_panes\(\).*drop\('pane'\)"):
            df.transform(plain)


def test_final_panes_may_be_used_as_plain_rows(scored, spark, tmp_path):
    once = TOTALS.trigger(Default()).allowed_lateness(0).with_dropped()
    run_into(scored.stream().transform(once.discarding()), tmp_path / "first")
    written = spark.read.parquet(str(tmp_path / "first"))
    with pytest.raises(bm.PipelineError, match="over a table of panes"):
        written.transform(SECOND)
    found = written.transform(bm.panes).transform(SECOND).select("user", "panes")
    assert sorted(map(tuple, found.collect())) == [("ann", 1), ("bob", 2)]


def test_an_event_time_over_a_batch_of_panes_is_taken(scored, spark):
    rows = spark.read.parquet(str(scored.folder)).transform(TOTALS).transform(SECOND)
    found = sorted((row["user"], row["window"].start.second, row["panes"]) for row in rows.collect())
    assert found == [("ann", 0, 1), ("bob", 0, 2), ("cid", 20, 1)]


def test_a_stage_over_a_batch_of_panes_applies_retractions(scored, spark):
    kinds = "named_struct('start', timestamp_seconds(0), 'end', timestamp_seconds(10)) window"
    rows = [("ann", 1, "PANE"), ("bob", 1, "PANE"), ("ann", 1, "RETRACTION"), ("ann", 2, "PANE"), ("eve", 9, "DROPPED")]
    panes = spark.createDataFrame(rows, "user string, total bigint, kind string").selectExpr(
        "user", "total", kinds, "named_struct('kind', kind) pane", "timestamp_micros(9999999) timestamp"
    )
    assert sorted(map(tuple, BY_TOTAL.apply(panes).select("total", "names").collect())) == [(1, ["bob"]), (2, ["ann"])]
    whole = bm.Pipeline().window(bm.GlobalWindow()).accumulate(users=Count())
    assert [tuple(row) for row in whole.apply(panes).select("users", "window.start").collect()] == [(2, None)]


def test_options_that_need_the_stage_before_are_rejected_over_panes(scored):
    panes = TOTALS.apply(scored.stream())
    with pytest.raises(bm.PipelineError, match=r"may have retractions.*use first\.then\(second\)\.apply\(df\)"):
        BY_TOTAL.window(bm.Sessions(5)).apply(panes)
    with pytest.raises(bm.PipelineError, match=r"discarding.*use first\.then\(second\)\.apply\(df\)"):
        BY_TOTAL.discarding().apply(panes)


def test_a_later_stage_that_would_wait_for_the_end_of_time_is_refused(scored):
    with pytest.raises(bm.PipelineError, match=r"GlobalWindow\(\) with .*the end of time"):
        TOTALS.then(bm.Pipeline().window(bm.GlobalWindow()).accumulate(n=Count())).apply(scored.stream())
