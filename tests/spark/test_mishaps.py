"""Mishaps to tables and checkpoints (docs/reliability.md#mishaps); all of them by ``make drill``."""

import random

import pytest

import beamish as bm
from tests.cost import deep_after
from tools.mishaps import MISHAPS, Scene, happens


@pytest.mark.parametrize(
    "name", deep_after(1, ["a reader in this process", "two drivers", "a rewritten file", "a restored table"])
)
def test_a_table_is_correct_or_its_query_rejected(spark, name):
    wrong, errors = happens(spark, name, "sqlite", seed=5)
    assert not wrong
    assert [type(error) for error in errors] == ([] if name == "a reader in this process" else [bm.SinkError])


def test_mishaps_are_detected(tmp_path, monkeypatch):
    scene = Scene(None, tmp_path, "sqlite", random.Random(1))
    monkeypatch.setattr(Scene, "table", lambda _: [("a", 1, 2)])
    monkeypatch.setattr(Scene, "batch", lambda _: [("a", 1, 2), ("b", 1, 2)])
    assert "the table has [('a', 1, 2)], the batch" in scene.verdict()
    scene.errors.append(ValueError("disk I/O error"))
    assert scene.verdict() == "stopped by disk I/O error"
    scene.errors[:] = [bm.SinkError("no")]
    assert scene.verdict() == ""


def test_every_mishap_is_described():
    assert all(happens_.__doc__ for happens_, _ in MISHAPS.values())
