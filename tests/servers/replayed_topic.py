"""Run a query over a topic, record by record, and replay it: ``python -m tests.servers.replayed_topic '{"servers": ...}'``."""

from __future__ import annotations

import json
import sys
from typing import Any

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import functions as F

import beamish as bm
from beamish.accumulations import Count, Sum
from tests.servers.lake import session

TOPIC = "replayed"
SERVERS = json.loads(sys.argv[1])["servers"] if len(sys.argv) > 1 else ""
scores = (
    bm.Pipeline()
    .event_time("at", bm.BoundedOutOfOrderness(0))
    .key_by("team")
    .window(bm.FixedWindows(60))
    .accumulate(total=Sum("points"), n=Count())
)


def plays(spark: Any) -> Any:
    """The stream of the job."""
    options = {"kafka.bootstrap.servers": SERVERS, "subscribe": TOPIC, "startingOffsets": "earliest"}
    raw = spark.readStream.format("kafka").options(**options).option("maxOffsetsPerTrigger", 2).load()
    parsed = raw.select(F.from_json(F.col("value").cast("string"), "team string, second long, points int").alias("p"))
    return parsed.select("p.team", F.timestamp_seconds("p.second").alias("at"), "p.points")


def send(rows: list[tuple[str, int, int]]) -> None:
    """Write records, keyed by team."""
    producer = Producer({"bootstrap.servers": SERVERS})
    for team, second, points in rows:
        producer.produce(TOPIC, json.dumps({"team": team, "second": second, "points": points}), team)
    producer.flush()


def main(folder: str, settings: dict[str, str]) -> None:
    """Run and replay."""
    admin = AdminClient({"bootstrap.servers": SERVERS})
    made = admin.create_topics([NewTopic(TOPIC, 2, 1, config={"cleanup.policy": "delete"})])
    made[TOPIC].result()
    send(
        [
            ("red", 1_000_000, 1),
            ("blue", 1_000_001, 2),
            ("red", 1_000_030, 4),
            ("blue", 1_000_120, 8),
            ("red", 1_000_200, 16),
        ]
    )
    spark = session(settings)

    def write(batch: Any, number: int) -> None:
        batch.write.mode("overwrite").parquet(f"{folder}/panes/batch={number}")

    def run() -> None:
        query = scores.apply(plays(spark)).writeStream.foreachBatch(write)
        query.option("checkpointLocation", f"{folder}/checkpoint").trigger(availableNow=True).start().awaitTermination()

    run()
    send([("red", 1_000_010, 32), ("red", 1_000_400, 64), ("blue", 1_000_401, 128)])  # the first is too late
    run()
    panes = spark.read.parquet(f"{folder}/panes").drop("batch")
    found = bm.replay(spark, f"{folder}/checkpoint", scores, key="red", input=plays, panes=panes)
    assert found.differs_in is None, found
    assert found.came, found
    assert any(pane.kind is bm.PaneKind.DROPPED for pane in found.panes), found
    exec(compile(found.test("tests.servers.replayed_topic:scores"), "test_red.py", "exec"), names := dict[str, Any]())
    names["test_replay_of_team_red"]()
    deleted = admin.delete_records([TopicPartition(TOPIC, partition, 2) for partition in (0, 1)])
    for future in deleted.values():
        try:
            future.result()
        except Exception as error:  # a partition that has fewer records  # noqa: BLE001
            print(error)
    later = bm.replay(spark, f"{folder}/checkpoint", scores, input=plays)
    assert later.batches[0] > 0, later
    assert "no longer has all rows of the batches before" in later.notes[1], later
    print("done")


if __name__ == "__main__":
    said = json.loads(sys.argv[1])
    main(said["folder"], said["settings"])
