"""Many rows over many keys: rate, batch time, state and memory as the state grows; then a kill, a restart, ``inspect`` and ``migrate``.

    make scale                                  as long as the Makefile says
    python benchmarks/scale.py --rows 2000000 --keys 200000 --batch-rows 250000 --every 500000

Spark's own source makes the rows from their numbers, so a killed run resumes. Keys are uniform or Zipf (exponent 1.1); each batch
is ``--minutes`` of event time, and one row of 50 is up to two hours late. Windows of an hour, two hours of lateness, early, on-time and
late panes; Spark beside it in update mode, with a watermark two hours behind. A program runs in a process of its own until all rows are
read, and is killed in its next batch. Then, each in a process of its own: it starts again (seconds until the session is there, until the
first batch is committed), ``bm.inspect`` describes the checkpoint, ``bm.migrate`` makes one with twice the shards, from which the query resumes.

Results go to build/bench/scale.json, batches to build/bench/scale-*.jsonl as they end.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from one_run import session
from processes import descendants, javas, pss_mb, pythons
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from zipf import key, keys_in_window

import beamish as bm
from beamish.accumulations import Count, Sum
from beamish.triggers import AfterWatermark, Always

OUT = Path("build/bench")
CORES = 2
_HOUR_MS = 3_600_000
_START_MS = 1_700_000_000_000 // _HOUR_MS * _HOUR_MS
_LATE_MS = 2 * _HOUR_MS
_ONE_LATE_OF = 50
_KEYS_PER_SEGMENT = 64_000
"""As docs/scale.md advises."""
_SETTINGS = {
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.minBatchesToRetain": "5",
    "spark.sql.streaming.stateStore.maintenanceInterval": "20s",
}
PIPELINE = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness("1 minute"))
    .key_by("k")
    .window(bm.FixedWindows("1 hour"))
    .trigger(AfterWatermark(early=Always(), late=Always()))
    .allowed_lateness("2 hours")
    .accumulating()
    .accumulate(n=Count(), total=Sum("v"))
)


def shards_for(said: Mapping[str, Any]) -> int:
    """The number of shards, by the formula of docs/scale.md."""
    in_window = keys_in_window(said["keys"], said["batch_rows"] * 60 / said["minutes"], said["distribution"])
    return CORES * max(1, -(-int(in_window) // (CORES * _KEYS_PER_SEGMENT)))


def rows_of(spark: SparkSession, said: Mapping[str, Any]) -> DataFrame:
    """The stream."""
    stream = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", said["batch_rows"])
    advance_ms = round(said["minutes"] * 60_000)
    stream = stream.option("numPartitions", CORES).option("startTimestamp", _START_MS)
    number = F.col("value")
    late_ms = F.when(number % _ONE_LATE_OF == 0, F.pmod(F.xxhash64(number + 1), F.lit(_LATE_MS))).otherwise(0)
    at_ms = F.unix_millis("timestamp") + F.pmod(F.xxhash64(number + 2), F.lit(advance_ms)) - late_ms
    return (
        stream.option("advanceMillisPerBatch", advance_ms)
        .load()
        .select(
            F.timestamp_millis(at_ms).alias("ts"),
            key(number, said["keys"], said["distribution"]).alias("k"),
            (number % 1000).alias("v"),
        )
    )


def result_of(said: Mapping[str, Any], rows: DataFrame, shards: int) -> tuple[DataFrame, str]:
    """The panes of a program, and its output mode."""
    if said["program"] == "beamish":
        return PIPELINE.apply(rows, shards=shards), "append"
    windows = rows.withWatermark("ts", "2 hours 1 minute").groupBy(F.window("ts", "1 hour"), "k")
    return windows.agg(F.count("*").alias("n"), F.sum("v").alias("total")), "update"


def run(said: Mapping[str, Any], begun: float) -> dict[str, Any]:
    """Run from the checkpoint on, each batch's measurements to a file: until it is killed, or what is available now.

    That is the batch that a kill left unfinished, and another. ``begun``: when the process began.
    """
    spark = session(f"local[{CORES}]", _SETTINGS)
    shards = said["shards"]
    result, mode = result_of(said, rows_of(spark, said), shards)
    ready = time.time()
    writer = result.writeStream.format("noop").outputMode(mode).option("checkpointLocation", said["checkpoint"])
    query = (writer if said["for_ever"] else writer.trigger(availableNow=True)).start()
    seen, first, ended = -1, 0.0, False
    with Path(said["to"]).open("a", encoding="utf-8") as file:
        while not ended:
            ended = query.awaitTermination(0.1)
            for batch in query.recentProgress:
                if batch["batchId"] <= seen or not batch["numInputRows"]:
                    continue
                seen, first = batch["batchId"], first or time.time()
                file.write(json.dumps({**_measured(batch), **_memory()}) + "\n")
                file.flush()
    return {
        "session_seconds": ready - begun,
        "first_batch_seconds": first - ready,
        "until_first_batch_seconds": first - begun,
    }


def _measured(batch: Mapping[str, Any]) -> dict[str, Any]:
    states = batch["stateOperators"]
    custom = [state["customMetrics"] for state in states]
    return {
        "batch": batch["batchId"],
        "from": _row(batch, "startOffset"),
        "until": _row(batch, "endOffset"),
        "rows": batch["numInputRows"],
        "seconds": batch["durationMs"]["triggerExecution"] / 1000,
        "state_rows": sum(state["numRowsTotal"] for state in states),
        "state_bytes": sum(each.get("rocksdbSstFileSize", 0) for each in custom),
        "rocksdb_mb": sum(state["memoryUsedBytes"] for state in states) / 2**20,
    }


def _row(batch: Mapping[str, Any], offset: str) -> int:
    """The number of the first row of a batch, or after its last."""
    given = (source[offset] for source in batch["sources"])
    offsets = [json.loads(one) if isinstance(one, str) else one for one in given]
    return next((one["offset"] for one in offsets if one and "offset" in one), 0)


def _memory() -> dict[str, float]:
    below = list(descendants(os.getpid()))
    return {"python_mb": sum(map(pss_mb, pythons(below))), "jvm_mb": sum(map(pss_mb, javas(below)))}


def inspect(said: Mapping[str, Any], _: float) -> dict[str, Any]:
    """Describe the checkpoint."""
    spark = session(f"local[{CORES}]", _SETTINGS)
    spark.range(1).count()
    begun = time.time()
    found = bm.inspect(spark, said["checkpoint"])
    words = str(found)
    took = time.time() - begun
    (stage,) = found.stages().collect()
    return {"inspect_seconds": took, "summary": words, "windows": stage["kept_windows"], "bytes": stage["bytes"]}


def migrate(said: Mapping[str, Any], _: float) -> dict[str, Any]:
    """Make a checkpoint with twice the shards."""
    spark = session(f"local[{CORES}]", _SETTINGS)
    rows = rows_of(spark, said)
    spark.range(1).count()
    begun = time.time()
    bm.migrate(spark, said["checkpoint"], said["migrated"], PIPELINE, rows, shards=2 * said["shards"])
    return {"migrate_seconds": time.time() - begun}


PHASES = {"run": run, "inspect": inspect, "migrate": migrate}


def phase(name: str, said: Mapping[str, Any]) -> dict[str, Any]:
    """A phase in a process of its own."""
    made = subprocess.run(_words(name, said), check=False, capture_output=True, text=True)
    if made.returncode:
        raise SystemExit(f"{said['program']}, {name}:\n{made.stdout[-2000:]}\n{made.stderr[-3000:]}")
    found: dict[str, Any] = json.loads(made.stdout.splitlines()[-1])
    return found


def _words(name: str, said: Mapping[str, Any]) -> list[str]:
    return [sys.executable, __file__, "--phase", name, "--said", json.dumps(said)]


def killed(said: Mapping[str, Any]) -> None:
    """Run until all rows are read, then kill the process, its JVM and its workers, in the next batch."""
    log = Path(said["to"]).with_suffix(".log")
    with log.open("w", encoding="utf-8") as out:
        process = subprocess.Popen(_words("run", {**said, "for_ever": True}), stdout=out, stderr=out)
        last = -1
        while process.poll() is None and last < said["rows"]:
            time.sleep(0.5)
            last = max((batch["until"] for batch in batches(said)), default=-1)
        if process.poll() is not None:
            raise SystemExit(f"{said['program']} ended:\n{log.read_text('utf-8')[-3000:]}")
        time.sleep(1)
        for pid in [process.pid, *(pid for pid, _ in descendants(process.pid))]:
            os.kill(pid, signal.SIGKILL)
        process.wait()


def batches(said: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The batches so far."""
    file = Path(said["to"])
    lines = file.read_text("utf-8").splitlines(keepends=True) if file.exists() else []
    return [json.loads(line) for line in lines if line.endswith("\n")]


def measure(said: dict[str, Any]) -> dict[str, Any]:
    """A program with a distribution of keys, through all phases."""
    said["shards"] = said["shards"] or shards_for(said)
    said["checkpoint"], said["migrated"] = f"{said['folder']}/checkpoint", f"{said['folder']}/migrated"
    said["for_ever"] = False
    Path(said["to"]).unlink(missing_ok=True)
    killed(said)
    found: dict[str, Any] = {"batches": batches(said)}
    again = {**said, "to": f"{said['to']}.again"}
    Path(again["to"]).unlink(missing_ok=True)
    found["restart"] = phase("run", again)
    _continues(batches(said), batches(again))
    if said["program"] == "beamish":
        found |= phase("inspect", said)
        found |= phase("migrate", said)
        last = batches(again)
        after = {**again, "checkpoint": said["migrated"], "shards": 2 * said["shards"]}
        Path(after["to"]).unlink()
        found["migrated"] = phase("run", after)
        _continues(last, batches(after))
    return {**said, **found}


def _continues(before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]) -> None:
    """A restart continues with the row after the last one, or a batch later, which the kill may have found committed."""
    last, first = before[-1], after[0]
    if first["from"] not in (last["until"], last["until"] + last["rows"]):
        raise SystemExit(f"rows until {last['until']:,} were committed, the restart began with row {first['from']:,}")


def table(runs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The lines of Markdown tables."""
    yield "| keys | | rows so far | rows/s | s per batch | state, MB | RocksDB, MB | Python, MB | JVM, MB |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for one in runs:
        done, group = 0, list[Mapping[str, Any]]()
        for batch in one["batches"]:
            done += batch["rows"]
            group.append(batch)
            if done % one["every"] < batch["rows"] or batch is one["batches"][-1]:
                yield _line(one, done, group)
                group = []
    yield ""
    yield (
        "| keys | | restart: session, first batch, s | open windows | their bytes, MB | `inspect`, s | `migrate` to twice the shards, s"
        " | first batch after it, s |"
    )
    yield "|---|---|---|---|---|---|---|---|"
    for one in runs:
        again = f"{one['restart']['session_seconds']:.1f}, {one['restart']['first_batch_seconds']:.1f}"
        rest = [f"{one['batches'][-1]['state_rows']:,}", "", "", "", ""]
        if one["program"] == "beamish":
            after = one["migrated"]["first_batch_seconds"]
            kept = [f"{one['windows']:,}", f"{one['bytes'] / 2**20:,.0f}"]
            rest = [*kept, f"{one['inspect_seconds']:.1f}", f"{one['migrate_seconds']:.1f}", f"{after:.1f}"]
        yield f"| {_keys(one)} | {one['program']} | {again} | {' | '.join(rest)} |"


def _keys(one: Mapping[str, Any]) -> str:
    return f"{one['keys']:,}, {one['distribution']}"


def _line(one: Mapping[str, Any], done: int, group: Sequence[Mapping[str, Any]]) -> str:
    rate = sum(batch["rows"] for batch in group) / sum(batch["seconds"] for batch in group)
    last = group[-1]
    cells = [
        _keys(one),
        one["program"],
        f"{done:,}",
        f"{rate:,.0f}",
        f"{median(batch['seconds'] for batch in group):.1f}",
        f"{last['state_bytes'] / 2**20:,.0f}",
        f"{last['rocksdb_mb']:,.0f}",
        f"{max(batch['python_mb'] for batch in group):,.0f}",
        f"{max(batch['jvm_mb'] for batch in group):,.0f}",
    ]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Run the programs one after the other and print the tables."""
    begun = time.time()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=300_000_000)
    parser.add_argument("--keys", type=int, default=30_000_000)
    parser.add_argument("--batch-rows", type=int, default=2_000_000)
    parser.add_argument("--minutes", type=float, default=5, help="event time of a batch")
    parser.add_argument("--every", type=int, default=50_000_000, help="rows between the lines of the table")
    parser.add_argument("--shards", type=int, default=0, help="0: by the formula of docs/scale.md")
    parser.add_argument("--distributions", default="zipf uniform")
    parser.add_argument("--programs", default="beamish Spark")
    parser.add_argument("--folder", help="where checkpoints are written; default: the folder for temporary files")
    parser.add_argument("--phase", choices=sorted(PHASES))
    parser.add_argument("--said", type=json.loads)
    said = parser.parse_args()
    if said.phase:
        print(json.dumps(PHASES[said.phase](said.said, begun)))
        return
    OUT.mkdir(parents=True, exist_ok=True)
    runs = []
    for distribution in said.distributions.split():
        for program in said.programs.split():
            folder = tempfile.mkdtemp(prefix="beamish-scale-", dir=said.folder)
            sizes = {name: getattr(said, name) for name in ("rows", "keys", "batch_rows", "minutes", "every", "shards")}
            to = str((OUT / f"scale-{program}-{distribution}.jsonl").resolve())
            try:
                runs.append(
                    measure({**sizes, "program": program, "distribution": distribution, "folder": folder, "to": to})
                )
            finally:
                shutil.rmtree(folder, ignore_errors=True)
            (OUT / "scale.json").write_text(json.dumps({"runs": runs}, indent=1) + "\n", "utf-8")
    print("\n".join(table(runs)))


if __name__ == "__main__":
    main()
