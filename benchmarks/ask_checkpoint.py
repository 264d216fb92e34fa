"""Lookups in a checkpoint of a million windows: seconds, and the number of segments read.

    python benchmarks/ask_checkpoint.py [--keys 1000] [--windows 1000] [--shards 8]

Each key has this many stored windows of an hour. Lookups: one key and one hour, that hour of all keys, all hours of the key.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

from one_run import session
from pyspark.sql import SparkSession

import beamish as bm
from beamish.accumulations import Count, Sum
from beamish.contract.at_rest import Asked, Keeps
from beamish.spark.checkpoint.entries import entries_of, is_note, operators, stores_of
from beamish.spark.rows.pack import shard_ids

HOUR = 3600
PIPELINE = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness(0))
    .key_by("k")
    .window(bm.FixedWindows(HOUR))
    .allowed_lateness("4000 days")
    .accumulating()
    .accumulate(n=Count(), s=Sum("x"))
)


def written(spark: SparkSession, folder: Path, keys: int, windows: int, shards: int) -> str:
    """The checkpoint of a query over a row of each key in each hour."""
    rows = spark.range(keys * windows).selectExpr(
        f"timestamp_seconds(id div {keys} * {HOUR}) AS ts", f"concat('key ', id % {keys}) AS k", "id AS x"
    )
    rows.coalesce(1).write.parquet(str(folder / "rows"))
    stream = spark.readStream.schema(rows.schema).parquet(str(folder / "rows"))
    writer = PIPELINE.apply(stream, shards=shards).writeStream.format("parquet")
    checkpoint = str(folder / "checkpoint")
    writer = writer.option("checkpointLocation", checkpoint).option("path", str(folder / "out"))
    writer.trigger(availableNow=True).start().awaitTermination()
    return checkpoint


def main() -> None:
    """Write, look up and print."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--keys", type=int, default=1000)
    parser.add_argument("--windows", type=int, default=1000)
    parser.add_argument("--shards", type=int, default=8)
    said = parser.parse_args()
    spark = session("local[2]")
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = written(spark, Path(folder), said.keys, said.windows, said.shards)
        hour = said.windows // 2 * HOUR
        asked: dict[str, dict[str, Any]] = {
            "one key, one hour": {"start": hour, "end": hour + HOUR, "key": {"k": "key 7"}},
            "all keys, one hour": {"start": hour, "end": hour + HOUR},
            "one key, all hours": {"key": {"k": "key 7"}},
            "all": {},
        }
        for what, question in asked.items():
            begin = time.perf_counter()
            found = PIPELINE.state(spark, checkpoint).windows(**question).count()
            seconds = time.perf_counter() - begin
            read, there = segments(spark, checkpoint, question)
            print(f"{what:20} {found:9,} windows in {seconds:6.1f} s, {read:,} of {there:,} segments read", flush=True)
    spark.stop()


def segments(spark: SparkSession, checkpoint: str, question: dict[str, Any]) -> tuple[int, int]:
    """Number of segments read by a lookup, and of all segments."""
    entries = entries_of(spark, checkpoint, None, operators(spark, checkpoint)[0])
    there = entries.where("name RLIKE '^s-?[0-9]+$'").count()
    notes = stores_of(entries.collect(), is_note)
    (below,) = PIPELINE.flow.completed.flows
    span_us = (question.get("start", 0) * 1_000_000, question.get("end", 10**9) * 1_000_000)
    asked = Asked(Keeps.WINDOWS, question.get("key"), span_us)
    at_rest = below.stage.at_rest(below.takes, list(notes.values()), asked.what, shards=len(notes))
    answer = at_rest.answer(asked)
    shards = shard_ids(len(notes))
    asked_of = [store for shard, store in notes.items() if answer.shard is None or shard == shards[answer.shard]]
    read = [name for store in asked_of for name in answer.needs(store) or () if name.startswith("s")]
    return len(read), there


if __name__ == "__main__":
    main()
