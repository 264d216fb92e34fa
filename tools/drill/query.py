"""The process that is killed: it runs queries to their end, each from its checkpoint.

Each has a folder: ``checkpoint``, ``out``, and ``done`` once all its rows came. So can see who watches how far it has come.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import attrs
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from tools.drill.halting import halt
from tools.drill.how import How
from tools.drill.pipelines import DRILLED
from tools.drill.source import SCHEMA, ChunkSource


@attrs.frozen
class Query:
    """A query of the drill.

    Attributes:
        name: its pipeline's, in ``DRILLED``.
        sink: "files", Spark's sink of Parquet files; "batches", a ``foreachBatch`` that writes a batch's file anew.
        source: "chunks", ours; "files", Spark's source of files.
        rows: the folder of its rows.
        folder: its own.
    """

    name: str
    sink: str
    source: str
    rows: Path
    folder: Path

    @property
    def title(self) -> str:
        """Its name in the report."""
        return f"{self.name}, {self.sink}, {self.source}"

    @property
    def checkpoint(self) -> Path:
        """Spark's folder for it."""
        return self.folder / "checkpoint"

    @property
    def out(self) -> Path:
        """The output."""
        return self.folder / "out"

    @property
    def is_done(self) -> bool:
        """Whether all its rows were processed."""
        return (self.folder / "done").exists()

    def last(self, log: str) -> int:
        """The last batch in a log of its checkpoint, "offsets" or "commits"; -1: none."""
        folder = self.checkpoint / log
        return max((int(path.name) for path in folder.glob("[0-9]*")), default=-1) if folder.exists() else -1


def session(how: How) -> SparkSession:
    """A session whose queries start fast."""
    configs = {
        "spark.sql.streaming.stateStore.providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": how.changelog,
        "spark.sql.streaming.verifyCheckpointDirectoryEmptyOnStart": how.verifies,
        "spark.driver.extraJavaOptions": f"-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=200m -XX:+UseSerialGC {how.java}",
        "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC",
        "spark.sql.shuffle.partitions": 2,
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
    }
    builder = SparkSession.builder.master(how.master).appName("beamish drill")
    for key, value in configs.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def start(spark: SparkSession, query: Query) -> Any:
    """Start a query; Spark's handle of it."""
    drilled = DRILLED[query.name]
    sides: dict[str, Any] = {side or "df": _side(spark, query, side) for side in drilled.sides}
    panes = drilled.pipeline.apply(**sides)
    query.out.mkdir(parents=True, exist_ok=True)
    writer = panes.writeStream.option("checkpointLocation", str(query.checkpoint)).trigger(availableNow=True)
    if query.sink == "files":
        return writer.format("parquet").option("path", str(query.out)).start()
    return writer.foreachBatch(_batch_writer(query)).start()


def _side(spark: SparkSession, query: Query, side: str | None) -> DataFrame:
    """The rows of one input."""
    reader = spark.readStream
    if query.source == "files":
        rows = reader.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(query.rows))
    else:
        rows = reader.format(ChunkSource.name()).options(rows=str(query.rows), query=query.name).load()
    return rows if side is None else rows.where(f"side = '{side}'")


def _batch_writer(query: Query) -> Callable[[DataFrame, int], None]:
    """Writes a batch's rows to a file of its own, overwritten on replay."""

    def write(batch: DataFrame, number: int) -> None:
        halt(query.name, "before the sink", number)
        new = query.folder / "new"
        pq.write_table(batch.toArrow(), new)
        new.rename(query.out / f"{number:04}")
        halt(query.name, "after the sink", number)

    return write


def run(spark: SparkSession, queries: Sequence[Query]) -> list[str]:
    """Run them side by side to their ends; returns errors."""
    spark.dataSource.register(ChunkSource)
    failed = []
    for query, started in [(query, start(spark, query)) for query in queries]:
        try:
            started.awaitTermination()
            (query.folder / "done").touch()
        except Exception:  # noqa: BLE001 - whatever it is, it is reported
            failed.append(f"{query.name}: {traceback.format_exc()}")
    return failed


def forked(queries: Sequence[Query], log: Path, how: How) -> int:
    """Run queries in a process of its own, with a session of Linux's of its own; gives its id. It ends with 0 if none failed."""
    process = os.fork()
    if process:
        return process
    code = 3
    try:
        os.setsid()
        with log.open("ab", buffering=0) as out:
            os.dup2(out.fileno(), 1)
            os.dup2(out.fileno(), 2)
        failed = run(session(how), queries)
        print(*failed, sep="\n", flush=True)
        code = len(failed) > 0
    except BaseException:  # noqa: BLE001 - the forked process must not go on as its parent
        traceback.print_exc()
    finally:
        os._exit(code)
