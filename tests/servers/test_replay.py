"""A query over a Kafka topic, replayed: rows by the offsets of each batch, also after the topic lost its first records."""

import json
import subprocess
import sys

import pytest

from tests.servers import broker
from tests.servers.killing import ROOT
from tests.servers.started import started
from tools.servers.kafka import Broker

pytestmark = [pytest.mark.kafka]


def test_a_replay_reads_the_records_of_each_batch(tmp_path):
    settings = broker.connector()
    if not settings:
        pytest.skip("Spark's Kafka connector cannot be fetched")
    told = {"servers": started(Broker).address, "settings": settings, "folder": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "tests.servers.replayed_topic", json.dumps(told)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines()[-1] == "done"
