"""constraints.txt: versions that fit what pyproject.toml allows, one for whatever it names; and when the Makefile takes them."""

import os
import re
import shutil
import subprocess
import tomllib
from itertools import chain

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

PIN = re.compile(r"([A-Za-z0-9][\w.-]*)==([\w.+!]+)")


def pins(root):
    text = (root / "constraints.txt").read_text() + (root / "peers/beam_python/requirements.txt").read_text()
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [PIN.fullmatch(line) for line in lines]


def requirements(root):
    """The dependencies in pyproject.toml, of all extras; extras that refer to other extras are left out."""
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    named = [*project["dependencies"], *chain(*project["optional-dependencies"].values())]
    return [one for one in map(Requirement, named) if one.name != project["name"]]


def test_a_pin_is_a_name_and_a_version_and_nothing_else(root):
    found = pins(root)
    assert all(found), "a line of constraints.txt has more than name==version"
    names = [canonicalize_name(one[1]) for one in found]
    assert len(set(names)) == len(names)
    assert "beamish" not in names


def test_pins_are_within_the_ranges_of_pyproject(root):
    pinned = {canonicalize_name(one[1]): Version(one[2]) for one in pins(root)}
    assert len(requirements(root)) > 30
    for one in requirements(root):
        assert pinned[canonicalize_name(one.name)] in one.specifier, f"{one}: not what constraints.txt has"


@pytest.mark.parametrize(("minor", "said", "taken"), [(11, [], True), (11, ["PINS="], False), (12, [], False)])
def test_make_takes_the_pins_under_the_python_they_were_tried_with(root, tmp_path, minor, said, taken):
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(root / name, tmp_path / name)
    for name in (".venv/bin", "beamish/triggers", "beamish/accumulations"):
        (tmp_path / name).mkdir(parents=True)
    python = tmp_path / ".venv" / "bin" / "python"
    # As Python of that version: it fails where it is asked whether it is 3.11, and writes down what pip is to do.
    wrong = int(minor != 11)
    python.write_text(
        f'#!/bin/sh\ncase "$*" in *version_info*) exit {wrong};; *"pip install"*) echo "$*" >> {tmp_path}/pip;; esac\n'
    )
    python.chmod(0o755)
    clean = {name: value for name, value in os.environ.items() if name not in ("PINS", "MAKEFLAGS", "MFLAGS")}
    subprocess.run(["make", ".venv/installed-plot", *said], cwd=tmp_path, env=clean, capture_output=True, check=True)
    (line,) = (tmp_path / "pip").read_text().splitlines()
    assert ("--constraint constraints.txt" in line) == taken
    assert line.endswith("--editable .[plot]")
