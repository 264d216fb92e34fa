"""Steps of a query's life, runs and upgrades, in a process of its own that may be killed at any moment.

    python -m tools.drill.steps FOLDER

The steps are in the folder's file ``steps``; the file ``said`` is written when the last one has ended, with the message of each.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import beamish as bm
from beamish.accumulations import Count, Max, Sum
from beamish.spark.checkpoint.hadoop_path import HadoopPath
from beamish.triggers import AfterCount, AfterWatermark, Always
from tools.drill.how import LOCAL, How
from tools.drill.processes import kill_all
from tools.drill.query import session
from tools.drill.source import SCHEMA

ROOT = Path(__file__).parents[2]
_ROWS = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(5)).key_by("k")
_BEFORE = (
    _ROWS.window(bm.FixedWindows(20))
    .allowed_lateness(40)
    .trigger(AfterWatermark(early=AfterCount(2), late=Always()))
    .accumulating()
    .accumulate(n=Count())
)
VERSIONS: dict[str, bm.Pipeline] = {
    "first": _BEFORE.accumulate(s=Sum("x")),
    "fewer": _BEFORE,
    "added": _BEFORE.accumulate(s=Sum("x"), most=Max("x")),
    "many": _ROWS.event_time("ts", bm.BoundedOutOfOrderness("1 day"))
    .window(bm.FixedWindows(10))
    .accumulate(n=Count(), s=Sum("x")),
}
"""The pipelines: one, two that replace it, and one whose rows fill many windows."""
MIGRATES, RUNS = "migrates", "runs"
_OPERATIONS = ("write_text", "copy", "rename", "delete", "make_folder")
_PATIENCE = 1800.0
"""Seconds after which a process stands still."""


@attrs.frozen
class Step:
    """A step.

    Attributes:
        what: "runs" the query to the end of its rows; "migrates" its checkpoint.
        version: the pipeline.
        rows: the folder of its rows, a file per batch.
        checkpoint: the query's.
        shards: their number.
        out: the folder of panes, a file per batch; overwritten on replay.
        to: the new checkpoint.
        checks: whether the pipeline is applied with ``checkpoint=``.
        halts: before this operation on files a migration halts; -1: it does not.
        reads: format of the rows.
    """

    what: str
    version: str
    rows: str
    checkpoint: str
    shards: int = 2
    out: str = ""
    to: str = ""
    checks: bool = False
    halts: int = -1
    reads: str = "json"


@attrs.frozen
class Said:
    """The end of a step.

    Attributes:
        error: the message of what stopped it; empty: nothing did.
        is_ours: whether that is an error of beamish's.
        operations: on files, of a migration.
    """

    error: str = ""
    is_ours: bool = False
    operations: int = 0


def live(
    folder: Path,
    steps: Sequence[Step],
    moment: Callable[[], bool] | None = None,
    settings: Mapping[str, str] | None = None,
) -> list[Said] | None:
    """Do steps in a process of its own.

    Args:
        folder: for its files.
        steps: those.
        moment: whether to kill it now; polled. None: it is left alone.
        settings: of its session, beside the usual ones.

    Returns:
        what the steps said; None: it was killed.
    """
    for name in ("said", "halted"):
        (folder / name).unlink(missing_ok=True)
    (folder / "steps").write_text(json.dumps([attrs.asdict(step) for step in steps]))
    confs = " ".join(f"--conf {name}={value}" for name, value in (settings or {}).items())
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_SUBMIT_ARGS": f"{confs} pyspark-shell"}
    command, until = [sys.executable, "-m", __name__, str(folder)], time.monotonic() + _PATIENCE
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(command, env=env, stdout=log, stderr=log, start_new_session=True)
    try:
        while process.poll() is None and time.monotonic() < until:
            if moment and moment():
                return None
            time.sleep(0.002 if moment else 0.1)
    finally:
        kill_all(process.pid, None)
    said = folder / "said"
    if not said.exists():
        raise RuntimeError(f"the process ended without a word: {(folder / 'log').read_text()[-2000:]}")
    return [Said(**one) for one in json.loads(said.read_text())]


def halted(folder: Path) -> Callable[[], bool]:
    """Whether a migration has halted."""
    return (folder / "halted").exists


def rows_in(out: Path) -> list[str]:
    """The rows of all batches."""
    found = [row for path in sorted(out.glob("[0-9]*")) for row in pq.read_table(path).to_pylist()]
    return sorted(map(repr, found))


def _halting(folder: Path, at: int) -> Callable[[], int]:
    """Halt before an operation on files; gives their number so far."""
    done = 0

    def halting(original: Any) -> Any:
        def operation(self: HadoopPath, *args: Any) -> Any:
            nonlocal done
            if done == at:
                (folder / "halted").touch()
                time.sleep(_PATIENCE)
            done += 1
            return original(self, *args)

        return operation

    for name in _OPERATIONS:
        setattr(HadoopPath, name, halting(getattr(HadoopPath, name)))
    return lambda: done


def _rows(spark: SparkSession, step: Step) -> DataFrame:
    reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    return reader.format(step.reads).load(step.rows)


def _run(spark: SparkSession, step: Step) -> None:
    out = Path(step.out)
    out.mkdir(parents=True, exist_ok=True)

    def write(batch: DataFrame, number: int) -> None:
        new = out / "new"
        pq.write_table(batch.toArrow(), new)
        new.rename(out / f"{number:04}")

    checked = {"checkpoint": step.checkpoint} if step.checks else {}
    panes = VERSIONS[step.version].apply(_rows(spark, step), shards=step.shards, **checked)  # type: ignore[arg-type]
    writer = panes.writeStream.foreachBatch(write).option("checkpointLocation", step.checkpoint)
    writer.trigger(availableNow=True).start().awaitTermination()


def _do(spark: SparkSession, step: Step, folder: Path) -> Said:
    operations = _halting(folder, step.halts) if step.what == MIGRATES else lambda: 0
    try:
        if step.what == MIGRATES:
            pipeline = VERSIONS[step.version]
            bm.migrate(spark, step.checkpoint, step.to, pipeline, _rows(spark, step), shards=step.shards)
        else:
            _run(spark, step)
    except Exception as error:  # noqa: BLE001 - any error is reported
        ours = bm.errors.of(error)
        return Said(f"{type(ours or error).__name__}: {ours or error}", ours is not None, operations())
    return Said(operations=operations())


def main() -> None:
    """Do the steps."""
    folder = Path(sys.argv[1])
    steps = [Step(**one) for one in json.loads((folder / "steps").read_text())]
    spark = session(
        How(LOCAL, changelog=True, chunks=0, verifies=True, java="", warm=None, moments=(), sources=(), sinks=())
    )
    spark.conf.set(
        "spark.sql.streaming.noDataMicroBatches.enabled", "false"
    )  # a restart would not run one that was due
    said = []
    for step in steps:
        if step.version == "many":
            spark.conf.set("spark.sql.shuffle.partitions", step.shards)
        said.append(_do(spark, step, folder))
    (folder / "new").write_text(json.dumps([attrs.asdict(one) for one in said]))
    (folder / "new").rename(folder / "said")


if __name__ == "__main__":
    main()
