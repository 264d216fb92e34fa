"""Mishaps: tables read, locked, altered or deleted while a query runs; checkpoints restored, copied or damaged; disks that fill up.

    python -m tools.mishaps [--budget 600] [--seed N] [--only "a deleted database"] [--scheme sqlite]

Each mishap happens to a query that keeps a table of sessions, at a drawn batch. Passed: the table equals the batch computation over all rows,
or the query stops with an error of beamish's. Ends with 1 if one did not.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import attrs
import duckdb
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

import beamish as bm
from beamish.accumulations import Count, Max
from beamish.sinks.databases.database import rows_of
from beamish.triggers import Always
from tools.drill.how import LOCAL, How
from tools.drill.pipelines import write_rows
from tools.drill.query import session
from tools.drill.source import SCHEMA
from tools.servers.disk import SmallDisk, small_disk

SESSIONS = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness(5))
    .key_by("k")
    .window(bm.Sessions(7))
    .trigger(Always())
    .allowed_lateness("1 day")
    .accumulating_and_retracting()
    .accumulate(n=Count(), most=Max("x"))
)
_CHUNKS = 6
_COLUMNS = "k, n, most, _sequence"
Act = Callable[[], None]


@attrs.define
class Scene:
    """A query, its rows and its table.

    Attributes:
        spark: the session.
        folder: of all its files.
        scheme: of the table's database.
        chance: draws when the mishap happens.
        before, after: per batch what happens before and after it is written.
        errors: what stopped the query, in order.
    """

    spark: SparkSession
    folder: Path
    scheme: str
    chance: random.Random
    before: dict[int, Act] = attrs.field(factory=dict)
    after: dict[int, Act] = attrs.field(factory=dict)
    errors: list[Exception] = attrs.field(factory=list)
    _given: int = 0

    def __attrs_post_init__(self) -> None:
        write_rows(self.folder / "rows", self.chance, _CHUNKS)
        (self.folder / "given").mkdir()

    @property
    def path(self) -> Path:
        """The database's file."""
        return self.folder / f"tables.{self.scheme}"

    @property
    def checkpoint(self) -> Path:
        """The query's checkpoint."""
        return self.folder / "checkpoint"

    @property
    def sink(self) -> Any:
        """Keeps the table."""
        return bm.sinks.sql(f"{self.scheme}:///{self.path}", "sessions")

    def run(self, chunks: int, checkpoint: Path | None = None) -> None:
        """Run the query to the end of its rows.

        Args:
            chunks: how many files of rows come first; each is a batch.
            checkpoint: another one than the scene's.
        """
        for number in range(self._given, self._given + chunks):
            shutil.copy2(self.folder / "rows" / f"{number:04}.json", self.folder / "given")
        self._given += chunks
        panes = SESSIONS.apply(self._rows(self.spark.readStream.option("maxFilesPerTrigger", 1)))
        writer = panes.writeStream.foreachBatch(self._write).trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(checkpoint or self.checkpoint)).start()
        try:
            query.awaitTermination()
        except StreamingQueryException as error:
            self.errors.append(bm.errors.of(error) or error)

    def _rows(self, reader: Any) -> DataFrame:
        rows: DataFrame = reader.schema(SCHEMA).json(str(self.folder / "given"))
        return rows

    def _write(self, batch: DataFrame, number: int) -> None:
        self.before.pop(number, _nothing)()
        self.sink(batch, number)
        self.after.pop(number, _nothing)()

    def some_batch(self) -> int:
        """A batch that is neither the first nor the last."""
        return self.chance.randint(1, 3)

    def execute(self, statement: str) -> None:
        """Execute a statement in the database."""
        with self.sink.database.transaction() as cursor:
            cursor.execute(statement)

    def table(self) -> list[tuple[Any, ...]]:
        """The table's rows, without numbers."""
        with self.sink.database.transaction() as cursor:
            return sorted(row[:3] for row in rows_of(cursor, f"SELECT {_COLUMNS} FROM sessions"))

    def batch(self) -> list[tuple[Any, ...]]:
        """The same by a batch over all rows so far."""
        return sorted(map(tuple, SESSIONS.apply(self._rows(self.spark.read)).select("k", "n", "most").collect()))

    def verdict(self) -> str:
        """The problem; empty: none."""
        foreign = [error for error in self.errors if not isinstance(error, bm.BeamishError)]
        if foreign:
            return f"stopped by {foreign[0]}"
        if self.errors:
            return ""
        found, expected = self.table(), self.batch()
        return "" if found == expected else f"the table has {found}, the batch {expected}"


def _nothing() -> None:
    pass


def read_in_this_process(scene: Scene) -> None:
    """A notebook reads the table while it is written."""
    done = threading.Event()

    def read() -> None:
        while not done.wait(0.05):
            if scene.path.exists():
                _read(scene.scheme, scene.path)

    reader = threading.Thread(target=read)
    scene.after[0] = reader.start
    scene.run(5)
    done.set()
    reader.join()


def _read(scheme: str, path: Path) -> None:
    connection = duckdb.connect(path) if scheme == "duckdb" else sqlite3.connect(path, timeout=30)
    with closing(connection) as database:
        database.execute("SELECT count(*), sum(n) FROM sessions").fetchall()


def read_by_another_process(scene: Scene) -> None:
    """Another process reads the table while it is written."""
    module, call = (
        ("duckdb", "connect(path, read_only=True)") if scene.scheme == "duckdb" else ("sqlite3", "connect(path)")
    )
    code = (
        f"import sys, time, {module}\npath = sys.argv[1]\nfor _ in range(400):\n  try:\n    database = {module}.{call}\n"
        "    database.execute('SELECT count(*) FROM sessions').fetchall()\n    database.close()\n"
        "  except Exception: pass\n  time.sleep(0.02)"
    )
    readers: list[subprocess.Popen[bytes]] = []
    scene.after[0] = lambda: readers.append(subprocess.Popen([sys.executable, "-c", code, str(scene.path)]))
    scene.run(5)
    for reader in readers:
        reader.kill()
        reader.wait()


def locked(scene: Scene) -> None:
    """Another connection holds the database for two seconds."""
    begun = threading.Event()

    def hold() -> None:
        with scene.sink.database.transaction() as cursor:
            cursor.execute("CREATE TABLE another (n INTEGER)")
            begun.set()
            time.sleep(2)

    def lock() -> None:
        threading.Thread(target=hold).start()
        begun.wait()

    scene.before[scene.some_batch()] = lock
    scene.run(5)


def deleted_database(scene: Scene) -> None:
    """The database's file is deleted."""
    scene.before[scene.some_batch()] = scene.path.unlink
    scene.run(5)


def dropped_table(scene: Scene) -> None:
    """The table is dropped."""
    scene.before[scene.some_batch()] = lambda: scene.execute("DROP TABLE sessions")
    scene.run(5)


def dropped_marks(scene: Scene) -> None:
    """The table beside it is dropped, which names the owner."""
    scene.before[scene.some_batch()] = lambda: scene.execute("DROP TABLE _beamish_sinks")
    scene.run(5)


def dropped_column(scene: Scene) -> None:
    """A column is dropped, then added again as the message says, and filled from all panes."""
    scene.before[scene.some_batch()] = lambda: scene.execute("ALTER TABLE sessions DROP COLUMN most")
    scene.run(5)
    assert "ADD COLUMN" in str(scene.errors[-1])  # noqa: S101


def one_batch_back(scene: Scene) -> None:
    """The checkpoint is restored from a copy of the batch before the last one; more rows come."""
    _restored(scene, 1)


def two_batches_back(scene: Scene) -> None:
    """The checkpoint is restored from a copy of two batches before the last one; more rows come."""
    _restored(scene, 2)


def _restored(scene: Scene, batches: int) -> None:
    scene.run(3)
    _copy(scene.checkpoint, scene.folder / "copy")
    scene.run(batches)
    shutil.rmtree(scene.checkpoint)
    _copy(scene.folder / "copy", scene.checkpoint)
    scene.run(1)


def removed_log_entries(scene: Scene) -> None:
    """The last entries of the logs of offsets and commits are removed; more rows come."""
    scene.run(4)
    _remove_last(scene, "offsets", "commits")
    scene.run(1)


def removed_commit(scene: Scene) -> None:
    """The last commit is removed, as if the query had been killed before it; more rows come."""
    scene.run(4)
    _remove_last(scene, "commits")
    scene.run(1)


def _remove_last(scene: Scene, *logs: str) -> None:
    for log in logs:
        last = max((scene.checkpoint / log).glob("[0-9]*"), key=lambda path: int(path.name))
        last.unlink()
        last.with_name(f".{last.name}.crc").unlink(missing_ok=True)


def two_drivers(scene: Scene) -> None:
    """Two drivers run the query, each from a copy of the checkpoint in its own place."""
    scene.run(3)
    _copy(scene.checkpoint, scene.folder / "other")
    for path in (scene.folder / "other").glob("state/*/_metadata/*/*"):  # which has absolute paths
        if not path.name.startswith("."):
            path.write_text(path.read_text().replace(str(scene.checkpoint), str(scene.folder / "other")))
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    scene.run(1)
    scene.run(1, scene.folder / "other")


def exchanged_shards(scene: Scene) -> None:
    """The folders of two shards of the state are exchanged."""
    scene.run(4)
    first, second = scene.checkpoint / "state" / "0" / "0", scene.checkpoint / "state" / "0" / "1"
    first.rename(scene.folder / "first")
    second.rename(first)
    (scene.folder / "first").rename(second)
    scene.run(1)


def removed_shard(scene: Scene) -> None:
    """The folder of a shard of the state is removed."""
    scene.run(4)
    shutil.rmtree(scene.checkpoint / "state" / "0" / str(scene.chance.randrange(2)))
    scene.run(1)


def full_disk(scene: Scene) -> None:
    """The disk of checkpoint and table is full for one batch; then there is room, and the query is started again."""
    scene.run(2)
    disk, commits = SmallDisk(scene.folder), (scene.checkpoint / "commits").glob("[0-9]*")
    scene.before[max(int(path.name) for path in commits) + 1] = disk.fill
    scene.run(2)
    disk.free()
    scene.errors.clear()  # Spark's own, or SQLite's
    scene.run(1)


def _copy(folder: Path, to: Path) -> None:
    shutil.copytree(folder, to, symlinks=True)


FULL_DISK = "a full disk"
MISHAPS: dict[str, Callable[[Scene], None]] = {
    "a reader in this process": read_in_this_process,
    "a reader in another process": read_by_another_process,
    "a locked database": locked,
    "a deleted database": deleted_database,
    "a dropped table": dropped_table,
    "a dropped table of marks": dropped_marks,
    "a dropped column": dropped_column,
    "a checkpoint one batch back": one_batch_back,
    "a checkpoint two batches back": two_batches_back,
    "removed log entries": removed_log_entries,
    "a removed commit": removed_commit,
    "two drivers": two_drivers,
    "exchanged shards": exchanged_shards,
    "a removed shard": removed_shard,
    FULL_DISK: full_disk,
}
SCHEMES = ("sqlite", "duckdb")


def happens(spark: SparkSession, name: str, scheme: str, seed: int) -> tuple[str, list[Exception]]:
    """Run a mishap.

    Returns:
        what went wrong, empty if nothing did; and the errors that stopped the query.
    """
    with tempfile.TemporaryDirectory(prefix="mishap") as folder, ExitStack() as opened:
        if name == FULL_DISK:
            opened.enter_context(small_disk(Path(folder), 24))
        scene = Scene(spark, Path(folder), scheme, random.Random(seed))  # noqa: S311 - it is no secret
        MISHAPS[name](scene)
        return scene.verdict(), scene.errors


def main() -> int:
    """Run all mishaps, until the budget is used up."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--budget", type=float, default=600, help="seconds; a mishap that began is brought to its end")
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(3), "big"))
    parser.add_argument("--only", action="append", choices=list(MISHAPS))
    parser.add_argument("--scheme", action="append", choices=SCHEMES)
    said = parser.parse_args()
    print(f"seed {said.seed}", flush=True)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    drawn = [(name, scheme) for scheme in said.scheme or SCHEMES for name in said.only or MISHAPS]
    random.Random(said.seed).shuffle(drawn)  # noqa: S311
    spark = session(
        How(LOCAL, changelog=True, chunks=0, verifies=True, java="", warm=None, moments=(), sources=(), sinks=())
    )
    failed, until = 0, time.monotonic() + said.budget
    for number, (name, scheme) in enumerate(drawn):
        if time.monotonic() > until:
            print(f"the budget is over: {len(drawn) - number} of {len(drawn)} did not happen")
            break
        if name == FULL_DISK and os.geteuid() != 0:
            print(f"{name}, {scheme}: needs root, to mount a small disk")
            continue
        wrong, errors = happens(spark, name, scheme, said.seed)
        failed += bool(wrong)
        came = wrong or (f"refused: {errors[0]}" if errors else "equal to the batch")
        print(f"{'WRONG ' if wrong else ''}{name}, {scheme}: {came[:300]}", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
