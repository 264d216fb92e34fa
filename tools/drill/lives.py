"""Mishaps to a query's processes: kills in an upgrade and among many windows, and workers with little memory."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tools.drill.pipelines import write_rows
from tools.drill.steps import MIGRATES, RUNS, Said, Step, halted, live, rows_in

_CHUNKS = 4
_FEWER_SHARDS = 2
_LAST = 8
"""Operations at the end of a migration, which put the new checkpoint in place."""


@attrs.define
class Lives:
    """A query's processes.

    Attributes:
        folder: of all their files.
        chance: draws the kills.
        size: the mishap's: kills, or windows.
        wrong: the problems.
    """

    folder: Path
    chance: random.Random
    size: int
    wrong: list[str] = attrs.field(factory=list)

    def say(self, line: str) -> None:
        """Print what happened."""
        print(f"    {line[:300]}", flush=True)

    def done(self, steps: Sequence[Step]) -> list[Said]:
        """Do steps that must come to their end."""
        said = live(self.folder, steps) or []
        self.wrong += [
            f"{step.what} {step.version}: {one.error}" for step, one in zip(steps, said, strict=True) if one.error
        ]
        return said

    def killed(self, steps: Sequence[Step], moment: Callable[[], bool]) -> bool:
        """Kill at a moment; whether it came before the end."""
        return live(self.folder, steps, moment) is None

    def compare(self, what: str, out: Path, expected: Path) -> None:
        """Compare the rows of two runs."""
        found, wanted = rows_in(out), rows_in(expected)
        if found != wanted:
            missing, more = sorted({*wanted} - {*found}), sorted({*found} - {*wanted})
            self.wrong.append(
                f"{what}: {len(found)} rows, uninterrupted {len(wanted)}; missing {missing[:2]}, others {more[:2]}"
            )


def killed_upgrade(lives: Lives) -> None:
    """SIGKILL while ``bm.migrate`` runs, and in the first batch after an upgrade; then it is done again."""
    folder = lives.folder
    write_rows(folder / "rows", lives.chance, _CHUNKS)
    (folder / "given").mkdir()
    _give(folder, 0, _CHUNKS // 2)
    first = Step(RUNS, "first", str(folder / "given"), str(folder / "old"), out=str(folder / "out"))
    lives.done([first])
    if lives.wrong:
        return
    migrates = attrs.evolve(first, what=MIGRATES, version="fewer", shards=_FEWER_SHARDS * 2)
    copies = attrs.evolve(first, what=MIGRATES)

    def after(step: Step, name: str) -> tuple[Step, Step]:
        """A migration, and a run from its new checkpoint."""
        to, out = folder / name, folder / f"{name}-out"
        shutil.copytree(folder / "out", out)
        run = attrs.evolve(step, what=RUNS, checkpoint=str(to), out=str(out))
        if step.version == "first":
            run = attrs.evolve(run, version="added", checks=True)
        return attrs.evolve(step, to=str(to), out=str(out)), run

    steps = {MIGRATES: after(migrates, "migrated"), "added": after(copies, "copied")}
    said = lives.done([steps[MIGRATES][0], steps["added"][0]])
    _give(folder, _CHUNKS // 2, _CHUNKS + 2)
    lives.done([steps[MIGRATES][1], steps["added"][1]])
    if lives.wrong:
        return
    operations = said[0].operations
    moments = [*range(operations - _LAST, operations), *lives.chance.sample(range(operations - _LAST), 2)]
    kinds: list[int | str] = [*moments, *(f"{MIGRATES}, first batch", "added, first batch") * 2]
    if lives.size < len(kinds):
        kinds = [*lives.chance.sample(moments, max(1, lives.size - 2)), *kinds[len(moments) :]]
    for number, kind in enumerate(kinds[: lives.size]):
        if isinstance(kind, int):
            migration, run = after(migrates, f"killed-{number}")
            _kill_migration(lives, migration, run, kind)
            lives.compare(f"killed before operation {kind} of {operations}", Path(run.out), folder / "migrated-out")
        else:
            of = kind.partition(",")[0]
            migration, run = after(migrates if of == MIGRATES else copies, f"killed-{number}")
            moment = lives.chance.choice(list(_MOMENTS))
            if lives.killed([migration, run], _moment(run, moment)):
                lives.say(f"killed in {kind}, {moment}")
                lives.done([run])
            expected = "migrated-out" if of == MIGRATES else "copied-out"
            lives.compare(f"killed in {kind}, {moment}", Path(run.out), folder / expected)


def _kill_migration(lives: Lives, migration: Step, run: Step, operation: int) -> None:
    """Kill a migration, migrate again, start the query; if there is an unfinished checkpoint, start it from that too, before it is deleted."""
    if not lives.killed([attrs.evolve(migration, halts=operation)], halted(lives.folder)):
        lives.wrong.append(f"the migration did not come to operation {operation}")
        return
    to, early = Path(migration.to), Path(f"{run.out}-unfinished")
    found = sorted(path.name for path in to.iterdir()) if to.exists() else None
    lives.say(f"killed before operation {operation}: the new folder has {found}")
    if found is None:
        lives.done([migration, run])
        return
    shutil.copytree(run.out, early)
    for step, one in _both(lives, [migration, attrs.evolve(run, out=str(early))]):
        lives.say(f"{step.what}: {one.error or 'continues'}")
        if one.error and not one.is_ours:
            lives.wrong.append(f"{step.what} after a kill before operation {operation}, {found}: {one.error}")
        if not one.error and step.what == RUNS:
            lives.compare(f"started from {found}", early, lives.folder / "migrated-out")
    shutil.rmtree(to)
    shutil.rmtree(f"{to}.unfinished", ignore_errors=True)
    lives.done([migration, run])


def _both(lives: Lives, steps: Sequence[Step]) -> list[tuple[Step, Said]]:
    return list(zip(steps, live(lives.folder, steps) or [], strict=True))


_MOMENTS = {
    "offsets": "offsets/{n}",
    "state": "state/0/0/{after}.*",
    "a later partition's state": "state/0/1/{after}.*",
    "the sink": "",
    "commit": "commits/{n}",
}
"""Files that appear while a batch runs: ``n`` is the batch, ``after`` the version of its state."""


def _moment(run: Step, name: str, batch: int | None = None) -> Callable[[], bool]:
    """Whether a file of the first batch after an upgrade, or of that batch, is there."""
    checkpoint, first = Path(run.checkpoint), batch

    def came() -> bool:
        nonlocal first
        if first is None:
            if not (checkpoint / "state").exists():
                return False
            first = 1 + max(int(path.name) for path in (checkpoint / "commits").glob("[0-9]*"))
        if not _MOMENTS[name]:
            return (Path(run.out) / f"{first:04}").exists()
        return any(checkpoint.glob(_MOMENTS[name].format(n=first, after=first + 1)))

    return came


def _give(folder: Path, begin: int, end: int) -> None:
    for number in range(begin, end):
        shutil.copy2(folder / "rows" / f"{number:04}.json", folder / "given")


def many_windows(lives: Lives) -> None:
    """Many windows in one shard, and a SIGKILL in each batch."""
    run = _many(lives)
    alone = attrs.evolve(run, checkpoint=f"{run.checkpoint}-alone", out=f"{run.out}-alone")
    lives.done([alone])
    for batch in range(len(list(Path(run.rows).iterdir()))):
        moment = lives.chance.choice([name for name in _MOMENTS if name != "a later partition's state"])
        if lives.killed([run], _moment(run, moment, batch)):
            lives.say(f"killed in batch {batch}, {moment}")
    lives.done([run])
    lives.compare(f"{lives.size:,} windows", Path(run.out), Path(alone.out))
    lives.say(f"{len(rows_in(Path(run.out))):,} rows")


def _many(lives: Lives) -> Step:
    """A query whose first batch begins a number of windows in one shard, the second updates half of them, and the last emits them."""
    folder, numbers = lives.folder / "many", np.random.default_rng(lives.chance.getrandbits(32))
    folder.mkdir()
    windows = numbers.permutation(lives.size)
    keys = max(1, lives.size // 1000)
    batches = [windows, numbers.integers(0, lives.size, lives.size // 2 + 1)]
    for number, drawn in enumerate(batches):
        _write(folder / f"{number:04}.parquet", drawn // keys * 10 + 1_000, drawn % keys, numbers)
    for number in (2, 3):
        _write(folder / f"{number:04}.parquet", np.array([10**6 * number + 10 * lives.size]), np.array([-1]), numbers)
    for number, path in enumerate(sorted(folder.iterdir())):
        os.utime(path, (1_700_000_000 + number,) * 2)
    return Step(
        RUNS, "many", str(folder), str(lives.folder / "checkpoint"), 1, str(lives.folder / "out"), reads="parquet"
    )


def _write(path: Path, seconds: np.ndarray, keys: np.ndarray, numbers: np.random.Generator) -> None:
    columns = {
        "ts": pa.array(seconds * 1_000_000, pa.timestamp("us", "UTC")),
        "k": pa.array(map(str, keys), pa.string()),
        "x": pa.array(numbers.integers(0, 100, len(keys)), pa.int32()),
    }
    pq.write_table(pa.table(columns), path)


_MEMORY = ("400m", "1200m", "2g", "3g", "4g", "6g")
"""Limits of the address space of all workers of an executor; a worker has that of its core."""


def little_memory(lives: Lives) -> None:
    """Workers have too little memory for many windows; the query is started again with some more, until it ends."""
    run = _many(lives)
    alone = attrs.evolve(run, checkpoint=f"{run.checkpoint}-alone", out=f"{run.out}-alone")
    lives.done([alone])
    for memory in _MEMORY:
        (said,) = live(lives.folder, [run], settings={"spark.executor.pyspark.memory": memory}) or []
        lives.say(f"{memory}: {said.error or 'to the end'}")
        if said.error and not said.is_ours:
            lives.wrong.append(f"with {memory} stopped by {said.error[:700]}")
        if not said.error:
            break
    else:
        lives.done([run])
    lives.compare(f"{lives.size:,} windows", Path(run.out), Path(alone.out))


LIVES: dict[str, tuple[Callable[[Lives], None], int]] = {
    "a killed upgrade": (killed_upgrade, 3),
    "many windows in a shard": (many_windows, 20_000),
    "little memory": (little_memory, 20_000),
}
"""The mishaps, each with its usual size."""
