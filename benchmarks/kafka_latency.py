"""Latency from one Kafka topic to another one: the source and the sink of ``latency.py --kafka``.

A producer, a process of its own, sends each row when it arrives; its creation is a header of the record. The query writes its panes to
a topic whose records the broker stamps when it appends them. A row's latency is from its creation to the first pane that counts it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pyspark
from arrivals import SECOND_US, Load
from latency import result_of
from numpy.typing import NDArray
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

sys.path.insert(0, str(Path(__file__).parents[1]))

from tools.servers import topics
from tools.servers.kafka import FOLDER, Broker

_SLEEP_SECONDS = 0.002


@contextmanager
def broker() -> Iterator[str]:
    """A broker's address, while it runs."""
    server = Broker()
    try:
        yield server.address
    finally:
        server.stop()


def settings() -> dict[str, str]:
    """A session's, by which it has Spark's Kafka connector."""
    package = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}"
    return {"spark.jars.packages": package, "spark.jars.ivy": str(FOLDER / "spark")}


def run(
    spark: SparkSession, said: Mapping[str, Any], steps: Sequence[tuple[float, int]]
) -> tuple[Load, NDArray[np.int64], NDArray[np.int64]]:
    """Run a program until it has read all rows, or is too far behind: when rows were created, and how long until their panes."""
    address, number = said["kafka"], time.time_ns()
    source, sink = f"rows-{number}", f"panes-{number}"
    topics.create(address, source, cleanup="delete")
    topics.create(address, sink, cleanup="delete", settings={"message.timestamp.type": "LogAppendTime"})
    read = spark.readStream.format("kafka").option("kafka.bootstrap.servers", address).option("subscribe", source)
    records = read.option("startingOffsets", "earliest").option("includeHeaders", "true").load()
    created = F.col("headers")[0]["value"].cast("string").cast("bigint").alias("created_us")
    result, mode = result_of(
        said["program"], records.select(created, F.col("key").cast("string").cast("bigint").alias("k"))
    )
    panes = result.select(F.col("k").cast("string").alias("key"), F.to_json(F.struct("k", "newest")).alias("value"))
    load = Load.soon(steps)
    with tempfile.TemporaryDirectory(prefix="beamish-latency-", ignore_cleanup_errors=True) as checkpoint:
        writer = panes.writeStream.format("kafka").option("kafka.bootstrap.servers", address).option("topic", sink)
        writer = writer.outputMode(mode).option("checkpointLocation", checkpoint)
        query = writer.trigger(processingTime=f"{said['trigger']} seconds").start()
        asked = json.dumps({"load": attrs.asdict(load), "broker": address, "topic": source})
        subprocess.run([sys.executable, __file__, asked], check=True)
        deadline = time.monotonic() + said["behind"]
        while query.isActive and _is_behind(query.lastProgress) and time.monotonic() < deadline:
            time.sleep(0.5)
        query.stop()
        if query.exception() is not None:
            raise SystemExit(str(query.exception()))
    return (load, *_latencies(load, list(topics.read(address, sink))))


def _is_behind(progress: Mapping[str, Any] | None) -> bool:
    return progress is None or float(progress["sources"][0]["metrics"].get("maxOffsetsBehindLatest", 1)) > 0


def _latencies(load: Load, panes: Sequence[topics.Record]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """When rows were created, and how long until the first pane of their key with a row that is not older; of rows that have one."""
    values = [json.loads(record.value or "") for record in panes]
    keys, newest = (np.array([value[name] for value in values], np.int64) for name in ("k", "newest"))
    came_us = np.array([record.timestamp_ms for record in panes], np.int64) * 1000
    order = np.lexsort((came_us, newest, keys))
    keys, newest, came_us = keys[order], newest[order], came_us[order]
    at_us, of_keys = load.arrivals(load.bounds_us[0], load.bounds_us[-1])
    span = load.bounds_us[-1] - load.begin_us + SECOND_US
    found = np.searchsorted(keys * span + newest - load.begin_us, of_keys * span + at_us - load.begin_us)
    has = found < len(keys)
    has[has] = keys[found[has]] == of_keys[has]
    return at_us[has], came_us[found[has]] - at_us[has]


def produce(load: Load, address: str, topic: str) -> None:
    """Send each row when it arrives."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": address, "queue.buffering.max.messages": 2_000_000})
    sent_us, end_us = load.begin_us, load.bounds_us[-1]
    while sent_us < end_us:
        now_us = max(sent_us, min(time.time_ns() // 1000, end_us))
        for at_us, key in zip(*(column.tolist() for column in load.arrivals(sent_us, now_us)), strict=True):
            text = str(key)
            producer.produce(topic, key=text, value=text, headers=[("created_us", str(at_us))])
        producer.poll(0)
        sent_us = now_us
        time.sleep(_SLEEP_SECONDS)
    if producer.flush(60):
        raise ConnectionError(f"rows were not delivered to {topic}")


if __name__ == "__main__":
    asked = json.loads(sys.argv[1])
    produce(Load(**asked["load"]), asked["broker"], asked["topic"])
