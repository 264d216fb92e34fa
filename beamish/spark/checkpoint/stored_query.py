"""The query of a checkpoint, for comparison and migration."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import attrs
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from beamish.contract.stored import ABOUT, TAKES, DictStore, described_columns, widest
from beamish.errors import ColumnError, OptionError, PipelineError
from beamish.flow import BoundFlow, Flow
from beamish.fusion.at_rest import places_in, stages_of
from beamish.fusion.groups import Fuse, GroupedFlow
from beamish.spark.checkpoint.entries import (
    check_partitions,
    entries_of,
    operators,
    partitions_of,
    places_of,
    state_errors,
    stores_of,
)
from beamish.spark.checkpoint.inspected import read_batches
from beamish.spark.compile.inputs import name_inputs
from beamish.spark.compile.stream import needs_ticks
from beamish.spark.operator.notes import NOTE
from beamish.spark.runtime.session import shard_count


def digest_of(entry: str) -> str:
    """A digest of a batch's entry in the offset log."""
    return f"offsets {hashlib.sha256(entry.encode()).hexdigest()[:32]}"


MIGRATED = "beamish.migratedAfter"
"""In the configuration of the batch that ``bm.migrate`` adds to a checkpoint: the last batch that sinks were called for."""


def last_before_migration(entry: str) -> int | None:
    """The last batch that sinks were called for, from the entry of a batch in the offset log; None: that batch."""
    found = json.loads(entry.split("\n")[1]).get("conf", {}).get(MIGRATED)
    return None if found is None else int(found)


_BULK = r"(^|/)[a-z]-?\d+$"
"""The entries of segments, which have no metadata."""


def _is_no_segment(name: str) -> bool:
    return re.search(_BULK, name) is None


@attrs.frozen(eq=False)
class StageState:
    """The state of a stage.

    Attributes:
        operator: the id of its stateful operator.
        name: of its entries, if it is fused with others.
        notes: the metadata of each shard.
    """

    operator: int
    name: str
    notes: Mapping[int, DictStore]


@attrs.frozen(eq=False)
class StoredQuery:
    """A query, as of its last committed batch.

    Attributes:
        batch: that batch's number.
        stages: in the order of ``Flow.flows``.
        ticks: whether it has heartbeats.
        in_flight: whether another batch was started and not committed.
        shard_by: of fused stages, by their numbers, the positions of the keys that decide the shard; None: all.
    """

    batch: int
    stages: Sequence[StageState]
    ticks: bool
    in_flight: bool
    shard_by: Mapping[int, tuple[int, ...] | None]

    @property
    def fuse(self) -> Fuse:
        """Which stages run together."""
        groups: dict[int, set[int]] = {}
        for number, stage in enumerate(self.stages, 1):
            groups.setdefault(stage.operator, set()).add(number)
        return Fuse(groups=tuple(map(frozenset, groups.values())), places=self.shard_by)


@state_errors()
def read_query(spark: SparkSession, checkpoint: str, flow: Flow) -> StoredQuery:
    """The query of a checkpoint that a flow continues.

    Raises:
        StateError: not the checkpoint of a query that has committed a batch, or cannot be read.
    """
    batches = read_batches(spark, checkpoint)
    batch = max(one.number for one in batches if one.committed)
    stages, shard_by, partitions = [], dict[int, tuple[int, ...] | None](), partitions_of(spark, checkpoint)
    for operator in operators(spark, checkpoint):
        rows = entries_of(spark, checkpoint, batch, operator).where(~F.col("name").rlike(_BULK)).collect()
        check_partitions(rows, operator, partitions)
        stores = stores_of(rows, _is_no_segment)
        stages += [StageState(operator, name, notes) for name, notes in stages_of(stores).items()]
        shard_by |= places_in(stores)
    in_flight = any(one.number > batch for one in batches)
    ticks = _has_heartbeats(spark, checkpoint, batch)
    return StoredQuery(batch, in_order(stages, flow), ticks, in_flight, shard_by)


def last_entry(spark: SparkSession, checkpoint: str) -> tuple[str, int, str]:
    """The id of a query, and the number and offset-log digest of its last committed batch.

    Raises:
        StateError: the folder is not the checkpoint of a query that has committed a batch.
    """
    batch = max(one.number for one in read_batches(spark, checkpoint) if one.committed)
    metadata, entry = (
        spark.read.text(f"{checkpoint.rstrip('/')}/{name}", wholetext=True).collect()[0].value
        for name in ("metadata", f"offsets/{batch}")
    )
    return json.loads(metadata)["id"], batch, digest_of(entry)


def in_order(stages: Sequence[StageState], flow: Flow) -> list[StageState]:
    """Stages in the order of ``Flow.flows``: by their descriptions; those of old checkpoints, which have none, by their operators."""
    by_operator = sorted(stages, key=lambda stage: stage.operator)
    placed = zip(places_of(flow, len(stages)), by_operator, strict=True)
    ordered = sorted(placed, key=lambda one: (_described(one[1].notes, one[0]), one[0]))
    return [stage for _, stage in ordered]


def _described(notes: Mapping[int, DictStore], place: int) -> int:
    """The place of a stage by its description; without one the given place."""
    about: dict[str, Any] = next((json.loads(stored) for store in notes.values() if (stored := store.get(ABOUT))), {})
    return int(about["stage"]) - 1 if "stage" in about else place


def _has_heartbeats(spark: SparkSession, checkpoint: str, batch: int) -> bool:
    """Whether one of the sources' offsets is a heartbeat's (``operator/heartbeats.py``)."""
    offsets = spark.read.text(f"{checkpoint.rstrip('/')}/offsets/{batch}").collect()
    return any(is_heartbeat(row.value) for row in offsets)


def is_heartbeat(line: str) -> bool:
    """Whether a line of an offset log belongs to heartbeats."""
    try:
        said = json.loads(line)
    except ValueError:
        return False
    return isinstance(said, dict) and said.keys() >= {"tick", "clock_us"}


@attrs.frozen(eq=False)
class NextRun:
    """A pipeline that continues.

    Attributes:
        flow: bound to its new input, with the number of shards of the checkpoint.
        shards: the new number of shards.
        ticks: whether it needs heartbeats.
        bound: binds it with another number of shards, its stages in groups.
    """

    flow: BoundFlow
    shards: int
    ticks: bool
    bound: Callable[[int], GroupedFlow]


def next_run(
    spark: SparkSession,
    stored: StoredQuery,
    flow: Flow,
    given: tuple[DataFrame | None, Mapping[str, DataFrame]],
    *,
    shards: int | None,
    fuse: Fuse,
) -> NextRun:
    """Bind a pipeline like ``apply``.

    Args:
        spark: the session.
        stored: the checkpoint's query.
        flow: the pipeline's.
        given: ``df`` and ``inputs``, as for ``apply``; empty: use the stored schemas.
        shards: as for ``apply``.
        fuse: which stages run together.

    Raises:
        PipelineError, ColumnError, OptionError: as for ``apply``, or the columns are unknown.
    """
    had = _shards_of(stored)
    df, inputs = given
    if df is not None or inputs:
        named = name_inputs(flow, df, inputs)
        if not named.streaming:
            raise PipelineError("check_upgrade(...): needs the streams that apply() will get (readStream)")
        count, bind = shard_count(spark, shards), named.bind
    else:
        count = had if shards is None and had is not None else shard_count(spark, shards)
        bind = partial(_bound_to_noted, stored, flow)
    bound = bind(had or count)
    return NextRun(bound, count, needs_ticks(fuse.grouped(bound)), lambda shards: fuse.grouped(bind(shards)))


def _shards_of(stored: StoredQuery) -> int | None:
    """The number of shards: an unkeyed stage has one."""
    notes = (json.loads(note) for of in stored.stages for store in of.notes.values() if (note := store.get(NOTE)))
    return max((int(note["shards"]) for note in notes), default=None)


def _bound_to_noted(stored: StoredQuery, flow: Flow, shards: int) -> BoundFlow:
    """A flow bound to the stored schemas (OptionError: they are not stored)."""
    flow.check()
    schemas: dict[str | None, pa.Schema] = {}
    flows = flow.flows
    for source, below, number in flow.leaves:
        place = next(place for place, one in enumerate(flows) if one is below)
        noted = _noted(stored.stages[place].notes) if place < len(stored.stages) else None
        if noted is None or number >= len(noted) or not all(isinstance(key, str) for key in source.keys):
            raise _give_columns(source.name, "the checkpoint does not have its columns")
        schemas[source.name] = noted[number]
    try:
        return flow.bind(schemas, shards=shards)
    except ColumnError as error:
        raise _give_columns(None, f"with the columns in the checkpoint: {error}") from error


def _noted(notes: Mapping[int, DictStore]) -> list[pa.Schema] | None:
    """The columns of each input of a stage; None: not stored."""
    entries = [entry for store in notes.values() for entry in store.items()]
    return widest(value for name, value in entries if name.rpartition("/")[2] == TAKES) or described_columns(
        notes.values()
    )


def _give_columns(name: str | None, why: str) -> OptionError:
    given = "df" if name is None else f"{name}=df, ..."
    return OptionError(
        f"check_upgrade(spark, checkpoint, pipeline): {why}; pass the streams that apply() takes: check_upgrade(spark, checkpoint, pipeline, "
        f"{given})"
    )
