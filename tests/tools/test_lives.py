"""Mishaps to processes (tools/drill/lives.py), without the processes."""

import random

import pyarrow as pa
import pyarrow.parquet as pq

from tools.drill import lives as module
from tools.drill.lives import LIVES, Lives, killed_upgrade, many_windows
from tools.drill.steps import VERSIONS, Said


def written(folder, **batches):
    folder.mkdir()
    for name, values in batches.items():
        pq.write_table(pa.table({"n": values}), folder / name.strip("_"))
    return folder


def test_lost_and_doubled_rows_are_found(tmp_path):
    whole = written(tmp_path / "whole", _0000=[1, 2], _0001=[3])
    lives = Lives(tmp_path, random.Random(1), 1)
    lives.compare("cut otherwise", written(tmp_path / "cut", _0000=[1], _0002=[3, 2]), whole)
    assert not lives.wrong
    lives.compare("lost", written(tmp_path / "lost", _0000=[1, 2]), whole)
    lives.compare("doubled", written(tmp_path / "doubled", _0000=[1, 2], _0001=[3, 3]), whole)
    assert [one.partition(";")[0] for one in lives.wrong] == [
        "lost: 2 rows, uninterrupted 3",
        "doubled: 4 rows, uninterrupted 3",
    ]


def test_an_error_of_a_step_is_a_problem(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "live", lambda *given: [Said("StateError: no", is_ours=True) for _ in given[1]])
    lives = Lives(tmp_path, random.Random(1), 3)
    killed_upgrade(lives)
    assert lives.wrong == ["runs first: StateError: no"]


def test_windows_are_begun_updated_and_emitted(tmp_path, monkeypatch):
    steps = []
    monkeypatch.setattr(module, "live", lambda *given: steps.extend(given[1]) or [Said() for _ in given[1]])
    lives = Lives(tmp_path, random.Random(1), 50)
    many_windows(lives)
    tables = [pq.read_table(path) for path in sorted((tmp_path / "many").iterdir())]
    assert [len(table) for table in tables] == [50, 26, 1, 1]
    assert len({(row["k"], row["ts"]) for row in tables[0].to_pylist()}) == 50
    assert len(steps) == 6  # left alone, a kill for each batch, the rest


def test_every_mishap_is_described():
    assert all(happens.__doc__ for happens, _ in LIVES.values())
    assert {"first", "fewer", "added", "many"} == {*VERSIONS}
