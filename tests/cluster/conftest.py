"""Clusters for tests/cluster, and the archives that are shipped to them; the Python of all has no beamish (``make test-cluster``)."""

import compileall
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster.drivers import Drivers
from tests.servers.killing import rows_of_files
from tools.servers.cluster import Cluster

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build" / "cluster"
SEED = int(os.environ.get("BEAMISH_CLUSTER_SEED", random.SystemRandom().randrange(1_000_000)))
VERSIONS = os.environ.get("BEAMISH_CLUSTER", "").split()
PACKAGES = ["pandas>=2.2,<3", "numpy<2.5", "protobuf"]


@pytest.fixture(scope="session", autouse=True)
def _no_path():
    """Without the PYTHONPATH that other tests give to Spark, by which pip takes beamish as installed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PYTHONPATH", raising=False)
        yield


@pytest.fixture
def draw(request):
    print(f"BEAMISH_CLUSTER_SEED={SEED}")
    return random.Random(f"{SEED} {request.node.name}")


@pytest.fixture(scope="session")
def archive(tmp_path_factory):
    """The wheel, as the zip that docs/deployment.md ships."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, str(ROOT), "--no-deps", "-w", str(folder)], check=True)
    (wheel,) = folder.glob("beamish-*.whl")
    return shutil.copy(wheel, folder / "beamish.zip")


@pytest.fixture(scope="session")
def unpacked(archive, tmp_path_factory):
    """A folder for PYTHONPATH: from the zip each Python process would compile beamish anew."""
    folder = tmp_path_factory.mktemp("unpacked")
    shutil.unpack_archive(archive, folder)
    compileall.compile_dir(folder, quiet=1)
    return str(folder)


def python_of(version):
    return BUILD / version / "bin" / "python"


@pytest.fixture(scope="module", params=VERSIONS)
def cluster(request):
    cluster = Cluster(python_of(request.param))
    yield cluster
    cluster.stop()


@pytest.fixture
def drivers(cluster, archive, tmp_path):
    drivers = Drivers(cluster, archive, tmp_path, rows_of_files(files=4))
    yield drivers
    drivers.stop()


@pytest.fixture(scope="session")
def environments(archive, tmp_path_factory):
    """Gives the archive of an environment with beamish for a version of PySpark, which itself is the cluster's."""
    made = {}

    def environment(cluster):
        if cluster.python not in made:
            made[cluster.python] = _packed(cluster.python, archive, tmp_path_factory.mktemp("environment"))
        return made[cluster.python]

    return environment


def _packed(python, archive, folder):
    place = folder / "environment"
    subprocess.run([python, "-m", "venv", place], check=True)
    wheel = shutil.copy(archive, folder / next(Path(archive).parent.glob("*.whl")).name)
    pip = [place / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, wheel, *PACKAGES], check=True)
    subprocess.run([python.with_name("venv-pack"), "-q", "-p", place, "-o", folder / "environment.tar.gz"], check=True)
    return folder / "environment.tar.gz"


@pytest.fixture
def environment(cluster, environments):
    return environments(cluster)
