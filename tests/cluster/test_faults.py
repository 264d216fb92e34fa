"""A query with state on a cluster whose processes and network fail at drawn moments: the same panes and table as by a batch computation.

BEAMISH_CLUSTER_SEED= draws the same moments again. Timeouts are of seconds, so that Spark notices what has failed.
"""

import os
import signal
import time

import pytest

from tests.cluster.conftest import VERSIONS, python_of
from tests.cluster.drivers import Drivers
from tests.servers.killing import rows_of_files
from tools.servers.cluster import WORKERS, Cluster, kill

pytestmark = [pytest.mark.cluster, pytest.mark.filterwarnings("ignore::ResourceWarning")]

FILES, TIMEOUT = 12, 20
CONCURRENT = ("Multiple streaming jobs detected", "two queries write it")
"""Spark stops one of two drivers at a file of the checkpoint, or the table does at an old batch."""
SETTINGS = {
    "spark.network.timeout": f"{TIMEOUT}s",
    "spark.network.timeoutInterval": "2s",
    "spark.executor.heartbeatInterval": "1s",
    "spark.rpc.askTimeout": f"{TIMEOUT}s",
    "spark.shuffle.io.retryWait": "1s",
    # All executors are there at the first fault.
    "spark.scheduler.minRegisteredResourcesRatio": "1",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "300s",
}


@pytest.fixture(scope="module")
def cluster():
    """A cluster of the newest version."""
    cluster = Cluster(python_of(VERSIONS[-1]), worker_timeout=TIMEOUT)
    yield cluster
    cluster.stop()


@pytest.fixture
def drivers(cluster, unpacked, draw, tmp_path):
    drivers = Drivers(cluster, unpacked, tmp_path, rows_of_files(files=FILES, rows=15, seed=draw.randrange(1_000_000)))
    yield drivers
    drivers.stop()


@pytest.fixture
def network(cluster):
    """The network, repaired afterwards, its workers started again; loopback addresses of a machine without namespaces cannot be cut."""
    if cluster.network.why_flat:
        pytest.skip(cluster.network.why_flat)
    yield cluster.network
    for host in cluster.network.addresses:
        cluster.network.mend(host)
    for host in WORKERS:
        kill(cluster.workers[host])
        cluster.start_worker(host)


def start(drivers, host="driver1", **told):
    path = {"PYTHONPATH": drivers.archive}
    settings = SETTINGS | {"spark.executorEnv.PYTHONPATH": drivers.archive}
    table = f"sqlite:///{drivers.database}"
    told |= {"way": "installed", "table": table, "settings": settings, "environment": path}
    return drivers.start("run_sessions_into_table", host=host, **told)


def moments(draw, number=3):
    """Batches, and seconds after their begin."""
    return [(batch, draw.uniform(0, 0.5)) for batch in sorted(draw.sample(range(1, FILES - 3), number))]


def reach(drivers, process, moment):
    batch, after = moment
    drivers.wait(process, batch)
    time.sleep(after)


def inject(drivers, draw, fault, times=3):
    """Run the query to its end, with faults at drawn moments; the driver lives on."""
    process = start(drivers)
    for moment in moments(draw, times):
        reach(drivers, process, moment)
        fault()
    drivers.end(process, "the query")
    check(drivers)


def check(drivers):
    drivers.check_sessions()
    drivers.check_table()


def busy(cluster, draw):
    """A worker with executors."""
    return draw.choice([host for host in WORKERS if cluster.executors(host)])


def test_an_executor_is_killed(cluster, drivers, draw):
    def fault():
        for pid in cluster.executors(busy(cluster, draw)):
            os.kill(pid, signal.SIGKILL)

    inject(drivers, draw, fault)
    assert "Lost executor" in drivers.log.read_text()


def test_python_workers_are_killed(cluster, drivers, draw):
    """As the kernel does when memory runs out."""

    def fault():
        pids = [pid for host in WORKERS for pid in cluster.pythons(host)]
        assert pids
        for pid in pids:
            os.kill(pid, signal.SIGKILL)

    inject(drivers, draw, fault)


def test_a_worker_is_killed(cluster, drivers, draw):
    """Its executors end with it; later it is started again."""

    def fault():
        host = busy(cluster, draw)
        kill_one(cluster.workers[host])
        cluster.start_worker(host)

    inject(drivers, draw, fault)
    assert "Lost executor" in drivers.log.read_text()


def kill_one(process):
    """Kill a process, and not those that it has started."""
    process.kill()
    process.wait()


def test_a_network_is_cut_for_a_while(cluster, network, drivers, draw):
    """For longer than Spark waits."""

    def fault():
        host = busy(cluster, draw)
        network.cut(host)
        time.sleep(2.5 * TIMEOUT)
        network.mend(host)

    inject(drivers, draw, fault, times=2)
    assert "Removing worker" in cluster.log("master").read_text()


def test_a_network_is_cut_for_good(cluster, network, drivers, draw):
    inject(drivers, draw, lambda: network.cut(busy(cluster, draw)), times=1)


def test_a_driver_is_killed(drivers, draw):
    """And started again, on another host."""
    for number, moment in enumerate(moments(draw)):
        process = start(drivers, f"driver{1 + number % 2}")
        reach(drivers, process, moment)
        kill(process)
    drivers.end(start(drivers), "the query")
    check(drivers)


def test_two_drivers_on_one_checkpoint(drivers, draw):
    """One of them stops; the other one continues."""
    go = drivers.folder / "go"
    second = start(drivers, "driver2", go=str(go))
    drivers.wait_for(second, drivers.folder / "ready")
    first = start(drivers)
    reach(drivers, first, (draw.randrange(1, 4), draw.uniform(0, 0.5)))
    go.touch()
    codes = [drivers.code(one, "one of two drivers") for one in (first, second)]
    assert codes.count(0) == 1, codes
    assert any(words in drivers.log.read_text() for words in CONCURRENT)
    check(drivers)


def suspend(drivers, process):
    """Stop a driver, but not while it has locked the table, which no other one could write then."""
    os.killpg(process.pid, signal.SIGSTOP)
    while drivers.is_locked():
        os.killpg(process.pid, signal.SIGCONT)
        time.sleep(0.1)
        os.killpg(process.pid, signal.SIGSTOP)


def test_a_driver_wakes_after_another_took_its_place(drivers, draw):
    """Stopped by SIGSTOP, as a suspended machine; awake, it stops, and what it writes before changes nothing."""
    first = start(drivers)
    reach(drivers, first, *moments(draw, 1))
    suspend(drivers, first)
    drivers.end(start(drivers, "driver2"), "the second driver")
    check(drivers)
    os.killpg(first.pid, signal.SIGCONT)
    assert drivers.code(first, "the first driver") != 0
    check(drivers)


def test_a_driver_is_cut_off_while_another_takes_its_place(network, drivers, draw):
    """Connected again, it waits for a master that has given it up, or stops."""
    first = start(drivers)
    reach(drivers, first, *moments(draw, 1))
    network.cut("driver1")
    drivers.end(start(drivers, "driver2"), "the second driver")
    check(drivers)
    network.mend("driver1")
    time.sleep(2 * TIMEOUT)
    assert first.poll() != 0
    kill(first)
    check(drivers)
