"""Processes of a cluster are killed three times at drawn moments of a query with state: the same rows as by a batch computation.

BEAMISH_CLUSTER_SEED= draws the same moments again. The driver is restarted where it stops, as a supervisor would.
"""

import os
import random
import signal
import sqlite3
import time

import pytest

from tests.cluster.conftest import VERSIONS, python_of
from tests.cluster.drivers import Drivers, seconds
from tests.servers.killing import rows_of_files, sessions
from tools.servers.cluster import WORKERS, Cluster, kill

pytestmark = [pytest.mark.cluster, pytest.mark.filterwarnings("ignore::ResourceWarning")]

SEED = int(os.environ.get("BEAMISH_CLUSTER_SEED", random.SystemRandom().randrange(1_000_000)))
FILES = 16
TIMEOUT = 15
"""Seconds until driver and master give a silent worker up; Spark's own are 120 and 60."""
SETTINGS = {"spark.network.timeout": f"{TIMEOUT}s", "spark.executor.heartbeatInterval": "3s"}


@pytest.fixture(scope="module", params=VERSIONS[-1:])
def cluster(request):
    cluster = Cluster(python_of(request.param), worker_timeout=TIMEOUT)
    yield cluster
    cluster.stop()


@pytest.fixture
def draw(request):
    print(f"BEAMISH_CLUSTER_SEED={SEED}")
    return random.Random(f"{SEED} {request.node.name}")


@pytest.fixture
def drivers(cluster, archive, tmp_path):
    return Drivers(cluster, archive, tmp_path, rows_of_files(files=FILES))


@pytest.fixture
def cables(cluster):
    if cluster.network.why_flat:
        pytest.skip(f"no network that can be cut: {cluster.network.why_flat}")
    return cluster.network


def start(drivers, host="driver1"):
    submit = ["--py-files", drivers.archive]
    return drivers.start(
        "run_sessions", way="py-files", submit=submit, host=host, settings=SETTINGS, table=drivers.table
    )


def inject(drivers, draw, fault):
    """Run the query to its end, with three faults at drawn moments; give how often its driver was restarted."""
    process, restarts = start(drivers), 0
    for number in range(3):
        assert drivers.wait(process, drivers.batches() + draw.randrange(1, 4)), drivers.said()
        time.sleep(draw.uniform(0, 2))
        begun, batch = time.monotonic(), drivers.batches()
        fault(process)
        if process.poll() is None and drivers.wait(process, batch + 2):
            print(f"fault {number + 1} in batch {batch - 1}: two batches later after {time.monotonic() - begun:.1f} s")
        elif process.wait(60):
            process, restarts = start(drivers), restarts + 1
    return restarts + finish(drivers, process)


def finish(drivers, process):
    """Restart a driver until it ends by itself; give how often."""
    for restarts in range(4):
        if process.wait(600) == 0:
            check(drivers)
            print(f"{drivers.batches()} batches")
            return restarts
        process = start(drivers)
    kill(process)
    raise AssertionError(drivers.said())


def check(drivers):
    """Panes and the table equal the batch computation."""
    drivers.check_sessions()
    with sqlite3.connect(drivers.folder / "sessions.db") as table:
        found = table.execute("SELECT team, window_start, window_end, total, plays FROM sessions").fetchall()
    assert sorted(
        ((team, to_seconds(start), to_seconds(end), *rest) for team, start, end, *rest in found), key=repr
    ) == sessions(drivers.files)


def to_seconds(instant):
    return instant // 1_000_000 if isinstance(instant, int) else seconds(instant)


def drawn_executor(drivers, draw):
    """An executor that runs now, with its worker's host."""
    while True:
        found = [(host, pid) for host in WORKERS for pid in drivers.cluster.executors(host)]
        if found:
            return draw.choice(found)
        time.sleep(0.1)


def test_an_executor_is_killed(drivers, draw):
    def fault(_):
        os.kill(drawn_executor(drivers, draw)[1], signal.SIGKILL)

    assert inject(drivers, draw, fault) == 0


def test_a_worker_is_killed(drivers, draw):
    def fault(_):
        host, _ = drawn_executor(drivers, draw)
        kill(drivers.cluster.workers[host])
        time.sleep(draw.uniform(0, 5))
        drivers.cluster.start_worker(host)

    assert inject(drivers, draw, fault) == 0


def test_a_python_worker_is_killed(drivers, draw):
    """As by the kernel when memory is short."""

    def fault(_):
        until = time.monotonic() + 60
        while time.monotonic() < until:
            found = [pid for host in WORKERS for pid in drivers.cluster.pythons(host)]
            if found:
                os.kill(draw.choice(found), signal.SIGKILL)
                return
            time.sleep(0.05)
        raise AssertionError("no Python worker is found")

    assert inject(drivers, draw, fault) == 0


def test_a_driver_is_killed(drivers, draw):
    assert inject(drivers, draw, kill) == 3


def test_a_worker_is_cut_off_for_a_moment(drivers, draw, cables):
    def fault(_):
        host, _ = drawn_executor(drivers, draw)
        cables.cut(host)
        time.sleep(draw.uniform(2, TIMEOUT / 2))
        cables.mend(host)

    inject(drivers, draw, fault)


def test_a_worker_is_cut_off_for_good(drivers, draw, cables):
    """Another machine takes its place, later."""

    def fault(process):
        host, _ = drawn_executor(drivers, draw)
        cables.cut(host)
        if drivers.wait(process, drivers.batches() + 2):
            print("two batches without it")
        kill(drivers.cluster.workers[host])
        cables.mend(host)
        drivers.cluster.start_worker(host)

    inject(drivers, draw, fault)


def two_drivers(drivers, draw, leave, come_back):
    """A driver that is taken for dead comes back while another continues from its checkpoint."""
    first = start(drivers)
    for _ in range(3):
        assert drivers.wait(first, drivers.batches() + draw.randrange(1, 3)), drivers.said()
        time.sleep(draw.uniform(0, 2))
        leave(first)
        second = start(drivers, host="driver2")
        drivers.wait(second, drivers.batches() + draw.randrange(1, 3))
        come_back(first)
        ends = wait_for_one(drivers, first, second)
        print(f"first driver: {ends[0]}, second: {ends[1]}")
        if 0 in ends:
            break
        first = start(drivers)
    for process in (first, second):
        kill(process)
    finish(drivers, start(drivers))


def wait_for_one(drivers, first, second):
    """Wait until both have ended, the loser's end being that of its query; kill what remains after the table is complete."""
    until = time.monotonic() + 120
    while None in (ends := (first.poll(), second.poll())) and time.monotonic() < until:
        if 0 in ends:
            break
        time.sleep(0.2)
    for process in (first, second):
        kill(process)
    return ends


def test_a_paused_driver_comes_back_beside_another(drivers, draw):
    def pause(process):
        os.killpg(process.pid, signal.SIGSTOP)

    def resume(process):
        os.killpg(process.pid, signal.SIGCONT)

    two_drivers(drivers, draw, pause, resume)


def test_a_driver_cut_off_comes_back_beside_another(drivers, draw, cables):
    two_drivers(drivers, draw, lambda _: cables.cut("driver1"), lambda _: cables.mend("driver1"))


def test_two_drivers_at_once(drivers, draw):
    two_drivers(drivers, draw, lambda _: None, lambda _: None)
