"""Queries over windows of rows that are killed: ``python -m tests.servers.counted_query '{...}'``; see test_killed_counts.py.

The rows of each batch are written to one file, overwritten if the batch is replayed. In the batch ``stop_in`` the query halts
before that ("before") or after it ("end"), makes the file ``halted``, and waits to be killed.
"""

import json
import sys
from pathlib import Path

import beamish as bm
from beamish.accumulations import Collect, Count, InnerJoin, Sum
from beamish.triggers import AfterWatermark, Always
from tests.conftest import start_spark
from tests.servers.query import SCHEMA, halt

ROWS = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness("1 hour"))
KEYED = ROWS.key_by("team").with_dropped()
PIPELINES = {
    "numbers": KEYED.window(bm.CountWindows(7, 3))
    .trigger(Always())
    .accumulating_and_retracting()
    .accumulate(of=Collect("score")),
    "ids": KEYED.window(bm.CountWindows(5))
    .deduplicate("score", within="20 seconds")
    .accumulate(total=Sum("score"), n=Count()),
    "retained": KEYED.window(bm.FixedWindows("1 minute"))
    .retain(windows=3)
    .trigger(Always())
    .allowed_lateness("2 hours")
    .accumulating()
    .accumulate(n=Count()),
    "sessions": KEYED.window(bm.CountSessions(1))
    .trigger(AfterWatermark(early=Always()))
    .accumulating_and_retracting()
    .accumulate(n=Count()),
    "pairs": bm.merge(low=ROWS.key_by("team"), high=ROWS.key_by("team"))
    .window(bm.GlobalWindow())
    .trigger(Always())
    .discarding()
    .accumulate(pair=InnerJoin("low", "high", once=True, keep_rows={"low": 5, "high": 2})),
}


def run(told):
    spark = start_spark()
    rows = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(told["rows"])
    pipeline = PIPELINES[told["pipeline"]]
    sides = {"low": rows.where("score < 5"), "high": rows.where("score >= 5")}
    panes = pipeline.apply(**sides) if told["pipeline"] == "pairs" else pipeline.apply(rows)

    def write(batch, number):
        stops = number == told.get("stop_in")
        if stops and told["stop_at"] == "before":
            halt(told)
        lines = sorted(row.asDict(recursive=True).__repr__() for row in batch.drop("pane").collect())
        Path(told["out"], f"{number:04}").write_text("\n".join(lines))
        if stops:
            halt(told)

    options = {"checkpointLocation": told["checkpoint"]}
    panes.writeStream.foreachBatch(write).options(**options).trigger(availableNow=True).start().awaitTermination()


if __name__ == "__main__":
    run(json.loads(sys.argv[1]))
