"""Mishaps: tables read, locked, altered or deleted while a query runs; checkpoints restored, copied or damaged; disks that fill up.

    python -m tools.mishaps [--budget 600] [--seed N] [--only "a deleted database"] [--scheme postgresql] [--size N]

Each mishap happens to a query that keeps a table of sessions, at a drawn batch. Passed: the table equals the batch computation over all rows,
or the query stops with an error of beamish's. Those of tools/drill/lives.py happen to its processes. Ends with 1 if one did not.
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
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import attrs
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

import beamish as bm
from beamish.accumulations import Count, Max
from beamish.kernels.upserts import MergeInto
from beamish.sinks.databases.database import rows_of
from beamish.sinks.sql import _left
from beamish.triggers import Always
from tests.servers import lake
from tools.drill.how import LOCAL, How
from tools.drill.lives import LIVES, Lives
from tools.drill.pipelines import write_rows
from tools.drill.query import session
from tools.drill.source import SCHEMA
from tools.servers.disk import SmallDisk, small_disk
from tools.servers.postgresql import PostgreSql
from tools.servers.server import UnavailableError

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
Act = Callable[[], None]


@attrs.define
class Scene:
    """A query, its rows and its table.

    Attributes:
        spark: the session.
        folder: of all its files.
        scheme: of the table's database, or "delta".
        chance: draws when the mishap happens.
        uri: of a database that is not a file of the scene.
        before, after: per batch what happens before and after it is written.
        skipped: batches that the sink is not called for.
        name: the table's name, as the sink is given it.
        size: the mishap's own: starts, or columns; 0: it has no size.
        errors: what stopped the query, in order.
        passed: what stopped it before it was started again, and ran to its end.
        maxima: how many accumulations the pipeline has beside the usual ones.
    """

    spark: SparkSession
    folder: Path
    scheme: str
    chance: random.Random
    uri: str = ""
    before: dict[int, Act] = attrs.field(factory=dict)
    after: dict[int, Act] = attrs.field(factory=dict)
    skipped: set[int] = attrs.field(factory=set)
    name: str = "sessions"
    size: int = 0
    errors: list[Exception] = attrs.field(factory=list)
    passed: list[Exception] = attrs.field(factory=list)
    maxima: int = 0
    _given: int = 0

    def __attrs_post_init__(self) -> None:
        write_rows(self.folder / "rows", self.chance, max(_CHUNKS, self.size))
        (self.folder / "given").mkdir()

    @property
    def pipeline(self) -> bm.Pipeline:
        """The query's."""
        return SESSIONS.accumulate(**{f"c{number}": Max("x") for number in range(self.maxima)})

    @property
    def columns(self) -> list[str]:
        """The table's, without its number."""
        return ["k", "n", "most", *(f"c{number}" for number in range(self.maxima))]

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
        if self.scheme in LAKES:
            return bm.sinks.merge(self.sessions, create=self.scheme)
        return bm.sinks.sql(self.uri or f"{self.scheme}:///{self.path}", self.name)

    @property
    def sessions(self) -> str:
        """The table's name in SQL."""
        return {"delta": f"delta.`{self.path}`", "iceberg": f"lake.stats.{self.folder.name}"}.get(
            self.scheme, self.name
        )

    def run(self, chunks: int, checkpoint: Path | None = None) -> None:
        """Run the query to the end of its rows.

        Args:
            chunks: how many files of rows come first; each is a batch.
            checkpoint: another one than the scene's.
        """
        for number in range(self._given, self._given + chunks):
            shutil.copy2(self.folder / "rows" / f"{number:04}.json", self.folder / "given")
        self._given += chunks
        panes = self.pipeline.apply(self._rows(self.spark.readStream.option("maxFilesPerTrigger", 1)))
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
        if number in self.skipped:
            batch.collect()  # Spark refuses a batch of which the state was not written
        else:
            self.sink(batch, number)
        self.after.pop(number, _nothing)()

    def some_batch(self) -> int:
        """A batch that is neither the first nor the last."""
        return self.chance.randint(1, 3)

    @property
    def next_batch(self) -> int:
        """The number of the next batch."""
        commits = (self.checkpoint / "commits").glob("[0-9]*")
        return 1 + max((int(path.name) for path in commits), default=-1)

    def execute(self, *statements: str) -> None:
        """Execute statements in the database, each with the table's name in place of {}."""
        statements = tuple(statement.format(self.sessions) for statement in statements)
        if self.scheme in LAKES:
            for statement in statements:
                self.spark.sql(statement)
            return
        with self.sink.database.transaction() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def restart(self) -> None:
        """Forget what this process has written, as a new one."""
        _left.clear()

    def table(self) -> list[tuple[Any, ...]]:
        """The table's rows, without numbers."""
        query = f"SELECT {', '.join([*self.columns, '_sequence'])} FROM {self.sessions}"
        if self.scheme in LAKES:
            return sorted(tuple(row)[:-1] for row in self.spark.sql(query).collect())
        with self.sink.database.transaction() as cursor:
            return sorted(row[:-1] for row in rows_of(cursor, query))

    def batch(self) -> list[tuple[Any, ...]]:
        """The same by a batch over all rows so far."""
        return sorted(map(tuple, self.pipeline.apply(self._rows(self.spark.read)).select(*self.columns).collect()))

    def verdict(self) -> str:
        """The problem; empty: none."""
        foreign = [error for error in [*self.passed, *self.errors] if not isinstance(error, bm.BeamishError)]
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
    if scheme == "duckdb":
        import duckdb  # which the environment of Delta lacks

        connection: Any = duckdb.connect(path)
    else:
        connection = sqlite3.connect(path, timeout=30)
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
    drop = (lambda: shutil.rmtree(scene.path)) if scene.scheme == "delta" else lambda: scene.execute("DROP TABLE {}")
    scene.before[scene.some_batch()] = drop
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


class _KilledError(Exception):
    """Stands for the end of the driver's process."""


def _killed_after_writing(scene: Scene) -> None:
    """Run one more batch, whose query ends after the sink has written it and before its commit."""

    def end() -> None:
        raise _KilledError

    scene.after[scene.next_batch] = end
    scene.run(1)
    scene.errors.clear()
    scene.restart()


def replayed(scene: Scene) -> None:
    """The query ends between the sink's commit and its own; more rows come."""
    scene.run(3)
    _killed_after_writing(scene)
    scene.run(1)


def rewritten_file(scene: Scene) -> None:
    """The query ends between the sink's commit and its own, and the file of that batch is rewritten with half of its rows."""
    scene.run(3)
    _killed_after_writing(scene)
    last = max((scene.folder / "given").glob("*.json"))
    lines = last.read_text().splitlines()
    written = last.stat()
    last.write_text("\n".join(lines[::2]))
    os.utime(last, (written.st_atime, written.st_mtime))
    scene.run(1)


def restored_table(scene: Scene) -> None:
    """Table and mark are restored from a backup of some batches before; more rows come."""
    _restored_table(scene, "sessions", "_beamish_sinks")


def restored_rows(scene: Scene) -> None:
    """The table is restored from a backup of some batches before, and the table of marks is not; more rows come."""
    _restored_table(scene, "sessions")


def _restored_table(scene: Scene, *names: str) -> None:
    scene.run(2)
    if scene.scheme == "delta":
        version = scene.spark.sql(f"DESCRIBE HISTORY {scene.sessions} LIMIT 1").collect()[0]["version"]
    else:
        scene.execute(*(f"CREATE TABLE saved_{name} AS SELECT * FROM {name}" for name in names))
    scene.run(scene.chance.randint(1, 3))
    if scene.scheme == "delta":
        scene.execute(f"RESTORE TABLE {{}} TO VERSION AS OF {version}")
    else:
        for name in names:
            scene.execute(f"DELETE FROM {name}", f"INSERT INTO {name} SELECT * FROM saved_{name}")
    scene.restart()
    scene.run(1)


def emptied_table(scene: Scene) -> None:
    """All rows are deleted."""
    scene.before[scene.some_batch()] = lambda: scene.execute("DELETE FROM {}")
    scene.run(5)


def deleted_rows(scene: Scene) -> None:
    """Some rows are deleted while the query is stopped."""
    scene.run(3)
    scene.execute("DELETE FROM {} WHERE k = 'a'")
    scene.restart()
    scene.run(2)


def table_created_again(scene: Scene) -> None:
    """The table is dropped and created again, empty."""
    copies = [
        "CREATE TABLE other AS SELECT * FROM {} WHERE k IS NULL",
        "DROP TABLE {}",
        "ALTER TABLE other RENAME TO {}",
    ]
    if scene.scheme == "postgresql":
        copies[0] = "CREATE TABLE other (LIKE {} INCLUDING ALL)"
    if scene.scheme == "delta":
        copies = ["INSERT OVERWRITE {} SELECT * FROM {} WHERE k IS NULL".format("{}", scene.sessions)]
    scene.before[scene.some_batch()] = lambda: scene.execute(*copies)
    scene.run(5)


def skipped_batch(scene: Scene) -> None:
    """The sink is not called for a batch."""
    scene.skipped.add(scene.some_batch())
    scene.run(5)


_TRIGGERS = {
    "sqlite": ["CREATE TRIGGER no BEFORE INSERT ON {} WHEN NEW.k = 'a' BEGIN SELECT RAISE(IGNORE); END"],
    "postgresql": [
        "CREATE FUNCTION nothing() RETURNS trigger AS $$ BEGIN RETURN NULL; END $$ LANGUAGE plpgsql",
        "CREATE TRIGGER no BEFORE INSERT OR UPDATE ON {} FOR EACH ROW WHEN (NEW.k = 'a') EXECUTE FUNCTION nothing()",
    ],
}


def swallowing_trigger(scene: Scene) -> None:
    """A trigger of the table passes over the rows of a key."""
    scene.before[scene.some_batch()] = lambda: scene.execute(*_TRIGGERS[scene.scheme])
    scene.run(5)


def swallowing_rule(scene: Scene) -> None:
    """A rule of the table passes over deletions."""
    scene.before[scene.some_batch()] = lambda: scene.execute("CREATE RULE no AS ON DELETE TO {} DO INSTEAD NOTHING")
    scene.run(5)


def another_spelling(scene: Scene) -> None:
    """Another query has the table under a name of other case; then the first one continues."""
    scene.run(2)
    scene.name = "SESSIONS"
    scene.run(1, scene.folder / "other")
    assert scene.errors  # noqa: S101
    scene.run(1)


def another_search_path(scene: Scene) -> None:
    """After a restart the search path begins with a schema that has an empty table of that name."""
    scene.run(2)
    scene.execute("CREATE SCHEMA other", "CREATE TABLE other.sessions (LIKE {} INCLUDING ALL)")
    scene.uri += "?options=-csearch_path%3Dother%2Cpublic"
    scene.restart()
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


_COMPACTIONS = {
    "delta": "OPTIMIZE {}",
    "iceberg": "CALL lake.system.rewrite_data_files(table => '{}', options => map('rewrite-all', 'true'))",
}


def compacted_meanwhile(scene: Scene) -> None:
    """The table is compacted while each batch is merged, at a drawn moment; after a conflict the query is started again."""
    compacting: list[threading.Thread] = []
    compacted, update = [0, 0], MergeInto.update

    def compact(after: float) -> None:
        time.sleep(after)
        try:
            scene.execute(_COMPACTIONS[scene.scheme])
            compacted[0] += 1
        except Exception:  # noqa: BLE001 - one of the two must yield to the other
            compacted[1] += 1

    def merging(into: MergeInto) -> str:
        compacting.append(threading.Thread(target=compact, args=(scene.chance.uniform(0, 1.5),)))
        compacting[-1].start()
        return update(into)

    scene.run(1)
    with patch.object(MergeInto, "update", merging):
        for _ in range(scene.size):
            scene.run(1)
            for thread in compacting:
                thread.join()
            if scene.errors:
                scene.passed += scene.errors
                scene.errors.clear()
                scene.restart()
    scene.run(0)
    print(
        f"compacted {compacted[0]} times, {compacted[1]} refused; the query stopped {len(scene.passed)} times",
        flush=True,
    )


def many_starts(scene: Scene) -> None:
    """The query is started many times, each time for one batch."""
    for _ in range(scene.size):
        scene.run(1)


def many_columns(scene: Scene) -> None:
    """The pipeline has many accumulations, the table as many columns; it is restarted once."""
    scene.maxima = scene.size
    scene.run(2)
    scene.restart()
    scene.run(2)


def _copy(folder: Path, to: Path) -> None:
    shutil.copytree(folder, to, symlinks=True)


FULL_DISK = "a full disk"
FILES = ("sqlite", "duckdb")
DATABASES = (*FILES, "postgresql")
LAKES = ("delta", "iceberg")
_PACKAGES = {"delta": "io.delta", "iceberg": "org.apache.iceberg"}
SCHEMES = (*DATABASES, *LAKES)
SIZES = {
    "many starts": 6,
    "many columns": 100,
    "a concurrent compaction": 5,
    **{name: size for name, (_, size) in LIVES.items()},
}
"""The usual size of a mishap that has one; docs/reliability.md has those that were tried."""
MISHAPS: dict[str, tuple[Callable[[Scene], None], tuple[str, ...]]] = {
    "a reader in this process": (read_in_this_process, FILES),
    "a reader in another process": (read_by_another_process, FILES),
    "a locked database": (locked, FILES),
    "a deleted database": (deleted_database, FILES),
    "a dropped table": (dropped_table, SCHEMES),
    "a dropped table of marks": (dropped_marks, DATABASES),
    "a dropped column": (dropped_column, DATABASES),
    "a table created again": (table_created_again, SCHEMES),
    "an emptied table": (emptied_table, SCHEMES),
    "deleted rows": (deleted_rows, SCHEMES),
    "a restored table": (restored_table, SCHEMES),
    "restored rows": (restored_rows, DATABASES),
    "a skipped batch": (skipped_batch, SCHEMES),
    "a trigger": (swallowing_trigger, ("sqlite", "postgresql")),
    "a rule": (swallowing_rule, ("postgresql",)),
    "another spelling": (another_spelling, FILES),
    "another search path": (another_search_path, ("postgresql",)),
    "a replayed batch": (replayed, SCHEMES),
    "a rewritten file": (rewritten_file, SCHEMES),
    "a checkpoint one batch back": (one_batch_back, SCHEMES),
    "a checkpoint two batches back": (two_batches_back, SCHEMES),
    "removed log entries": (removed_log_entries, SCHEMES),
    "a removed commit": (removed_commit, SCHEMES),
    "two drivers": (two_drivers, SCHEMES),
    "exchanged shards": (exchanged_shards, FILES),
    "a removed shard": (removed_shard, FILES),
    "many starts": (many_starts, ("sqlite",)),
    "many columns": (many_columns, SCHEMES),
    "a concurrent compaction": (compacted_meanwhile, LAKES),
    FULL_DISK: (full_disk, FILES),
}
"""The mishaps, each with the schemes that it happens to."""


@cache
def _postgresql() -> PostgreSql:
    return PostgreSql()


def happens(spark: SparkSession, name: str, scheme: str, seed: int, size: int = 0) -> tuple[str, list[Exception]]:
    """Run a mishap; ``size``: another one than its usual.

    Returns:
        what went wrong, empty if nothing did; and the errors that stopped the query.
    """
    with tempfile.TemporaryDirectory(prefix="mishap") as folder, ExitStack() as opened:
        if name == FULL_DISK:
            opened.enter_context(small_disk(Path(folder), 24))
        uri = opened.enter_context(_postgresql().database()) if scheme == "postgresql" else ""
        size = size or SIZES.get(name, 0)
        scene = Scene(spark, Path(folder), scheme, random.Random(seed), uri, size=size)  # noqa: S311 - it is no secret
        MISHAPS[name][0](scene)
        return scene.verdict(), [*scene.passed, *scene.errors]


def lives(name: str, seed: int, size: int) -> Lives:
    """Run a mishap to processes."""
    with tempfile.TemporaryDirectory(prefix="mishap") as folder:
        of = Lives(Path(folder), random.Random(seed), size or SIZES[name])  # noqa: S311
        LIVES[name][0](of)
        return of


def main() -> int:
    """Run all mishaps, until the budget is used up."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--budget", type=float, default=600, help="seconds; a mishap that began is brought to its end")
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(3), "big"))
    parser.add_argument("--only", action="append", choices=[*MISHAPS, *LIVES])
    parser.add_argument("--scheme", action="append", choices=SCHEMES)
    parser.add_argument("--size", type=int, default=0, help="of a mishap that has one; 0: its usual")
    said = parser.parse_args()
    print(f"seed {said.seed}", flush=True)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    code, schemes, packages = 0, said.scheme or SCHEMES, os.environ.get("PYSPARK_SUBMIT_ARGS", "")
    for scheme in LAKES:
        if (
            scheme in schemes
            and _PACKAGES[scheme] not in packages
            and any(scheme in MISHAPS[name][1] for name in _tables(said))
        ):
            code = max(code, _in_lake(said, scheme))
    if not said.scheme:
        code = max(code, _run_lives(said))
    return max(code, _run(said, [one for one in schemes if _PACKAGES.get(one, "") in packages]))


def _tables(said: argparse.Namespace) -> list[str]:
    """The chosen mishaps to tables."""
    return [name for name in said.only or MISHAPS if name in MISHAPS]


def _run_lives(said: argparse.Namespace) -> int:
    """Run the mishaps to processes; 1: one was not passed."""
    failed, until = 0, time.monotonic() + said.budget
    for name in said.only or LIVES:
        if name not in LIVES or time.monotonic() > until:
            continue
        begun, of = time.monotonic(), lives(name, said.seed, said.size)
        failed += bool(of.wrong)
        passed = [f"{name}, size {of.size:,}: passed in {time.monotonic() - begun:.0f} s"]
        print("\n".join([f"WRONG {name}: {line}" for line in of.wrong] or passed), flush=True)
    return int(failed > 0)


def _in_lake(said: argparse.Namespace, scheme: str) -> int:
    """Run the mishaps of Delta or Iceberg in a process with a PySpark that it knows; 1: one was not passed."""
    try:
        python = lake.python()
        lake.check_packages(scheme)
    except pytest.skip.Exception as why:
        print(f"{scheme}: {why}")
        return 0
    with tempfile.TemporaryDirectory(prefix="mishap") as warehouse:
        settings = lake.packages(scheme) | lake.confs(scheme, warehouse)
        confs = " ".join(f"--conf {name}={value}" for name, value in settings.items())
        own = {"PYSPARK_PYTHON": python, "PYSPARK_SUBMIT_ARGS": f"{confs} pyspark-shell"}
        options = ["--budget", str(said.budget), "--seed", str(said.seed), "--scheme", scheme, "--size", str(said.size)]
        options += [word for name in _tables(said) for word in ("--only", name)]
        env = {name: value for name, value in os.environ.items() if name != "SPARK_HOME"} | own
        return subprocess.run([python, "-m", "tools.mishaps", *options], check=False, env=env).returncode


def _run(said: argparse.Namespace, schemes: Sequence[str]) -> int:
    """Run the mishaps of some schemes in this process; 1: one was not passed."""
    drawn = [(name, scheme) for scheme in schemes for name in _tables(said) if scheme in MISHAPS[name][1]]
    if not drawn:
        return 0
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
        try:
            wrong, errors = happens(spark, name, scheme, said.seed, said.size)
        except UnavailableError as why:
            print(f"{name}, {scheme}: {why}")
            continue
        failed += bool(wrong)
        came = wrong or (f"refused: {errors[0]}" if errors else "equal to the batch")
        print(f"{'WRONG ' if wrong else ''}{name}, {scheme}: {came[:300]}", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
