"""Requirements on the session, installed packages and connectors, checked before a query is built."""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from beamish.costs import check_shards
from beamish.errors import OptionError, SinkError, SparkSetupError
from beamish.packages import OLDEST, as_version, pyspark_version
from beamish.spark.runtime.workers import check_workers

_MISSING = re.compile(r"Failed to find (?:the )?data source: (\w+)")
PACKAGES: Mapping[str, Mapping[tuple[int, int], str]] = {
    "kafka": dict.fromkeys(((4, 0), (4, 1), (4, 2)), "org.apache.spark:spark-sql-kafka-0-10_2.13:{version}"),
    "delta": {
        (4, 0): "io.delta:delta-spark_4.0_2.13:4.3.1",
        (4, 1): "io.delta:delta-spark_4.1_2.13:4.3.1",
        (4, 2): "io.delta:delta-spark_4.2_2.13:4.4.0",
    },
    "iceberg": {
        (4, 0): "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.11.0",
        (4, 1): "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.11.0",
    },
}
"""The connectors that Maven Central has, by Spark's version; ``version``: Spark's, whole."""


def check_connector(spark: SparkSession, source: str, call: str) -> None:
    """Check that Spark has a connector, without connecting (else SparkSetupError)."""
    try:
        spark.read.format(source).load().schema  # noqa: B018 - Connect looks the connector up when the schema is asked for
    except Exception as error:  # noqa: BLE001 - a connector that is there misses its options
        if found := _MISSING.search(str(error)):
            raise SparkSetupError(_said(spark, found[1], call)) from None


@contextmanager
def connector_errors(spark: SparkSession, call: str) -> Iterator[None]:
    """Report a missing connector (SinkError: the connector is missing)."""
    try:
        yield
    except Exception as error:
        if found := _MISSING.search(str(error)):
            raise SinkError(f"{_said(spark, found[1], call)}\nNothing of the batch was written.") from None
        raise


def _said(spark: SparkSession, source: str, call: str) -> str:
    known, minor = PACKAGES.get(source, {}), as_version(spark.version)
    newest = max(known, default=minor)
    here, last = (".".join(map(str, one)) for one in (minor, newest))
    version = spark.version if minor <= newest else f"{last}.0"
    package = known.get(min(minor, newest), "...").format(version=version)
    with_it = (
        "start the session (under Spark Connect the server) with it:\n"
        f'    SparkSession.builder.config("spark.jars.packages", "{package}")'
    )
    if minor <= newest:
        return f"{call}: Spark has no connector {source!r}; {with_it}"
    return (
        f"{call}: Spark has no connector {source!r}, and when this version of beamish was released there was none for Spark {here}: see "
        f"whether there is one now, or use Spark {last}, and {with_it}"
    )


_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_PARTITIONS = "spark.sql.shuffle.partitions"
_ON_ONE_MACHINE = 8
"""Shuffle partitions that use the cores of one machine."""
_POLICY = "spark.sql.streaming.multipleWatermarkPolicy"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def check_session(spark: SparkSession) -> None:
    """Check the version of Spark; with Spark Connect the server's, which may differ from pyspark's.

    Raises:
        SparkSetupError: Spark is older than 4.0.
    """
    if as_version(spark.version) < OLDEST:
        raise SparkSetupError(
            f"Spark {spark.version}: beamish needs 4.0 or later; under Spark Connect the server runs it"
        )


def check_streaming(spark: SparkSession) -> None:
    """Check the session's settings for a streaming query.

    Raises:
        SparkSetupError: the state store is not RocksDB, or the workers' Python is unsuitable.
    """
    provider = spark.conf.get(_PROVIDER, "")
    if "RocksDB" not in (provider or ""):
        said = repr(provider) if provider else "not set, so it is Spark's HDFSBackedStateStoreProvider"
        raise SparkSetupError(
            f"{_PROVIDER} is {said}: transformWithStateInPandas works on RocksDB only. Before the query starts, set\n"
            f'    spark.conf.set("{_PROVIDER}", "{ROCKSDB}")'
        )
    check_workers(spark)


def reading_session(remote: str | None) -> SparkSession:
    """A session that reads checkpoints: a quiet one of this process, or that of a Connect server.

    Raises:
        SparkSetupError: no session: a package, Java or the server is missing.
    """
    try:
        return _local_session() if remote is None else SparkSession.builder.remote(remote).getOrCreate()
    except (ImportError, PySparkException) as error:
        needs = (
            "Java 17 or later (JAVA_HOME)"
            if remote is None
            else f"the server {remote} and pip install 'pyspark[connect]'"
        )
        raise SparkSetupError(f"Spark does not start: {str(error).splitlines()[0]}; it needs {needs}") from None


def _local_session() -> SparkSession:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    return (
        SparkSession.builder.appName("beamish")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "8")
        # few rows are read: compiling a query, and the JVM's second compiler, cost more than they save
        .config("spark.sql.codegen.wholeStage", "false")
        .config("spark.sql.codegen.factoryMode", "NO_CODEGEN")
        .config(
            "spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"
        )
        .getOrCreate()
    )


def shard_count(spark: SparkSession, asked: int | None) -> int:
    """The given number of shards, or one per shuffle partition.

    Raises:
        OptionError: it is not a whole number from 1 to 100,000.
        SparkSetupError: it is not given, and the number of shuffle partitions is not a number.
    """
    if asked is not None and (type(asked) is not int or asked < 1):
        raise OptionError(
            f"apply(shards={asked!r}): must be a whole number of at least 1; leave it out for one per shuffle partition"
        )
    if asked is not None:
        check_shards(f"apply(shards={asked})", asked)
        return asked
    said = str(spark.conf.get(_PARTITIONS))
    if not said.isdecimal():
        raise SparkSetupError(
            f"{_PARTITIONS} is {said!r}, as on some platforms: a checkpoint fixes the number of shards, so set it to the number of "
            f'cores that the query will grow to: apply(df, shards=8), or\n    spark.conf.set("{_PARTITIONS}", 8)'
        )
    check_shards(f"{_PARTITIONS}={said}", int(said))
    return int(said)


def settle_partitions(spark: SparkSession) -> None:
    """Handle an unset number of shuffle partitions, which fixes the number of state partitions: the default of 200 suits batches.

    On a single machine (``local[...]``) set it and log that; on a cluster warn of the cost.
    """
    if _PARTITIONS in spark.conf.getAll:
        return
    cost = "each batch of the query starts this many tasks, each with a Python worker, however few rows arrive (some 70 s instead of 2 on two cores), and the first run fixes the number for the checkpoint"
    if re.match(r"local(\[|$)", str(spark.conf.get("spark.master", ""))):
        spark.conf.set(_PARTITIONS, _ON_ONE_MACHINE)
        warnings.warn(
            f"{_PARTITIONS} was not set, and Spark's default of 200 suits batches: {cost}. beamish has set it to {_ON_ONE_MACHINE} for this session. To choose it, set it before to the number of cores that the query will grow to:\n"
            f'    spark.conf.set("{_PARTITIONS}", {_ON_ONE_MACHINE})',
            stacklevel=4,
        )
        return
    warnings.warn(
        f"{_PARTITIONS} was not set, so it is {spark.conf.get(_PARTITIONS)}, which suits batches: {cost}. Set it before, to the number of cores that the query will grow to:\n"
        f'    spark.conf.set("{_PARTITIONS}", 8)',
        stacklevel=4,
    )


def check_least_watermark(spark: SparkSession) -> None:
    """Check that the query's watermark is the least of several inputs' (SparkSetupError: it is the greatest)."""
    policy = spark.conf.get(_POLICY, "min")
    if policy != "min":
        raise SparkSetupError(
            f"{_POLICY} is {policy!r}: rows of the slower input would be late; before the query starts, set\n"
            f'    spark.conf.set("{_POLICY}", "min")'
        )


def warn_of_single_batches(spark: SparkSession | None) -> None:
    """Warn about heartbeats under Trigger.AvailableNow before Spark 4.2; ``spark`` is the result of ``spark_version``."""
    if spark_version(spark) < (4, 2):
        warnings.warn(
            "this pipeline needs the clock, and before Spark 4.2 its heartbeat source makes Trigger.AvailableNow read everything in a single batch, in which no watermark moves; use processingTime triggers, or Spark 4.2",
            stacklevel=4,
        )


_NO_DATA = "spark.sql.streaming.noDataMicroBatches.enabled"


def warn_of_waiting_windows(spark: SparkSession) -> None:
    """Warn where Spark runs no batch without rows: a window that the last rows ended is then emitted with the next rows."""
    if str(spark.conf.get(_NO_DATA, "true")).lower() == "false":
        warnings.warn(
            f"{_NO_DATA} is false: after a batch that moves the watermark Spark runs no other until rows arrive, so windows that ended "
            f"wait for them, and with Trigger.AvailableNow for the next run; remove it:\n    spark.conf.unset({_NO_DATA!r})",
            stacklevel=4,
        )


def spark_version(spark: SparkSession | None) -> tuple[int, int]:
    """The major and minor version: with Spark Connect the older one of client and server; None: the client's."""
    return pyspark_version() if spark is None else min(pyspark_version(), as_version(spark.version))
