"""What a checkpoint holds, read by Spark's own readers of state and of text, without the pipeline (docs/rules/running.md#inspect).

Everything is as of one committed batch, so a query that runs meanwhile changes nothing in what is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from beamish.addresses import printable, without_secrets
from beamish.at_rest.stage_facts import NOTES, SegmentFacts, StageFacts, stage_facts
from beamish.errors import OptionError, StateError
from beamish.flow import Flow
from beamish.spark.checkpoint.entries import (
    checkpoint_reader,
    entries_of,
    operators,
    state_errors,
    store_of,
    stores_of,
)
from beamish.spark.checkpoint.kept_windows import MOST_NAMES, plans_of, shard_of_key
from beamish.spark.rows.types import spark_schema
from beamish.spark.runtime.millis import watermark_us
from beamish.watermarks import NO_WATERMARK_US

_NOTES = rf"^(.+/)?({'|'.join(NOTES)})$"
_REACHES = r"^(.+/)?reaches/"


def _is_note(name: str) -> bool:
    return re.search(_NOTES, name) is not None


@attrs.frozen(eq=False)
class StoredStage:
    """A stage of a query.

    Attributes:
        operator: the id of its stateful operator.
        entries: of its shards' stores.
        facts: what is known of it.
        sizes: bytes of each entry: shard, its name, bytes.
    """

    operator: int
    entries: DataFrame
    facts: StageFacts
    sizes: Sequence[tuple[int, str, int]]

    @property
    def size(self) -> int:
        """Bytes of its state."""
        return sum(size for *_, size in self.sizes)

    def windows(self, key: Mapping[str, Any], span: tuple[int, int]) -> DataFrame:
        """Its windows that overlap a span, of keys with some values; lazy, as rows in the reader's schema."""
        reader, plan = self.facts.reader, self.facts.plan
        assert plan is not None  # noqa: S101 - it is asked for as a stage of windows
        wanted = [one for one in self.facts.segments if one.start_us < span[1] and one.end_us > span[0]]
        entries, asked = self._needed(wanted)
        if plan.keys and set(plan.keys) <= key.keys():
            entries = entries.where(F.col("shard") == shard_of_key(plan, key))

        def windows(of_shard: pa.Table) -> pa.Table:
            return reader.read(store_of(of_shard, asked))

        found = entries.groupBy("shard").applyInArrow(windows, spark_schema(reader.schema))
        if not plan.counts_rows:
            found = _overlapping(found, span)
        else:
            found = found.where((F.col("window.start") < span[1]) & (F.col("window.end") > span[0]))
        for name, value in key.items():
            column = F.col("windowing") if name not in plan.keys else F.col("key").getField(name)
            found = found.where(column.eqNullSafe(F.lit(value)))
        return found

    def next_segment(self) -> DataFrame | None:
        """The windows of the segment in which something is due first; None: there is none."""
        with_windows = [one for one in self.facts.segments if one.windows]
        if not with_windows:
            return None
        first = min(with_windows, key=lambda one: (one.due_us, one.clock_due_us, one.entry, one.shard))
        reader = self.facts.reader
        entries, asked = self._needed([first])

        def windows(of_shard: pa.Table) -> pa.Table:
            return reader.read(store_of(of_shard, asked))

        return (
            entries.where(F.col("shard") == first.shard)
            .groupBy("shard")
            .applyInArrow(windows, spark_schema(reader.schema))
        )

    def _needed(self, segments: Sequence[SegmentFacts]) -> tuple[DataFrame, Callable[[str], bool]]:
        """The entries that must be read for the windows of some segments, perhaps with others; and whether one of a name is."""
        name = F.col("name")
        names = {one.entry for one in segments}

        def is_needed(name: str) -> bool:
            return name in names or _is_note(name)

        of_windows = name.rlike(r"^(.+/)?s-?\d+$") if len(names) > MOST_NAMES else name.isin(list(names))
        return self.entries.where(name.rlike(_NOTES) | name.rlike(_REACHES) | of_windows), is_needed


@attrs.frozen(eq=False)
class Batch:
    """A micro-batch that a checkpoint remembers.

    Attributes:
        number: the batch's.
        clock_us: the time at which it began.
        watermark_us: Spark's watermark in it; NO_WATERMARK_US: there was none.
        committed: whether it is done.
        next_watermark_us: Spark's watermark for the next one; NO_WATERMARK_US: it is not known, or there is none.
    """

    number: int
    clock_us: int
    watermark_us: int
    committed: bool
    next_watermark_us: int


@state_errors()
def read_batches(spark: SparkSession, checkpoint: str) -> list[Batch]:
    """The batches that a checkpoint remembers, in order.

    Raises:
        StateError: it is no checkpoint of a query that has run a batch.
    """
    try:
        offsets = {row.batch: row for row in _log(spark, checkpoint, "offsets").collect()}
        commits = {row.batch: row for row in _log(spark, checkpoint, "commits").collect()}
    except AnalysisException as error:
        why = without_secrets(str(error).partition("\n")[0], checkpoint)
        raise _no_checkpoint(checkpoint, why) from None
    batches = [
        Batch(
            number,
            int(row.clock or 0) * 1000,
            _watermark(row.watermark),
            number in commits,
            _watermark(commits[number].next) if number in commits else NO_WATERMARK_US,
        )
        for number, row in sorted(offsets.items())
    ]
    if not any(batch.committed for batch in batches):
        raise _no_checkpoint(checkpoint, "no batch of it is done yet")
    return batches


def has_done_a_batch(spark: SparkSession, checkpoint: str) -> bool:
    """Whether a folder is the checkpoint of a query that has done a batch."""
    try:
        return bool(_log(spark, checkpoint, "commits").limit(1).collect())
    except AnalysisException:
        return False


def _no_checkpoint(checkpoint: str, why: str) -> StateError:
    return StateError(
        f"checkpoint {printable(checkpoint)}: {why}; give the folder of the query's option checkpointLocation, after its first batch"
    )


def _log(spark: SparkSession, checkpoint: str, name: str) -> DataFrame:
    """Spark's log of offsets or commits: a file per batch, the second line of which is JSON."""
    reader = checkpoint_reader(spark).options(ignoreMissingFiles=True)
    files = reader.text(f"{checkpoint.rstrip('/')}/{name}", wholetext=True).select("value", "_metadata.file_name")
    said = F.get(F.split("value", "\n"), F.lit(1))

    def number(field: str) -> Any:
        return F.get_json_object(said, f"$.{field}").cast("bigint")

    return files.where(F.col("file_name").rlike(r"^\d+$")).select(
        F.col("file_name").cast("bigint").alias("batch"),
        number("batchTimestampMs").alias("clock"),
        number("batchWatermarkMs").alias("watermark"),
        number("nextBatchWatermarkMs").alias("next"),
    )


def _watermark(ms: int | None) -> int:
    us = None if ms is None else watermark_us(ms)
    return NO_WATERMARK_US if us is None else us


def batch_meant(batches: Sequence[Batch], batch: int | None) -> Batch:
    """The committed batch that is meant; None: the last one.

    Raises:
        OptionError: the checkpoint does not remember it.
    """
    done = {one.number: one for one in batches if one.committed}
    if batch is None:
        return done[max(done)]
    if isinstance(batch, bool) or batch not in done:
        raise OptionError(
            f"inspect(batch={batch!r}): the checkpoint remembers the batches {min(done)} to {max(done)}; name one, or leave it out"
        )
    return done[batch]


@state_errors()
def read_stages(spark: SparkSession, checkpoint: str, batch: Batch, flow: Flow | None = None) -> list[StoredStage]:
    """The stages of a query after a batch, in their order; of an old checkpoint in that of their operators.

    Args:
        spark: the session that reads it.
        checkpoint: its folder.
        batch: after which.
        flow: the pipeline's, which may say what the checkpoint does not.

    Raises:
        StateError: there is none, or it cannot be read.
    """
    stages = [_stage(spark, checkpoint, batch, operator, flow) for operator in operators(spark, checkpoint)]
    if not stages:
        raise _no_checkpoint(checkpoint, "it is of no pipeline of beamish's")
    return sorted(stages, key=lambda stage: (stage.facts.number, -stage.operator))


def _stage(spark: SparkSession, checkpoint: str, batch: Batch, operator: int, flow: Flow | None) -> StoredStage:
    entries = entries_of(spark, checkpoint, batch.number, operator)
    value = F.when(F.col("name").rlike(_NOTES), F.col("value")).alias("value")
    rows = entries.select("shard", "name", F.length("value").alias("size"), value).collect()
    notes = stores_of(rows, _is_note)
    plan = next(plans_of(flow, notes), None) if flow is not None else None
    sizes = [(row.shard, row["name"], row["size"]) for row in rows]
    return StoredStage(operator, entries, stage_facts(notes, plan=plan, query_us=batch.watermark_us), sizes)


def _overlapping(found: DataFrame, span: tuple[int, int]) -> DataFrame:
    """Windows that overlap a span of time; one of all of time does."""
    start, end = (F.unix_micros(F.col(f"window.{name}")) for name in ("start", "end"))
    return found.where((start.isNull() | (start < span[1])) & (end.isNull() | (end > span[0])))


def frame(spark: SparkSession, table: pa.Table) -> DataFrame:
    """An Arrow table as a DataFrame."""
    return spark.createDataFrame(table, spark_schema(table.schema))
