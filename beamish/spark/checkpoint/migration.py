"""Migrating a checkpoint: same batches and offsets, repartitioned state (docs/upgrading.md#migrate).

The new checkpoint is a copy of the old one, in which Spark runs one extra batch, with the stages of the pipeline in their
positions in the query: its input is the state's entries, and it emits nothing. Then the log is rewritten so that this batch ends
at the offsets of the one before, and the query continues with the next rows. The old checkpoint is not changed.

The absolute paths in a checkpoint: Spark stores the location of each operator's state schema as a URI.

So a moved or copied checkpoint cannot be read: Spark looks for the schema in the old location.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import attrs
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from beamish.contract.operator import Operator
from beamish.contract.stored import DictStore
from beamish.errors import StateError
from beamish.flow import BoundFlow
from beamish.kernels.column_names import WATERMARK
from beamish.rescale import check_carries_over, put_together, split
from beamish.spark.checkpoint.entries import entries_of, has_other_operators, state_errors, store_of
from beamish.spark.checkpoint.hadoop_path import HadoopPath
from beamish.spark.checkpoint.stored_query import MIGRATED, StoredQuery, is_heartbeat
from beamish.spark.compile.stream import has_own_watermark, needs_reports, union, wakes_of
from beamish.spark.operator.heartbeats import HeartbeatReader
from beamish.spark.operator.processor import OUTPUT, CarryOver, RunnersEntries
from beamish.spark.rows.groups import of_groups
from beamish.spark.rows.pack import shard_ids
from beamish.spark.rows.schemas import spark_schema

_NOTED = re.compile(r'"([^"]*)(/state/\d+/_stateSchema/)')
"""A stored path: the checkpoint, and the folder within it."""


def relocate(folder: HadoopPath, location: str) -> None:
    """Rewrite the location of a checkpoint.

    Args:
        folder: its folder.
        location: the URI under which Spark will find it.
    """
    for path in _notes(folder):
        path.write_text(_NOTED.sub(lambda found: f'"{location}{found[2]}', path.read_text()))


@contextmanager
def in_place(checkpoint: HadoopPath, beside: HadoopPath) -> Iterator[HadoopPath]:
    """A checkpoint that Spark can read: itself, or for a moved one a temporary copy with rewritten paths.

    Args:
        checkpoint: its folder.
        beside: where to put the copy.
    """
    noted = {found[1] for path in _notes(checkpoint) for found in _NOTED.finditer(path.read_text())}
    if noted <= {str(checkpoint)}:
        yield checkpoint
        return
    copy = beside.with_name(f"{beside.name}.{secrets.token_hex(4)}")
    try:
        checkpoint.copy(copy)
        relocate(copy, str(copy))
        yield copy
    finally:
        copy.delete()


def _notes(checkpoint: HadoopPath) -> list[HadoopPath]:
    """The files with stored paths."""
    files = checkpoint.glob("state/*/_metadata/*/*")
    return [path for path in files if not path.name.startswith(".") and not path.name.endswith(".crc")]


_ENTRIES = pa.schema([("shard", pa.int32()), ("name", pa.string()), ("value", pa.binary())])
_PARTS = pa.schema([("to", pa.int32()), ("of", pa.int32()), *list(_ENTRIES)[1:]])
_CARRIED = "carried"
"""The folder of the entries, within the new checkpoint during the migration."""
_NO_MORE_BATCHES = "spark.sql.streaming.noDataMicroBatches.enabled"


@state_errors()
def migrate(
    spark: SparkSession,
    stored: StoredQuery,
    folders: tuple[HadoopPath, HadoopPath],
    flow: BoundFlow,
    *,
    ticks: bool,
    location: str | None = None,
) -> None:
    """Migrate a checkpoint.

    Args:
        spark: the session, classic.
        stored: its query.
        folders: the old checkpoint's, and the new one, which must not exist.
        flow: the pipeline, bound with its new number of shards.
        ticks: whether it needs heartbeats.
        location: the URI that the new one will be moved to; None: it stays.

    Raises:
        StateError: it cannot be migrated.
    """
    for (_, notes), below in zip(stored.stages, flow.flows, strict=True):
        check_carries_over(below.operator, notes)
    old, new = folders
    sources = _Log.read(old / f"offsets/{stored.batch}").sources
    of_clock = _ticks(flow, sources, before=stored.ticks, now=ticks)
    if has_other_operators(spark, str(old)):
        raise StateError(
            "migrate: the query has stateful operators that are not stages of the pipeline, such as dropDuplicates, which cannot be migrated; keep the checkpoint, or start from a new one"
        )
    making = unfinished(new)
    making.delete()
    try:
        _copy(old, making, stored.batch, len(stored.stages))
        carried = making / _CARRIED
        _carried(spark, str(old), stored, flow).write.parquet(str(carried))
        _run(spark, making, carried, flow)
        carried.delete()
        _finish(old, making, stored.batch, of_clock)
        relocate(making, location or str(new))
        _publish(making, new)
    except BaseException:
        making.delete()
        raise


def unfinished(new: HadoopPath) -> HadoopPath:
    """The folder in which a new checkpoint is made; it is deleted last."""
    return new.with_name(f"{new.name}.unfinished")


def _publish(making: HadoopPath, new: HadoopPath) -> None:
    """Rename the new checkpoint part by part: it begins with its offsets, and the state comes last, so Spark refuses to start from some."""
    first, *others = ("offsets", "commits", "metadata", "sources", "state")
    begun = making / "begun"
    begun.make_folder()
    (making / first).rename(begun / first)
    begun.rename(new)  # in an empty folder a query would begin anew
    for name in others:
        if (making / name).exists():
            (making / name).rename(new / name)
    making.delete()


# The state


def _carried(spark: SparkSession, checkpoint: str, stored: StoredQuery, flow: BoundFlow) -> DataFrame:
    """The new entries of all stages: ``stage``, and as in ``_ENTRIES``; an entry without a name: empty the shard."""
    stages = []
    for number, ((operator_id, notes), below) in enumerate(zip(stored.stages, flow.flows, strict=True)):
        entries = entries_of(spark, checkpoint, stored.batch, operator_id).where(F.col("value").isNotNull())
        own = RunnersEntries.of(notes.values()).entries()
        new = _laid_anew(entries, below.operator, own)
        old = entries.select("shard").distinct().select("shard", F.lit(None).cast("string").alias("name"), _no_value())
        stages.append(new.unionByName(old).withColumn("stage", F.lit(number)))
    return union(stages)


def _no_value() -> Any:
    return F.lit(None).cast("binary").alias("value")


def _laid_anew(entries: DataFrame, operator: Operator, runners: Mapping[str, bytes]) -> DataFrame:
    ids = shard_ids(operator.shards)

    def parts(of_shard: pa.Table) -> pa.Table:
        shard, store = of_shard["shard"][0].as_py(), store_of(of_shard)
        rows = [
            {"to": ids[to], "of": shard, "name": name, "value": value}
            for to, part in enumerate(split(operator, store))
            for name, value in part.items()
        ]
        return pa.Table.from_pylist(rows, _PARTS)

    def whole(of_parts: pa.Table) -> pa.Table:
        shard = of_parts["to"][0].as_py()
        stores: dict[int, DictStore] = {}
        for row in of_parts.to_pylist():
            stores.setdefault(row["of"], DictStore())[row["name"]] = row["value"]
        found = {**put_together(operator, [stores[of] for of in sorted(stores)]), **runners}
        rows = [{"shard": shard, "name": name, "value": value} for name, value in found.items()]
        return pa.Table.from_pylist(rows, _ENTRIES)

    split_up = of_groups(entries, "shard", parts, spark_schema(_PARTS))
    return of_groups(split_up, "to", whole, spark_schema(_ENTRIES))


# The batch that takes it


def _run(spark: SparkSession, folder: HadoopPath, carried: HadoopPath, flow: BoundFlow) -> None:
    """Run one extra batch that loads the state."""
    schema = spark.read.parquet(str(carried)).schema
    rows = spark.readStream.schema(schema).parquet(str(carried))
    # Spark requires a watermark; that of this batch stays undefined.
    rows = rows.withColumn(WATERMARK, F.timestamp_micros(F.lit(0))).withWatermark(WATERMARK, "0 seconds")
    sources = len(flow.sources)
    taken = _taken(flow, {id(one): number for number, one in enumerate(flow.flows)}, rows, sources=sources)
    before = str(spark.conf.get(_NO_MORE_BATCHES))
    spark.conf.set(_NO_MORE_BATCHES, "false")
    try:
        query = (
            taken.writeStream.format("noop")
            .option("checkpointLocation", str(folder))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    finally:
        spark.conf.set(_NO_MORE_BATCHES, before)


def _taken(flow: BoundFlow, number: Mapping[int, int], rows: DataFrame, *, sources: int) -> DataFrame:
    """The stages in their positions in the query, so that Spark gives each its own state."""
    own = has_own_watermark(flow, reports=needs_reports(flow), sources=sources)
    frames = [
        _taken(below, number, rows, sources=sources).mapInArrow(_nothing, spark_schema(_ENTRIES))
        for below in flow.inputs
        if isinstance(below, BoundFlow)
    ]
    frames.append(rows.where(F.col("stage") == number[id(flow)]).select(*_ENTRIES.names, WATERMARK).drop(WATERMARK))
    return (
        union(frames)
        .groupBy("shard")
        .transformWithStateInPandas(
            CarryOver(flow.operator, wakes_of(flow.operator, reports=own)),
            outputStructType=OUTPUT,
            outputMode="Append",
            timeMode="EventTime",
        )
    )


def _nothing(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _ in batches:
        pass
    yield from ()


# The logs: a file per batch; the first line is a version, the second JSON, followed in the offset log by a line per
# source


@attrs.frozen
class _Log:
    lines: Sequence[str]

    @classmethod
    def read(cls, path: HadoopPath) -> _Log:
        return cls(path.read_text().split("\n"))

    @property
    def said(self) -> dict[str, Any]:
        return json.loads(self.lines[1])  # type: ignore[no-any-return]

    @property
    def sources(self) -> Sequence[str]:
        return self.lines[2:]

    def saying(self, **said: Any) -> _Log:
        return attrs.evolve(self, lines=[self.lines[0], json.dumps({**self.said, **said}), *self.sources])

    def with_sources(self, sources: Sequence[str]) -> _Log:
        return attrs.evolve(self, lines=[*self.lines[:2], *sources])

    def write(self, path: HadoopPath) -> None:
        path.write_text("\n".join(self.lines))


def _copy(old: HadoopPath, new: HadoopPath, batch: int, stages: int) -> None:
    """The offsets of the extra batch: no watermark, so that nothing is due, and a source for each stage."""
    for name in ("state", "metadata"):
        (old / name).copy(new / name)
    for number in (batch - 1, batch):
        offsets, commits = (old / f"{name}/{number}" for name in ("offsets", "commits"))
        if offsets.exists():
            log = _Log.read(offsets)
            log.saying(batchWatermarkMs=0).with_sources(["-"] * stages).write(new / f"offsets/{number}")
        if commits.exists():
            _Log.read(commits).saying(nextBatchWatermarkMs=0).write(new / f"commits/{number}")
    relocate(new, str(new))


@attrs.frozen
class _Ticks:
    """Whether heartbeats are added or removed, and their positions among the sources.

    Attributes:
        before, now: whether the old and the new query have them.
        place: their first position, from 0.
        lines: for each line of offsets, whether it is theirs.
    """

    before: bool
    now: bool
    place: int = 0
    lines: Sequence[bool] = ()

    def of(self, sources: Sequence[str]) -> list[str]:
        """The sources' offsets, with or without those of the heartbeats."""
        if self.before == self.now:
            return list(sources)
        others = [line for line in sources if not is_heartbeat(line)]
        if self.before:
            return others
        begins, each = json.dumps(HeartbeatReader().initialOffset()), iter(others)
        return [begins if is_theirs else next(each) for is_theirs in self.lines]


def _ticks(flow: BoundFlow, sources: Sequence[str], *, before: bool, now: bool) -> _Ticks:
    """The positions of heartbeats; ``sources``: the offsets of the last batch.

    Raises:
        StateError: they are added or removed at an unknown position.
    """
    if before == now:
        return _Ticks(before, now)
    if before:
        return _Ticks(before, now, next(place for place, line in enumerate(sources) if is_heartbeat(line)))
    lines = _lines(flow)
    if len(sources) != lines.count(False):
        raise StateError(
            f"migrate: the query has {len(sources)} sources, the pipeline {len(flow.sources)} inputs, so the position of the "
            "heartbeat source is unknown; change nothing that needs the clock"
        )
    return _Ticks(before, now, lines.index(True), lines)


def _lines(flow: BoundFlow) -> list[bool]:
    """For each line of offsets of a flow with heartbeats, whether it is theirs: Spark has one per stage, after its inputs."""
    return [line for one in flow.inputs for line in (_lines(one) if isinstance(one, BoundFlow) else [False])] + [True]


def _finish(old: HadoopPath, new: HadoopPath, batch: int, ticks: _Ticks) -> None:
    """Rewrite the log: the extra batch ends at the offsets of the one before."""
    for summed in [*new.glob("offsets/*.crc"), *new.glob("commits/*.crc")]:
        summed.delete()
    committed = batch + 1
    for number in (batch - 1, batch):
        for name in ("offsets", "commits"):
            path = old / f"{name}/{number}"
            if path.exists():
                log = _Log.read(path)
                log = log.with_sources(ticks.of(log.sources)) if name == "offsets" else log
                log.write(new / f"{name}/{number}")
    last, done = (_Log.read(old / f"{name}/{batch}") for name in ("offsets", "commits"))
    watermark_ms = done.said.get("nextBatchWatermarkMs", 0)
    if not (new / f"commits/{committed}").exists():
        raise StateError("migrate: Spark did not run the batch that loads the state; nothing was written, try again")
    offsets, commits = (new / f"{name}/{committed}" for name in ("offsets", "commits"))
    conf = {MIGRATED: str(batch), **last.said["conf"]}  # which has the key after an earlier migration
    own = _Log.read(offsets).saying(batchWatermarkMs=watermark_ms, conf=conf)
    own.with_sources(ticks.of(last.sources)).write(offsets)
    _Log.read(commits).saying(nextBatchWatermarkMs=watermark_ms).write(commits)
    (new / "sources").delete()
    if (old / "sources").exists():
        (old / "sources").copy(new / "sources")
        _renumber(new / "sources", ticks)


def _renumber(sources: HadoopPath, ticks: _Ticks) -> None:
    """Renumber sources after added or removed heartbeats."""
    step = int(ticks.now) - int(ticks.before)
    numbers = sorted((int(path.name) for path in sources.glob("*") if path.name.isdigit()), reverse=step > 0)
    for number in numbers if step else ():
        if number == ticks.place and ticks.before:
            (sources / str(number)).delete()
        elif number >= ticks.place:
            (sources / str(number)).rename(sources / str(number + step))
