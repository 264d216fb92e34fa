"""Changes as versions, compared with a table that each batch is merged into: ``python benchmarks/versions_by_merge.py``.

The same eight files of 100,000 changes of 10,000 keys, one per batch, in turns: ``versions("1 hour")`` into nothing, and
``foreachBatch`` that rewrites the whole table, with the ends of all versions by a window function.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from statistics import median

from data import rows_in_files
from one_run import session
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming import StreamingQuery
from pyspark.sql.window import Window

import beamish as bm

ROWS, FILES, KEYS, TURNS = 800_000, 8, 10_000, 3


def versions(changes: DataFrame, folder: str) -> StreamingQuery:
    """A table of ours; its rows go nowhere, and its state is in the checkpoint."""
    table = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness("1 minute")).key_by("k").versions("1 hour")
    writer = table.apply(changes).writeStream.format("noop").option("checkpointLocation", f"{folder}/checkpoint")
    return writer.trigger(availableNow=True).start()


def merged(changes: DataFrame, folder: str) -> StreamingQuery:
    """A table of files, rewritten in every batch."""
    spark, tables = changes.sparkSession, [""]

    def merge(batch: DataFrame, number: int) -> None:
        known = batch if not tables[-1] else spark.read.parquet(tables[-1]).drop("valid_to").unionByName(batch)
        ends = F.lead("ts").over(Window.partitionBy("k").orderBy("ts"))
        tables.append(f"{folder}/table-{number}")
        known.withColumn("valid_to", ends).write.parquet(tables[-1])

    writer = changes.writeStream.foreachBatch(merge).option("checkpointLocation", f"{folder}/checkpoint")
    return writer.trigger(availableNow=True).start()


def main() -> None:
    """Print milliseconds of each batch after the first."""
    spark, files = session("local[2]"), str(Path(rows_in_files(ROWS, FILES, KEYS)).resolve())
    found: dict[str, list[list[int]]] = {"beamish versions": [], "foreachBatch": []}
    for _ in range(TURNS):
        for (name, runs), way in zip(found.items(), (versions, merged), strict=True):
            schema = spark.read.parquet(files).schema
            changes = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(files)
            with tempfile.TemporaryDirectory(prefix="beamish-bench-") as folder:
                query = way(changes, folder)
                query.awaitTermination()
                batches = [one["durationMs"]["triggerExecution"] for one in query.recentProgress if one["numInputRows"]]
            runs.append(batches[1:])
            print(f"{name:<17} {batches}")
    ours, peer = (median(sum(run) for run in runs) for runs in found.values())
    print(f"beamish / foreachBatch, ms over {FILES - 1} batches: {ours:.0f} / {peer:.0f} = {ours / peer:.2f}")


if __name__ == "__main__":
    main()
