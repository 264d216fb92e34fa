"""The contents of a checkpoint, read with Spark's state and text readers, without the pipeline (docs/rules/running.md#inspect).

Everything is read as of one committed batch, independent of a running query.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any

import attrs
import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from beamish.addresses import printable, without_secrets
from beamish.contract.at_rest import Answer, Asked, AtRest, Keeps, read_key
from beamish.contract.stored import DictStore
from beamish.contract.stored_keys import StoredKeys
from beamish.errors import BeamishError, OptionError, StateError
from beamish.flow import Flow
from beamish.fusion.at_rest import stages_of
from beamish.kernels.spec import UnreadableError
from beamish.spark.checkpoint.entries import (
    SHARD,
    answered,
    checkpoint_reader,
    entries_of,
    is_note,
    notes_pattern,
    operators,
    state_errors,
    stores_of,
    with_shard,
)
from beamish.spark.operator.notes import noted_shards
from beamish.spark.rows.schemas import spark_schema
from beamish.spark.runtime.millis import watermark_us
from beamish.stage_facts import StageFacts, stage_facts
from beamish.tables.entries import under
from beamish.watermarks import NO_WATERMARK_US

_MOST_BYTES = 64 * 2**20
"""Up to this size the state of a stage is read in this process."""


@attrs.frozen(eq=False)
class StoredStage:
    """A stage of a query.

    Attributes:
        operator: the id of its stateful operator.
        entries: of its shards' stores.
        notes: the metadata entries of each shard.
        facts: its facts.
        sizes: bytes of each entry: shard, its name, bytes.
        name: of its entries, if it is fused with others.
    """

    operator: int
    entries: DataFrame
    notes: Mapping[int, DictStore]
    facts: StageFacts
    sizes: Sequence[tuple[int, str, int]]
    name: str

    @property
    def size(self) -> int:
        """Bytes of its state."""
        return sum(size for *_, size in self.sizes)

    @cached_property
    def sizes_of_entries(self) -> Mapping[tuple[int, str], int]:
        """Bytes of each entry, by its shard and name."""
        return {(shard, name): size for shard, name, size in self.sizes}

    def windows(self, asked: Asked) -> DataFrame:
        """Its selected windows (``kinds/window/stored/at_rest.py``); lazy."""
        return self.answered(self.facts.asked(asked))

    @cached_property
    def _stores(self) -> Mapping[int, DictStore] | None:
        """The stores of its shards; None: they are too large to be read here."""
        if self.size > _MOST_BYTES:
            return None
        entries = self.entries.select("shard", "name", "value")
        if self.name:
            entries = entries.where(F.col("name").startswith(f"{self.name}/") | F.col("name").rlike(notes_pattern()))
        return stores_of(entries.collect(), lambda entry: entry.startswith(f"{self.name}/" if self.name else ""))

    @state_errors()
    def read(self, answer: Answer, *, by_shard: bool = False) -> pa.Table:
        """The rows of an answer, read here if the state is small, so that later answers start no job; else by executors.

        Args:
            answer: what is asked.
            by_shard: whether rows begin with the id of their shard.
        """
        stores = self._stores
        if stores is None:
            rows = answered(self.entries, self.notes, answer, self.facts.shards, self.name, by_shard=by_shard)
            schema = answer.schema.insert(0, SHARD) if by_shard else answer.schema
            return rows.toArrow().cast(schema)
        tables = {shard: answer.read(under(self.name or None, store)) for shard, store in sorted(stores.items())}
        return pa.concat_tables([with_shard(rows, shard) if by_shard else rows for shard, rows in tables.items()])

    def due_of_held(self, flow: Flow | None) -> pa.Array:
        """When the buffered updates of its suppress are due, on its clock; null: not by themselves.

        Raises:
            StateError: its stage cannot be read from the checkpoint, and no pipeline was given.
        """
        answer = self._at_rest(flow, Keeps.HELD).answer(Asked(Keeps.HELD))
        return self.read(answer)["due"].combine_chunks()

    @property
    def keeps(self) -> Collection[Keeps]:
        """Its views, as far as they are known."""
        return (Keeps.WINDOWS,) if self.facts.plan is not None else self.facts.about.keeps

    def answer_of_keys(self, call: str, key: Any, flow: Flow | None) -> tuple[Mapping[str, Any], StoredKeys]:
        """The selected keys, and what is stored of them.

        Args:
            call: for messages.
            key: values of key columns, as given.
            flow: the pipeline's; None: it is read from the description.

        Raises:
            StateError: it cannot be, or the state belongs to another stage.
            OptionError: no such key column, or a value of another type.
        """
        at_rest = self._at_rest(flow, Keeps.KEYS)
        every = at_rest.answer(Asked(Keeps.KEYS))
        assert isinstance(every, StoredKeys)  # noqa: S101 - it keeps them
        asked = read_key(call, key, every.of.stored_keys)
        return asked, attrs.evolve(every, key=asked)

    def key_columns(self, flow: Flow | None) -> pa.Schema:
        """The columns of the keys that its state is stored by; for arguments and errors see ``answer_of_keys``."""
        _, answer = self.answer_of_keys("why", None, flow)
        return answer.of.stored_keys

    def _at_rest(self, flow: Flow | None, what: Keeps) -> AtRest:
        about = self.facts.about
        if flow is not None and 1 <= about.number <= len(flow.flows):
            below = flow.flows[about.number - 1]
            stage, takes = below.stage, list(below.takes)
        else:
            try:
                stage, takes = about.rebuilt()
            except UnreadableError:
                raise StateError(
                    f"why(): stage {about.number} has functions, expressions or classes that are not in the checkpoint; give its "
                    "pipeline: bm.inspect(spark, checkpoint, pipeline)"
                ) from None
        shards = max(map(noted_shards, self.notes.values()), default=1)
        return stage.at_rest(takes, list(self.notes.values()), what, shards=shards)

    def answered(self, answer: Answer) -> DataFrame:
        """The rows of an answer; lazy."""
        return answered(self.entries, self.notes, answer, self.facts.shards, self.name)

    def next_segment(self) -> DataFrame | None:
        """The windows of the segment that is due first, or None."""
        with_windows = [one for one in self.facts.segments if one.windows]
        if not with_windows:
            return None
        first = min(with_windows, key=lambda one: (one.due_us, one.clock_due_us, one.entry, one.shard))
        entries = self.entries.where(F.col("shard") == first.shard)
        answer = self.facts.asked(Asked(Keeps.WINDOWS), segment=first.entry)
        return answered(entries, {first.shard: self.notes[first.shard]}, answer, self.facts.shards, self.name)


@attrs.frozen(eq=False)
class Batch:
    """A micro-batch in a checkpoint.

    Attributes:
        number: the batch's.
        clock_us: its start.
        watermark_us: Spark's watermark in it; NO_WATERMARK_US: there was none.
        committed: whether it is committed.
        next_watermark_us: Spark's watermark for the next one; NO_WATERMARK_US: unknown, or none yet.
        committed_us: when its commit was written, by the file system's clock; 0: not committed.
    """

    number: int
    clock_us: int
    watermark_us: int
    committed: bool
    next_watermark_us: int
    committed_us: int = 0


@state_errors()
def read_batches(spark: SparkSession, checkpoint: str) -> list[Batch]:
    """The batches in a checkpoint, in order (StateError: not the checkpoint of a query that has run a batch)."""
    try:
        rows = _log(spark, checkpoint, "offsets", "commits").collect()
    except AnalysisException as error:
        why = without_secrets(str(error).partition("\n")[0], checkpoint)
        raise _no_checkpoint(checkpoint, why) from None
    offsets, commits = ({row.batch: row for row in rows if row.log == log} for log in ("offsets", "commits"))
    batches = [
        Batch(
            number,
            int(row.clock or 0) * 1000,
            _watermark(row.watermark),
            number in commits,
            _watermark(commits[number].next) if number in commits else NO_WATERMARK_US,
            int(commits[number].written) if number in commits else 0,
        )
        for number, row in sorted(offsets.items())
    ]
    if not any(batch.committed for batch in batches):
        raise _no_checkpoint(checkpoint, "it has no committed batch")
    return batches


def has_done_a_batch(spark: SparkSession, checkpoint: str) -> bool:
    """Whether a folder is the checkpoint of a query that has committed a batch."""
    try:
        return bool(_log(spark, checkpoint, "commits").limit(1).collect())
    except AnalysisException:
        return False


def _no_checkpoint(checkpoint: str, why: str) -> StateError:
    return StateError(
        f"checkpoint {printable(checkpoint)}: {why}; give the folder of the query's option checkpointLocation, after its first batch"
    )


def _log(spark: SparkSession, checkpoint: str, *names: str) -> DataFrame:
    """Spark's logs of offsets and commits: a file per batch, whose second line is JSON."""
    reader = checkpoint_reader(spark).options(ignoreMissingFiles=True)
    columns = [f"_metadata.{name}" for name in ("file_name", "file_path", "file_modification_time")]
    folders = [f"{checkpoint.rstrip('/')}/{name}" for name in names]
    files = reader.text(folders, wholetext=True).select("value", *columns)
    said = F.get(F.split("value", "\n"), F.lit(1))

    def number(field: str) -> Any:
        return F.get_json_object(said, f"$.{field}").cast("bigint")

    return files.where(F.col("file_name").rlike(r"^\d+$")).select(
        F.col("file_name").cast("bigint").alias("batch"),
        F.regexp_extract("file_path", "([^/]+)/[^/]+$", 1).alias("log"),
        number("batchTimestampMs").alias("clock"),
        number("batchWatermarkMs").alias("watermark"),
        number("nextBatchWatermarkMs").alias("next"),
        F.unix_micros("file_modification_time").alias("written"),
    )


def _watermark(ms: int | None) -> int:
    us = None if ms is None else watermark_us(ms)
    return NO_WATERMARK_US if us is None else us


def batch_meant(batches: Sequence[Batch], batch: int | None) -> Batch:
    """The selected committed batch; None: the last one (OptionError: the checkpoint does not have it)."""
    done = {one.number: one for one in batches if one.committed}
    if batch is None:
        return done[max(done)]
    if isinstance(batch, bool) or batch not in done:
        raise OptionError(
            f"inspect(batch={batch!r}): the checkpoint has batches {min(done)} to {max(done)}; name one, or leave it out"
        )
    return done[batch]


@state_errors()
def read_stages(spark: SparkSession, checkpoint: str, batch: Batch, flow: Flow | None = None) -> list[StoredStage]:
    """The stages of a query after a batch, in order; for an old checkpoint in the order of their operators.

    Args:
        spark: the session.
        checkpoint: its folder.
        batch: read the state after it.
        flow: the pipeline's, for facts that the checkpoint lacks.

    Raises:
        StateError: no state, or it cannot be read.
    """
    each = operators(spark, checkpoint)
    stages = [stage for operator in each for stage in _stages(spark, checkpoint, batch, operator, flow)]
    if not stages:
        raise _no_checkpoint(checkpoint, "it was not written by a beamish pipeline")
    return sorted(stages, key=lambda stage: (stage.facts.about.number, -stage.operator))


def _stages(
    spark: SparkSession, checkpoint: str, batch: Batch, operator: int, flow: Flow | None
) -> Iterator[StoredStage]:
    """The stages of an operator."""
    entries = entries_of(spark, checkpoint, batch.number, operator)
    value = F.when(F.col("name").rlike(notes_pattern()), F.col("value")).alias("value")
    rows = entries.select("shard", "name", F.length("value").alias("size"), value).collect()
    for name, notes in stages_of(stores_of(rows, is_note)).items():
        known = None if flow is None else next(_known(flow, list(notes.values())), None)
        prefix = f"{name}/" if name else ""
        own = (row for row in rows if row["name"].startswith(prefix))
        sizes = [(row.shard, row["name"].removeprefix(prefix), row["size"]) for row in own]
        facts = stage_facts(notes, known=known, query_us=batch.watermark_us)
        yield StoredStage(operator, entries, notes, facts, sizes, name)


def _known(flow: Flow, notes: Sequence[DictStore]) -> Iterator[AtRest]:
    """The window stages of a pipeline that may have written this metadata."""
    for below in flow.flows:
        if Keeps.WINDOWS in below.stage.keeps(below.takes):
            with suppress(BeamishError):
                shards = max(map(noted_shards, notes), default=1)
                yield below.stage.at_rest(below.takes, notes, Keeps.WINDOWS, shards=shards)


def frame(spark: SparkSession, table: pa.Table) -> DataFrame:
    """An Arrow table as a DataFrame."""
    return spark.createDataFrame(table, spark_schema(table.schema))
