"""deploy/compose: the versions that the tests have; and its commands, on the servers that the tests start."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]

from kafka_to_postgres import check, demo
from tests.servers.started import started
from tools.servers import topics
from tools.servers.kafka import FOLDER, PACKAGE, Broker, own_home
from tools.servers.postgresql import PostgreSql

ROOT = Path(__file__).parents[2]
COMPOSE = yaml.safe_load((ROOT / "deploy/compose/compose.yaml").read_text())
SERVICES = COMPOSE["services"]
CONNECTOR = next(
    word.removeprefix("--packages=") for word in SERVICES["visits"]["command"] if word.startswith("--packages=")
)


def command(service, **names):
    """A service's command, with other addresses and folders."""
    words = SERVICES[service]["command"]
    for name, other in names.items():
        words = [word.replace(name, other) for word in words]
    return words


def test_the_broker_is_of_the_version_that_the_tests_start():
    assert SERVICES["kafka"]["image"].split(":")[1] == PACKAGE.split(":")[2]


def test_what_is_mounted_is_there():
    for service in SERVICES.values():
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            assert source in COMPOSE["volumes"] or (ROOT / "deploy/compose" / source).exists(), volume
        build = service.get("build", {"context": ".", "dockerfile": "compose.yaml"})
        assert (ROOT / "deploy/compose" / build["context"] / build["dockerfile"]).exists()


def test_spark_and_its_connector_are_of_the_version_that_the_tests_have():
    (tested,) = re.findall(r"^KAFKA_PYSPARK \?= (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert CONNECTOR.endswith(f":{tested}")
    assert f"pyspark=={tested}" in (ROOT / "deploy/compose/Dockerfile").read_text()


@pytest.mark.kafka
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_its_commands_write_the_visits_of_a_batch(tmp_path):
    broker = started(Broker)
    for name in ("state", "metrics"):
        (tmp_path / name).mkdir()
    with started(PostgreSql).database() as database:
        clicks = command("clicks", **{"kafka:9092": broker.address})
        subprocess.run([sys.executable, *clicks[1:], "--seconds", "5"], check=True, cwd=ROOT)
        names = {"kafka:9092": broker.address, "postgresql://beamish@database:5432/postgres": database}
        folders = {f"/{name}/": f"{tmp_path}/{name}/" for name in ("state", "metrics")}
        visits = command("visits", **names, **folders, **{CONNECTOR: demo.CONNECTOR})
        submit = [str(demo.Run.python.with_name("spark-submit")), f"--conf=spark.jars.ivy={FOLDER}/spark", *visits[1:]]
        environment = os.environ | own_home(FOLDER / "spark") | {"PYSPARK_PYTHON": sys.executable}
        subprocess.run([*submit, "--available-now"], check=True, cwd=ROOT, env=environment)
        sent = [
            check.read_click(one.partition, one.offset, one.value or "")
            for one in topics.read(broker.address, "clicks")
        ]
        written = [(one.key or "", one.value) for one in topics.read(broker.address, "visits")]
        assert len(sent) == 100
        assert check.problems(sent, check.dropped(database), check.table(database), check.folded(written)) == []
    assert "beamish_panes_total" in (tmp_path / "metrics" / "visits.prom").read_text()
