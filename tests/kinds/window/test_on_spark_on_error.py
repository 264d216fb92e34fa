"""on_error on Spark: a poison row does not stop a query for good (docs/rules/output.md#errors)."""

from datetime import UTC, datetime

import pyarrow.compute as pc
import pytest

import beamish as bm
from beamish.accumulations import Count, Sum
from beamish.triggers import Always

MOST = 2**63 - 1
SCHEMA = "ts timestamp, team string, score long"
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


@pytest.fixture
def run_on(spark, tmp_path):
    """Runs a pipeline over what is left of two batches; gives the panes of each batch of all runs; batches without rows may follow."""

    def run(pipeline):
        rows = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))
        writer = rows.transform(pipeline).writeStream.option("checkpointLocation", str(tmp_path / "to"))
        writer = writer.foreachBatch(lambda panes, _: out.append(panes.toArrow())).trigger(availableNow=True)
        writer.start().awaitTermination()
        return out

    def begin(*batches):
        for rows in batches:
            spark.createDataFrame(rows, SCHEMA).coalesce(1).write.mode("append").parquet(str(tmp_path / "in"))
        return run

    out = []
    return begin


def test_a_query_stopped_by_a_sum_continues_from_its_checkpoint_when_it_drops(run_on):
    run = run_on([at(1, MOST), at(2, -1)], [at(3, 5), at(4, 1)])
    with pytest.raises(Exception, match=r"on_error\('drop'\) and restart") as stopped:
        run(PIPELINE)
    assert isinstance(bm.errors.of(stopped.value), bm.NumericOverflowError)
    first, second, *_ = run(PIPELINE.on_error("drop"))
    assert first["total"].to_pylist() == [MOST - 1]
    dropped, _, pane = second.to_pylist()
    assert (dropped["dropped"]["reason"], dropped["dropped"]["row"]["score"], dropped["team"]) == ("error", 5, "red")
    assert "does not fit bigint" in dropped["dropped"]["message"]
    assert (pane["total"], pane["plays"]) == (MOST, 3)


def test_a_query_stopped_by_an_expression_continues_from_its_checkpoint_with_another(run_on):
    run = run_on([at(1, 4)], [at(2, -4)])
    panes = PIPELINE.accumulating()
    with pytest.raises(Exception, match=r"divide by zero; .* from the same checkpoint"):
        run(panes.with_columns(per=pc.divide(pc.field("plays") * 8, pc.field("total"))))
    per = pc.divide(pc.field("plays") * 8.0, pc.field("total"))
    first, second, *_ = run(panes.with_columns(per=per).having(pc.field("plays") > 0))
    assert first["per"].to_pylist() == [2]
    assert [(row["plays"], row["total"], row["per"]) for row in second.to_pylist()] == [(2, 0, float("inf"))]


def test_a_batch_drops_rows_that_fail_in_sparks_own_sum(spark):
    rows = spark.createDataFrame([at(1, MOST), at(2, 7), at(3, 0)], SCHEMA)
    out = rows.transform(PIPELINE.on_error("drop"))
    assert bm.dropped(out).select("score").collect() == [(7,)]
    assert [tuple(one) for one in bm.panes(out).select("total", "plays").collect()] == [(MOST, 2)]
