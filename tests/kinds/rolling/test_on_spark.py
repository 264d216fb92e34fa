"""Rolling spans as real micro-batches with a restart, in a batch, and as an upsert table."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime

import beamish as bm
from beamish.accumulations import Count, Max, Sum
from beamish.testing import TestStream

SPANS = {"2m": "2 minutes", "5m": "5 minutes"}
FEATURES = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness(0))
    .key_by("user")
    .window(bm.Rolling(SPANS, step="1 minute", keep="history"))
    .allowed_lateness("1 hour")
    .accumulating_and_retracting()
    .accumulate(n=Count(), total=Sum("v"), most=Max("v"))
)
SCRIPT = (
    TestStream()
    .add(
        [{"ts": 30, "user": "ann", "v": 1.5}, {"ts": 70, "user": "ann", "v": 2.5}, {"ts": 20, "user": "bob", "v": None}]
    )
    .advance_watermark_to(240)
    .add([{"ts": 50, "user": "ann", "v": 4.0}])
    .advance_watermark_to(500)
)


LIFETIME = (
    FEATURES.window(bm.Rolling({"2m": "2 minutes", "ever": bm.Lifetime()}, step="1 minute"))
    .allowed_lateness("1 minute")
    .forget_after("5 minutes")
)
"""When it restarts the first row is folded, and a late one arrives for it; later the keys are dropped."""


def test_a_stream_with_a_restart_agrees_with_an_in_process_run(spark, by_key):
    for pipeline in (FEATURES, LIFETIME):
        on_spark = SCRIPT.trace_on_spark(spark, pipeline, restart_after=(1,), shards=2, partitions=1)
        for (event, panes), (_, expected) in zip(on_spark, SCRIPT.trace(pipeline), strict=True):
            assert by_key(panes) == by_key(expected), event


def test_a_batch_gives_the_live_rows(spark):
    rows = [
        (datetime.fromtimestamp(ts, UTC), user, v)
        for ts, user, v in [(30, "ann", 1.5), (70, "ann", 2.5), (50, "ann", 4.0), (20, "bob", None)]
    ]
    frame = spark.createDataFrame(rows, "ts timestamp, user string, v double")
    found = {
        (row.user, row.time.timestamp(), row.n_2m, row.total_5m, row.most_5m) for row in FEATURES.apply(frame).collect()
    }
    live = bm.live(FEATURES.run(SCRIPT))
    own = {
        (pane.key["user"], pane.timestamp.timestamp(), *(pane.values[name] for name in ("n_2m", "total_5m", "most_5m")))
        for pane in live
    }
    assert found == own
    current = FEATURES.window(bm.Rolling(SPANS, step="1 minute")).apply(frame)
    assert sorted((row.user, row.n_5m, row.pane.is_last) for row in current.collect()) == [
        ("ann", 0, True),
        ("bob", 0, True),
    ]
    table = {(row.user, row.time.timestamp(), row.n_2m) for row in bm.live(FEATURES.apply(frame)).collect()}
    assert table == {(user, at, n) for user, at, n, *_ in own}


def test_a_sink_keeps_one_row_per_key(spark, tmp_path):
    current = FEATURES.window(bm.Rolling(SPANS, step="1 minute", empty="remove"))
    columns = "ts timestamp, user string, v double"
    for number, rows in enumerate(
        [[(30, "ann", 1.5), (20, "bob", 2.0)], [(200, "ann", 4.0)], [(430, "ann", 1.0)], [(440, "ann", 2.0)]]
    ):
        times = [(datetime.fromtimestamp(ts, UTC), user, v) for ts, user, v in rows]
        spark.createDataFrame(times, columns).coalesce(1).write.mode("append").parquet(
            str(tmp_path / "rows" / f"n={number}")
        )
    rows = spark.readStream.schema(columns).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "rows" / "*"))
    sink = bm.sinks.sql(f"sqlite:///{tmp_path}/features.db", "features")
    query = (
        current.apply(rows).writeStream.foreachBatch(sink).option("checkpointLocation", str(tmp_path / "checkpoint"))
    )
    query.trigger(availableNow=True).start().awaitTermination()
    with closing(sqlite3.connect(tmp_path / "features.db")) as table:
        found = table.execute('SELECT "user", n_2m, n_5m, total_5m FROM features').fetchall()
    assert found == [("ann", 0, 1, 4.0)]
    (held,) = current.state(spark, tmp_path / "checkpoint").held().collect()
    assert (held.user, held.n_5m, held.due.minute) == ("ann", 1, 8)
    slices, emitted = sorted(
        current.state(spark, tmp_path / "checkpoint").keys(key="ann").collect(), key=lambda row: -row.entries
    )
    assert (slices.stored, slices.entries, emitted.values) == (
        "rows, in slices of 1 minute",
        4,
        "n_2m=0, n_5m=1, total_2m=None, total_5m=4.0, most_2m=None, most_5m=4.0",
    )
    found = bm.inspect(spark, tmp_path / "checkpoint")
    assert "Stored of key user='ann': rows, in slices of 1 minute (4)" in found.why(key="ann")
    (stage,) = found.stages().collect()
    assert stage.watermark.minute == 7
    assert bm.check_upgrade(spark, tmp_path / "checkpoint", current).changes == []
