"""The program of the peer Spark: cases as JSON lines in, a blank line at their end; rows as JSON lines out.

A query answers all cases with the same options and the same clock. Some queries run at a time, each in a thread.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from peers.peer import JAVA_OPTIONS

QUERIES = 4
"""Queries that run at a time."""
SETTINGS: dict[str, Any] = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.streaming.checkpointFileManagerClass": "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager",
    "spark.driver.extraJavaOptions": " ".join((*JAVA_OPTIONS, "-Djdk.lang.Process.launchMechanism=VFORK")),
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
}
"""Queries are many and short: compiling them costs more than interpreting, and the default file manager starts programs for each file of a
checkpoint."""
Case = Mapping[str, Any]


def _span(microseconds: int) -> str:
    return f"{microseconds} microseconds"


def _query(options: Case, rows: DataFrame, right: DataFrame) -> DataFrame:
    """The query of some cases; all times in its result are in microseconds."""
    match options["kind"]:
        case "window" | "updates" | "session":
            groups = rows.groupBy("case", "key", _window(options).alias("w"))
            found = groups.agg(F.sort_array(F.collect_list("n")).alias("rows"))
            return found.select("case", "key", F.unix_micros("w.start"), F.unix_micros("w.end"), "rows")
        case "first":
            return rows.dropDuplicatesWithinWatermark(["case", "key"]).select("case", "key", "n")
    if options["kind"] == "window_join":
        rows, right = (side.withColumn("w", _window(options)) for side in (rows, right))
        near = F.col("l.w") == F.col("r.w")
    else:
        before, after = (F.expr(f"interval {_span(options[side])}") for side in ("before", "after"))
        near = F.col("r.ts").between(F.col("l.ts") - before, F.col("l.ts") + after)
    same = (F.col("l.case") == F.col("r.case")) & (F.col("l.key") == F.col("r.key"))
    pairs = rows.alias("l").join(right.alias("r"), same & near, options["how"])
    return pairs.select(F.coalesce("l.case", "r.case"), "l.n", "r.n")


def _window(case: Case) -> Column:
    if case["kind"] == "session":
        return F.session_window("ts", _span(case["gap"]))
    return F.window("ts", _span(case["size"]), _span(case["period"]), _span(case["offset"] % case["period"]))


def _read(spark: SparkSession, folder: Path, case: Case) -> DataFrame:
    """Rows of an input, a file per batch."""
    lines = (
        spark.readStream.schema("case long, ts long, key string, n long")
        .option("maxFilesPerTrigger", 1)
        .json(str(folder))
    )
    return lines.withColumn("ts", F.timestamp_micros("ts")).withWatermark("ts", _span(case["delay"]))


def answer(
    spark: SparkSession, folder: Path, options: Case, batches: Sequence[Sequence[Case]]
) -> dict[int, list[list[Any]]]:
    """The rows of some cases, by case, each with its batch. ``folder`` is for input and checkpoint."""
    found: dict[int, list[list[Any]]] = defaultdict(list)

    def note(batch: DataFrame, number: int) -> None:
        for case, *row in batch.collect():
            found[case].append([number, *row])

    for number, batch in enumerate(batches):
        for side in ("left", "right"):
            file = folder / side / f"{number:04}.json"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("\n".join(json.dumps(row) for row in batch if row["input"] == side))
            os.utime(file, (1_700_000_000 + number,) * 2)
    inputs = (_read(spark, folder / side, options) for side in ("left", "right"))
    writer = _query(options, *inputs).writeStream.outputMode("update" if options["kind"] == "updates" else "append")
    writer = writer.foreachBatch(note).option("checkpointLocation", str(folder / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()
    return found


def _answers(spark: SparkSession, folder: Path, cases: Mapping[int, Case]) -> dict[int, str]:
    """The answers to cases with the same options and the same clock, by case."""
    name, first = next(iter(cases.items()))
    # Spark filters rows with null in the condition of a join before they move the watermark.
    rows = [[{**row, "case": -1} for row in clock] for clock in first["clock"]]
    for number, case in cases.items():
        for batch, own in zip(rows, case["batches"], strict=True):
            batch += [{**row, "case": number} for row in own]
    try:
        found = answer(spark, folder / str(name), first["options"], rows)
    except Exception as error:  # noqa: BLE001 - whatever Spark says
        return dict.fromkeys(cases, json.dumps({"failed": str(error).partition("\n")[0]}))
    return {number: json.dumps({"rows": found.get(number, [])}) for number in cases}


Answers = Callable[[SparkSession, Path, Mapping[int, Case]], dict[int, str]]


def main(answers: Answers = _answers) -> None:
    """Answer all lines, in order, those with the same options and the same clock together."""
    spark = SparkSession.builder.master("local[2]").config(map=SETTINGS).getOrCreate()
    groups: dict[str, dict[int, Case]] = defaultdict(dict)
    # The folder outlives all queries: Spark still writes into the checkpoint of one that has ended.
    with tempfile.TemporaryDirectory(prefix="beamish-spark-") as folder, spark, ThreadPoolExecutor(QUERIES) as pool:
        for number, line in enumerate(sys.stdin):
            if line.strip():
                case = json.loads(line)
                groups[json.dumps([case["options"], case["clock"]])][number] = case
                continue
            done = pool.map(lambda cases: answers(spark, Path(folder), cases), groups.values())
            for _, one in sorted(chain.from_iterable(found.items() for found in done)):
                print(one, flush=True)
            groups.clear()


if __name__ == "__main__":
    main()
