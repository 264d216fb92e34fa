"""Batch DataFrames: Spark's own window functions and the engine give the same rows (rules/running.md#batch-plan); and a stream."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import Window
from pyspark.sql import functions as F

import beamish as bm
from beamish.accumulations import Collect, Count, Max, Mean, Min, StdDev, Sum
from beamish.spark.compile.batch import engine_panes
from beamish.spark.compile.inputs import name_inputs
from beamish.spark.compile.native import native_over, why_not_native_over
from beamish.testing import TestStream
from tests.cost import deep_after

pytestmark = pytest.mark.spark

START = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0))
FAR = "timestamp_micros(253402300800000000)"
"""The year 10000."""


@pytest.fixture(scope="module")
def rows(spark):
    """Rows with ties in all that orders them; without time or key; out of range."""
    chance = random.Random(7)

    def row(number):
        at = datetime(2024, 1, 1, tzinfo=UTC) + timedelta(seconds=chance.randint(0, 40))
        return (
            number % 90,
            at if chance.random() > 0.05 else None,
            chance.choice(["a", "b", None]),
            chance.choice([1, 2, None]),
            chance.choice([0.5, 2.25, None]),
            chance.choice(["x", "", None]),
        )

    some = spark.createDataFrame(
        [row(number) for number in range(200)],
        "id int, ts timestamp, `the key` string, x int, `a.ratio` double, name string",
    )
    return some.unionAll(some.limit(3).withColumn("ts", F.expr(FAR)))


def found(df):
    """The rows; each way numbers them in its own order (rules/panes.md#pane-sequence)."""
    rows = [row.asDict(recursive=True) for row in df.collect()]
    numbers = {(row["the key"], row["pane"].pop("sequence")) for row in rows}
    assert len(numbers) == len(rows)
    close = [{n: round(one, 9) if isinstance(one, float) else one for n, one in row.items()} for row in rows]
    return sorted(map(repr, close))


OFFSETS = {"before": bm.Lag("x"), "far": bm.Lag("name", 3, default="?"), "after": bm.Lead("a.ratio", 2)}
COUNTS = {"number": bm.RowNumber(), "rank": bm.Rank(), "dense": bm.DenseRank()}
SUMS = {
    "n": Count(),
    "of": Count("x"),
    "sum": Sum("x"),
    "float": Sum("a.ratio"),
    "mean": Mean("x"),
    "most": Max("name"),
}
CASES = [
    (bm.Preceding("5 seconds"), None, SUMS | OFFSETS | COUNTS),
    (bm.PrecedingRows(3), "x", SUMS | {"least": Min("a.ratio"), "spread": StdDev("x")} | COUNTS),
    (bm.Unbounded(), "name", SUMS | OFFSETS | COUNTS),
    (bm.Preceding(0), "x", COUNTS | {"n": Count()}),
    (bm.PrecedingRows(0), None, OFFSETS | {"sum": Sum("x")}),
]


def bound(pipeline, df):
    named = name_inputs(pipeline.flow, df, {})
    return named.bind(2), named.frames


@pytest.mark.parametrize(("frame", "by", "values"), deep_after(3, CASES), ids=repr)
def test_native_plan_equals_engine(rows, frame, by, values):
    flow, frames = bound(START.key_by("the key").over(frame, order_by=by).accumulate(**values), rows)
    assert not why_not_native_over(flow.operator.plan)
    native, engine = native_over(flow.operator.plan, *frames.values()), engine_panes(flow, frames)
    assert native.schema.simpleString() == engine.schema.simpleString()
    assert found(native) == found(engine) != []


@pytest.mark.parametrize("seed", deep_after(1, range(20)))
def test_engine_equals_sparks_window_functions(spark, seed):
    """The judge: statements of Spark SQL over all rows, drawn."""
    chance = random.Random(seed)
    some = [
        (number, chance.randint(0, 30), chance.choice("aab"), chance.choice([None, 1, 2, 5]), chance.choice([0.5, 4.0]))
        for number in range(chance.choice([1, 40, 120]))
    ]
    df = spark.createDataFrame(some, "id int, at int, k string, x int, y double").selectExpr(
        "id", "timestamp_seconds(at) ts", "at", "k", "x", "y"
    )
    span, count, shift = chance.randint(0, 9), chance.randint(0, 4), chance.randint(1, 3)
    frame, words = chance.choice(
        [
            (bm.Preceding(span), f"ORDER BY at RANGE BETWEEN {span} PRECEDING AND CURRENT ROW"),
            (bm.PrecedingRows(count), f"ORDER BY at, id ROWS BETWEEN {count} PRECEDING AND CURRENT ROW"),
            (bm.Unbounded(), "ORDER BY at RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"),
        ]
    )
    pipeline = START.key_by("k").over(frame, order_by="id")
    pipeline = pipeline.accumulate(
        n=Count(),
        s=Sum("x"),
        m=Mean("y"),
        a=Collect("id"),
        b=bm.Lag("x", shift, default=-1),
        c=bm.Lead("id", shift),
        d=bm.RowNumber(),
    )
    flow, frames = bound(pipeline, df)
    columns = ["id", "n", "s", "m", "a", "b", "c", "d"]
    ours = engine_panes(flow, frames).withColumn("a", F.sort_array("a")).select(*columns)
    df.createOrReplaceTempView("over_rows")
    theirs = spark.sql(
        f"""SELECT id, count(*) OVER f AS n, sum(x) OVER f AS s, avg(y) OVER f AS m, sort_array(collect_list(id) OVER f) AS a,
        lag(x, {shift}, -1) OVER o AS b, lead(id, {shift}) OVER o AS c, CAST(row_number() OVER o AS BIGINT) AS d FROM over_rows
        WINDOW f AS (PARTITION BY k {words}), o AS (PARTITION BY k ORDER BY at, id)"""
    )
    assert sorted(ours.collect()) == sorted(theirs.collect())


def test_unsupported_plans_run_in_the_engine(rows):
    def why_not(values, frame=bm.Unbounded(), keys=("the key",)):  # noqa: B008
        flow, _ = bound(START.key_by(*keys).over(frame).accumulate(**values), rows)
        return why_not_native_over(flow.operator.plan)

    assert "first=FirstValue" in why_not({"first": bm.FirstValue("x")})
    assert "all=Collect" in why_not({"all": Collect("x")})
    assert "single key" in why_not({"n": Count()}, keys=())
    assert "0.0" in why_not({"n": Count()}, keys=("a.ratio",))


def test_a_stream_with_a_restart_is_the_script(spark, by_key, tmp_path):
    pipeline = (
        START.key_by("user")
        .over(bm.Preceding(10))
        .allowed_lateness(100)
        .accumulating_and_retracting()
        .accumulate(total=Sum("x"), before=bm.Lag("x"), number=bm.RowNumber())
    )
    script = TestStream().add([{"ts": 1, "user": "a", "x": 1}, {"ts": 5, "user": "b", "x": 2}]).advance_watermark_to(20)
    script = script.add([{"ts": 3, "user": "a", "x": 4}, {"ts": 0, "user": "a", "x": 8}])
    script = script.add([{"ts": 25, "user": "a", "x": 16}])
    on_spark = script.trace_on_spark(spark, pipeline, restart_after=(1,), checkpoint=tmp_path, shards=2, partitions=1)
    for (event, panes), (_, expected) in zip(on_spark, script.trace(pipeline), strict=True):
        assert by_key(panes) == by_key(expected), event
    checkpoint = tmp_path / "checkpoint"
    (waits,) = pipeline.state(spark, checkpoint).held().collect()
    assert (waits.user, waits.x, waits.total) == ("a", 16, None)
    (stage,) = bm.inspect(spark, checkpoint).stages().collect()
    assert stage.watermark.timestamp() == 20
    assert bm.check_upgrade(spark, checkpoint, pipeline.with_dropped()).refused == []
    (change,) = bm.check_upgrade(spark, checkpoint, pipeline.allowed_lateness(200)).refused
    assert "with allowed_lateness 100000000, the pipeline now has 200000000" in change.means


def test_window_functions_of_spark_are_those_of_a_batch(spark, rows):
    """The public call, beside the same by hand."""
    spent = START.key_by("the key").over(bm.Preceding("5 seconds")).accumulate(total=Sum("x"))
    by_hand = Window.partitionBy("the key").orderBy(F.unix_micros("ts")).rangeBetween(-5_000_000, 0)
    ours = rows.where("id < 50").transform(spent).select("id", "total")
    theirs = rows.where(f"id < 50 AND ts < {FAR}").select("id", F.sum("x").over(by_hand).alias("total"))
    assert sorted(map(str, ours.collect())) == sorted(map(str, theirs.collect()))


STATEMENTS = [
    """SELECT id, `the key`, SUM(x) OVER (PARTITION BY `the key` ORDER BY ts RANGE BETWEEN INTERVAL '5' SECOND PRECEDING AND CURRENT ROW)
    AS total, COUNT(*) OVER (PARTITION BY `the key` ORDER BY ts RANGE BETWEEN INTERVAL '5' SECOND PRECEDING AND CURRENT ROW) AS n
    FROM some_rows WHERE x > 0""",
    """SELECT id, LAG(x, 2, -1) OVER (PARTITION BY `the key` ORDER BY ts, id) AS before, x + 1 AS more FROM some_rows""",
    """SELECT * FROM (SELECT id, name, ROW_NUMBER() OVER (PARTITION BY `the key` ORDER BY ts, id) AS n FROM some_rows) t WHERE n <= 3""",
    """SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY `the key` ORDER BY x DESC, id DESC) AS n FROM some_rows) t WHERE n <= 3""",
    """SELECT id, n FROM (SELECT id, ROW_NUMBER() OVER (PARTITION BY x ORDER BY name, id + 0) AS n FROM some_rows WHERE id > 3) t
    WHERE n < 3""",
]


@pytest.mark.parametrize("text", STATEMENTS)
def test_a_statement_with_over_means_what_it_means_in_spark(spark, rows, text):
    some = rows.where(f"id < 50 AND ts < {FAR}").dropDuplicates(["id"])
    some.createOrReplaceTempView("some_rows")
    ours = bm.sql(text, event_time="ts", watermark=bm.BoundedOutOfOrderness(0)).apply(some)
    assert ours.columns[-3:] == ["window", "pane", "timestamp"]
    found = ours.drop("window", "pane", "timestamp")
    assert sorted(map(str, found.collect())) == sorted(map(str, spark.sql(text).collect()))


@pytest.mark.parametrize("order", ["ts", "x DESC"])
def test_a_statement_with_over_on_a_stream_is_that_of_a_script(spark, by_key, order):
    text = f"SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY user ORDER BY {order}) AS n FROM t) WHERE n <= 1 EMIT CHANGES"
    query = bm.sql(text, event_time="ts", watermark=bm.BoundedOutOfOrderness(0))
    script = TestStream().add([{"ts": 5, "user": "a", "x": 2}, {"ts": 7, "user": "a", "x": 1}])
    script = script.add([{"ts": 1, "user": "a", "x": 3}])
    for (event, panes), (_, expected) in zip(
        script.trace_on_spark(spark, query, shards=2, partitions=1), script.trace(query), strict=True
    ):
        assert by_key(panes) == by_key(expected), event


@pytest.mark.deep
def test_the_first_rows_of_each_key_are_a_table_by_their_id(files, tmp_path):
    made = files(ts=pa.timestamp("us", tz="UTC"), k=pa.string(), id=pa.int64())
    for batch in [[(10, "a", 1), (20, "a", 2), (30, "a", 3)], [(40, "b", 9)], [(15, "a", 4)], [(50, "b", 10)]]:
        made.add(*({"ts": datetime.fromtimestamp(ts, UTC), "k": k, "id": number} for ts, k, number in batch))
    first = START.key_by("k").over(bm.Unbounded(), order_by="id").allowed_lateness("1 hour")
    first = first.accumulating_and_retracting().accumulate(n=bm.RowNumber()).having(pc.field("n") <= 2)
    sink = bm.sinks.sql(f"sqlite:///{tmp_path}/first.db", "first", keys=["id"])
    query = made.stream().transform(first).writeStream.foreachBatch(sink)
    query.option("checkpointLocation", str(tmp_path / "sunk")).trigger(availableNow=True).start().awaitTermination()
    with closing(sqlite3.connect(tmp_path / "first.db")) as database:
        found = database.execute("select id, k, n from first order by id").fetchall()
    assert found == [(1, "a", 1), (4, "a", 2), (9, "b", 1)]
