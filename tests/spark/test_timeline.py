"""The picture of what a query wrote is the picture of the same steps as a script."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

import beamish as bm
from beamish.accumulations import Sum
from beamish.errors import OptionError
from beamish.plot import timeline
from beamish.testing import TestStream
from beamish.triggers import AfterCount, AfterWatermark
from tests.plot.drawn import boxes_in

START = datetime(2024, 5, 1, 12, tzinfo=UTC)
SCORES = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness(0))
    .key_by("team")
    .window(bm.FixedWindows("2 minutes"))
    .trigger(AfterWatermark(early=AfterCount(1), late=AfterCount(1)))
    .allowed_lateness("5 minutes")
    .accumulating_and_retracting()
    .with_dropped()
    .accumulate(total=Sum("score"))
)


def play(minutes, team, score):
    return {"ts": START + timedelta(minutes=minutes), "team": team, "score": score}


BATCHES = [
    [play(0.5, "red", 5), play(0.2, "blue", 2)],
    [play(6, "red", 7)],  # then the watermark is there
    [play(1, "red", 9), play(-1.5, "red", 4)],  # the first is late, the second too late
]


def came(batch):
    """When a micro-batch came: five minutes after the first row, then every minute."""
    return START + timedelta(minutes=5 + batch)


def test_a_query_s_panes_with_its_rows_make_the_picture_of_the_same_script(spark, files, tmp_path):
    source = files(ts=pa.timestamp("us", tz="UTC"), team=pa.string(), score=pa.int64())
    for rows in BATCHES:
        source.add(*rows)
    panes = []

    def write(batch, number):
        panes.append(batch.withColumn("came", F.lit(came(number))).toArrow())

    stream = source.stream()
    query = (
        stream.transform(SCORES)
        .writeStream.foreachBatch(write)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    stored = spark.createDataFrame(pa.concat_tables(panes))
    arrived = [{**row, "came": came(number)} for number, rows in enumerate(BATCHES) for row in rows]
    of_query = timeline(stored, rows=arrived, event_time="ts", processing_time="came")

    script, latest = TestStream(), None
    for number, rows in enumerate(BATCHES):
        script = script.step(rows, watermark=latest, clock=came(number))
        latest = max([row["ts"] for row in rows] + ([latest] if latest else []))
    of_script = timeline(SCORES, script)
    for number, panel in enumerate(of_script.picture.panels):
        same = of_query.picture.panels[number]
        assert same.points == panel.points
        assert same.key == panel.key
    assert sorted({box[4] for box in boxes_in(of_script.picture)}) == ["EARLY", "LATE", "ON_TIME"]
    assert boxes_in(of_query.picture) == boxes_in(of_script.picture)
    with pytest.raises(OptionError, match=r"streaming DataFrame.*it has no rows yet"):
        timeline(stream.transform(SCORES))
