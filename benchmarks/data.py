"""Input rows of the benchmarks: parquet files with a fixed seed, created once.

A file is a micro-batch. Kinds:
    plain       four minutes of event time a file, spread back by up to a minute more
    hot         the same, with every second row of one key
    retained    a row for each key and minute, in ten files, then six files of 100,000 rows in the last four minutes:
                state to be kept, and batches that touch little of it
    replays     plain, but each row has a key of its own, and one in a hundred comes again in a later file
    few, no rows  a minute of event time per file; of the second kind no file but the first three has rows
    held        a row for each of ``rows`` keys, in ten files, then six files of 10,000 rows of such keys: changes to be
                held, and batches that change few of them
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

START_US = 1_700_000_000_000_000 // 60_000_000 * 60_000_000
MINUTE_US = 60_000_000
STEADY_FILES = 6
_FILL_FILES = 10
_WITH_ROWS = 3
_FOLDER = Path("build/bench/data")


_KEYS: dict[str, Callable[[Any], pa.Array]] = {
    "string": lambda number: pa.array([f"key{i}" for i in number]),
    "4 letters": lambda number: pa.array([f"{i:04}" for i in number]),
    "40 letters": lambda number: pa.array([f"{i:040}" for i in number]),
    "bigint": pa.array,
    "struct": lambda number: pa.array([{"name": f"key{i}", "number": i % 7} for i in number.tolist()]),
}
"""Keys, by their numbers."""


def rows_in_files(
    rows: int, files: int, keys: int, kind: str = "plain", parts: int = 1, *, key: str = "string", other: int = 0
) -> str:
    """The folder of such files; they are made if they are not there. They are read once: all programs find them warm.

    ``retained`` takes the number of windows as ``rows``. ``parts``: into how many files each is cut, so that as many
    tasks read a batch (one of 500,000 rows is a single split). ``other``: so many bytes are in a column that none asks for.
    """
    more = [str(parts)] * (parts > 1) + [key.replace(" ", "-")] * (key != "string") + [f"{other}-bytes"] * (other > 0)
    folder = _FOLDER / "-".join([kind, str(rows), str(files), str(keys), *more])
    done = folder / "_SUCCESS"
    if not done.exists():
        folder.mkdir(parents=True, exist_ok=True)
        chance = np.random.default_rng(7)
        keys = rows if kind in ("held", "replays") else keys
        kinds = {
            "retained": lambda: _retained(chance, rows, keys),
            "held": lambda: _held(chance, rows),
            "few": lambda: _few(chance, rows, files, keys, files),
            "no rows": lambda: _few(chance, rows, files, keys, _WITH_ROWS),
            "replays": lambda: _replays(chance, rows, files),
        }
        batches = kinds.get(kind, lambda: _plain(chance, rows, files, keys, kind))()
        names = _KEYS[key](np.arange(keys))
        for number, (time, of) in enumerate(batches):
            for part, at in enumerate(np.array_split(np.arange(len(time)), parts)):
                path = folder / f"part-{number:04}-{part}.parquet"
                _write(path, time[at], names.take(pa.array(of[at])), chance, other)
        done.touch()
    for path in sorted(folder.glob("*.parquet")):
        path.read_bytes()
    return str(folder)


def _plain(chance: np.random.Generator, rows: int, files: int, keys: int, kind: str) -> Iterator[tuple[Any, Any]]:
    for number in range(files):
        n = rows // files
        time = START_US + number * 4 * MINUTE_US + chance.integers(-MINUTE_US, 4 * MINUTE_US, n)
        key = chance.integers(0, keys, n)
        yield time, np.where(np.arange(n) % 2 == 0, 0, key) if kind == "hot" else key


def _replays(chance: np.random.Generator, rows: int, files: int) -> Iterator[tuple[Any, Any]]:
    for number, key in enumerate(np.array_split(np.arange(rows), files)):
        again = chance.integers(0, max(int(key[0]), 1), len(key))
        came = np.where(chance.random(len(key)) < 0.01, again, key) if number else key
        yield START_US + number * 4 * MINUTE_US + chance.integers(-MINUTE_US, 4 * MINUTE_US, len(key)), came


def _retained(chance: np.random.Generator, windows: int, keys: int) -> Iterator[tuple[Any, Any]]:
    minutes = windows // keys
    time = START_US + np.repeat(np.arange(minutes), keys) * MINUTE_US
    key = np.tile(np.arange(keys), minutes)
    yield from zip(np.array_split(time, _FILL_FILES), np.array_split(key, _FILL_FILES), strict=True)
    for _ in range(STEADY_FILES):
        yield (
            START_US + (minutes - 4) * MINUTE_US + chance.integers(0, 4 * MINUTE_US, 100_000),
            chance.integers(0, keys, 100_000),
        )


def _held(chance: np.random.Generator, slots: int) -> Iterator[tuple[Any, Any]]:
    key = np.arange(slots)
    for part in np.array_split(key, _FILL_FILES):
        yield START_US + chance.integers(0, MINUTE_US, len(part)), part
    for _ in range(STEADY_FILES):
        yield START_US + chance.integers(0, MINUTE_US, 10_000), chance.integers(0, slots, 10_000)


def _few(chance: np.random.Generator, rows: int, files: int, keys: int, full: int) -> Iterator[tuple[Any, Any]]:
    for number in range(files):
        n = rows // files if number < full else 0
        yield START_US + number * MINUTE_US + chance.integers(0, MINUTE_US, n), chance.integers(0, keys, n)


def _write(path: Path, time: Any, key: pa.Array, chance: np.random.Generator, other: int = 0) -> None:
    columns = {"ts": pa.array(time).cast(pa.timestamp("us", tz="UTC")), "k": key}
    columns["x"] = pa.array(chance.integers(0, 1000, len(time)))
    if other:
        texts = pa.array([chance.bytes(other // 2).hex() for _ in range(1000)])
        columns["other"] = texts.take(columns["x"])
    pq.write_table(pa.table(columns), path)
