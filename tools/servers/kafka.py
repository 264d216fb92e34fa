"""A Kafka broker: KRaft, one process, from its jars, which Spark fetches from Maven Central into build/kafka."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from functools import cache
from pathlib import Path

from tools.servers.server import Server, StartError, UnavailableError, free_port

FOLDER = Path(__file__).parents[2] / "build" / "kafka"
PACKAGE = "org.apache.kafka:kafka_2.13:4.0.0"
CLUSTER = "beamishTestsCluster000"
LARGEST = 100_000_000
"""Bytes of a record, for broker and clients."""


class Broker(Server):
    """See the module docstring; topics that clients create by writing to them are compacted and have two partitions."""

    name = "kafka"

    def __init__(self, host: str = "127.0.0.1") -> None:
        """Start the broker.

        Args:
            host: its address, of this machine or network namespace.
        """
        self.host = host
        super().__init__()

    @property
    def address(self) -> str:
        """For ``kafka.bootstrap.servers``."""
        return f"{self.host}:{self.port}"

    def prepare(self) -> None:
        controller = free_port()
        settings = {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "listeners": f"PLAINTEXT://{self.address},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": f"PLAINTEXT://{self.address}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "log.dirs": self.folder / "logs",
            "num.partitions": 2,
            "offsets.topic.replication.factor": 1,
            "log.cleanup.policy": "compact",
            "message.max.bytes": LARGEST,
        }
        self._config.write_text("\n".join(f"{name}={value}" for name, value in settings.items()))
        made = ["kafka.tools.StorageTool", "format", "--config", str(self._config), "--cluster-id", CLUSTER]
        done = subprocess.run([*_java(), *made], cwd=self.folder, capture_output=True, text=True, check=False)
        if done.returncode:
            raise StartError(done.stdout + done.stderr)

    def launch(self) -> subprocess.Popen[bytes]:
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                [*_java(), "kafka.Kafka", str(self._config)], cwd=self.folder, stdout=log, stderr=log
            )

    def is_ready(self) -> bool:
        with socket.socket() as one:
            return one.connect_ex((self.host, self.port)) == 0

    @property
    def _config(self) -> Path:
        return self.folder / "server.properties"


@cache
def _java() -> list[str]:
    import pyspark

    fetch(PACKAGE, FOLDER / "broker", "org.apache.kafka_kafka_2.13-*.jar")
    # Spark leaves out what it has itself, such as Scala's library.
    own = sorted((Path(pyspark.__file__).parent / "jars").glob("scala-*.jar"))
    program = str(Path(os.environ["JAVA_HOME"]) / "bin" / "java") if "JAVA_HOME" in os.environ else "java"
    return [program, "-Xmx512m", "-cp", os.pathsep.join([f"{FOLDER}/broker/jars/*", *map(str, own)])]


def fetch(package: str, folder: Path, jar: str, without: str = "") -> None:
    """Have Spark fetch a package and what it needs into ``jars`` of a folder, once.

    Args:
        package: Maven's coordinates; of several, with commas.
        folder: of Ivy.
        jar: a pattern of the package's own jar.
        without: a package to leave out.

    Raises:
        UnavailableError: Maven Central does not have it, or cannot be reached.
    """
    ready = folder / "ready"
    if ready.exists():
        return
    code = "from pyspark.sql import SparkSession; SparkSession.builder.master('local[1]').getOrCreate().stop()"
    arguments = [*packages(package, folder), *(["--exclude-packages", without] if without else []), "pyspark-shell"]
    environment = {**os.environ, "PYSPARK_SUBMIT_ARGS": " ".join(arguments)}
    program = [sys.executable, "-c", code]
    done = subprocess.run(program, env=environment | own_home(folder), capture_output=True, text=True, check=False)
    if not list((folder / "jars").glob(jar)):
        why = [line for line in done.stderr.splitlines() if "RuntimeException" in line]
        raise UnavailableError(f"{package} cannot be fetched: {(why or [done.stderr[-1000:]])[0]}")
    ready.touch()


def packages(package: str, folder: Path) -> list[str]:
    """The arguments of spark-submit that add a package, cached in a folder."""
    return ["--packages", package, "--conf", f"spark.jars.ivy={folder}"]


def own_home(folder: Path) -> dict[str, str]:
    """The environment that hides ~/.m2 from Ivy, which fails where that has the description of a package but not its jar."""
    return {"SPARK_SUBMIT_OPTS": f"-Duser.home={folder}"}
