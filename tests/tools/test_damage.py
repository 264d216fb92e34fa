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


def test_a_damaged_value_of_any_stage_is_refused_or_not_read(damage):
    chance = random.Random(5)
    cases = [damage.Case(name, chance) for name in damage.PIPELINES]
    assert all(any(case.right) for case in cases)  # something comes out, which could be wrong
    outcomes = {damage.run(cases, chance) for _ in range(60)}
    assert outcomes <= {"an error that says so", "the right panes: it was not read", "the same value"}
    assert "an error that says so" in outcomes


def test_without_checksums_damage_is_found_to_be_taken(damage, monkeypatch):
    monkeypatch.setattr(damage, "unseal", lambda value, *_: value)
    chance = random.Random(5)
    cases = [damage.Case("fixed windows", chance)]
    assert any(damage.read(cases, chance).startswith("WRONG") for _ in range(20))
