"""``bm.check_upgrade``: whether a pipeline can continue from a checkpoint."""

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
    """Differences between a pipeline and the one that wrote a checkpoint; created by ``bm.check_upgrade``.

    It prints as text; in a notebook it is shown as a table.

    Attributes:
        checkpoint: its folder.
        batch: the number of its last committed batch.
        changes: the differences, refused ones first; empty: nothing that the checkpoint stores has changed.
    """

    checkpoint: str
    batch: int
    changes: Sequence[Change]

    @property
    def ok(self) -> bool:
        """Whether a query with this pipeline can continue from the checkpoint."""
        return not self.refused

    @property
    def refused(self) -> Sequence[Change]:
        """The incompatible changes."""
        return [change for change in self.changes if change.refused]

    def or_raise(self) -> None:
        """Raise if it cannot continue.

        Raises:
            StateError: it cannot.
        """
        if not self.ok:
            raise StateError(str(self))

    def __str__(self) -> str:
        verdict = "the pipeline continues" if self.ok else "the pipeline is refused"
        nothing = "" if self.changes else "; nothing that the checkpoint stores has changed"
        lines = [f"checkpoint {printable_text(self.checkpoint)}, after batch {self.batch}: {verdict}{nothing}"]
        for change in self.changes:
            lines.append(f"- {_verdict(change)}: {_subject(change)}")
            if change.then or change.now:
                lines += [f"    then  {change.then or 'none'}", f"    now   {change.now or 'none'}"]
            lines.append(f"    {change.means}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        rows = [(_verdict(one), _subject(one), one.then, one.now, one.means) for one in self.changes]
        title = str(self).partition("\n")[0]
        return html_table(("", "what", "then", "now", "what it means"), rows, title)


def _verdict(change: Change) -> str:
    return "refused" if change.refused else "continues"


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
    """Check whether a pipeline can continue from a checkpoint, and the effect on its state, before anything runs.

    Nothing is started or written. Each shard's metadata is opened as in a batch, so the result equals that of a batch; changes
    that Spark itself rejects are reported too: another number of stages or sources, or added heartbeats.

    Args:
        spark: the session, classic or Connect.
        checkpoint: the ``checkpointLocation`` of a stopped or running query.
        pipeline: the pipeline that continues.
        df: the stream that it will be applied to, for its columns; None: the stored schemas, so a change of a column's type is
            not detected.
        shards: as for ``apply``; None: with ``df`` one per shuffle partition, as for ``apply``, otherwise unchanged.
        inputs: for a merge, in place of ``df``.

    Returns:
        an ``Upgrade``: ``.ok``, ``.changes``, ``.or_raise()``.

    Raises:
        StateError: not the checkpoint of a pipeline that has committed a batch, or not readable by this version.
        PipelineError, ColumnError, OptionError: the pipeline or its columns are invalid, or the columns are unknown without ``df``.

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
    """The check of ``apply(..., checkpoint=...)``; none if the query has not committed a batch.

    Raises:
        StateError: the query cannot continue with the pipeline.
    """
    _, folder = checked("apply", spark, checkpoint, pipeline)
    from beamish.spark.checkpoint.inspected import has_done_a_batch

    if has_done_a_batch(spark, folder):
        check_upgrade(spark, folder, pipeline, df, shards=shards, **inputs).or_raise()


def checked(call: str, spark: Any, checkpoint: Any, pipeline: Any) -> tuple[Flow, str]:
    """The flow of a pipeline, and the folder of a checkpoint, validated.

    Raises:
        PipelineError, OptionError: invalid arguments.
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
