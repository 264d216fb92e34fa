import subprocess
import sys
from types import SimpleNamespace
from typing import Any, cast

import pytest

import beamish as bm
from beamish.spark import session

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


WITHOUT = """
import sys
sys.modules[{module!r}] = None
import beamish as bm
try:
    bm.Pipeline().apply(None)
except bm.SparkSetupError as error:
    print(error)
"""


@pytest.mark.parametrize(("module", "fix"), [("pandas", "'pandas>="), ("google.protobuf", "'protobuf>=")])
def test_a_package_that_is_missing_is_named_before_anything_needs_it(module, fix):
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT.format(module=module)], capture_output=True, text=True, check=False
    )
    assert f"the package {module} is not installed" in done.stdout, done.stderr
    assert f"pip install {fix}" in done.stdout


def test_an_old_pyspark_is_refused(monkeypatch):
    monkeypatch.setattr(session, "spark_version", lambda: (3, 5))
    with pytest.raises(bm.SparkSetupError, match=r"beamish needs 4.0 or later"):
        session.check_packages()


def test_shuffle_partitions_that_nobody_set_are_set_on_a_machine_of_ones_own_and_that_is_said(spark):
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
def test_on_a_cluster_the_number_of_shuffle_partitions_is_left_to_whoever_runs_it(master, words):
    somewhere = cast("Any", SimpleNamespace(conf=Conf({"spark.master": master, "spark.sql.shuffle.partitions": "200"})))
    with pytest.warns(UserWarning, match=words) as caught:
        session.settle_partitions(somewhere)
    exec(str(caught[0].message).splitlines()[-1].strip(), {"spark": somewhere})
    assert somewhere.conf["spark.sql.shuffle.partitions"] == 8


def test_a_number_of_partitions_that_the_platform_chooses_is_no_number_of_shards():
    platform = cast("Any", SimpleNamespace(conf={"spark.sql.shuffle.partitions": "auto"}))
    with pytest.raises(bm.SparkSetupError, match=r"(?s)is 'auto'.*apply\(df, shards=8\).*spark\.conf\.set\("):
        session.shard_count(platform, None)
    assert session.shard_count(platform, 3) == 3


def test_before_spark_4_2_the_clock_comes_with_a_warning(monkeypatch):
    monkeypatch.setattr(session, "spark_version", lambda: (4, 1))
    with pytest.warns(UserWarning, match="a single batch"):
        session.warn_of_single_batches()
