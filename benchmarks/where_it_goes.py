"""The phases of small batches, as measured by Spark, for several programs.

    python benchmarks/where_it_goes.py [--programs "beamish,floor of two stages,Spark update"] [--batches 100]

Batches of 2,000 rows as Q1's. All programs run in one session, each twice, and the second time counts: a JVM compiles for long, and the
first would pay for it. Medians in milliseconds of the batches after the first 15: the phases of a batch (which follow one another;
``addBatch`` is the job), what the state stores say of themselves, and the metrics of the plan's nodes (both summed over tasks, of which two
run side by side). Left out: ``time to initialize Python workers``, which for a worker that is used again counts since its last task.
"""

from __future__ import annotations

import argparse
import os
import re
import tempfile
from collections import defaultdict
from pathlib import Path
from statistics import median
from typing import Any

from data import rows_in_files
from one_run import session
from programs import PROGRAMS
from pyspark.sql import SparkSession

COLD = 15
PHASES = ("triggerExecution", "addBatch", "queryPlanning", "latestOffset", "getBatch", "walCommit", "commitOffsets")
SECONDS = {"ms": 1.0, "s": 1000.0, "m": 60_000.0}


def run(spark: SparkSession, program: str, folder: str) -> dict[str, list[float]]:
    """Run a program over the files; returns each metric's value in each batch."""
    rows = spark.readStream.schema(spark.read.parquet(folder).schema).option("maxFilesPerTrigger", 1).parquet(folder)
    result, mode = PROGRAMS[program](rows)
    before = {one.executionId() for one in _executions(spark)}
    with tempfile.TemporaryDirectory(prefix="beamish-bench-") as checkpoint:
        writer = result.writeStream.format("noop").outputMode(mode).option("checkpointLocation", checkpoint)
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        progress = [one for one in query.recentProgress if one["numInputRows"]][COLD:]
    found: dict[str, list[float]] = defaultdict(list)
    for batch in progress:
        for phase in PHASES:
            found[f"phase: {phase}"].append(batch["durationMs"].get(phase, 0))
        for name, value in _of_state(batch["stateOperators"]).items():
            found[f"state: {name}"].append(value)
    executions = [one for one in _executions(spark) if one.executionId() not in before]
    for execution in executions[COLD:]:
        for name, value in _metrics(spark, execution).items():
            found[f"plan: {name}"].append(value)
    return found


def _of_state(operators: list[dict[str, Any]]) -> dict[str, float]:
    """The times reported by stateful operators, summed."""
    total: dict[str, float] = defaultdict(float)
    for operator in operators:
        said = {**operator, **operator["customMetrics"]}
        for name, value in said.items():
            if name.endswith(("Ms", "Latency", "Millis")) and isinstance(value, (int, float)):
                total[name] += value
    return total


def _statuses(spark: SparkSession) -> Any:
    return spark._jsparkSession.sharedState().statusStore()  # type: ignore[attr-defined]  # noqa: SLF001


def _executions(spark: SparkSession) -> list[Any]:
    listed = _statuses(spark).executionsList()
    return [listed.apply(at) for at in range(listed.size())]


def _metrics(spark: SparkSession, execution: Any) -> dict[str, float]:
    """The times that the nodes of a plan measured, in ms, summed by name over nodes and tasks."""
    values = _statuses(spark).executionMetrics(execution.executionId())
    total: dict[str, float] = defaultdict(float)
    listed = execution.metrics()
    for at in range(listed.size()):
        metric = listed.apply(at)
        value = values.get(metric.accumulatorId())
        is_time = metric.metricType() in {"timing", "nsTiming"} and "initialize" not in metric.name()
        if is_time and value.isDefined():
            total[metric.name()] += _ms(value.get())
    return total


def _ms(text: str) -> float:
    """A time as Spark writes it: the first one, which is the total."""
    number, unit = re.findall(r"([\d.,]+) (ms|s|m)\b", text)[0]
    return float(number.replace(",", "")) * SECONDS[unit]


def main() -> None:
    """Run the programs and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", default="beamish,floor of two stages,Spark update")
    parser.add_argument("--batches", type=int, default=100)
    said = parser.parse_args()
    # Spark's workers import the programs too.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(Path(__file__).parent), os.environ.get("PYTHONPATH")]))
    programs = said.programs.split(",")
    folder = str(Path(rows_in_files(2000 * said.batches, said.batches, 1000, "few")).resolve())
    spark = session("local[2]")
    measured = {program: run(spark, program, folder) for program in (*programs, *programs)}
    names = sorted({name for found in measured.values() for name in found})
    width = max(map(len, names))
    print(" " * width, *(f"{program:>22}" for program in programs))
    for name in names:
        values = [median(found.get(name) or [0]) for found in measured.values()]
        if max(values) >= 1:
            print(f"{name:<{width}}", *(f"{value:>22,.0f}" for value in values))


if __name__ == "__main__":
    main()
