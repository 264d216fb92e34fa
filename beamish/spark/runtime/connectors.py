"""Spark connectors for sinks: jars, which pip does not install. With Spark Connect they are on the server."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from beamish.errors import SinkError, SparkSetupError
from beamish.packages import as_version

_MISSING = re.compile(r"Failed to find (?:the )?data source: (\w+)")
_PACKAGES = {
    "kafka": "org.apache.spark:spark-sql-kafka-0-10_2.13:{version}",
    "delta": "io.delta:delta-spark_{minor}_2.13:...",
    "iceberg": "org.apache.iceberg:iceberg-spark-runtime-{minor}_2.13:...",
}


def check_connector(spark: SparkSession, source: str, call: str) -> None:
    """Check that Spark has a connector, without connecting.

    Raises:
        SparkSetupError: it does not.
    """
    try:
        spark.read.format(source).load().schema  # noqa: B018 - Connect looks the connector up when the schema is asked for
    except Exception as error:  # noqa: BLE001 - a connector that is there misses its options
        if found := _MISSING.search(str(error)):
            raise SparkSetupError(_said(spark, found[1], call)) from None


@contextmanager
def connector_errors(spark: SparkSession, call: str) -> Iterator[None]:
    """Report a missing connector.

    Raises:
        SinkError: the connector is missing.
    """
    try:
        yield
    except Exception as error:
        if found := _MISSING.search(str(error)):
            raise SinkError(f"{_said(spark, found[1], call)}\nNothing of the batch was written.") from None
        raise


def _said(spark: SparkSession, source: str, call: str) -> str:
    minor = ".".join(map(str, as_version(spark.version)))
    package = _PACKAGES.get(source, "...").format(version=spark.version, minor=minor)
    return (
        f"{call}: Spark has no connector {source!r}; start the session (under Spark Connect the server) with it:\n"
        f'    SparkSession.builder.config("spark.jars.packages", "{package}")'
    )
