"""A standalone Spark cluster: a master and workers, each a process on a host of its own."""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from tools.servers.network import Network
from tools.servers.server import StartError

WORKERS = ("worker1", "worker2", "worker3")
DRIVERS = ("driver1", "driver2")
PORT, UI_PORT = 7077, 8080
SECONDS = 300
"""How long a process may take to start, on a machine that has much else to do."""
JAVA = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"


class Cluster:
    """See the module docstring; drivers are on hosts of their own too.

    Attributes:
        network: the hosts.
        folder: logs, and what the workers store.
        url: the master's.
        workers: the workers' processes, by host.
    """

    def __init__(self, python: Path, worker_timeout: int = 60) -> None:
        """Start the cluster.

        Args:
            python: of an environment with PySpark, which the executors run.
            worker_timeout: after this many seconds without a heartbeat the master removes a worker.

        Raises:
            StartError: a process does not start.
        """
        self.python = python
        self.home = _home(python)
        self.network = Network(["master", *WORKERS, *DRIVERS])
        self.folder = Path(tempfile.mkdtemp(prefix="beamish-cluster-"))
        self.url = f"spark://{self.network.addresses['master']}:{PORT}"
        self.workers: dict[str, subprocess.Popen[bytes]] = {}
        self._timeout = worker_timeout
        atexit.register(self.stop)
        self._master = self._launch(
            "master", "org.apache.spark.deploy.master.Master", "--port", str(PORT), "--webui-port", str(UI_PORT)
        )
        self._wait("master", self._master, f"Starting Spark master at {self.url}")
        for host in WORKERS:
            self.start_worker(host, wait=False)
        for host in WORKERS:
            self._wait(host, self.workers[host], "Successfully registered with master")

    def start_worker(self, host: str, *, wait: bool = True) -> None:
        """Start a worker of two cores on a host."""
        self.log(host).unlink(missing_ok=True)
        sizes = ["--cores", "2", "--memory", "4g", "--work-dir", str(self.folder / host)]
        ports = ["--webui-port", str(UI_PORT + 1 + WORKERS.index(host))]
        self.workers[host] = self._launch(host, "org.apache.spark.deploy.worker.Worker", *sizes, *ports, self.url)
        if wait:
            self._wait(host, self.workers[host], "Successfully registered with master")

    def start(self, host: str, command: list[str], log: Path, **environment: str) -> subprocess.Popen[bytes]:
        """Start a driver, in a group of processes of its own."""
        with log.open("ab") as out:
            process = subprocess.Popen(
                self.network.on(host, command),
                stdout=out,
                stderr=out,
                cwd=log.parent,
                env=self.environment(host) | environment,
                start_new_session=True,
            )
        atexit.register(kill, process)
        return process

    def environment(self, host: str) -> dict[str, str]:
        """The environment of a process on a host; nothing of it leads to this repository."""
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "SPARK_", "PYSPARK_"))
        }
        address = self.network.addresses[host]
        return kept | {
            "SPARK_HOME": str(self.home),
            "SPARK_LOCAL_IP": address,
            "SPARK_LOCAL_HOSTNAME": address,
            "SPARK_PUBLIC_DNS": address,
            "SPARK_NO_DAEMONIZE": "1",
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": JAVA,
            "SPARK_SUBMIT_OPTS": JAVA,
            "SPARK_MASTER_OPTS": f"-Dspark.worker.timeout={self._timeout}",
            "PYSPARK_PYTHON": str(self.python),
        }

    def _launch(self, host: str, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = [str(self.home / "bin" / "spark-class"), program, "--host", self.network.addresses[host], *arguments]
        return self.start(host, command, self.log(host))

    def log(self, host: str) -> Path:
        """The log of the master or a worker."""
        return self.folder / f"{host}.log"

    def _wait(self, host: str, process: subprocess.Popen[bytes], words: str) -> None:
        await_words(words, host, process, self.log(host))

    def executors(self, host: str) -> list[int]:
        """The processes of a worker's executors."""
        return [pid for pid in children(self.workers[host].pid) if _is(pid, "CoarseGrainedExecutorBackend")]

    def pythons(self, host: str) -> list[int]:
        """The Python workers of its executors, without the daemons that they are forked from."""
        daemons = [pid for executor in self.executors(host) for pid in children(executor)]
        return [pid for daemon in daemons for pid in children(daemon)]

    def stop(self) -> None:
        """End all processes and remove namespaces and folder."""
        for process in (*self.workers.values(), self._master):
            kill(process)
        self.network.remove()
        shutil.rmtree(self.folder, ignore_errors=True)


def await_words(words: str, what: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until a process has written these words.

    Raises:
        StartError: it has ended, or has not in time.
    """
    until = time.monotonic() + SECONDS
    while words not in log.read_text():
        if process.poll() is not None or time.monotonic() > until:
            how = f"does not write {words!r} in {SECONDS} s" if process.poll() is None else "has ended"
            raise StartError(f"{what} does not start: it {how}\n{log.read_text()[-3000:]}")
        time.sleep(0.2)


def children(pid: int) -> Iterator[int]:
    """The processes that a process has started."""
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            yield from map(int, task.read_text().split())
        except (FileNotFoundError, ProcessLookupError):  # it has ended
            continue


def _is(pid: int, word: str) -> bool:
    try:
        return word in Path(f"/proc/{pid}/cmdline").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and those it has started, unless it has ended; executors end by themselves once their worker is gone."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _home(python: Path) -> Path:
    code = "import pyspark; print(pyspark.__path__[0])"
    done = subprocess.run([python, "-c", code], check=True, capture_output=True, text=True)
    return Path(done.stdout.strip())


def executor_settings(network: Network, host: str) -> Mapping[str, str]:
    """The settings of a driver on a host whose executors are small, one on each worker."""
    address = network.addresses[host]
    return {
        "spark.driver.host": address,
        "spark.driver.bindAddress": address,
        "spark.executor.cores": "1",
        "spark.executor.memory": "700m",
        "spark.cores.max": str(len(WORKERS)),
        "spark.ui.enabled": "false",
        "spark.executor.extraJavaOptions": JAVA,
    }
