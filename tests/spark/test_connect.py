"""Tests that need Spark Connect, in one separate session; the parts that differ least from a classic session run in ``make test-deep``."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("connect")]  # one run, beside the other session
PARTS = ("pipeline", "changelog", "sinks", "connectors", "as_of", "notebook")
DEEP = ("duplicates", "chain", "merge", "tree")


@pytest.fixture(scope="module")
def done(request, warm_python):
    """A session that runs the parts that were selected."""
    script = Path(__file__).with_name("connect_session.py")
    parts = [item.callspec.params["part"] for item in request.session.items if item.module is request.module]
    # A free port for the server, so that two of these can run side by side.
    environment = {**os.environ, "SPARK_TESTING": "1", "PYSPARK_PYTHON": warm_python or sys.executable}
    return subprocess.run(
        [sys.executable, script, *parts], env=environment, capture_output=True, text=True, timeout=300, check=False
    )


@pytest.mark.parametrize("part", [*PARTS, *(pytest.param(part, marks=pytest.mark.deep) for part in DEEP)])
def test_runs_on_spark_connect(done, part):
    """Each part is a function of connect_session.py."""
    assert part in done.stdout.split(), done.stderr[-3000:]
