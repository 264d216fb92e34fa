"""Tables of Delta and Iceberg, kept by a query that is killed after a batch that Spark has not noted, and started again."""

import json
import subprocess

import pytest

from tests.servers import lake
from tests.servers.killing import ROOT, rows_of_files, run, sessions, write_files

pytestmark = pytest.mark.servers


@pytest.mark.parametrize("format_", ["delta", "iceberg"])
def test_a_table_equals_the_batch_computation_though_its_query_was_killed(tmp_path, format_):
    python = lake.python()
    lake.check_packages(format_)
    files = rows_of_files(files=4)
    write_files(tmp_path / "rows", files)
    warehouse = str(tmp_path / "warehouse")
    told = {
        "table": lake.table(format_, warehouse),
        "format": format_,
        "settings": lake.packages(format_) | lake.confs(format_, warehouse),
        "rows": str(tmp_path / "rows"),
        "checkpoint": str(tmp_path / "checkpoint"),
        "halted": str(tmp_path / "halted"),
    }
    run("tests.servers.lake", python=python, killed=True, stop_in=2, stop_at="end", **told)
    run("tests.servers.lake", python=python, **told)
    command = [python, "-m", "tests.servers.lake", json.dumps(told | {"show": True})]
    shown = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert sorted(map(tuple, json.loads(shown.splitlines()[-1])), key=repr) == sessions(files)
