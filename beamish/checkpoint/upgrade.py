"""``bm.check_upgrade``: whether a pipeline may go on from a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from beamish.addresses import printable, printable_text
from beamish.checkpoint.comparison import Change, StoredStage, changes_of, of_stages
from beamish.errors import OptionError, PipelineError, StateError
from beamish.flow import Flow
from beamish.markup import html_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@attrs.frozen(eq=False, repr=False)
class Upgrade:
    """What differs between a pipeline and the one that wrote a checkpoint; ``bm.check_upgrade`` makes it.

    It prints as text; in a notebook it shows itself as a table.

    Attributes:
        checkpoint: its folder.
        batch: the number of its last batch that is done.
        changes: what differs, the refused first; none: nothing that a checkpoint knows of.
    """

    checkpoint: str
    batch: int
    changes: Sequence[Change]

    @property
    def ok(self) -> bool:
        """Whether a query with this pipeline goes on from the checkpoint."""
        return not self.refused

    @property
    def refused(self) -> Sequence[Change]:
        """What it would be refused for."""
        return [change for change in self.changes if change.refused]

    def or_raise(self) -> None:
        """Say nothing if it may go on.

        Raises:
            StateError: it may not.
        """
        if not self.ok:
            raise StateError(str(self))

    def __str__(self) -> str:
        goes_on = "the pipeline goes on" if self.ok else "the pipeline is refused"
        nothing = "" if self.changes else "; nothing of it has changed that a checkpoint knows of"
        lines = [f"checkpoint {printable_text(self.checkpoint)}, after batch {self.batch}: {goes_on}{nothing}"]
        for change in self.changes:
            lines.append(f"- {'refused' if change.refused else 'carried over'}: {_subject(change)}")
            if change.then or change.now:
                lines += [f"    then  {change.then or 'none'}", f"    now   {change.now or 'none'}"]
            lines.append(f"    {change.means}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        rows = [
            ("refused" if one.refused else "carried over", _subject(one), one.then, one.now, one.means)
            for one in self.changes
        ]
        title = str(self).partition("\n")[0]
        return html_table(("", "what", "then", "now", "what it means"), rows, title)


def _subject(change: Change) -> str:
    return f"stage {change.stage}, {change.what}" if change.stage else change.what


def check_upgrade(
    spark: SparkSession,
    checkpoint: str | Path,
    pipeline: Any,
    df: DataFrame | None = None,
    /,
    *,
    shards: int | None = None,
    **inputs: DataFrame,
) -> Upgrade:
    """Say whether a pipeline may go on from a checkpoint, and what becomes of what is kept: before anything runs.

    Nothing is started and nothing written. Each shard's notes are opened as a batch would open them, so what is refused here is
    what a batch would refuse; what Spark itself would refuse, another number of stages, of sources, or heartbeats that were not there, is told too.

    Args:
        spark: the session that reads it, classic or Connect.
        checkpoint: the folder of the query's option ``checkpointLocation``; its query is stopped, or runs.
        pipeline: what is to go on.
        df: the stream that it is to be applied to, for its columns; None: they are those that the checkpoint noted, so a change
            of a column's type is not seen.
        shards: as of ``apply``; None: with ``df`` one per shuffle partition, as ``apply`` has it, else as many as there are.
        inputs: of a merge, in place of ``df``.

    Returns:
        an ``Upgrade``: ``.ok``, ``.changes``, ``.or_raise()``.

    Raises:
        StateError: it is no checkpoint of a pipeline that has done a batch, or one that this version cannot read.
        PipelineError, ColumnError, OptionError: the pipeline or its columns are wrong, or the columns are not known without ``df``.

    Example:
        ``bm.check_upgrade(spark, "/checkpoints/scores", pipeline, events).or_raise()``
    """
    flow, folder = checked("check_upgrade", spark, checkpoint, pipeline)
    from beamish.spark.checkpoint.stored_query import next_run, read_query

    stored = read_query(spark, folder)
    stages = [StoredStage.of(notes) for _, notes in stored.stages]
    if len(stages) != len(flow.flows) and df is None and not inputs:
        return Upgrade(folder, stored.batch, [of_stages(len(stages), len(flow.flows))])
    run = next_run(spark, stored, flow, (df, inputs), shards)
    shards_of_each = [each.operator.shards for each in run.bound(run.shards).flows]
    changes = changes_of(stages, run.flow, shards=shards_of_each, clock=(stored.ticks, run.ticks))
    return Upgrade(folder, stored.batch, changes)


def check_next_run(
    spark: SparkSession,
    checkpoint: str | Path,
    pipeline: Any,
    df: DataFrame | None,
    *,
    shards: int | None,
    inputs: Mapping[str, DataFrame],
) -> None:
    """What ``apply(..., checkpoint=...)`` checks; nothing, where the query has not done a batch.

    Raises:
        StateError: the query may not go on with the pipeline.
    """
    _, folder = checked("apply", spark, checkpoint, pipeline)
    from beamish.spark.checkpoint.inspected import has_done_a_batch

    if has_done_a_batch(spark, folder):
        check_upgrade(spark, folder, pipeline, df, shards=shards, **inputs).or_raise()


def checked(call: str, spark: Any, checkpoint: Any, pipeline: Any) -> tuple[Flow, str]:
    """The flow of a pipeline, and the folder of a checkpoint.

    Raises:
        PipelineError, OptionError: it is none.
    """
    flow: Any = getattr(pipeline, "flow", None)
    if not isinstance(flow, Flow):
        raise PipelineError(f"{call}(spark, checkpoint, {printable(pipeline)}): must be the pipeline that is to go on")
    if not hasattr(spark, "read") or not hasattr(spark, "createDataFrame"):
        raise OptionError(
            f"{call}({printable(spark)}, ...): must be a SparkSession: {call}(spark, checkpoint, pipeline)"
        )
    if not isinstance(checkpoint, (str, Path)) or not str(checkpoint):
        raise OptionError(f"{call}(spark, {printable(checkpoint)}, ...): must be the folder of a checkpoint")
    return flow.completed, str(checkpoint).rstrip("/")
