"""Fixtures and hooks of all tests."""

import gc
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

import pytest

from tests import partitions as stream_partitions
from tests.cpu_seconds import CpuSeconds
from tests.local_files import set_no_permissions
from tests.warm import server as warm
from tests.warm.archive import reads_archive

ROOT = Path(__file__).parent.parent
LAW_SECONDS, TEST_SECONDS = 8, 2
"""How long a test should compute that is not marked ``dear``, nor starts Spark: more is listed at the end, three times as much fails."""


def pytest_configure(config):
    load_settings()
    config.pluginmanager.register(CpuSeconds())


def load_settings():
    """Have property tests draw the same examples at every run, however slow the machine is; before any is imported.

    The tier decides how many (``HYPOTHESIS_PROFILE``), and of a test that costs more by tests/cost.py.
    """
    from hypothesis import HealthCheck, settings  # start_spark is wanted where it is not installed

    settings.register_profile(
        "default",
        max_examples=10,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    )
    for name, examples in {"few": 3, "quick": 3, "deep": 500}.items():
        settings.register_profile(name, settings.get_profile("default"), max_examples=examples)
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection():
    """Look for garbage once, when tests are collected: nearly all of it stays.

    Classes that attrs has replaced by others with slots are garbage, and subclasses until then.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


def pytest_itemcollected(item):
    """Mark the laws: the property tests in the files of laws (tests/budget.py)."""
    from hypothesis import is_hypothesis_test

    from tests.budget import LAWS

    if item.path in LAWS and is_hypothesis_test(getattr(item, "obj", None)):
        item.add_marker(pytest.mark.law)


def pytest_collection_finish(session):
    """With BEAMISH_DEEP_SECONDS, search the selected laws for that time: each for the same share of it."""
    from tests.budget import LAW_SECONDS, searched

    laws = [item for item in session.items if item.get_closest_marker("law")]
    if LAW_SECONDS:
        for law in laws:
            law.obj = searched(law.obj, LAW_SECONDS / len(laws))


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(config, items):
    from tests.by_file import order

    for marker, asked in (
        ("servers", "BEAMISH_SERVERS"),
        ("kafka", "BEAMISH_KAFKA"),
        ("cluster", "BEAMISH_CLUSTER"),
        ("s3", "BEAMISH_S3"),
        ("browser", "BEAMISH_BROWSER"),
        ("deep", "BEAMISH_DEEP_SECONDS"),
    ):
        if asked not in os.environ and marker not in config.option.markexpr:
            config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker(marker)])
            items[:] = [item for item in items if not item.get_closest_marker(marker)]
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
            # A session per process: programs that readers run are in one, all else in the other.
            programs = item.path.parent.name in ("docs", "examples")
            item.add_marker(pytest.mark.xdist_group("programs" if programs else "spark"))
    items.sort(key=order)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Run the tests of a file in one process, with ``--dist loadgroup``."""
    from tests.by_file import ByFile

    return ByFile(config, log) if config.option.dist == "loadgroup" else None


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem):
    """Note a test that computes for longer than its budget, and fail one far above it: a slow machine must not fail a test.

    Measured is the CPU time of this process, whatever else the machine does.
    """
    begun = time.process_time()
    result = yield
    took = time.process_time() - begun
    most = LAW_SECONDS if pyfuncitem.get_closest_marker("law") else TEST_SECONDS
    excused = any(
        map(pyfuncitem.get_closest_marker, ("dear", "spark", "deep", "servers", "kafka", "cluster", "s3", "browser"))
    )
    if took > most and not excused and "BEAMISH_DEEP_SECONDS" not in os.environ:
        over = f"computes for {took:.1f} s, budget {most} s: draw less (tests/cost.py), or mark it dear"
        if took > 3 * most:
            pytest.fail(over)
        pyfuncitem.user_properties.append(("over", over))
    return result


def pytest_terminal_summary(terminalreporter):
    """List the tests that exceed their budget."""
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", None) == "call" and "over" in dict(report.user_properties):
                terminalreporter.write_line(f"{report.nodeid} {dict(report.user_properties)['over']}")


def pytest_unconfigure():
    """Have what is frozen freed at exit, also by tasks of Spark that ran in this process (``spare_memory``): DuckDB lists what is not as leaked."""
    gc.unfreeze()


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


def quick_settings():
    """Settings of a session whose queries are many and short, with the state store that streaming pipelines need.

    Nothing is compiled that would pay only in the long run, and what is compiled stays; Spark's classes are not verified; no garbage is
    collected because classes are loaded, and no stack is read to find a logger; and no program is started to read links where a file of
    a checkpoint is renamed: some sixty per batch, by Spark's own choice among its file managers.
    """
    import pyspark

    java = "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC -XX:MetaspaceSize=256m -Xmn192m"
    log = "-Dlog4j2.contextSelector=org.apache.logging.log4j.core.selector.BasicContextSelector"
    streaming = "org.apache.spark.sql.execution.streaming"
    managers = streaming if pyspark.__version__.startswith("4.0.") else f"{streaming}.checkpointing"
    return {
        "spark.sql.streaming.stateStore.providerClass": f"{streaming}.state.RocksDBStateStoreProvider",
        "spark.sql.streaming.checkpointFileManagerClass": f"{managers}.FileSystemBasedCheckpointFileManager",
        "spark.driver.extraJavaOptions": f"{java} {log} -Djdk.lang.Process.launchMechanism=VFORK{reads_archive()}",
        "spark.sql.shuffle.partitions": stream_partitions.SESSION,
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.local.dir": tempfile.gettempdir(),
        "spark.log.level": "ERROR",
    }


CHANGELOGS = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    CHANGELOGS: "true",
}
"""Settings of the tests' shared session. Expressions are interpreted, since compiling them costs more than the few rows of a test, and
state is committed as changelogs, since each whole RocksDB starts a program to delete it. Sessions in other processes
(tests/spark/connect_session.py, drills, versions) have Spark's defaults."""


def interpret_everywhere(spark):
    """Expressions are interpreted also in threads that have no session's settings: those that serve the state of a stage."""
    modes = spark._jvm.org.apache.spark.sql.catalyst.expressions.CodegenObjectFactoryMode
    entry = spark._jvm.org.apache.spark.sql.internal.SQLConf.CODEGEN_FACTORY_MODE()
    by_name = isinstance(entry.defaultValue().get(), str)  # before Spark 4.3
    default = entry.getClass().getDeclaredField("_defaultValue")
    default.setAccessible(True)
    default.set(entry, "NO_CODEGEN" if by_name else modes.NO_CODEGEN())


def start_spark(settings=()):
    """A local Spark session."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    from pyspark.sql import SparkSession

    from tests.java_names import remember_names

    remember_names()
    spark = (
        SparkSession.builder.master("local[2, 2]")  # a task that failed runs once more, as on a cluster
        .appName("beamish-tests")
        .config(map=quick_settings() | dict(settings))
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
def spark(warm_python, tmp_path_factory):
    """One Spark session per process for all tests that need one; Spark keeps it until the process ends."""
    with pytest.MonkeyPatch.context() as patch:  # what is started beside this session has the real one
        if warm_python:
            patch.setenv("PYSPARK_PYTHON", warm_python)
        stream_partitions.start_with_fewer()
        session = start_spark({**INTERPRETED, "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse"))})
        interpret_everywhere(session)
        return session


@pytest.fixture(scope="module")
def several_partitions():
    """Streams of this file have the session's partitions."""
    with stream_partitions.several_partitions():
        yield
