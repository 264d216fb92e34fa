"""A test script as a streaming source: batch n of the query has exactly the rows of batch n of the script."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from beamish.kernels.ipc import from_bytes, to_bytes
from beamish.kernels.reserved import BATCH
from beamish.spark.rows.types import spark_schema
from beamish.spark.runtime.worker_sockets import Acknowledged
from beamish.spark.sources.available_now import SupportsTriggerAvailableNow


class ScriptSource(DataSource):
    """Spark's name for it is ``beamish_script``. Options: ``rows``, a table with a column ``BATCH``; ``batches``."""

    @classmethod
    def name(cls) -> str:
        return "beamish_script"

    def schema(self) -> t.StructType:
        return spark_schema(self._rows().schema)

    def streamReader(self, schema: t.StructType) -> DataSourceStreamReader:  # noqa: N802
        return ScriptReader(self._rows(), int(self.options["batches"]))

    def _rows(self) -> pa.Table:
        return from_bytes(base64.b64decode(self.options["rows"]))


class ScriptReader(Acknowledged, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Offsets are ``{"batch": number of batches served}``."""

    def __init__(self, rows: pa.Table, batches: int) -> None:
        self._rows = rows
        self._batches = batches

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"batch": 0}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        pass

    def latestOffset(self, start: Any, limit: Any) -> dict[str, int]:  # noqa: N802
        return {"batch": max(start["batch"], min(start["batch"] + 1, self._batches))}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        return [InputPartition((start["batch"], end["batch"]))]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        first, end = partition.value
        at = self._rows[BATCH]
        chosen = self._rows.filter(pc.and_(pc.greater_equal(at, first), pc.less(at, end)))
        yield from chosen.to_batches()


def script_stream(spark: SparkSession, rows: pa.Table, batches: int) -> DataFrame:
    """A streaming DataFrame that serves ``rows`` by their ``BATCH``, up to number ``batches``."""
    spark.dataSource.register(ScriptSource)
    text = base64.b64encode(to_bytes(rows)).decode()
    return spark.readStream.format(ScriptSource.name()).option("rows", text).option("batches", str(batches)).load()
