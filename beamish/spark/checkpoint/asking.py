"""Lookups in the shards of a checkpoint: metadata is read on the driver, rows by executors, shard by shard."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import reduce
from operator import or_

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from beamish.addresses import printable
from beamish.at_rest.stage_facts import note_names
from beamish.contract.at_rest import Answer, Asked, Keeps
from beamish.contract.store import ABOUT, DictStore
from beamish.errors import ColumnError, StateError
from beamish.flow import Flow
from beamish.spark.checkpoint.entries import entries_of, operators, state_errors, store_of, stores_of
from beamish.spark.operator.notes import noted_shards
from beamish.spark.rows.columns import column
from beamish.spark.rows.shard_ids import shard_ids
from beamish.spark.rows.types import spark_schema

MOST_NAMES = 1000
"""Up to this many entries are requested by name; beyond it, all are read."""
Notes = Mapping[int, DictStore]


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
    for operator in _by_likelihood(operators(spark, checkpoint), number):
        entries = entries_of(spark, checkpoint, batch, operator)
        notes = stores_of(entries.where(F.col("name").rlike(notes_pattern())).collect(), is_note)
        if _number(notes) not in (0, number):
            continue
        shards = max(map(noted_shards, notes.values()), default=1)
        try:
            at_rest = below.stage.at_rest(below.takes, list(notes.values()), asked.what, shards=shards)
        except (ColumnError, StateError) as error:  # it belongs to another stage
            why = why or error
        else:
            answer = at_rest.answer(asked)
            found = answered(entries, notes, answer, shards)
            return _flat(found, answer.schema) if asked.what is Keeps.WINDOWS else found
    raise StateError(
        f"state: checkpoint {printable(checkpoint)}: {why}"
        if why is not None
        else f"state: the checkpoint {printable(checkpoint)} has no state of stage {number}; give the folder of the query's option checkpointLocation"
    )


def _by_likelihood(ids: list[int], number: int) -> list[int]:
    """The ids of operators, the most likely one of a stage with this number first: Spark numbers them from the last stage on."""
    return sorted(ids, key=lambda one: one != len(ids) - number)


def _number(notes: Notes) -> int:
    """The number of a stage, from its description; 0: none."""
    stored = next((one for store in notes.values() if (one := store.get(ABOUT)) is not None), None)
    return 0 if stored is None else int(json.loads(stored).get("stage", 0))


def answered(entries: DataFrame, notes: Notes, answer: Answer, shards: int) -> DataFrame:
    """The rows of an answer; lazy.

    Args:
        entries: those of the shards' stores.
        notes: of each shard.
        answer: reads them.
        shards: number of shards.
    """
    needs = [answer.needs(store) for store in notes.values()]
    names = frozenset(name for each in needs for name in each or ())
    below, reads_all = tuple(name for name in names if name.endswith("/")), None in needs
    if not reads_all and len(names) <= MOST_NAMES:
        name = F.col("name")
        wanted = reduce(or_, map(name.startswith, below), name.isin(list(names)) | name.rlike(notes_pattern()))
        entries = entries.where(wanted)
    if answer.shard is not None:
        entries = entries.where(F.col("shard") == shard_ids(shards)[answer.shard])
    note = re.compile(notes_pattern())

    def is_needed(name: str) -> bool:
        return reads_all or name in names or name.startswith(below) or note.search(name) is not None

    def rows(of_shard: pa.Table) -> pa.Table:
        return answer.read(store_of(of_shard, is_needed))

    return entries.groupBy("shard").applyInArrow(rows, spark_schema(answer.schema))


def _flat(windows: DataFrame, schema: pa.Schema) -> DataFrame:
    """The columns of keys and of values, flattened."""
    columns = [
        column(field.name).getField(one.name).alias(one.name) if one is not field else column(field.name)
        for field in schema
        for one in (field.type if field.name in ("key", "values") else [field])
    ]
    return windows.select(*columns)
