"""What all tests share."""

import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

from tests.local_files import set_no_permissions
from tests.warm import server as warm

ROOT = Path(__file__).parent.parent


def pytest_configure():
    load_settings()


def load_settings():
    """Have property tests draw the same examples at every run, however slow the machine is; before any is imported."""
    from hypothesis import HealthCheck, settings  # start_spark is wanted where it is not installed

    settings.register_profile(
        "default",
        max_examples=45,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    )
    settings.register_profile("deep", settings.get_profile("default"), max_examples=500)
    settings.register_profile("few", settings.get_profile("default"), max_examples=3)
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(config, items):
    for marker, asked in (
        ("servers", "BEAMISH_SERVERS"),
        ("browser", "BEAMISH_BROWSER"),
        ("deep", "BEAMISH_DEEP_SECONDS"),
    ):
        if asked not in os.environ and marker not in config.option.markexpr:
            config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker(marker)])
            items[:] = [item for item in items if not item.get_closest_marker(marker)]
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
            item.add_marker(pytest.mark.xdist_group("spark"))  # one process has the session


@pytest.fixture(scope="session")
def root():
    return ROOT


def in_memory():
    """Temporary files in memory, where there is enough: queries write and sync small files all the time."""
    memory = Path("/dev/shm")
    if "TMPDIR" not in os.environ and memory.is_dir() and shutil.disk_usage(memory).free > 4 * 2**30:
        os.environ["TMPDIR"] = str(memory)
        tempfile.tempdir = None  # it was read already


in_memory()


def start_spark():
    """A local Spark session with the state store that streaming pipelines need.

    Queries are many and short, so nothing is compiled that would pay only in the long run; and no program is started to read
    links where a file of a checkpoint is renamed: some sixty per batch, by Spark's own choice among its file managers.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    import pyspark
    from pyspark.sql import SparkSession

    streaming = "org.apache.spark.sql.execution.streaming"
    managers = streaming if pyspark.__version__.startswith("4.0.") else f"{streaming}.checkpointing"
    spark = (
        SparkSession.builder.master("local[2, 2]")  # a task that failed runs once more, as on a cluster
        .appName("beamish-tests")
        .config("spark.sql.streaming.stateStore.providerClass", f"{streaming}.state.RocksDBStateStoreProvider")
        .config("spark.sql.streaming.checkpointFileManagerClass", f"{managers}.FileSystemBasedCheckpointFileManager")
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -Djdk.lang.Process.launchMechanism=VFORK")
        .config("spark.sql.shuffle.partitions", 2)
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.ui.enabled", "false")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    set_no_permissions(spark)
    return spark


@pytest.fixture(scope="session")
def warm_python(tmp_path_factory):
    """The Python for Spark's processes, which has imported already what they import; None: where that cannot be."""
    if not warm.can_serve():
        yield None
        return
    with warm.warm_python(tmp_path_factory.mktemp("warm"), ROOT) as python:
        yield str(python)


@pytest.fixture(scope="session")
def spark(warm_python):
    """One Spark session for all tests that need one; Spark keeps it until the process ends."""
    with pytest.MonkeyPatch.context() as patch:  # what is started beside this session has the real one
        if warm_python:
            patch.setenv("PYSPARK_PYTHON", warm_python)
        return start_spark()
