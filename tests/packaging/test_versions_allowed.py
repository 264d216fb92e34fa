"""pyproject.toml and beamish agree about the oldest versions of Python and PySpark."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import beamish as bm
from beamish import packages


def project(root):
    return tomllib.loads((root / "pyproject.toml").read_text())["project"]


def test_the_oldest_pyspark_that_may_be_installed_is_the_oldest_that_is_taken(root, monkeypatch):
    (line,) = [one for one in project(root)["optional-dependencies"]["spark"] if one.startswith("pyspark")]
    major, minor = map(int, re.search(r">=(\d+)\.(\d+)", line).groups())
    monkeypatch.setattr(packages, "pyspark_version", lambda: (major, minor))
    packages.check_packages()
    monkeypatch.setattr(packages, "pyspark_version", lambda: (major - 1, 5))
    with pytest.raises(bm.SparkSetupError, match=rf"pyspark {major - 1}\.5: beamish needs {major}\.{minor} or later"):
        packages.check_packages()


def test_the_oldest_python_that_may_be_installed_is_the_oldest_that_is_taken(root):
    least = re.search(r">=(\d+)\.(\d+)", project(root)["requires-python"]).groups()
    assert f"sys.version_info < ({', '.join(least)})" in (root / "beamish" / "__init__.py").read_text()


def older():
    """Pythons of this machine that are too old."""
    names = [shutil.which(f"python3.{minor}") for minor in (8, 9, 10)]
    own = [str(path) for path in Path.home().glob(".pyenv/versions/3.[89].*/bin/python")]
    own += [str(path) for path in Path.home().glob(".pyenv/versions/3.10.*/bin/python")]
    return [one for one in (*names, *own) if one and subprocess.run([one, "-c", ""], check=False).returncode == 0]


@pytest.mark.dear
def test_an_older_python_fails_with_a_clear_message(root):
    for python in older()[:1]:
        done = subprocess.run([python, "-c", "import beamish"], cwd=root, capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert re.search(r"ImportError: beamish needs Python 3\.11 or later, this is 3\.\d+\.\d+", done.stderr), (
            done.stderr
        )
    assert sys.version_info >= (3, 11)
