"""The program of the peer Spark: cases as JSON lines in, rows as JSON lines out. Some queries run at a time, each in a thread."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

QUERIES = 4
"""Queries that run at a time."""
Case = Mapping[str, Any]


def _span(microseconds: int) -> str:
    return f"{microseconds} microseconds"


def _query(case: Case, rows: DataFrame, right: DataFrame) -> DataFrame:
    """The query of a case; all times in its result are in microseconds."""
    match case["kind"]:
        case "window" | "updates" | "session":
            window = _window(case)
            groups = rows.groupBy("key", window.alias("w")).agg(F.sort_array(F.collect_list("n")).alias("rows"))
            return groups.select("key", F.unix_micros("w.start"), F.unix_micros("w.end"), "rows")
        case "first":
            return rows.dropDuplicatesWithinWatermark(["key"]).select("key", "n")
    left = rows.alias("l")
    before, after = (F.expr(f"interval {_span(case[side])}") for side in ("before", "after"))
    near = F.col("r.ts").between(F.col("l.ts") - before, F.col("l.ts") + after)
    return left.join(right.alias("r"), (F.col("l.key") == F.col("r.key")) & near, case["how"]).select("l.n", "r.n")


def _window(case: Case) -> Column:
    if case["kind"] == "session":
        return F.session_window("ts", _span(case["gap"]))
    return F.window("ts", _span(case["size"]), _span(case["period"]), _span(case["offset"] % case["period"]))


def _read(spark: SparkSession, folder: Path, case: Case) -> DataFrame:
    """Rows of an input, a file per batch."""
    lines = spark.readStream.schema("ts long, key string, n long").option("maxFilesPerTrigger", 1).json(str(folder))
    return lines.withColumn("ts", F.timestamp_micros("ts")).withWatermark("ts", _span(case["delay"]))


def answer(spark: SparkSession, case: Case) -> dict[str, Any]:
    """The rows of a case, each with its batch."""
    found: list[list[Any]] = []

    def note(batch: DataFrame, number: int) -> None:
        found.extend([number, *row] for row in batch.collect())

    with tempfile.TemporaryDirectory(prefix="beamish-spark-") as name:
        folder = Path(name)
        for number, batch in enumerate(case["batches"]):
            for side in ("left", "right"):
                file = folder / side / f"{number:04}.json"
                file.parent.mkdir(exist_ok=True)
                file.write_text("\n".join(json.dumps(row) for row in batch if row["input"] == side))
                os.utime(file, (1_700_000_000 + number,) * 2)
        inputs = (_read(spark, folder / side, case) for side in ("left", "right"))
        writer = _query(case, *inputs).writeStream.outputMode("update" if case["kind"] == "updates" else "append")
        writer = writer.foreachBatch(note).option("checkpointLocation", str(folder / "checkpoint"))
        writer.trigger(availableNow=True).start().awaitTermination()
    return {"rows": found}


def _answer(spark: SparkSession, line: str) -> str:
    case = json.loads(line)
    try:
        return json.dumps(answer(spark, case))
    except Exception as error:  # noqa: BLE001 - whatever Spark says
        return json.dumps({"failed": str(error).partition("\n")[0]})


def _print(answers: SimpleQueue[Future[str]]) -> None:
    while True:
        print(answers.get().result(), flush=True)


def main() -> None:
    """Answer all lines, in order."""
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.sql.shuffle.partitions", 1)
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "OFF")
        .getOrCreate()
    )
    answers: SimpleQueue[Future[str]] = SimpleQueue()
    Thread(target=_print, args=(answers,), daemon=True).start()
    with ThreadPoolExecutor(QUERIES) as pool:
        for line in sys.stdin:
            answers.put(pool.submit(_answer, spark, line))


if __name__ == "__main__":
    main()
