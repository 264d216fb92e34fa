"""The benchmarks' rows: parquet files with a fixed seed, made once.

A file is a micro-batch: ``rows`` / ``files`` rows of four minutes of event time, spread back by up to a minute more.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

START_US = 1_700_000_000_000_000
MINUTE_US = 60_000_000
_FOLDER = Path("build/bench/data")


def rows_in_files(rows: int, files: int, keys: int) -> str:
    """The folder of such files; they are made if they are not there."""
    folder = _FOLDER / f"{rows}-{files}-{keys}"
    done = folder / "_SUCCESS"
    if not done.exists():
        folder.mkdir(parents=True, exist_ok=True)
        chance = np.random.default_rng(7)
        for number in range(files):
            _write(folder / f"part-{number:04}.parquet", chance, number, rows // files, keys)
        done.touch()
    return str(folder)


def _write(path: Path, chance: np.random.Generator, number: int, rows: int, keys: int) -> None:
    time = START_US + number * 4 * MINUTE_US + chance.integers(-MINUTE_US, 4 * MINUTE_US, rows)
    key = chance.integers(0, keys, rows)
    names = pa.array([f"key{i}" for i in range(keys)])
    table = pa.table(
        {
            "ts": pa.array(time).cast(pa.timestamp("us", tz="UTC")),
            "k": names.take(pa.array(key)),
            "x": pa.array(chance.integers(0, 1000, rows)),
        }
    )
    pq.write_table(table, path)
