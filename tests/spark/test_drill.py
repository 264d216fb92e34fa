"""The drill kills queries and finds nothing (docs/reliability.md); long ones by ``make drill``."""

import os
import re
import subprocess
import sys

import pytest

from tools.drill.how import CLUSTER, How
from tools.drill.moments import MOMENTS, moments
from tools.drill.pipelines import DRILLED
from tools.drill.query import Query


@pytest.mark.spark
@pytest.mark.xdist_group("drill")
def test_queries_that_are_killed_give_what_they_give_when_left_alone(root):
    how = ["--kills", "1", "--only", "sessions", "--source", "chunks", "--cluster", "0"]
    at = ["--moment", "after the sink", "--moment", "state", "--moment", "file sink"]
    command = [sys.executable, "-m", "tools.drill", "--seed", "1", "--budget", "1000", *how, *at]
    said = subprocess.run(command, cwd=root, env=os.environ, capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stdout + said.stderr
    assert re.search(r"1 kills, 1 of queries, .* [1-9] runs compared, 0 differences", said.stdout), said.stdout


def test_every_moment_is_one_of_some_query(tmp_path):
    how = How(
        CLUSTER,
        changelog=True,
        chunks=1,
        verifies=True,
        java="",
        warm=None,
        moments=tuple(MOMENTS),
        sources=(),
        sinks=(),
    )
    found = {
        moment
        for name in DRILLED
        for sink in ("files", "batches")
        for source in ("files", "chunks")
        for moment in moments(Query(name, sink, source, tmp_path, tmp_path), how)
    }
    assert found == set(MOMENTS)
