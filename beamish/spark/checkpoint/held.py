"""What a suppress holds in a checkpoint."""

from __future__ import annotations

import json
from collections.abc import Callable

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from beamish.addresses import printable
from beamish.contract.input_schemas import with_schemas
from beamish.contract.kept import INDEX
from beamish.contract.store import DictStore
from beamish.errors import StateError
from beamish.flow import Flow
from beamish.kinds.suppress.held_store import entry_name
from beamish.kinds.suppress.operator import SuppressOperator
from beamish.kinds.suppress.reading import held_rows, held_schema
from beamish.kinds.suppress.stage import Suppressed
from beamish.spark.checkpoint.entries import shard_with, state_errors, stateful_operators, store_of
from beamish.spark.operator.notes import noted_shards
from beamish.spark.rows.types import spark_schema


@state_errors()
def held_in_checkpoint(flow: Flow, spark: SparkSession, checkpoint: str, *, batch: int | None, name: str) -> DataFrame:
    """What the suppress of this name holds, a row per row that would come out.

    Args:
        flow: that the checkpoint is of.
        spark: the session that reads it.
        checkpoint: its folder.
        batch: the number of the batch after which it is read; None: the last one.
        name: the suppress.

    Raises:
        StateError: the checkpoint holds nothing of it, or is another pipeline's.
    """
    for entries in stateful_operators(spark, checkpoint, batch):
        shard = shard_with(entries, entry_name(name, INDEX))
        if shard is not None:
            operator = _operator(flow, name, shard)
            return entries.groupBy("shard").applyInArrow(_held(operator), spark_schema(held_schema(operator)))
    raise StateError(f"held({name!r}): the checkpoint {printable(checkpoint)} has nothing of a suppress of this name")


def _operator(flow: Flow, name: str, shard: DictStore) -> SuppressOperator:
    """The operator of the suppress, bound to the columns that the state says it takes."""
    (of,) = (below for below in flow.flows if isinstance(below.stage, Suppressed) and below.stage.suppress.name == name)
    stored = shard.get(entry_name(name, INDEX))
    assert stored is not None  # noqa: S101 - it was found by it
    with pa.ipc.open_stream(pa.py_buffer(stored)) as reader:
        about = json.loads(reader.schema.metadata[b"beamish"])
    operator = of.stage.bind(with_schemas(of.takes, about["takes"]), shards=noted_shards(shard))
    assert isinstance(operator, SuppressOperator)  # noqa: S101 - a suppressed stage binds to one
    return operator


def _held(operator: SuppressOperator) -> Callable[[pa.Table], pa.Table]:
    """A function for ``applyInArrow``: the entries of a shard to what it holds."""

    def held(entries: pa.Table) -> pa.Table:
        return held_rows(operator, store_of(entries))

    return held
