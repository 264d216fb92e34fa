"""Chunks of rows as a streaming source: batch n of a query gets chunk n, whatever happens to the query."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import types as t
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from beamish.spark.operator.heartbeats import SupportsTriggerAvailableNow
from tools.drill.halting import halt

SCHEMA = "ts timestamp, k string, x int, t string, side string"
_ARROW = pa.schema(
    {"ts": pa.timestamp("us", tz="UTC"), "k": pa.string(), "x": pa.int32(), "t": pa.string(), "side": pa.string()}
)


class ChunkSource(DataSource):
    """Options: ``rows``, the folder; ``query``, whose it is; ``batch``, how many chunks a batch gets, 1."""

    @classmethod
    def name(cls) -> str:
        return "drilled_chunks"

    def schema(self) -> str:
        return SCHEMA

    def streamReader(self, schema: t.StructType) -> DataSourceStreamReader:  # noqa: N802
        return ChunkReader(Path(self.options["rows"]), self.options["query"])


class ChunkReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Offsets are ``{"chunk": number of chunks served}``."""

    def __init__(self, rows: Path, query: str) -> None:
        self._rows, self._query = rows, query

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"chunk": 0}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        pass

    def latestOffset(self, start: Any, limit: Any) -> dict[str, int]:  # noqa: N802
        halt(self._query, "plan", start["chunk"])
        return {"chunk": start["chunk"] + (self._rows / f"{start['chunk']:04}.json").exists()}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        return [InputPartition(number) for number in range(start["chunk"], end["chunk"])]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        halt(self._query, "read", partition.value)
        lines = (self._rows / f"{partition.value:04}.json").read_text().splitlines()
        rows = [json.loads(line) for line in lines]
        for row in rows:
            row["ts"] = dt.datetime.fromisoformat(row["ts"])
        yield pa.RecordBatch.from_pylist(rows, schema=_ARROW)
