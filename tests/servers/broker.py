"""A Kafka broker of the tests' own: KRaft, one process, on loopback, from its jars; and the query that test_kafka.py kills."""

import atexit
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from functools import cache
from pathlib import Path

import pytest

from tests.servers.lake import not_started

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "kafka"
BROKER = "org.apache.kafka:kafka_2.13:4.0.0"
CLUSTER = "beamishTestsCluster000"


@cache
def connector():
    """The confs that have Spark fetch its Kafka connector; none where it cannot be fetched: then there is a stand-in for it."""
    import pyspark

    package = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}"
    told = {"spark.jars.packages": package, "spark.jars.ivy": str(FOLDER / "spark")}
    code = "import json, sys; from tests.servers.lake import session; session(json.loads(sys.argv[1]))"
    done = subprocess.run([sys.executable, "-c", code, json.dumps(told)], cwd=ROOT, capture_output=True, check=False)
    if done.returncode == 0:
        return told
    warnings.warn(f"{package} cannot be fetched: bm.sinks.kafka writes by tests/servers/producer.py", stacklevel=1)
    return {}


@cache
def servers():
    """The address of a running broker; the test is skipped where its jars cannot be fetched, and fails where it does not start."""
    jars = _jars()
    folder = Path(tempfile.mkdtemp(prefix="beamish-kafka-"))
    port, controller = _free_port(), _free_port()
    settings = {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "log.dirs": folder / "logs",
        "num.partitions": 2,
        "offsets.topic.replication.factor": 1,
        "log.cleanup.policy": "compact",
    }
    config = folder / "server.properties"
    config.write_text("\n".join(f"{name}={value}" for name, value in settings.items()))
    java = [
        str(Path(os.environ["JAVA_HOME"]) / "bin" / "java") if "JAVA_HOME" in os.environ else "java",
        "-Xmx512m",
        "-cp",
        jars,
    ]
    made = [*java, "kafka.tools.StorageTool", "format", "--config", str(config), "--cluster-id", CLUSTER]
    done = subprocess.run(made, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([*java, "kafka.Kafka", str(config)], cwd=folder, stdout=log, stderr=log)
    atexit.register(_stop, process, folder)
    _wait(port, process, folder / "log")
    return f"127.0.0.1:{port}"


def _jars():
    """The broker's class path; Spark fetches it."""
    ready = FOLDER / "ready"
    if not ready.exists():
        code = "import json, sys; from tests.servers.lake import session; session(json.loads(sys.argv[1]))"
        told = {"spark.jars.packages": BROKER, "spark.jars.ivy": str(FOLDER / "broker")}
        done = subprocess.run(
            [sys.executable, "-c", code, json.dumps(told)], cwd=ROOT, capture_output=True, text=True, check=False
        )
        if not list((FOLDER / "broker" / "jars").glob("org.apache.kafka_kafka_2.13-*.jar")):
            not_started(BROKER, done.stderr)
        ready.touch()
    import pyspark

    # Spark leaves out what it has itself, such as Scala's library.
    own = sorted((Path(pyspark.__file__).parent / "jars").glob("scala-*.jar"))
    return os.pathsep.join([f"{FOLDER}/broker/jars/*", *map(str, own)])


def _free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def _wait(port, process, log):
    for _ in range(600):
        if process.poll() is not None:
            pytest.fail(f"the broker did not start: {log.read_text()[-1000:]}")
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    pytest.fail("the broker did not start in 60 seconds")


def _stop(process, folder):
    process.send_signal(signal.SIGTERM)
    process.wait(60)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    import beamish as bm
    from tests.servers import query
    from tests.servers.lake import session

    said = json.loads(sys.argv[1])
    spark = session(said["settings"])
    if not said["settings"]:
        from tests.servers.producer import stand_in

        stand_in(spark)
    query.run(said, bm.sinks.kafka(said["servers"], "sessions"))
