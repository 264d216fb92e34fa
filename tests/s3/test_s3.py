"""Sessions with their checkpoint on an object store equal a batch: killed, migrated, while the store fails and is slow.

BEAMISH_S3_SEED= draws the same moments again.
"""

import json
import os
import random
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.s3.failing_store import FailingStore
from tests.s3.query import live
from tests.servers.killing import ROOT, rows_of_files, run, sessions, write_files
from tests.servers.started import started
from tools.servers.s3 import S3, settings
from tools.servers.server import UnavailableError

pytestmark = [pytest.mark.s3, pytest.mark.filterwarnings("ignore::ResourceWarning")]

MODULE = "tests.s3.query"
CHANGELOGS = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
SEED = int(os.environ.get("BEAMISH_S3_SEED", random.SystemRandom().randrange(1_000_000)))
FAULTS = [(503, 0, 60), (500, 0, 60), (None, 3, 20)]
"""Answer, delay of requests, and length of a fault, in seconds."""


@pytest.fixture
def draw(request):
    print(f"BEAMISH_S3_SEED={SEED}")
    return random.Random(f"{SEED} {request.node.name}")


@pytest.fixture
def store():
    return started(S3)


@pytest.fixture(autouse=True)
def python(warm_python, monkeypatch):
    """Spark waits ten seconds for a worker of a stream's driver, whatever else the machine does."""
    if warm_python:
        monkeypatch.setenv("PYSPARK_PYTHON", warm_python)


@pytest.fixture
def told(store, tmp_path):
    """Gives the description of a query for an endpoint."""

    def told(endpoint=store.endpoint, **more):
        try:
            reached = settings(endpoint)
        except UnavailableError as why:
            pytest.skip(str(why))
        place = f"s3a://{store.bucket}/{tmp_path.name}"
        own = {name: str(tmp_path / name) for name in ("rows", "out", "halted")}
        return own | {"settings": reached, "checkpoint": f"{place}/first", "to": f"{place}/second", "shards": 2} | more

    return told


@pytest.mark.parametrize("changelogs", [True, False])
def test_a_query_is_killed_inspected_and_migrated(told, tmp_path, draw, changelogs):
    files = rows_of_files(files=8)
    write_files(tmp_path / "rows", files[:4])
    query = told()
    query["settings"][CHANGELOGS] = changelogs
    killed_in(draw.randrange(1, 3), draw.uniform(0, 2), query)
    run(MODULE, timeout=900, **query, parts=["run", "inspect", "check_upgrade"])
    assert live(tmp_path / "out") == sessions(files[:4])
    write_files(tmp_path / "more", files[4:])
    for number, file in enumerate(sorted((tmp_path / "more").iterdir()), start=4):
        file.rename(tmp_path / "rows" / f"{number}.json")
        os.utime(tmp_path / "rows" / f"{number}.json", (1_700_000_000 + number,) * 2)
    run(MODULE, timeout=900, **query, parts=["migrate"])
    migrated = query | {"checkpoint": query["to"], "shards": 3}
    killed_in(draw.randrange(5, 7), draw.uniform(0, 2), migrated)
    run(MODULE, timeout=900, **migrated, parts=["run", "inspect"])
    assert live(tmp_path / "out") == sessions(files)


def killed_in(batch, after, query):
    """Run the query, and kill it this many seconds into a batch."""
    run(MODULE, killed=True, timeout=900, **query, parts=["run"], kill_in=batch, kill_after=after)


def test_a_store_fails_and_is_slow(told, store, tmp_path, draw):
    files = rows_of_files()
    write_files(tmp_path / "rows", files)
    with FailingStore(store.port) as proxy:
        stopped = run_through(proxy, told(proxy.endpoint), tmp_path, draw)
    print(f"{proxy.failed} requests failed, {proxy.late} were late; the query stopped {stopped} times")
    assert min(proxy.failed, proxy.late) > 0
    assert live(tmp_path / "out") == sessions(files)


def run_through(proxy, query, folder, draw):
    """Run the query to its end, with all faults; how often it stopped."""
    process, stopped = start(query), 0
    for number, (answer, wait, seconds) in enumerate(FAULTS):
        while not (folder / "out" / f"{number * 2}.json").exists():
            assert process.poll() is None, said(folder)
            time.sleep(0.1)
        time.sleep(draw.uniform(0, 1))
        proxy.answers, proxy.waits = answer, wait
        with suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
        proxy.answers, proxy.waits = None, 0
        if process.poll() not in (None, 0):
            process, stopped = start(query), stopped + 1
    if process.wait(900):
        process, stopped = start(query), stopped + 1
        assert process.wait(900) == 0, said(folder)
    return stopped


def start(query):
    with Path(f"{query['halted']}.log").open("ab") as log:
        told = [sys.executable, "-m", MODULE, json.dumps(query | {"parts": ["run"]})]
        return subprocess.Popen(told, cwd=ROOT, stdout=log, stderr=log)


def said(folder):
    return (folder / "halted.log").read_text()[-3000:]
