"""Files as a stream: what a query gives is what the same steps give as a script."""

from datetime import UTC, datetime, timedelta

import attrs
import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F

import beamish as bm
from beamish.accumulations import Count, Sum
from beamish.testing import TestStream
from beamish.triggers import AfterCount, AfterWatermark

pytestmark = pytest.mark.usefixtures("several_partitions")

START = datetime(2024, 5, 1, tzinfo=UTC)
COLUMNS = {"ts": pa.timestamp("us", tz="UTC"), "team": pa.string(), "score": pa.int64()}
PIPELINE = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness("1.5 milliseconds", max_future="1 day"))
    .key_by("team")
    .window(bm.FixedWindows(10))
    .trigger(AfterWatermark(early=AfterCount(2), late=AfterCount(1)))
    .allowed_lateness(15)
    .accumulating_and_retracting()
    .with_dropped()
    .accumulate(plays=Count(), total=Sum("score"))
)


def at(seconds):
    return START + timedelta(seconds=seconds)


def row(seconds, team, score):
    return {"ts": None if seconds is None else at(seconds), "team": team, "score": score}


FIRST = [row(1, "red", 1), row(2, "red", 2), row(4.000499, "blue", 3), row(86_400 * 365_000, "red", 0)]
SECOND = [row(12, "red", 4), row(3.9985, "blue", 5), row(None, "blue", 6)]
THIRD = [row(5, "red", 7), row(31.7, "green", 8), row(11, "blue", 9)]
FOURTH = [row(6, "red", 10), row(13, "red", 11)]


def script():
    """The same, with the watermarks that Spark makes of it: floored to the millisecond, between batches."""
    return (
        TestStream()
        .add(FIRST)
        .advance_watermark_to(at(3.998))
        .add(SECOND)
        .advance_watermark_to(at(11.998))
        .add(THIRD)
        .advance_watermark_to(at(31.698))
        .add(FOURTH)
    )


def test_files_in_micro_batches_give_the_panes_of_the_script(spark, files, run_query, by_key):
    stream = files(**COLUMNS).add(*FIRST).add(*SECOND).add(*THIRD).add(*FOURTH).stream()
    batches = run_query(PIPELINE, stream, shards=4)
    expected = PIPELINE.run(script())
    assert {pane.kind.value for pane in expected} == {"PANE", "RETRACTION", "DROPPED"}
    assert by_key(pane for batch in batches for pane in batch) == by_key(expected)


@pytest.mark.smoke
def test_a_batch_without_rows_closes_the_windows_that_the_last_rows_passed(spark, files, run_query):
    pipeline = (
        bm.Pipeline()
        .event_time(F.expr("ts + interval 1 hour"), bm.Punctuated("mark"))
        .key_by(F.upper("team").alias("name"))
        .window(bm.FixedWindows(10))
        .accumulate(total=Sum("score"))
    )
    rows = [{**row(1, "red", 1), "mark": at(3600 + 5)}, {**row(1, "blue", 2), "mark": at(3600 + 10)}]
    stream = files(**COLUMNS, mark=COLUMNS["ts"]).add(*rows).stream()
    spark.conf.set("spark.sql.session.timeZone", "America/Los_Angeles")
    try:
        first, last = run_query(pipeline, stream)
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert first == []
    assert {(pane.key["name"], pane.values["total"]) for pane in last} == {("RED", 1), ("BLUE", 2)}
    assert {pane.window for pane in last} == {bm.Window(at(3600), at(3610))}


def test_windows_of_an_idle_stream_close_in_the_next_run(spark, files, run_query):
    pipeline = PIPELINE.event_time("ts", bm.BoundedOutOfOrderness(0, idle_timeout="1 millisecond")).trigger(
        AfterWatermark(late=AfterCount(1))
    )
    stream = files(**COLUMNS).add(row(9.999, "red", 1)).add(row(1, "blue", 2)).stream()
    assert not any(run_query(pipeline, stream))
    last = [attrs.evolve(pane, window=None, timestamp=None) for batch in run_query(pipeline, stream) for pane in batch]
    assert {(pane.key["team"], pane.values["total"], pane.timing.value) for pane in last} == {
        ("red", 1, "ON_TIME"),
        ("blue", 2, "ON_TIME"),
    }


@pytest.mark.deep
def test_output_mode_update_gives_the_rows_of_append_and_complete_is_refused(spark, files, tmp_path):
    source = files(**COLUMNS).add(*FIRST).add(*SECOND)
    panes = PIPELINE.apply(source.stream(), shards=2).selectExpr("team", "plays", "total", "to_json(pane) pane")

    def rows(mode, checkpoint):
        found = []
        writer = panes.writeStream.outputMode(mode).foreachBatch(lambda batch, _: found.extend(batch.collect()))
        writer.option("checkpointLocation", str(tmp_path / checkpoint)).trigger(
            availableNow=True
        ).start().awaitTermination()
        return sorted(map(repr, found))

    assert rows("update", "update") == rows("append", "append") != []
    with pytest.raises(AnalysisException, match=r"[Cc]omplete"):
        rows("complete", "complete")
