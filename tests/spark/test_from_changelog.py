"""Rows that are changes, on Spark: every format says what the table's rows say (rules/changelogs.md#from-changelog)."""

import json
from datetime import UTC, datetime

import pytest
from pyspark.sql import functions as F

import beamish as bm
from beamish.accumulations import Collect, Count, Sum, TopN
from beamish.triggers import Always
from tests.producers import MESSAGE, PRODUCED, TOMBSTONE, TRUNCATE, totals
from tests.strategies.changelogs import words

DATA = "ts timestamp, team string, score int"
ROW = "struct<ts: timestamp, team: string, score: int>"
SCHEMAS = {
    "spark": f"{DATA}, _change_type string",
    "flink": f"{DATA}, op string",
    "debezium": f"op string, before {ROW}, after {ROW}",
    "diff": f"{DATA}, _diff long",
}
PIPELINE = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness(0))
    .key_by("team")
    .window(bm.SlidingWindows(10, 5))
    .accumulate(n=Count(), total=Sum("score"), top=TopN(2, "score"), all=Collect("score"))
)


def row(ts, team, score):
    return {"ts": datetime.fromtimestamp(ts, UTC), "team": team, "score": score}


A, B, C, D = row(1, "red", 5), row(2, "red", 7), row(12, None, 1), row(3, "blue", 2)
CHANGES = [(None, A), (None, B), (None, C), (A, D), (B, row(2, "red", 8)), (None, A), (C, None), (A, row(21, "red", 5))]
TABLE = [D, row(2, "red", 8), row(21, "red", 5)]


def feed(spark, format_):
    rows = [one for change in CHANGES for one in words(format_, *change)]
    return spark.createDataFrame(rows, SCHEMAS[format_]).repartition(3)


def panes(df, pipeline):
    return sorted(map(repr, pipeline.apply(df).drop("pane").collect()))


@pytest.mark.parametrize("format_", SCHEMAS)
def test_a_batch_of_changes_is_a_batch_of_the_rows_that_the_table_holds(spark, format_):
    table = spark.createDataFrame([tuple(one.values()) for one in TABLE], DATA)
    found = panes(feed(spark, format_), PIPELINE.from_changelog(format_))
    assert found == panes(table, PIPELINE)
    assert len(found) == 6


def test_a_change_that_the_format_lacks_stops_the_query(spark):
    wrong = {
        "debezium": ("before", F.lit(None).cast(ROW), "REPLICA IDENTITY FULL"),
        "spark": ("_change_type", F.lit("upsert"), "_change_type=upsert"),
        "diff": ("_diff", F.lit(None).cast("long"), "_diff=null"),
    }
    for format_, (name, value, said) in wrong.items():
        with pytest.raises(Exception, match=said):
            PIPELINE.from_changelog(format_).apply(feed(spark, format_).withColumn(name, value)).collect()
    for format_, name, value, said in (("diff", "_diff", 1.0, "is double"), ("debezium", "before", "{}", "be structs")):
        with pytest.raises(bm.ColumnError, match=said):
            PIPELINE.from_changelog(format_).apply(feed(spark, format_).withColumn(name, F.lit(value)))


def test_the_panes_of_an_accumulating_pipeline_are_not_taken_in(spark):
    stored = PIPELINE.apply(spark.createDataFrame([tuple(one.values()) for one in TABLE], DATA))
    again = bm.Pipeline().from_panes().event_time("timestamp", bm.BoundedOutOfOrderness(0)).key_by("window_start")
    again = again.window(bm.FixedWindows(100)).accumulate(rows=Sum("n"))
    assert {row["rows"] for row in again.apply(stored).collect()} == {1, 2}
    known = stored.schema["pane"].metadata["beamish"]
    with pytest.raises(bm.PipelineError, match="accumulating_and_retracting"):
        again.apply(stored.withMetadata("pane", {"beamish": {**known, "follows": "replacing"}}))


ENVELOPE = f"op string, before {ROW}, after {ROW}, ts_ms long, source string, transaction string"
BY_TEAM = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness(0))
    .key_by("team")
    .window(bm.FixedWindows(10))
    .accumulate(n=Count(), total=Sum("score"))
)


def envelopes(values):
    """Records of Kafka as Debezium's, the columns of a null value null."""
    return values.select(F.from_json("value", ENVELOPE).alias("payload")).select("payload.*")


def json_of(record):
    return None if record == TOMBSTONE else json.dumps(record)


def found(panes):
    return {row["team"]: (row["n"], row["total"]) for row in panes.collect()}


def test_producers_records_lead_to_their_tables(spark):
    for name, produced in PRODUCED.items():
        if produced.format == "debezium":
            values = spark.createDataFrame([(json_of(record),) for record in produced.records], "value string")
            rows = envelopes(values)
        else:
            rows = spark.createDataFrame(produced.records).withColumn("ts", F.timestamp_seconds("ts"))
        assert found(BY_TEAM.from_changelog(produced.format).apply(rows)) == totals(produced.table), name


def test_tombstones_of_a_stream_are_skipped_and_counted(spark, tmp_path):
    produced = PRODUCED["Debezium: update of a primary key"]
    lines = "".join(json.dumps({"value": json_of(record)}) + "\n" for record in [*produced.records, TOMBSTONE])
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.json").write_text(lines)
    rows = envelopes(spark.readStream.schema("value string").json(str(tmp_path / "in")))
    feed = bm.Pipeline().from_changelog("debezium").event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("team")
    panes = bm.merge(a=feed, b=feed).window(bm.GlobalWindow()).trigger(Always()).accumulating().accumulate(n=Count())
    query = (
        bm.observe(panes.apply(a=rows, b=rows))
        .writeStream.format("noop")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    seen = bm.progress(query)
    assert (seen.skipped, seen.all_dropped, seen.is_observed) == (2 * 2, 0, True)


def test_debeziums_truncations_and_messages_are_refused_with_the_fix(spark):
    for record, fix in ((TRUNCATE, "skipped.operations=t"), (MESSAGE, "IS DISTINCT FROM")):
        values = spark.createDataFrame([(json_of(record),)], "value string")
        with pytest.raises(Exception, match=fix):
            BY_TEAM.from_changelog("debezium").apply(envelopes(values)).collect()
