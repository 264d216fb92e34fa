"""One query once on Spark, in a process of its own; prints its measurements, and its answer if that is asked for, as a line of JSON.

    python -m benchmarks.nexmark.one_query '{"system": "beamish", "query": "q5", "folder": "build/nexmark/10000000-1", "answer": false}'

Systems: ``beamish``; ``sql``, the same from Flink's text; ``spark``, Spark's own operators. A micro-batch is a file of each input. Measured are the batches after the first three quarters, from the first to the last of them; the
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
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

import beamish as bm
from beamish.errors import SqlError
from beamish.script import panes_from_table
from beamish.spark import bind
from benchmarks.nexmark import answers, on_beamish, on_spark, on_sql
from benchmarks.nexmark.events import KINDS, Settings, rows_read
from benchmarks.nexmark.on_flink import QUERIES, TABLES, WARM

_CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"


def streams(spark: SparkSession, folder: Path, query: str) -> dict[str, DataFrame]:
    """The inputs with the columns that a query reads, a file of each per batch, in order; of q12 with the time at which a bid arrives."""
    found, reads = {}, {TABLES[table]: columns for table, columns in QUERIES[query].columns.items()}
    for kind in KINDS:
        at = str(folder / kind)
        whole = spark.read.parquet(at)
        schema = whole.select(*reads.get(kind, whole.columns)).schema
        found[kind] = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(at)
    return {**found, "bids": found["bids"].withColumn("p_time", F.current_timestamp())} if query == "q12" else found


def result(said: Mapping[str, Any], settings: Settings, inputs: dict[str, DataFrame]) -> tuple[DataFrame, Any]:
    """The output of a query; of a pipeline also the rows that it gives."""
    if said["system"] == "spark":
        return {**on_spark.QUERIES, **on_spark.REFUSED}[said["query"]](on_spark.Inputs(**inputs)), None
    if said["system"] == "sql":
        query = on_sql.query(said["query"])
        streams = [source.name for source in query.pipeline.flow.sources]
        if streams == [None]:
            return query.apply(inputs["bids"]), None
        return query.apply(**{str(name): inputs[TABLES[str(name)]] for name in streams}), None
    every = on_beamish.late_queries() if said.get("late") else on_beamish.queries(settings.longest_auction_ms)
    pipeline = every[said["query"]]
    names = [source.name for source in pipeline.flow.sources]
    own = {"df": inputs["bids"]} if names == [None] else {str(name): inputs[str(name)] for name in names}
    df = own.pop("df", None)
    return pipeline.apply(df, **own), bind(pipeline.flow, df, own).operator.gives


def changes(output: DataFrame) -> DataFrame:
    """The changes of a statement's output, as Flink's: their kinds, then the SELECT list."""
    kind: Column = F.when(F.col("pane.kind") == "RETRACTION", "-D").otherwise("+I")
    return output.select(kind, *output.columns[: output.columns.index("window")])


def run(said: Mapping[str, Any]) -> dict[str, Any]:
    """Run the query to its end."""
    folder = Path(said["folder"]).resolve()
    about = json.loads((folder / "about.json").read_text("utf-8"))
    settings = Settings(*(about[name] for name in ("events", "seed", "rate", "group")))
    begun = time.perf_counter()
    spark = session("local[2]", {_CHANGELOG: "true"})
    inputs, rows, panes = streams(spark, folder, said["query"]), list[Any](), list[bm.Pane]()
    updates = said["system"] == "spark" and said["query"] in on_spark.UPDATES
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="nexmark-") as checkpoint:
        try:
            output, gives = result(said, settings, inputs)
            if said.get("answer") and said["system"] == "sql":
                output = changes(output)
            writer = output.writeStream.option("checkpointLocation", checkpoint)
            if not said.get("answer"):
                writer = writer.format("noop")
            elif gives is None:
                writer = writer.foreachBatch(lambda batch, _: rows.extend(batch.collect()))
            else:
                writer = writer.foreachBatch(
                    lambda batch, _: panes.extend(panes_from_table(batch.toArrow().cast(gives.schema), gives))
                )
            query = writer.outputMode("update" if updates else "append").trigger(availableNow=True).start()
        except SqlError as error:
            return {"refused": f"SqlError: {str(error).partition(chr(10))[0]}"}
        except AnalysisException as error:
            if error.getCondition() not in on_spark.REFUSALS:
                raise
            return {"refused": error.getCondition()}
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
            **_figures(query.recentProgress, rows_read(said["query"], folder)),
        }
    if said.get("answer"):
        found["answer"] = _answer(said, panes, rows)
    return found


def _answer(said: Mapping[str, Any], panes: list[bm.Pane], rows: list[Any]) -> list[answers.Row]:
    match said["system"]:
        case "beamish":
            return answers.of_panes(said["query"], bm.live(panes))
        case "sql":
            return answers.of_changes(said["query"], rows)
    return answers.of_spark(said["query"], rows)


def _watch(peak: list[float], done: threading.Event) -> None:
    """Keep the most memory that all processes have together."""
    while not done.wait(1):
        peak[0] = max(peak[0], sum(peak_mb(pid) for pid, _ in [(os.getpid(), ""), *descendants(os.getpid())]))


def _figures(progress: list[dict[str, Any]], read: int) -> dict[str, Any]:
    """Events per second of the batches after the first three quarters, with the batches without rows between them.

    ``read``: all events that the query reads. Spark's number of rows counts a stream twice that a plan names twice.
    """
    with_rows = [i for i, batch in enumerate(progress) if batch["numInputRows"]]
    first = with_rows[int(len(with_rows) * WARM)]
    measured = [batch for batch in progress[first : with_rows[-1] + 1] if "addBatch" in batch["durationMs"]]
    times = sum(batch["numInputRows"] for batch in progress) / read
    events = sum(batch["numInputRows"] for batch in measured) / times
    ms = sum(batch["durationMs"]["triggerExecution"] for batch in measured)
    states = progress[-1]["stateOperators"]
    return {
        "events": read,
        "events_per_second": events / max(ms, 1) * 1_000,
        "state_rows": max(sum(state["numRowsTotal"] for state in batch["stateOperators"]) for batch in progress),
        "state_bytes": sum(state["customMetrics"].get("rocksdbSstFileSize", 0) for state in states),
    }


if __name__ == "__main__":
    print(json.dumps(run(json.loads(sys.argv[1]))))
