"""A Delta table as the source of a query: the rows of the files that a batch took, by the table's log.

Spark reads the Parquet files themselves, so that a replay needs no jar of Delta. Only the change data feed is read through Delta.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, reduce
from typing import Any
from urllib.parse import quote, unquote

import attrs
import pyarrow as pa
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from beamish.addresses import printable_text
from beamish.errors import OptionError, StateError
from beamish.instants import instant
from beamish.kernels.column_names import PREFIX
from beamish.spark.replay.deletion_vectors import deleted_rows, path_of
from beamish.spark.replay.delta_log import (
    Action,
    Changes,
    DeltaLog,
    File,
    GoneError,
    Position,
    RewrittenError,
    first_position,
)
from beamish.spark.replay.read_call import ReadCall, exists
from beamish.spark.rows.columns import column
from beamish.spark.runtime.session import check_connector

TABLE = "table"
"""In place of a format: ``readStream.table(name)``."""
_FEATURES = {
    "columnMapping",
    "deletionVectors",
    "timestampNtz",
    "typeWidening",
    "typeWidening-preview",
    "v2Checkpoint",
    "vacuumProtocolCheck",
}
"""Features of tables that are read here."""
_CHANGES = {"_change_type": "string", "_commit_version": "bigint", "_commit_timestamp": "timestamp"}
"""The columns of the change data feed."""
_ROW = f"{PREFIX}row"
_ABSOLUTE = re.compile(r"[\w+.-]+:|/")


@attrs.frozen(eq=False)
class StoredLog:
    """The log of a table, read by Spark.

    Attributes:
        spark: the session.
        folder: the log's.
    """

    spark: SparkSession
    folder: str

    @cached_property
    def _times(self) -> Mapping[str, Any]:
        listed = self.spark.read.format("binaryFile").load(self.folder).select("path", "modificationTime")
        return {row["path"].rpartition("/")[2]: row["modificationTime"] for row in listed.collect()}

    def names(self) -> Collection[str]:
        return self._times

    def written(self, version: int) -> Any:
        """When a commit was written."""
        return self._times.get(f"{version:020}.json")

    def commits(self, names: Sequence[str]) -> Mapping[str, str]:
        read = self.spark.read.text([f"{self.folder}/{name}" for name in names], wholetext=True)
        return {
            row["name"]: row["value"]
            for row in read.select("value", F.col("_metadata.file_name").alias("name")).collect()
        }

    def checkpoint(self, names: Sequence[str], *, files: bool) -> Iterable[Action]:
        kinds = ["metaData", "protocol", *(["add", "sidecar"] if files else [])]
        if names[0].endswith(".json"):
            texts = self.spark.read.text([f"{self.folder}/{name}" for name in names]).collect()
            actions: list[Action] = [json.loads(row["value"]) for row in texts]
        else:
            actions = list(self._actions([f"{self.folder}/{name}" for name in names], kinds))
        sidecars = [one["sidecar"]["path"] for one in actions if one.get("sidecar")] if files else []
        places = [place if _ABSOLUTE.match(place) else f"{self.folder}/_sidecars/{place}" for place in sidecars]
        return [*actions, *(self._actions(places, kinds) if places else ())]

    def _actions(self, paths: Sequence[str], kinds: Collection[str]) -> Iterator[Action]:
        rows = self.spark.read.parquet(*paths)
        for row in rows.select(*(F.col(kind) for kind in kinds if kind in rows.columns)).collect():
            yield row.asDict(recursive=True)


@attrs.frozen(eq=False)
class DeltaTable:
    """A table.

    Attributes:
        spark: the session.
        folder: its location.
        log: its log.
    """

    spark: SparkSession
    folder: str
    log: DeltaLog

    @classmethod
    def at(cls, spark: SparkSession, folder: str) -> DeltaTable | None:
        """The table of a folder; None: not a table."""
        place = folder.rstrip("/")
        try:
            log = DeltaLog(StoredLog(spark, f"{place}/_delta_log"))
        except AnalysisException:
            return None
        return cls(spark, place, log) if log.last >= 0 else None

    @cached_property
    def metadata(self) -> Mapping[str, Any]:
        """The metadata of its last version."""
        return self.log.snapshot(self.log.last, files=False).metadata

    @cached_property
    def schema(self) -> StructType:
        """Its columns."""
        return StructType.fromJson(json.loads(self.metadata["schemaString"]))

    def check(self) -> None:
        """Check that its files can be read (StateError: the table has a feature that is not read here)."""
        features = {*(self.log.snapshot(self.log.last, files=False).protocol.get("readerFeatures") or ())}
        if self._mapping == "id":
            features.add("delta.columnMapping.mode = id")
        others = sorted(features - _FEATURES)
        if others:
            raise StateError(
                f"replay: the Delta table {printable_text(self.folder)} has the feature {others[0]!r}, and replay reads tables with "
                f"{', '.join(sorted(_FEATURES))} at most: copy the rows to a table without it, and replay a query that reads that one"
            )

    @property
    def _mapping(self) -> str:
        return str((self.metadata.get("configuration") or {}).get("delta.columnMapping.mode", "none"))

    def rows(self, files: Iterable[File]) -> DataFrame:
        """The rows of files."""
        plain: dict[str, tuple[Mapping[str, Any], list[str]]] = {}
        scans: list[DataFrame] = []
        for file in files:
            values, vector = file.get("partitionValues") or {}, file.get("deletionVector")
            if vector:
                scans.append(self._scan([unquote(self.url(file))], values, vector))
            else:
                plain.setdefault(json.dumps(values, sort_keys=True), (values, []))[1].append(unquote(self.url(file)))
        scans += [self._scan(paths, values, None) for values, paths in plain.values()]
        if not scans:
            return self.spark.createDataFrame([], StructType([_nullable(field) for field in self.schema]))
        return reduce(DataFrame.union, scans)

    def changes(self, version: int, change: str, files: Sequence[File]) -> DataFrame:
        """The rows of files as those of the change data feed."""
        values = change, version, self._written(version) if files else None
        named = [F.lit(value).cast(of).alias(name) for value, (name, of) in zip(values, _CHANGES.items(), strict=True)]
        return self.rows(files).select("*", *named)

    def _written(self, version: int) -> Any:
        """When a version was written (GoneError: its commit is no longer there)."""
        ((_, actions),) = self.log.commits(range(version, version + 1))
        ms = next((one["commitInfo"].get("inCommitTimestamp") for one in actions if "commitInfo" in one), None)
        return self.log.stored.written(version) if ms is None else instant(ms * 1000)

    def url(self, file: File) -> str:
        """Where a file is, encoded as in the log."""
        path = str(file["path"])
        return path if _ABSOLUTE.match(path) else f"{quote(self.folder, safe=':/')}/{path}"

    def _scan(self, paths: Sequence[str], values: Mapping[str, Any], vector: Mapping[str, Any] | None) -> DataFrame:
        change, partitions = _physical if self._mapping == "name" else _nullable, self.metadata["partitionColumns"]
        fields = {field.name: change(field) for field in self.schema}
        stored = StructType([of for name, of in fields.items() if name not in partitions])
        rows = self.spark.read.schema(stored).option("recursiveFileLookup", value=True).parquet(*paths)
        if vector is not None:
            place, content = path_of(vector, self.folder), None
            if place is not None:
                ((content,),) = self.spark.read.format("binaryFile").load(place).select("content").collect()
            gone = self.spark.createDataFrame(pa.table({_ROW: deleted_rows(vector, content)}))
            rows = rows.select("*", F.col("_metadata.row_index").alias(_ROW)).join(gone, _ROW, "left_anti")
        shown: list[Column] = []
        for field in map(_nullable, self.schema):
            name = fields[field.name].name
            value = F.lit(values.get(name) or None) if field.name in partitions else column(name)
            shown.append(value.cast(field.dataType).alias(field.name))
        return rows.select(*shown)


@attrs.frozen(eq=False)
class PastDelta:
    """A source of a Delta table.

    Attributes:
        spark: the session.
        table: the table's id.
    """

    spark: SparkSession
    table: str
    _tables: dict[tuple[str, tuple[str, ...]], DeltaTable | None] = attrs.Factory(dict)

    def fits(self, call: ReadCall) -> bool:
        found = self._opened(call)
        return found is not None and found.metadata["id"] == self.table

    def frame(self, spark: SparkSession, call: ReadCall, start: str | None, end: str | None) -> DataFrame:
        table, is_feed = self._table(call), _is_feed(call)
        if end is None or start == end:
            return table.changes(0, "", []) if is_feed else table.rows([])
        last = Position.read(end)
        first = _first(call, last) if start is None else Position.read(start)
        return self._changes(table, first, last) if is_feed else table.rows(_files(table, call, first, last))

    def lost(self, spark: SparkSession, call: ReadCall, spans: Sequence[tuple[str | None, str | None]]) -> int:
        table = self._table(call)
        moved = {place: span for place, span in enumerate(spans, 1) if span[1] is not None and span[0] != span[1]}
        ends = [Position.read(end).version for span in moved.values() for end in span if end is not None]
        if ends:
            table.log.read(min(ends), max(ends))
        gone = [place for place, span in moved.items() if not self._has(table, call, *span)]
        return max(gone, default=0)

    def _has(self, table: DeltaTable, call: ReadCall, start: str | None, end: str | None) -> bool:
        """Whether all rows between two offsets are still there."""
        assert end is not None  # noqa: S101 - the source has moved
        last = Position.read(end)
        try:
            first = _first(call, last) if start is None else Position.read(start)
            if _is_feed(call):
                files = table.log.in_snapshot(first, last)
                files += [file for one in table.log.changes(first, last) for _, file in one.files]
            else:
                files = _files(table, call, first, last)
        except GoneError:
            return False
        return all(exists(self.spark, table.url(file)) for file in files)

    def _opened(self, call: ReadCall) -> DeltaTable | None:
        if call.format not in ("delta", TABLE) or not call.paths:
            return None
        key = call.format, call.paths
        if key not in self._tables:
            place: str | None = call.paths[0]
            if call.format == TABLE:
                place = _location(self.spark, call.paths[0])
            self._tables[key] = None if place is None else DeltaTable.at(self.spark, place)
        return self._tables[key]

    def _table(self, call: ReadCall) -> DeltaTable:
        table = self._opened(call)
        assert table is not None  # noqa: S101 - it fits
        table.check()
        return table

    def _changes(self, table: DeltaTable, start: Position, end: Position) -> DataFrame:
        """The rows of the change data feed between two offsets."""
        each = table.log.changes(start, end)
        parts = [one for one in each if not one.is_whole]
        begun = [("add", file) for file in table.log.in_snapshot(start, end)]
        if begun:
            parts.append(Changes(start.version, begun, is_whole=False))
        frames = [
            table.changes(one.version, change, [file for kind, file in one.files if kind == of])
            for one in parts
            for of, change in (("add", "insert"), ("remove", "delete"))
        ]
        whole = [one.version for one in each if one.is_whole]
        if whole:
            check_connector(self.spark, "delta", "replay(input=...)")
            reader = self.spark.read.format("delta").option("readChangeFeed", value=True)
            reader = reader.option("startingVersion", whole[0]).option("endingVersion", whole[-1])
            frames.append(reader.load(table.folder))
        return reduce(DataFrame.unionByName, frames, table.changes(0, "", []))


def _files(table: DeltaTable, call: ReadCall, start: Position, end: Position) -> list[File]:
    """The files between two offsets (GoneError: a version is no longer there)."""
    skips = True if _is_set(call, "skipChangeCommits") else None
    if skips is None and any(_is_set(call, name) for name in ("ignoreChanges", "ignoreFileDeletion")):
        skips = False
    try:
        files = table.log.files(start, end, skips=skips)
    except RewrittenError as error:
        raise OptionError(
            f"replay(input=...): version {error.version} of the Delta table {printable_text(table.folder)} rewrites rows "
            f"({printable_text(error.operation)}), and the stream has neither the option ignoreChanges nor skipChangeCommits; give it "
            "the one that the query had"
        ) from None
    excluded = call.option("excludeRegex")
    return [file for file in files if excluded is None or not re.search(excluded, file["path"])]


def _first(call: ReadCall, end: Position) -> Position:
    """Where a query began (GoneError: its offsets do not tell)."""
    version = call.option("startingVersion")
    if version == "latest" or call.option("startingTimestamp") is not None:
        raise GoneError("the first version")
    return first_position(end, None if version is None else int(version))


def _is_feed(call: ReadCall) -> bool:
    return _is_set(call, "readChangeFeed") or _is_set(call, "readChangeData")


def _is_set(call: ReadCall, name: str) -> bool:
    return (call.option(name) or "").lower() == "true"


def _location(spark: SparkSession, name: str) -> str | None:
    """The folder of a Delta table that the catalog has; None: it has none."""
    try:
        found = spark.sql(f"DESCRIBE DETAIL {name}").first()
    except PySparkException:  # without Delta's extension Spark does not know the statement
        return None
    return str(found["location"]) if found is not None and found["format"] == "delta" else None


def _nullable(field: StructField) -> StructField:
    """A column, nullable at any depth, without metadata."""
    return StructField(field.name, _changed(field.dataType, _nullable))


def _physical(field: StructField) -> StructField:
    """A column as files name it under column mapping."""
    name = field.metadata.get("delta.columnMapping.physicalName", field.name)
    return StructField(name, _changed(field.dataType, _physical))


def _changed(of: DataType, change: Callable[[StructField], StructField]) -> DataType:
    if isinstance(of, StructType):
        return StructType([change(field) for field in of])
    if isinstance(of, ArrayType):
        return ArrayType(_changed(of.elementType, change))
    if isinstance(of, MapType):
        return MapType(_changed(of.keyType, change), _changed(of.valueType, change))
    return of
