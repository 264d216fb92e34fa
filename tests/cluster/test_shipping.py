"""beamish shipped to a cluster whose Python does not have it, in each way of docs/deployment.md."""

import os
import subprocess

import pytest

from tests.cluster.conftest import ROOT
from tools.servers.cluster import await_words, executor_settings, kill

pytestmark = [pytest.mark.cluster, pytest.mark.filterwarnings("ignore::ResourceWarning")]

ALL = ["inspect", "check_upgrade", "migrate"]


def test_the_python_has_no_beamish(cluster, tmp_path):
    done = subprocess.run([cluster.python, "-c", "import beamish"], cwd=tmp_path, capture_output=True, check=False)
    assert b"ModuleNotFoundError" in done.stderr


def test_each_host_has_an_address_of_its_own(cluster):
    assert len(set(cluster.network.addresses.values())) == len(cluster.network.addresses)


def check(drivers, *sessions, **how):
    """A query with state and a merge with a chain, then calls, in fresh sessions."""
    drivers.run("run_sessions", "run_chain", **how)
    drivers.check_sessions()
    drivers.check_chain()
    for calls in sessions:
        drivers.run(*calls, **how)


def test_py_files(drivers):
    calls = [["inspect"], ["check_upgrade"], ["migrate"]]
    check(drivers, *calls, way="py-files", submit=["--py-files", drivers.archive])
    assert (drivers.folder / "checkpoints" / "chain-5" / "metadata").exists()


def test_add_py_file(drivers):
    check(drivers, ALL, way="addPyFile")


def test_an_archive_of_an_environment(drivers, environment):
    drivers.unpack(environment)
    python = {"PYSPARK_PYTHON": "./environment/bin/python"}
    submit = ["--archives", f"{environment}#environment"]
    check(drivers, ALL, way="installed", submit=submit, environment=python)


def test_the_kafka_query(cluster, archive, draw, tmp_path):
    """On the minor version whose connector is in Maven Central."""
    kafka = ROOT / "build" / "kafka" / "venv" / "bin" / "python"
    if minor_version_of(cluster.python) != minor_version_of(kafka):
        pytest.skip(f"no connector for PySpark {minor_version_of(cluster.python)}.*")
    path, query = {"PYTHONPATH": f"{ROOT}:{ROOT / 'examples'}"}, [str(kafka), "-m", "tests.cluster.kafka_query"]
    subprocess.run([*query, "--fetch"], cwd=tmp_path, env=os.environ | path, check=True)
    settings = executor_settings(cluster.network, "driver1") | {"spark.master": cluster.url}
    query += ["--address", cluster.network.addresses["driver1"], "--python", str(cluster.python)]
    query += ["--seed", str(draw.random()), "--py-files", str(archive)]
    for name, value in settings.items():
        query += ["--conf", f"{name}={value}"]
    process = cluster.start("driver1", query, tmp_path / "log", **path)
    try:
        assert process.wait(1200) == 0, (tmp_path / "log").read_text()
    finally:
        kill(process)


def minor_version_of(python):
    code = "import pyspark; print(pyspark.__version__)"
    done = subprocess.run([python, "-c", code], check=True, capture_output=True, text=True)
    return done.stdout.strip().rpartition(".")[0]


@pytest.fixture
def server(drivers):
    """A Spark Connect server on the cluster, at all addresses of its host, since it runs foreachBatch functions as clients on localhost."""
    started = []

    def start(**environment):
        settings = executor_settings(drivers.cluster.network, "driver2")
        settings |= {f"spark.executorEnv.{name}": value for name, value in environment.items()}
        told = drivers.told(way="", host="driver2")["settings"] | settings
        command = [str(drivers.cluster.home / "bin" / "spark-submit")]
        for name, value in told.items():
            command += ["--conf", f"{name}={value}"]
        command += [
            "--driver-memory",
            "1g",
            "--class",
            "org.apache.spark.sql.connect.service.SparkConnectServer",
            "spark-internal",
        ]
        log = drivers.folder / "server.log"
        process = drivers.cluster.start("driver2", command, log, SPARK_DAEMON_MEMORY="1g", **environment)
        started.append(process)
        await_words("Spark Connect server started", "the Connect server", process, log)
        return f"sc://{drivers.cluster.network.addresses['driver2']}:15002"

    yield start
    for process in started:
        kill(process)


def test_artifacts_over_connect_reach_batches_and_streams_are_refused(drivers, server):
    remote = server()
    drivers.run("batch", way="addArtifact", remote=remote)
    drivers.check_sessions("batch")
    assert "REFUSED" in drivers.run("refuse_stream", way="addArtifact", remote=remote)


def test_the_path_of_a_connect_server(drivers, server):
    path = {"PYTHONPATH": drivers.archive}
    check(drivers, ["inspect", "check_upgrade"], way="installed", remote=server(**path), environment=path)
