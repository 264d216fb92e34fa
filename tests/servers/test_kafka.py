"""A topic that a killed query wrote to, some of it twice, read as docs/sinks.md says that a consumer should."""

import json
import subprocess
from datetime import datetime

import pytest

from tests.servers import broker, lake
from tests.servers.killing import ROOT, rows_of_files, run, sessions, write_files

pytestmark = pytest.mark.servers


def test_a_topic_folds_to_the_batch_computation_though_its_query_was_killed(tmp_path):
    python = lake.python()
    files = rows_of_files(files=4)
    write_files(tmp_path / "rows", files)
    told = {
        "servers": broker.servers(),
        "settings": broker.connector(),
        "rows": str(tmp_path / "rows"),
        "checkpoint": str(tmp_path / "checkpoint"),
        "halted": str(tmp_path / "halted"),
    }
    run("tests.servers.broker", python=python, killed=True, stop_in=2, stop_at="end", **told)
    run("tests.servers.broker", python=python, **told)
    command = [python, "-m", "tests.servers.broker", json.dumps(told | {"show": True})]
    shown = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    records = json.loads(shown.splitlines()[-1])
    assert len(set(map(tuple, records))) < len(records)  # a batch was written twice
    assert sorted(map(row, fold(records).values()), key=repr) == sessions(files)


def fold(records):
    """Keep, by key, the record with the greatest sequence; null deletes."""
    kept = {}
    for key, value in records:
        if value is None:
            kept.pop(key, None)
        elif key not in kept or json.loads(value)["_sequence"] > kept[key]["_sequence"]:
            kept[key] = json.loads(value)
    return kept


def row(value):
    start, end = (int(datetime.fromisoformat(value[name]).timestamp()) for name in ("window_start", "window_end"))
    return value["team"], start, end, value["total"], value["plays"]
