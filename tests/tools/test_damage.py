"""tools/damage.py: damaged values of every kind of stage are refused, and it can tell when they are not."""

import importlib.util
import random
import sys

import pytest


@pytest.fixture(scope="module")
def damage(root):
    spec = importlib.util.spec_from_file_location("damage", root / "tools" / "damage.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["damage"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.dear
def test_a_damaged_value_of_any_stage_is_refused_or_not_read(damage):
    chance = random.Random(5)
    cases = [damage.Case(name, chance) for name in damage.PIPELINES]
    assert all(any(case.right) for case in cases)  # something comes out, which could be wrong
    outcomes = {damage.run(cases, chance) for _ in range(60)}
    assert outcomes <= {"an error that says so", "the right panes: it was not read", "the same value"}
    assert "an error that says so" in outcomes


def test_without_checksums_damage_is_accepted(damage, monkeypatch):
    monkeypatch.setattr(damage.SealedStore, "get", lambda store, name: store.store.get(name))
    chance = random.Random(5)
    cases = [damage.Case("fixed windows", chance)]
    assert any(damage.read(cases, chance).startswith("WRONG") for _ in range(20))


@pytest.mark.parametrize("lost", [False, True])
@pytest.mark.dear
def test_without_stored_checksums_outdated_and_lost_values_are_accepted(damage, lost, monkeypatch):
    monkeypatch.setattr(damage, "damaged", lambda *given: None if lost else given[-1])
    chance = random.Random(5)
    cases = [damage.Case(name, chance) for name in ("sessions", "retained", "once per window", "a chain")]
    assert {damage.run(cases, chance) for _ in range(30)} <= {
        "an error that says so",
        "the right panes: it was not read",
        "the same value",
    }
    monkeypatch.setattr("beamish.tables.entries.check_last", lambda *_: None)
    assert any(damage.run(cases, chance).startswith("WRONG") for _ in range(30))
