"""A query that is killed: ``python -m tests.servers.query '{...}'``; see test_killed.py, which runs it.

It keeps a table of sessions from files of rows, one file a micro-batch. In the batch ``stop_in`` it comes to a halt, where
``stop_at`` says: "statement", in the middle of the sink's work; "end", after it, before Spark notes that the batch is done.
It then makes the file ``halted``, and waits to be killed.
"""

import json
import sys
import time
from pathlib import Path

import beamish as bm
from beamish.accumulations import Count, Sum
from beamish.triggers import Always
from tests.conftest import start_spark

SESSIONS = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness("1 hour"))
    .key_by("team")
    .window(bm.Sessions("10 seconds"))
    .trigger(Always())
    .allowed_lateness("1 hour")
    .accumulating_and_retracting()
    .accumulate(total=Sum("score"), plays=Count())
)
SCHEMA = "ts timestamp, team string, score int"


def halt(told):
    Path(told["halted"]).touch()
    while True:
        time.sleep(1)


def stopping(sink, told):
    """The sink, which comes to a halt."""

    def write(batch, number):
        if number != told.get("stop_in"):
            sink(batch, number)
            return
        if told["stop_at"] == "statement":
            stop_in_statements(sink, told)
        sink(batch, number)
        halt(told)

    return write


def stop_in_statements(sink, told):
    """After the first statement that changes the table, before the transaction ends."""
    database = type(sink.database)
    merge = database.merge

    def halting(*arguments, **options):
        first, *_ = merge(*arguments, **options)
        yield first
        halt(told)

    database.merge = halting


def run(told, sink):
    spark = start_spark()
    rows = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(told["rows"])
    query = (
        rows.transform(SESSIONS)
        .writeStream.foreachBatch(stopping(sink, told))
        .option("checkpointLocation", told["checkpoint"])
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    said = json.loads(sys.argv[1])
    run(said, bm.sinks.sql(said["uri"], "sessions", keep_deleted=said["keep_deleted"]))
