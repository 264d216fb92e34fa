"""A session with its checkpoint on an object store: ``python -m tests.s3.query '{...}'``; see test_s3.py, which runs it.

``parts`` are the calls to make, with ``checkpoint``. Rows are files, one a batch; the output of batch N is ``out/N.json``.
``kill_after`` seconds after the start of batch ``kill_in`` the file ``halted`` is made.
"""

import json
import sys
import threading
from collections import Counter
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import beamish as bm
from tests.servers.query import SCHEMA, SESSIONS


def session(settings):
    builder = SparkSession.builder.master("local[2]").config(
        "spark.sql.streaming.stateStore.providerClass",
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    )
    own = {"spark.sql.shuffle.partitions": 2, "spark.ui.enabled": "false", "spark.sql.session.timeZone": "UTC"}
    return builder.config(map=own | settings).getOrCreate()


def rows(spark, told):
    return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(told["rows"])


def run(spark, told):
    out = Path(told["out"])
    out.mkdir(exist_ok=True)

    def write(batch, number):
        if number == told.get("kill_in"):
            threading.Timer(told["kill_after"], Path(told["halted"]).touch).start()
        lines = [row.json for row in batch.select(F.to_json(F.struct("*")).alias("json")).collect()]
        new = out / f".{number}"
        new.write_text("\n".join(lines))
        new.replace(out / f"{number}.json")

    panes = SESSIONS.apply(rows(spark, told), shards=told["shards"], checkpoint=told["checkpoint"])
    writer = panes.writeStream.foreachBatch(write).option("checkpointLocation", told["checkpoint"])
    writer.trigger(availableNow=True).start().awaitTermination()


def inspect(spark, told):
    of = bm.inspect(spark, told["checkpoint"])
    (stage,) = of.stages().collect()
    assert stage.kept_windows == len(live(told["out"]))
    assert of.windows(key={"team": "red"}).count() == sum(team == "red" for team, *_ in live(told["out"]))
    why = of.why(key={"team": "red"}, window=5)
    assert "red" in why, why
    print(of, why)


def check_upgrade(spark, told):
    for pipeline, ok in ((SESSIONS, True), (SESSIONS.window(bm.Sessions("20 seconds")), False)):
        assert bm.check_upgrade(spark, told["checkpoint"], pipeline).ok is ok


def migrate(spark, told):
    print(bm.migrate(spark, told["checkpoint"], told["to"], SESSIONS, shards=3))


def live(out):
    """(team, start, end, total, plays) of each live session, sorted."""
    found = Counter()
    for file in Path(out).glob("*.json"):
        for line in file.read_text().splitlines():
            row = json.loads(line)
            found[_session(row)] += -1 if row["pane"]["kind"] == "RETRACTION" else 1
    assert set(found.values()) <= {0, 1}
    return sorted(found.elements(), key=repr)


def _session(row):
    start, end = (_seconds(row["window"][side]) for side in ("start", "end"))
    return row.get("team"), start, end, row["total"], row["plays"]


def _seconds(text):
    from datetime import datetime

    return int(datetime.fromisoformat(text).timestamp())


def main(told):
    spark = session(told["settings"])
    for part in told["parts"]:
        globals()[part](spark, told)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
