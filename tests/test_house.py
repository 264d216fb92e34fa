"""The imports of the house: no circles, and no room that a contract of import-linter leaves out."""

import tomllib
from pathlib import Path

import pytest

from tools.house import PACKAGE, ROOT, House, circle, floors

UNGUARDED = {
    "Only spark/ knows pyspark and pandas": {
        *("checkpoint", "explain", "joining", "ledger", "pipeline", "plot", "sinks", "spark", "statement", "testing"),
        *("at_rest", "packages"),
    },
    "Only statement/ knows sqlglot": {"statement"},
    "Only plot/ knows matplotlib": {"plot"},
}
"""Rooms that may import what the contract forbids, or that stand above those that may."""
HOUSE = House.read()


def test_no_files_import_each_other_around():
    assert circle(HOUSE.arrows(lazy=False)) == []


def test_no_folders_import_each_other_around():
    assert circle(HOUSE.folders()) == []


@pytest.mark.parametrize("contract", UNGUARDED)
def test_a_contract_names_every_room(contract):
    rooms = {name.split(".")[1] for name in HOUSE.files if name != PACKAGE} - {"__main__"}
    said = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (guarded,) = [one["source_modules"] for one in said if one["name"] == contract]
    assert {name.removeprefix(f"{PACKAGE}.") for name in guarded} == rooms - UNGUARDED[contract]


def test_circles_are_found(tmp_path):
    def made(**files):
        for name, text in files.items():
            path = tmp_path / "beamish" / f"{name}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return House.read(tmp_path / "beamish")

    in_line = made(__init__="", a="from beamish import b", b="def later():\n    import beamish.a")
    assert circle(in_line.arrows(lazy=False)) == []
    assert floors(in_line.arrows(lazy=False)) == 2
    assert set(circle(in_line.arrows())) == {"beamish.a", "beamish.b"}
    annotated = made(b="from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from beamish.a import A")
    assert set(circle(annotated.arrows(lazy=False))) == {"beamish.a", "beamish.b"}
    assert Path(annotated.files["beamish"]).name == "__init__.py"
