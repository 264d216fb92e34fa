"""The entries of the shards' stores in a checkpoint, read by Spark's own reader of state (docs/spark-notes.md#state-from-outside), and questions to shards."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import reduce
from operator import or_

import pyarrow as pa
from pyspark.sql import DataFrame, DataFrameReader, Row, SparkSession
from pyspark.sql import functions as F

from beamish.addresses import printable
from beamish.contract.at_rest import Answer, Asked, Keeps
from beamish.contract.stored import ABOUT, DictStore
from beamish.errors import ColumnError, StateError, of
from beamish.flow import Flow, Panes
from beamish.fusion.at_rest import stages_of
from beamish.spark.operator.notes import NO_SHARD, every, noted_shards, opened, other_partition
from beamish.spark.rows.columns import column
from beamish.spark.rows.groups import of_groups
from beamish.spark.rows.pack import partition_of, shard_ids
from beamish.spark.rows.schemas import spark_schema
from beamish.spark.runtime.session import check_session
from beamish.stage_facts import note_names
from beamish.tables.entries import under


def checkpoint_reader(spark: SparkSession) -> DataFrameReader:
    """A reader for a checkpoint, in a session that may not have run a query (SparkSetupError: Spark is too old)."""
    check_session(spark)
    # The state reader needs the StateStoreCoordinator, which Spark 4.2.0 and 4.2.1 create with the session's query
    # manager.
    _ = spark.streams.active
    return spark.read


@contextmanager
def state_errors() -> Iterator[None]:
    """Report Spark's error for an unreadable checkpoint as a StateError (StateError: the checkpoint cannot be read)."""
    try:
        yield
    except Exception as error:
        ours = of(error)
        if ours is None or ours is error:
            raise
        raise ours from error


def operators(spark: SparkSession, checkpoint: str) -> list[int]:
    """The ids of a query's stateful operators that are stages of a pipeline, in order."""
    metadata = checkpoint_reader(spark).format("state-metadata").load(checkpoint)
    ours = metadata.where(F.col("operatorProperties").contains('"stateName":"shard"'))
    return sorted({row.operatorId for row in ours.select("operatorId").collect()})


def check_partitions(rows: Iterable[Row], operator: int, partitions: int) -> None:
    """Check that collected entries (``shard``, ``partition_id``) are in the partitions of their shards.

    Raises:
        StateError: the folders of two partitions were exchanged.
    """
    for row in rows:
        belongs = partition_of(row.shard, partitions)
        if row.partition_id != belongs:
            here, there = (
                f"partition {number} of {partitions} of operator {operator}" for number in (row.partition_id, belongs)
            )
            raise other_partition(row.shard, here, there)


def partitions_of(spark: SparkSession, checkpoint: str) -> int:
    """The number of state partitions of a query."""
    metadata = checkpoint_reader(spark).format("state-metadata").load(checkpoint)
    return int(metadata.agg(F.max("numPartitions")).collect()[0][0])


def has_other_operators(spark: SparkSession, checkpoint: str) -> bool:
    """Whether a query has stateful operators that are not stages of a pipeline."""
    every = checkpoint_reader(spark).format("state-metadata").load(checkpoint).select("operatorId").distinct().count()
    return every > len(operators(spark, checkpoint))


def entries_of(spark: SparkSession, checkpoint: str, batch: int | None, operator: int) -> DataFrame:
    """The entries of the stores of a stateful operator's shards: ``shard``, ``name``, ``value``, ``partition_id``.

    Args:
        spark: the session.
        checkpoint: its folder.
        batch: read the state after this batch; None: the last one.
        operator: the id of the operator.
    """
    reader = (
        checkpoint_reader(spark).format("statestore").option("operatorId", operator).option("stateVarName", "shard")
    )
    if batch is not None:
        reader = reader.option("batchId", batch)
    name, value = F.col("user_map_key.name").alias("name"), F.col("user_map_value.value").alias("value")
    entries = reader.load(checkpoint).where(F.col("key.shard") != NO_SHARD)
    return entries.select("key.shard", name, value, "partition_id")


def stores_of(rows: Iterable[Row], asked: Callable[[str], bool] = every) -> dict[int, DictStore]:
    """Collected entries (``shard``, ``name``, ``value``) as the stores of their shards; those without a value are skipped.

    Args:
        rows: the entries, including metadata.
        asked: selects the requested entries of a shard.

    Raises:
        StateError: an entry is damaged or missing.
    """
    entries: dict[int, dict[str, bytes]] = {}
    for row in rows:
        of_shard = entries.setdefault(row.shard, {})
        if row["value"] is not None:
            of_shard[row["name"]] = bytes(row["value"])
    return {shard: opened(own, shard, asked) for shard, own in entries.items()}


def store_of(entries: pa.Table, asked: Callable[[str], bool] = every) -> DictStore:
    """Entries of one shard, including its metadata, as its store; ``asked`` as in ``stores_of``.

    Raises:
        StateError: an entry is damaged or missing.
    """
    names, values = entries["name"].to_pylist(), entries["value"].to_pylist()
    return opened(dict(zip(names, values, strict=True)), entries["shard"][0].as_py(), asked)


MOST_NAMES = 1000
"""Up to this many entries are requested by name; beyond it, all are read."""
Notes = Mapping[int, DictStore]
SHARD = pa.field("shard", pa.int64())


def notes_pattern() -> str:
    """A regular expression for the names of metadata entries."""
    return rf"^(.+/)?({'|'.join(note_names())})$"


def is_note(name: str) -> bool:
    """Whether an entry is metadata of a shard, or the stage's description."""
    return re.search(notes_pattern(), name) is not None


@state_errors()
def answer_of(flow: Flow, number: int, state: tuple[SparkSession, str, int | None], asked: Asked) -> DataFrame:
    """The answer of a stage to a query, as rows.

    Args:
        flow: the pipeline's.
        number: of the stage.
        state: the session, the checkpoint's folder, and the batch after which to read it; None: the last one.
        asked: the query.

    Raises:
        StateError: the checkpoint has no such stage, belongs to another pipeline, or is too old to be read without input.
        OptionError, PipelineError: see ``AtRest.answer``.
    """
    spark, checkpoint, batch = state
    below, why = flow.flows[number - 1], None
    for operator in _by_likelihood(operators(spark, checkpoint), number, flow):
        entries = entries_of(spark, checkpoint, batch, operator)
        of_operator = stores_of(entries.where(F.col("name").rlike(notes_pattern())).collect(), is_note)
        for name, notes in stages_of(of_operator).items():
            if _number(notes) not in (0, number):
                continue
            shards = max(map(noted_shards, notes.values()), default=1)
            try:
                at_rest = below.stage.at_rest(below.takes, list(notes.values()), asked.what, shards=shards)
            except (ColumnError, StateError) as error:  # it belongs to another stage
                why = why or error
            else:
                answer = at_rest.answer(asked)
                found = answered(entries, notes, answer, shards, name)
                return _flat(found, answer.schema) if asked.what is Keeps.WINDOWS else found
    raise StateError(
        f"state: checkpoint {printable(checkpoint)}: {why}"
        if why is not None
        else f"state: the checkpoint {printable(checkpoint)} has no state of stage {number}; give the folder of the query's option checkpointLocation"
    )


def _by_likelihood(ids: list[int], number: int, flow: Flow) -> list[int]:
    """The ids of operators, in order, with that of the stage with this number first."""
    places = places_of(flow, len(ids))
    likely = ids[places.index(number - 1)] if number <= len(ids) else None
    return sorted(ids, key=lambda one: one != likely)


def places_of(flow: Flow, operators: int) -> list[int]:
    """The place in ``Flow.flows`` of each operator, as Spark numbers them."""
    if operators == len(flow.flows):
        return list(_from_last(flow, operators - 1))
    return list(reversed(range(operators)))  # another pipeline, of which only a chain is known


def _from_last(flow: Flow, place: int) -> Iterator[int]:
    """Places in ``Flow.flows``, as Spark numbers operators: each before those it depends on, which are from left to right."""
    yield place
    place -= sum(len(taken.flows) for taken in flow.inputs)
    for taken in flow.inputs:
        place += len(taken.flows)
        if isinstance(taken, Panes):
            yield from _from_last(taken.flow, place - 1)


def _number(notes: Notes) -> int:
    """The number of a stage, from its description; 0: none."""
    stored = next((one for store in notes.values() if (one := store.get(ABOUT)) is not None), None)
    return 0 if stored is None else int(json.loads(stored).get("stage", 0))


def answered(
    entries: DataFrame, notes: Notes, answer: Answer, shards: int, name: str = "", *, by_shard: bool = False
) -> DataFrame:
    """The rows of an answer; lazy.

    Args:
        entries: those of the shards' stores.
        notes: of each shard, those of the stage.
        answer: reads them.
        shards: number of shards.
        name: of the stage's entries, if it is fused with others.
        by_shard: whether rows begin with the id of their shard.
    """
    needs = [answer.needs(store) for store in notes.values()]
    prefix = f"{name}/" if name else ""
    names = frozenset(prefix + one for each in needs for one in each or ())
    below, reads_all = tuple(one for one in names if one.endswith("/")), None in needs
    if not reads_all and len(names) <= MOST_NAMES:
        column = F.col("name")
        wanted = reduce(or_, map(column.startswith, below), column.isin(list(names)) | column.rlike(notes_pattern()))
        entries = entries.where(wanted)
    if answer.shard is not None and not name:  # fused stages are sharded by the keys of others
        entries = entries.where(F.col("shard") == shard_ids(shards)[answer.shard])
    note = re.compile(notes_pattern())

    def is_needed(entry: str) -> bool:
        own = reads_all and entry.startswith(prefix)
        return own or entry in names or entry.startswith(below) or note.search(entry) is not None

    def rows(of_shard: pa.Table) -> pa.Table:
        found = answer.read(under(name or None, store_of(of_shard, is_needed)))
        return with_shard(found, of_shard["shard"][0].as_py()) if by_shard else found

    schema = answer.schema.insert(0, SHARD) if by_shard else answer.schema
    return of_groups(entries, "shard", rows, spark_schema(schema))


def with_shard(rows: pa.Table, shard: int) -> pa.Table:
    """Rows that begin with the id of their shard."""
    return rows.add_column(0, SHARD, pa.repeat(pa.scalar(shard, pa.int64()), rows.num_rows))


def _flat(windows: DataFrame, schema: pa.Schema) -> DataFrame:
    """The columns of keys and of values, flattened."""
    columns = [
        column(field.name).getField(one.name).alias(one.name) if one is not field else column(field.name)
        for field in schema
        for one in (field.type if field.name in ("key", "values") else [field])
    ]
    return windows.select(*columns)
