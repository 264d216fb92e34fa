"""examples/kafka_to_postgres on a cluster, its driver killed at drawn moments; exits with the differences from a batch.

Run by the Python of build/kafka on a host of the cluster, where driver, broker and database are; before, with --fetch, where Maven is.
"""

import argparse
import os
import random
import sys
import tempfile
import time
from pathlib import Path

from kafka_to_postgres import demo
from tools.servers import topics
from tools.servers.kafka import FOLDER, Broker, fetch
from tools.servers.postgresql import PostgreSql

CLICKS, BATCH = 1200, 100


def fetch_all():
    Broker().stop()
    PostgreSql().stop()
    fetch(demo.CONNECTOR, FOLDER / "spark", "org.apache.spark_spark-sql-kafka-*.jar")


def compared(address, python, submit, draw):
    """The differences between a batch and a query that was killed twice."""
    broker, postgresql = Broker(address), PostgreSql()
    with postgresql.database() as database, tempfile.TemporaryDirectory() as folder:
        run = demo.Run(broker.address, database, Path(folder), maxOffsetsPerTrigger=BATCH)
        run.python, run.submit = python, submit
        topics.send(broker.address, "clicks", demo.drawn(draw, CLICKS))
        for _ in range(2):
            process = run.start("--available-now")
            assert run.wait(process, run.batches() + draw.randrange(1, 4)), run.said()
            time.sleep(draw.uniform(0, 2))
            demo.kill(process)
        run.finish()
        return run.problems(run.clicks())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fetch", action="store_true")
    parser.add_argument("--address")
    parser.add_argument("--python", type=Path)
    parser.add_argument("--seed")
    said, submit = parser.parse_known_args()
    del os.environ["PYTHONPATH"]  # the query has only what is shipped
    if said.fetch:
        fetch_all()
    elif found := compared(said.address, said.python, submit, random.Random(said.seed)):
        sys.exit("\n".join(found))


if __name__ == "__main__":
    main()
