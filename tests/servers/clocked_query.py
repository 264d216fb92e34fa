"""A query while the clock of its machine is set: ``python -m tests.servers.clocked_query '{...}'``; see test_clock.py, which runs it.

The JVM and all processes that it starts have libfaketime loaded (under it ``time.sleep`` of the process that starts them fails), which reads
from the file ``faked`` how far the clock is off; rows are stamped with the true time. ``steps`` are [seconds, how far the clock is off in them].
It prints what was counted, and the heartbeats.
"""

import json
import os
import sys
import threading
import time
from collections import Counter
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

import beamish as bm
from beamish.accumulations import Count
from beamish.spark.checkpoint.stored_query import is_heartbeat
from beamish.triggers import AfterProcessingTime, AfterWatermark, Repeatedly
from tests.conftest import start_spark

WATERMARKS = {
    "lag": bm.ProcessingTimeLag("10 seconds"),
    "idle": bm.BoundedOutOfOrderness("10 seconds", max_future="30 seconds", idle_timeout="2 seconds"),
}
PIPELINE = (
    bm.Pipeline()
    .window(bm.FixedWindows("2 seconds"))
    .trigger(AfterWatermark(early=Repeatedly(AfterProcessingTime("1 second"))))
    .discarding()
    .with_dropped()
    .accumulate(n=Count())
)


def set_clock(faked, off):
    """Set the clock of all processes; what reads the file meanwhile finds it whole."""
    new = Path(f"{faked}.new")
    new.write_text(f"{off:+d}")
    new.replace(faked)


def write_rows(folder, ended, pauses):
    """A row each half second; with pauses, in every other five seconds."""
    for number in count(len(list(folder.iterdir()))):
        if ended.wait(5 if pauses and number % 10 == 9 else 0.5):
            return
        line = json.dumps({"ts": datetime.now(UTC).isoformat()})
        hidden = folder / f".{number}"
        hidden.write_text(line)
        hidden.rename(folder / f"{number:06}.json")


def main(told):
    ended, folder = threading.Event(), Path(told["folder"])
    rows, checkpoint, counted = folder / "rows", folder / "checkpoint", [Counter()]
    rows.mkdir(exist_ok=True)
    os.environ.update(told["environment"])
    spark = start_spark()
    spark.conf.set("spark.sql.streaming.minBatchesToRetain", 1000)
    panes = PIPELINE.event_time("ts", WATERMARKS[told["watermark"]]).apply(
        spark.readStream.schema("ts timestamp").json(str(rows))
    )

    def note(batch, _):
        for pane in batch.select("pane.*").collect():
            counted[-1][pane.timing if pane.kind == "PANE" else pane.kind] += 1

    writer = threading.Thread(target=write_rows, args=(rows, ended, told["watermark"] == "idle"))
    query = panes.writeStream.foreachBatch(note).option("checkpointLocation", str(checkpoint)).start()
    while query.lastProgress is None:
        time.sleep(0.1)
    writer.start()
    for seconds, off in told["steps"]:
        set_clock(told["faked"], off)
        counted.append(Counter())
        time.sleep(seconds)
    ended.set()
    writer.join()
    query.stop()
    found = {"panes": counted[1:], "beats": list(beats(checkpoint / "offsets")), "last": time.time()}
    print("COUNTED", json.dumps(found), flush=True)


def beats(offsets):
    """The clock of each batch, in seconds."""
    for number in sorted(int(path.name) for path in offsets.iterdir() if path.name.isdigit()):
        lines = (offsets / str(number)).read_text().split("\n")
        yield from (json.loads(line)["clock_us"] / 1e6 for line in lines if is_heartbeat(line))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
