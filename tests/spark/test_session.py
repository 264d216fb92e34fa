import subprocess
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.errors import PySparkRuntimeError

import beamish as bm
from beamish.spark.runtime import session

PROVIDER = "spark.sql.streaming.stateStore.providerClass"


def test_another_state_store_is_refused_with_the_line_that_sets_rocksdb(spark):
    before = spark.conf.get(PROVIDER)
    other = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
    spark.conf.set(PROVIDER, other)
    try:
        with pytest.raises(bm.SparkSetupError, match=r"works on RocksDB only") as caught:
            session.check_streaming(spark)
        exec(str(caught.value).splitlines()[-1].strip(), {"spark": spark})
        session.check_streaming(spark)
    finally:
        spark.conf.set(PROVIDER, before)


@pytest.mark.parametrize("source", session.PACKAGES)
def test_a_missing_connector_is_named_with_a_package_that_exists(source):
    for minor in session.PACKAGES[source]:
        version = ".".join(map(str, (*minor, 1)))
        said = session._said(cast("Any", SimpleNamespace(version=version)), source, "call")
        package = session.PACKAGES[source][minor].format(version=version)
        assert said.endswith(
            f"no connector {source!r}; start the session (under Spark Connect the server) with it:\n    "
            f'SparkSession.builder.config("spark.jars.packages", "{package}")'
        )
    said = session._said(cast("Any", SimpleNamespace(version="9.9.9")), source, "call")
    assert "there was none for Spark 9.9: see whether there is one now, or use Spark 4." in said
    assert "9.9.9" not in said


def test_the_packages_of_delta_are_those_of_the_docs():
    page = (Path(__file__).parents[2] / "docs/sinks.md").read_text("utf-8")
    assert all(f"| {a}.{b} | `{package}` |" in page for (a, b), package in session.PACKAGES["delta"].items())


def test_a_name_of_java_is_looked_up_once(spark):
    assert spark._jvm.java.lang.Integer is spark._jvm.java.lang.Integer
    assert spark._jvm.java.lang.Integer.parseInt("7") == 7
    with pytest.raises(TypeError, match="'JavaPackage' object is not callable"):
        spark._jvm.java.lang.Nothing()


WITHOUT = """
import importlib.machinery, sys
from types import ModuleType, SimpleNamespace

module = {module!r}
sys.modules[module] = None
if {version!r}:
    sys.modules[module] = ModuleType(module)
    sys.modules[module].__version__ = {version!r}
    sys.modules[module].__spec__ = importlib.machinery.ModuleSpec(module, None)

import beamish as bm
from beamish.__main__ import main

pipeline = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).window(bm.FixedWindows(60))
pipeline = pipeline.accumulate(n=bm.accumulations.Count())
script = bm.testing.TestStream().add([dict(ts=1)])
spark = SimpleNamespace(read=None, createDataFrame=None, readStream=None)
for call in (
    lambda: pipeline.apply(None),
    lambda: pipeline.explain(spark),
    lambda: pipeline.state(spark, "x").windows(),
    lambda: script.on_spark(spark, pipeline),
    lambda: bm.inspect(spark, "x"),
    lambda: bm.check_upgrade(spark, "x", pipeline),
    lambda: bm.panes(spark),
    lambda: bm.dropped(spark),
    lambda: bm.observe(spark),
    lambda: bm.changelog(spark),
    lambda: bm.live(spark),
    lambda: bm.register(spark),
    lambda: bm.Listener(port=0),
    lambda: bm.sinks.sql("sqlite:///x.db", "t")(spark, 0),
    lambda: bm.sinks.kafka("host:9092", "t")(spark, 0),
    lambda: bm.sinks.merge("t")(spark, 0),
):
    try:
        call()
        print("nothing is raised")
    except Exception as error:
        print(type(error).__name__, error)
main(["inspect", "x"])
"""


@pytest.mark.dear
@pytest.mark.parametrize(
    ("module", "version", "words"),
    [
        ("pyspark", "", "pyspark is not installed: pip install 'pyspark[sql,connect]>="),
        ("pyspark", "3.5.1", "pyspark 3.5: beamish needs 4.0 or later: pip install 'pyspark>=4.0,<5'"),
        ("pandas", "", "the package pandas is not installed; Spark's transformWithStateInPandas needs it"),
        ("google.protobuf", "", "the package google.protobuf is not installed; Spark's transformWithStateInPandas"),
    ],
)
def test_a_missing_package_is_named_by_every_call(module, version, words):
    program = WITHOUT.format(module=module, version=version)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    assert [line for line in lines if not line.startswith(f"SparkSetupError {words}")] == [], done.stderr
    assert len(lines) == 16
    assert done.stderr.startswith(f"beamish: {words}")


def test_the_version_of_a_connect_server_counts():
    server = cast("Any", SimpleNamespace(version="3.5.4"))
    with pytest.raises(
        bm.SparkSetupError, match=r"Spark 3\.5\.4: beamish needs 4\.0 or later; under Spark Connect the"
    ):
        session.check_session(server)
    assert session.spark_version(server) == (3, 5)
    assert session.spark_version(cast("Any", SimpleNamespace(version="99.0"))) == session.spark_version(None)


@pytest.mark.parametrize(
    ("error", "remote", "words"),
    [
        (PySparkRuntimeError("[JAVA_GATEWAY_EXITED] Java gateway process exited\n"), None, "exited; it needs Java 17"),
        (ImportError("grpcio is missing"), "sc://host", "is missing; it needs the server sc://host and pip install"),
    ],
)
def test_the_program_reports_why_spark_does_not_start(monkeypatch, error, remote, words):
    def fail(*_):
        raise error

    monkeypatch.setattr(session, "SparkSession", SimpleNamespace(builder=SimpleNamespace(remote=fail, appName=fail)))
    with pytest.raises(bm.SparkSetupError, match=words):
        session.reading_session(remote)


def test_unset_shuffle_partitions_are_set_on_a_single_machine(spark):
    name = "spark.sql.shuffle.partitions"
    rows = spark.readStream.format("rate").load()
    pipeline = bm.Pipeline().event_time("timestamp", bm.BoundedOutOfOrderness(0)).window(bm.FixedWindows(5))
    pipeline = pipeline.accumulate(n=bm.accumulations.Count())
    before = spark.conf.get(name)
    spark.conf.unset(name)
    try:
        if name in spark.conf.getAll:
            pytest.skip("the session was started with a number of its own, which cannot be unset")
        with pytest.warns(UserWarning, match=r"(?s)has set it to 8 for this session.*spark\.conf\.set\(") as caught:
            pipeline.apply(rows)
        assert caught[0].filename == __file__
        assert spark.conf.get(name) == "8"
        assert pipeline.apply(rows).isStreaming  # without a word: the number is set
    finally:
        spark.conf.set(name, before)


class Conf(dict):
    """A session's configuration."""

    @property
    def getAll(self):  # noqa: N802 - as Spark calls it
        return {name: value for name, value in self.items() if name != "spark.sql.shuffle.partitions"}

    def set(self, name, value):
        self[name] = value


@pytest.mark.parametrize(
    ("master", "words"),
    [
        ("local[*]", "has set it to 8"),
        ("local", "has set it to 8"),
        ("yarn", "so it is 200"),
        ("local-cluster[2,1,1]", "so it is 200"),
    ],
)
def test_unset_shuffle_partitions_are_kept_on_a_cluster(master, words):
    somewhere = cast("Any", SimpleNamespace(conf=Conf({"spark.master": master, "spark.sql.shuffle.partitions": "200"})))
    with pytest.warns(UserWarning, match=words) as caught:
        session.settle_partitions(somewhere)
    exec(str(caught[0].message).splitlines()[-1].strip(), {"spark": somewhere})
    assert somewhere.conf["spark.sql.shuffle.partitions"] == 8


def test_automatic_shuffle_partitions_are_not_a_shard_count():
    platform = cast("Any", SimpleNamespace(conf={"spark.sql.shuffle.partitions": "auto"}))
    with pytest.raises(bm.SparkSetupError, match=r"(?s)is 'auto'.*apply\(df, shards=8\).*spark\.conf\.set\("):
        session.shard_count(platform, None)
    assert session.shard_count(platform, 3) == 3


def test_before_spark_4_2_the_clock_comes_with_a_warning(monkeypatch):
    monkeypatch.setattr(session, "pyspark_version", lambda: (4, 1))
    with pytest.warns(UserWarning, match="a single batch"):
        session.warn_of_single_batches(None)


@pytest.mark.parametrize(("said", "warns"), [("false", True), ("FALSE", True), ("true", False)])
def test_disabled_batches_without_rows_are_warned_of(said, warns, recwarn):
    warnings.simplefilter("always")
    confs = {"spark.sql.streaming.noDataMicroBatches.enabled": said}
    session.warn_of_waiting_windows(cast("Any", SimpleNamespace(conf=SimpleNamespace(get=confs.get))))
    assert [str(one.message).partition(" is false")[0] for one in recwarn] == list(confs) * warns
