"""on_error on Spark: a poison row does not stop a query for good (docs/semantics.md#errors)."""

from datetime import UTC, datetime

import pytest

import beamish as bm
from beamish.accumulations import Count, Sum
from beamish.triggers import Always

MOST = 2**63 - 1
PIPELINE = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness(0))
    .key_by("team")
    .window(bm.FixedWindows("1 minute"))
    .trigger(Always())
    .accumulating_and_retracting()
    .accumulate(total=Sum("score"), plays=Count())
)


def at(second, score):
    return datetime(2024, 3, 1, 0, 0, second, tzinfo=UTC), "red", score


def test_a_query_that_a_sum_stopped_goes_on_from_its_checkpoint_when_it_drops(spark, tmp_path):
    schema, out = "ts timestamp, team string, score long", []
    for rows in ([at(1, MOST), at(2, -1)], [at(3, 5), at(4, 1)]):
        spark.createDataFrame(rows, schema).coalesce(1).write.mode("append").parquet(str(tmp_path / "in"))

    def run(pipeline):
        rows = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))
        writer = rows.transform(pipeline).writeStream.option("checkpointLocation", str(tmp_path / "to"))
        writer = writer.foreachBatch(lambda panes, _: out.append(panes.toArrow())).trigger(availableNow=True)
        writer.start().awaitTermination()

    with pytest.raises(Exception, match=r"on_error\('drop'\) and restart") as stopped:
        run(PIPELINE)
    assert isinstance(bm.errors.of(stopped.value), bm.NumericOverflowError)
    (first,) = out
    assert first["total"].to_pylist() == [MOST - 1]
    run(PIPELINE.on_error("drop"))
    dropped, _, pane = out[1].to_pylist()
    assert (dropped["dropped"]["reason"], dropped["dropped"]["row"]["score"], dropped["team"]) == ("error", 5, "red")
    assert "does not fit bigint" in dropped["dropped"]["message"]
    assert (pane["total"], pane["plays"]) == (MOST, 3)


def test_a_batch_drops_what_sparks_own_sum_would_stop_at(spark):
    rows = spark.createDataFrame([at(1, MOST), at(2, 7), at(3, 0)], "ts timestamp, team string, score long")
    out = rows.transform(PIPELINE.on_error("drop"))
    assert bm.dropped(out).select("score").collect() == [(7,)]
    assert [tuple(one) for one in bm.panes(out).select("total", "plays").collect()] == [(MOST, 2)]
