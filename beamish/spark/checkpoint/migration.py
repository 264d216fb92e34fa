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

from beamish.contract.stored import DictStore
from beamish.errors import StateError
from beamish.fusion.at_rest import fused_store, stages_of
from beamish.fusion.groups import GroupedFlow
from beamish.fusion.operator import Link
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
    return [path for path in checkpoint.glob("state/*/_metadata/*/*") if path.is_stored]


_ENTRIES = pa.schema([("shard", pa.int32()), ("name", pa.string()), ("value", pa.binary())])
_PARTS = pa.schema([("to", pa.int32()), ("of", pa.int32()), ("stage", pa.int32()), *list(_ENTRIES)[1:]])
_CARRIED = "carried"
"""The folder of the entries, within the new checkpoint during the migration."""
_NO_MORE_BATCHES = "spark.sql.streaming.noDataMicroBatches.enabled"


@state_errors()
def migrate(
    spark: SparkSession,
    stored: StoredQuery,
    folders: tuple[HadoopPath, HadoopPath],
    flow: GroupedFlow,
    *,
    ticks: bool,
    location: str | None = None,
) -> None:
    """Migrate a checkpoint.

    Args:
        spark: the session, classic.
        stored: its query.
        folders: the old checkpoint's, and the new one, which must not exist.
        flow: the pipeline, bound with its new number of shards, its stages in the groups that continue.
        ticks: whether it needs heartbeats.
        location: the URI that the new one will be moved to; None: it stays.

    Raises:
        StateError: it cannot be migrated.
    """
    links = {link.number: link for group in flow.each for link in group.links}
    for number, stage in enumerate(stored.stages, 1):
        check_carries_over(links[number].operator, stage.notes)
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
        _copy(old, making, stored, flow)
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
    first, *others = ("offsets", "commits", "sources", "metadata", "state")
    begun = making / "begun"
    begun.make_folder()
    (making / first).rename(begun / first)
    begun.rename(new)  # in an empty folder a query would begin anew
    for name in others:
        if (making / name).exists():
            (making / name).rename(new / name)
    making.delete()


# The state


def _carried(spark: SparkSession, checkpoint: str, stored: StoredQuery, flow: GroupedFlow) -> DataFrame:
    """The new entries of all groups: ``group``, and as in ``_ENTRIES``; an entry without a name: empty the shard."""
    groups = []
    for number, group in enumerate(flow.each):
        links, ids = group.links, shard_ids(group.operator.shards)
        stages = {link.number: stored.stages[link.number - 1] for link in links}
        entries = {
            operator: entries_of(spark, checkpoint, stored.batch, operator).where(F.col("value").isNotNull())
            for operator in {stage.operator for stage in stages.values()}
        }
        parts = union(
            _parts(
                of, {stages[link.number].name: link for link in links if stages[link.number].operator == operator}, ids
            )
            for operator, of in entries.items()
        )
        notes = [stages[link.number].notes for link in links]
        new = _whole(parts, links, notes)
        was = entries[_template(stored, group)].select("shard").distinct()
        called = spark.createDataFrame([(shard,) for shard in ids], was.schema)  # so that each partition is
        old = (
            was.union(called)
            .distinct()
            .select("shard", F.lit(None).cast("string").alias("name"), F.lit(None).cast("binary").alias("value"))
        )
        groups.append(new.unionByName(old).withColumn("group", F.lit(number)))
    return union(groups)


def _template(stored: StoredQuery, group: GroupedFlow) -> int:
    """The operator of a checkpoint whose folder a group gets."""
    return stored.stages[group.links[-1].number - 1].operator


def _parts(entries: DataFrame, links: Mapping[str, Link], ids: Sequence[int]) -> DataFrame:
    """The entries of an operator's stages, one part per old and new shard; ``links``: by the name of their entries in the checkpoint."""

    def parts(of_shard: pa.Table) -> pa.Table:
        shard = of_shard["shard"][0].as_py()
        rows = [
            {"to": ids[to], "of": shard, "stage": links[name].number, "name": entry, "value": value}
            for name, stores in stages_of({shard: store_of(of_shard)}).items()
            if name in links
            for to, part in enumerate(split(links[name], stores[shard]))
            for entry, value in part.items()
        ]
        return pa.Table.from_pylist(rows, _PARTS)

    return of_groups(entries, "shard", parts, spark_schema(_PARTS))


def _whole(parts: DataFrame, links: Sequence[Link], notes: Sequence[Mapping[int, DictStore]]) -> DataFrame:
    """The entries of each new shard of a group."""
    runners = [RunnersEntries.of(of_stage.values()) for of_stage in notes]

    def whole(of_parts: pa.Table) -> pa.Table:
        shard = of_parts["to"][0].as_py()
        stores: dict[int, dict[int, DictStore]] = {}
        for row in of_parts.to_pylist():
            stores.setdefault(row["stage"], {}).setdefault(row["of"], DictStore())[row["name"]] = row["value"]
        each = [put_together(link, [of for _, of in sorted(stores.get(link.number, {}).items())]) for link in links]
        found = {**fused_store(links, each), **RunnersEntries.entries_of(runners, links)}
        rows = [{"shard": shard, "name": name, "value": value} for name, value in found.items()]
        return pa.Table.from_pylist(rows, _ENTRIES)

    return of_groups(parts, "to", whole, spark_schema(_ENTRIES))


# The batch that takes it


def _run(spark: SparkSession, folder: HadoopPath, carried: HadoopPath, flow: GroupedFlow) -> None:
    """Run one extra batch that loads the state."""
    schema = spark.read.parquet(str(carried)).schema
    rows = spark.readStream.schema(schema).parquet(str(carried))
    # Spark requires a watermark; that of this batch stays undefined.
    rows = rows.withColumn(WATERMARK, F.timestamp_micros(F.lit(0))).withWatermark(WATERMARK, "0 seconds")
    sources = len(flow.sources)
    taken = _taken(flow, {id(one): number for number, one in enumerate(flow.each)}, rows, sources=sources)
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


def _taken(flow: GroupedFlow, number: Mapping[int, int], rows: DataFrame, *, sources: int) -> DataFrame:
    """The groups in their positions in the query, so that Spark gives each its own state."""
    own = has_own_watermark(flow, reports=needs_reports(flow), sources=sources)
    frames = [
        _taken(below, number, rows, sources=sources).mapInArrow(_nothing, spark_schema(_ENTRIES))
        for below in flow.inputs
        if isinstance(below, GroupedFlow)
    ]
    frames.append(rows.where(F.col("group") == number[id(flow)]).select(*_ENTRIES.names, WATERMARK).drop(WATERMARK))
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


def _copy(old: HadoopPath, new: HadoopPath, stored: StoredQuery, flow: GroupedFlow) -> None:
    """The offsets of the extra batch: no watermark, so that nothing is due, and a source for each group."""
    batch = stored.batch
    (old / "metadata").copy(new / "metadata")
    for operator, group in enumerate(in_preorder(flow)):
        _copy_operator(old / f"state/{_template(stored, group)}", new / f"state/{operator}")
    for number in (batch - 1, batch):
        offsets, commits = (old / f"{name}/{number}" for name in ("offsets", "commits"))
        if offsets.exists():
            log = _Log.read(offsets)
            log.saying(batchWatermarkMs=0).with_sources(["-"] * len(flow.each)).write(new / f"offsets/{number}")
        if commits.exists():
            _Log.read(commits).saying(nextBatchWatermarkMs=0).write(new / f"commits/{number}")
    relocate(new, str(new))


def in_preorder(flow: GroupedFlow) -> Iterator[GroupedFlow]:
    """The groups in the order in which Spark numbers their operators."""
    yield flow
    for below in flow.inputs:
        if isinstance(below, GroupedFlow):
            yield from in_preorder(below)


def _copy_operator(old: HadoopPath, new: HadoopPath) -> None:
    """The folder of an operator, under another number."""
    old.copy(new)
    for path in new.glob("_metadata/*/*"):
        if path.is_stored:
            text = re.sub(r"/state/\d+/_stateSchema/", f"/state/{new.name}/_stateSchema/", path.read_text())
            path.write_text(re.sub(r'("operatorId":)\d+', rf"\g<1>{new.name}", text))


@attrs.frozen
class _Ticks:
    """The positions of heartbeats among the sources.

    Attributes:
        before, now: for each line of offsets of the old and the new query, whether it is theirs.
    """

    before: Sequence[bool]
    now: Sequence[bool]

    def of(self, sources: Sequence[str]) -> list[str]:
        """The sources' offsets, with the heartbeats in their new positions."""
        begins = json.dumps(HeartbeatReader().initialOffset())
        tick = next((line for line in sources if is_heartbeat(line)), begins)
        others = (line for line in sources if not is_heartbeat(line))
        return [tick if is_theirs else next(others) for is_theirs in self.now]

    @property
    def numbers(self) -> dict[int, int]:
        """The new number of each source that stays."""
        (of_before, tick), (of_now, tick_now) = map(_numbers, (self.before, self.now))
        found = dict(zip(of_before, of_now, strict=True))
        return found if tick is None or tick_now is None else {**found, tick: tick_now}


def _numbers(lines: Sequence[bool]) -> tuple[list[int], int | None]:
    """The numbers of the sources other than heartbeats, and theirs: the heartbeats of all groups are one source."""
    others: list[int] = []
    tick = None
    for is_theirs in lines:
        number = len(others) + (tick is not None)
        if not is_theirs:
            others.append(number)
        elif tick is None:
            tick = number
    return others, tick


def _ticks(flow: GroupedFlow, sources: Sequence[str], *, before: bool, now: bool) -> _Ticks:
    """The positions of heartbeats; ``sources``: the offsets of the last batch.

    Raises:
        StateError: they are added, removed or moved at an unknown position.
    """
    had = list(map(is_heartbeat, sources))
    has = _lines(flow) if now else [False] * had.count(False)
    if has.count(False) == had.count(False):
        return _Ticks(had, has)
    if before and has.count(True) == had.count(True):
        return _Ticks(had, had)
    raise StateError(
        f"migrate: the query has {had.count(False)} sources, the pipeline {len(flow.sources)} inputs, so the position of the "
        "heartbeat source is unknown; change nothing that needs the clock, nor what stages run together"
    )


def _lines(flow: GroupedFlow) -> list[bool]:
    """For each line of offsets of a flow with heartbeats, whether it is theirs: Spark has one per group, after its inputs."""
    return [line for one in flow.inputs for line in (_lines(one) if isinstance(one, GroupedFlow) else [False])] + [True]


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
    """Renumber sources after heartbeats were added, removed or moved."""
    for path in sources.glob("*"):
        if path.name.isdigit():
            path.rename(sources / f"{path.name}.before")
    for number, now in ticks.numbers.items():
        if (sources / f"{number}.before").exists():
            (sources / f"{number}.before").rename(sources / str(now))
    for path in sources.glob("*.before"):
        path.delete()
