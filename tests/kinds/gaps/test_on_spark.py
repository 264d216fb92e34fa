"""Gaps on Spark, as a stream that is restarted and as a batch (rules/gaps.md)."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa

import beamish as bm
from tests.spark.writing import written

START = datetime(2024, 5, 1, tzinfo=UTC)
COLUMNS = {"at": pa.timestamp("us", tz="UTC"), "sensor": pa.string(), "v": pa.int64()}
FILLED = (
    bm.Pipeline()
    .event_time("at", bm.BoundedOutOfOrderness(0))
    .key_by("sensor")
    .fill_gaps("1 minute", by="linear", within="5 minutes")
)


def rows(*of):
    return [{"at": START + timedelta(seconds=at), "sensor": sensor, "v": v} for at, sensor, v in of]


def test_a_stream_that_is_restarted_and_a_batch_fill_the_same_rows(files, spark, tmp_path):
    events = files(**COLUMNS)
    events.add(*rows((0, "a", 0), (0, "b", 5))).add(*rows((180, "a", 30)))
    first = {
        (row.sensor, row.v) for row in written(events.stream().transform(FILLED), tmp_path).where("filled").collect()
    }
    assert first == set()
    events.add(*rows((240, "b", 9), (400, "b", 9), (500, "a", 0)))
    out = written(events.stream().transform(FILLED), tmp_path).where("filled")
    stream = sorted((row.sensor, row.v, row.timestamp) for row in out.collect())
    assert [(sensor, v) for sensor, v, _ in stream] == [
        ("a", 10.0),
        ("a", 20.0),
        ("b", 6.0),
        ("b", 7.0),
        ("b", 8.0),
        ("b", 9.0),
    ]
    batch = spark.read.parquet(str(events.folder)).transform(FILLED).where("filled")
    assert sorted((row.sensor, row.v, row.timestamp) for row in batch.collect()) == stream
