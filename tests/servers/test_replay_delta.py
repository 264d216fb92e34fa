"""Streams of Delta tables, replayed: each batch again has the rows that it had."""

import json
import subprocess

import pytest

from tests.servers import lake
from tests.servers.killing import ROOT

pytestmark = pytest.mark.servers


def test_a_replay_reads_the_files_of_each_batch(tmp_path):
    lake.python()
    lake.check_packages("delta")
    told = {
        "settings": lake.packages("delta") | lake.confs("delta", str(tmp_path / "warehouse")),
        "folder": str(tmp_path),
    }
    done = subprocess.run(
        [lake.python(), "-m", "tests.servers.replayed_delta", json.dumps(told)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines()[-1] == "done"
