"""A topic that a killed query wrote to, some of it twice, read as docs/sinks.md says that a consumer should."""

import json
from datetime import datetime

import pytest

from tests.servers import broker, producer
from tests.servers.killing import rows_of_files, run, sessions, write_files
from tests.servers.started import started
from tools.servers.kafka import Broker

pytestmark = [pytest.mark.servers, pytest.mark.filterwarnings("default:org.apache.spark")]


def test_a_topic_folds_to_the_batch_computation_though_its_query_was_killed(tmp_path):
    files = rows_of_files(files=4)
    write_files(tmp_path / "rows", files)
    told = {
        "servers": started(Broker).address,
        "settings": broker.connector(),
        "rows": str(tmp_path / "rows"),
        "checkpoint": str(tmp_path / "checkpoint"),
        "halted": str(tmp_path / "halted"),
    }
    run("tests.servers.broker", killed=True, stop_in=2, stop_at="end", **told)
    run("tests.servers.broker", **told)
    records = producer.records(told["servers"], "sessions")
    assert len(set(records)) < len(records)  # a batch was written twice
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
