"""One query once, in a process of its own; prints its measurements, and its answer if that is asked for, as a line of JSON.

    python -m benchmarks.nexmark.one_query '{"system": "beamish", "query": "q5", "folder": "build/nexmark/10000000-1", "answer": false}'

A micro-batch is a file of each input. Measured are the batches after the first three quarters, from the first to the last of them; the
start of the query is apart. Without the answer the sink is Spark's noop.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from one_run import session
from processes import cpu_seconds, descendants, peak_mb
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

import beamish as bm
from beamish.script import panes_from_table
from beamish.spark import bind
from benchmarks.nexmark import answers, on_beamish, on_spark
from benchmarks.nexmark.events import KINDS, Settings

_CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
_WARM = 0.75


def streams(spark: SparkSession, folder: Path) -> dict[str, DataFrame]:
    """The inputs, a file of each per batch, in order."""
    found = {}
    for kind in KINDS:
        at = str(folder / kind)
        schema = spark.read.parquet(at).schema
        found[kind] = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(at)
    return found


def result(said: Mapping[str, Any], settings: Settings, inputs: dict[str, DataFrame]) -> tuple[DataFrame, Any]:
    """The output of a query; of beamish also what it is bound to."""
    if said["system"] == "spark":
        return {**on_spark.QUERIES, **on_spark.REFUSED}[said["query"]](on_spark.Inputs(**inputs)), None
    pipeline = on_beamish.queries(settings.longest_auction_ms)[said["query"]]
    names = [source.name for source in pipeline.flow.sources]
    own = {"df": inputs["bids"]} if names == [None] else {str(name): inputs[str(name)] for name in names}
    df = own.pop("df", None)
    return pipeline.apply(df, **own), bind(pipeline.flow, df, own).operator.gives


def run(said: Mapping[str, Any]) -> dict[str, Any]:
    """Run the query to its end."""
    folder = Path(said["folder"]).resolve()
    about = json.loads((folder / "about.json").read_text("utf-8"))
    settings = Settings(*(about[name] for name in ("events", "seed", "rate", "group")))
    begun = time.perf_counter()
    spark = session("local[2]", {_CHANGELOG: "true"})
    inputs, rows, panes = streams(spark, folder), list[Any](), list[bm.Pane]()
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="nexmark-") as checkpoint:
        try:
            output, gives = result(said, settings, inputs)
            writer = output.writeStream.option("checkpointLocation", checkpoint)
            if not said.get("answer"):
                writer = writer.format("noop")
            elif gives is None:
                writer = writer.foreachBatch(lambda batch, _: rows.extend(batch.collect()))
            else:
                writer = writer.foreachBatch(
                    lambda batch, _: panes.extend(panes_from_table(batch.toArrow().cast(gives.schema), gives))
                )
            query = writer.outputMode("append").trigger(availableNow=True).start()
        except AnalysisException as error:
            return {"refused": error.getCondition() or str(error).partition("\n")[0]}
        peak, done = [0.0], threading.Event()
        watch = threading.Thread(target=_watch, args=(peak, done))
        watch.start()
        try:
            query.awaitTermination()
        finally:
            done.set()
            watch.join()
        cpu = cpu_seconds()
        found: dict[str, Any] = {
            "session_seconds": started - begun,
            "wall_seconds": time.perf_counter() - started,
            "cpu_seconds": cpu,
            "peak_mb": peak[0],
            **_figures(query.recentProgress),
        }
    if said.get("answer"):
        own = answers.of_panes(said["query"], bm.live(panes)) if panes else answers.of_spark(said["query"], rows)
        found["answer"] = own
    return found


def _watch(peak: list[float], done: threading.Event) -> None:
    """Keep the most memory that all processes have together."""
    while not done.wait(1):
        peak[0] = max(peak[0], sum(peak_mb(pid) for pid, _ in [(os.getpid(), ""), *descendants(os.getpid())]))


def _figures(progress: list[dict[str, Any]]) -> dict[str, Any]:
    """Events per second of the batches after the first three quarters, with the batches without rows between them."""
    with_rows = [i for i, batch in enumerate(progress) if batch["numInputRows"]]
    first = with_rows[int(len(with_rows) * _WARM)]
    measured = [batch for batch in progress[first : with_rows[-1] + 1] if "addBatch" in batch["durationMs"]]
    events = sum(batch["numInputRows"] for batch in measured)
    ms = sum(batch["durationMs"]["triggerExecution"] for batch in measured)
    states = progress[-1]["stateOperators"]
    return {
        "events": sum(batch["numInputRows"] for batch in progress),
        "events_per_second": events / max(ms, 1) * 1_000,
        "state_rows": max(sum(state["numRowsTotal"] for state in batch["stateOperators"]) for batch in progress),
        "state_bytes": sum(state["customMetrics"].get("rocksdbSstFileSize", 0) for state in states),
    }


if __name__ == "__main__":
    print(json.dumps(run(json.loads(sys.argv[1]))))
