"""A source without event time in all of time, on Spark: the same as in process."""

import beamish as bm
from beamish.accumulations import Count, Last, Sum
from beamish.testing import TestStream
from beamish.triggers import Always
from tests.agreement import differences

COUNTS = bm.Pipeline().key_by("k").window(bm.GlobalWindow()).trigger(Always()).accumulating()
COUNTS = COUNTS.accumulate(n=Count(), s=Sum("x"))
ROWS = [{"k": "a", "x": 1}, {"k": None, "x": 2}]


def test_all_of_time_needs_no_event_time_on_spark(spark):
    script = TestStream().add(ROWS).add([{"k": "a", "x": 3}])
    for pipeline in (
        COUNTS,
        COUNTS.accumulate(latest=Last("x")),
    ):  # summed up before they reach their shard, and as rows
        panes = script.on_spark(spark, pipeline, restart_after=(1,), shards=2, partitions=1)
        assert not differences(panes, pipeline.run(script), pipeline)


def test_a_batch_in_all_of_time_needs_no_event_time(spark):
    df = spark.createDataFrame(ROWS)
    assert "rows have no event time" in " ".join(COUNTS.explain(df).split())
    assert sorted((row.k or "", row.n, row.s) for row in COUNTS.apply(df).collect()) == [("", 1, 2), ("a", 1, 1)]
