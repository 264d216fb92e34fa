"""Windows anchored at rows as real micro-batches with a restart, and in a batch."""

from __future__ import annotations

from datetime import UTC, datetime

import beamish as bm
from beamish.accumulations import Count, Sum
from beamish.testing import TestStream
from beamish.triggers import AfterCount, AfterWatermark
from tests.agreement import differences

NEARBY = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness(0))
    .key_by("card")
    .window(bm.AnchoredWindows("5 seconds"))
    .trigger(AfterWatermark(early=AfterCount(1), late=AfterCount(1)))
    .allowed_lateness("1 minute")
    .accumulating_and_retracting()
    .accumulate(n=Count(), total=Sum("amount"))
)
ROWS = [(8.0, "a", 1.5), (9.2, "a", 2.5), (20.0, "b", None), (12.4, "a", 4.0)]
LATE = (7.5, "a", 3.0)


def rows(*of):
    return [{"ts": ts, "card": card, "amount": amount} for ts, card, amount in of]


def test_a_stream_with_a_restart_agrees_with_an_in_process_run_and_its_end_with_a_batch(spark):
    script = (
        TestStream()
        .add(rows(*ROWS[:2]))
        .add(rows(*ROWS[2:]))
        .advance_watermark_to(30)
        .add(rows(LATE))
        .advance_watermark_to_infinity()
    )
    on_spark = script.on_spark(spark, NEARBY, restart_after=[1], shards=2, partitions=1)
    panes = NEARBY.run(script)
    assert not differences(panes, on_spark, NEARBY)
    values = [(datetime.fromtimestamp(ts, UTC), card, amount) for ts, card, amount in (*ROWS, LATE)]
    frame = spark.createDataFrame(values, "ts timestamp, card string, amount double")
    found = {
        (row.card, row.window.start.timestamp(), row.n, row.total, row.pane.is_last)
        for row in NEARBY.apply(frame).collect()
    }
    assert found == {
        (pane.key["card"], pane.start.timestamp(), pane.values["n"], pane.values["total"], True)
        for pane in bm.live(panes)
    }
