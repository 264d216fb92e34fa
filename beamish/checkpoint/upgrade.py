"""``bm.check_upgrade`` and ``bm.migrate``: whether a pipeline can continue from a checkpoint, and a new checkpoint if it cannot."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import attrs

from beamish.addresses import printable, printable_text
from beamish.checkpoint.comparison import Change, StoredStage, changes_of, of_groups, of_stages
from beamish.errors import OptionError, PipelineError, StateError
from beamish.flow import Flow
from beamish.fusion.groups import FUSE, Fuse, fuse_of
from beamish.markup import html_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from beamish.spark.checkpoint.hadoop_path import HadoopPath


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
    return _compared(spark, folder, flow, (df, inputs), shards)[0]


def _compared(
    spark: SparkSession,
    folder: str,
    flow: Flow,
    given: tuple[DataFrame | None, Mapping[str, DataFrame]],
    shards: int | None,
) -> tuple[Upgrade, Fuse]:
    """The changes since a checkpoint, and which of its stages run together."""
    from beamish.spark.checkpoint.stored_query import next_run, read_query

    stored = read_query(spark, folder, flow)
    stages = [StoredStage.of(stage.notes) for stage in stored.stages]
    df, inputs = given
    if len(stages) != len(flow.flows) and df is None and not inputs:
        return Upgrade(folder, stored.batch, [of_stages(len(stages), len(flow.flows))]), stored.fuse
    run = next_run(spark, stored, flow, given, shards=shards, fuse=stored.fuse)
    now = run.bound(run.shards)
    shards_of_each = [each.operator.shards for each in now.of.flows]
    changes = changes_of(stages, run.flow, shards=shards_of_each, clock=(stored.ticks, run.ticks))
    if len(stages) == len(flow.flows):
        changes += of_groups(now.groups, FUSE.grouped(now.of).groups)
    return Upgrade(folder, stored.batch, changes), stored.fuse


def check_next_run(
    spark: SparkSession,
    checkpoint: str | Path,
    pipeline: Any,
    df: DataFrame | None,
    *,
    shards: int | None,
    inputs: Mapping[str, DataFrame],
) -> Fuse | None:
    """The check of ``apply(..., checkpoint=...)``; returns which of its stages run together, None: the query has not committed a batch.

    Raises:
        StateError: the query cannot continue with the pipeline.
    """
    flow, folder = checked("apply", spark, checkpoint, pipeline)
    from beamish.spark.checkpoint.inspected import has_done_a_batch

    if not has_done_a_batch(spark, folder):
        return None
    upgrade, fuse = _compared(spark, folder, flow, (df, inputs), shards)
    upgrade.or_raise()
    return fuse


def checked(call: str, spark: Any, checkpoint: Any, pipeline: Any) -> tuple[Flow, str]:
    """The flow of a pipeline, and the folder of a checkpoint, validated.

    Raises:
        PipelineError, OptionError: invalid arguments.
    """
    flow: Any = getattr(pipeline, "flow", None)
    if not isinstance(flow, Flow):
        raise PipelineError(
            f"{call}(spark, checkpoint, {printable(pipeline)}): must be the pipeline that will continue"
        )
    if not hasattr(spark, "read") or not hasattr(spark, "createDataFrame"):
        raise OptionError(
            f"{call}({printable(spark)}, ...): must be a SparkSession: {call}(spark, checkpoint, pipeline)"
        )
    if not isinstance(checkpoint, (str, Path)) or not str(checkpoint):
        raise OptionError(f"{call}(spark, {printable(checkpoint)}, ...): must be the folder of a checkpoint")
    return flow.completed, str(checkpoint).rstrip("/")


def migrate(
    spark: SparkSession,
    checkpoint: str | Path,
    new_checkpoint: str | Path,
    pipeline: Any,
    df: DataFrame | None = None,
    /,
    *,
    shards: int | None = None,
    location: str | None = None,
    fuse: bool = True,
    shard_by: Sequence[str] | None = None,
    **inputs: DataFrame,
) -> str:
    """Migrate the checkpoint of a stopped query to a new one, for a pipeline that is incompatible with the old one.

    The pipeline may have another number of shards, fewer accumulations (a renamed one starts empty), wider types, and add or
    remove the need for the clock; and all compatible changes. Offsets, the watermark, batch numbers and the query's id stay, so
    sources continue where they were, and sinks recognise the query. The old checkpoint is only read. The number of Spark
    partitions stays the same. It can also move a checkpoint: Spark stores absolute paths in it, and cannot read one that was
    moved or copied in any other way.

    Added or removed stages, and other changes of meaning, are rejected, and no new folder is created.

    Args:
        spark: the session, classic; it runs the batch that writes the state.
        checkpoint: the query's ``checkpointLocation``, on any file system of the session, such as ``s3a:`` or ``hdfs:``. The query
            must be stopped.
        new_checkpoint: the new folder, which must not exist; also on another file system.
        pipeline: the pipeline that continues.
        df: the stream that it will be applied to, for its columns; None: the stored schemas.
        shards: the new number of shards; None: as for ``bm.check_upgrade``.
        location: the URI that the new folder will be moved to, such as ``"s3a://bucket/checkpoints/scores"``, if the session
            cannot write there; None: the folder stays where it is.
        fuse, shard_by: which stages will run together, as for ``apply``.
        inputs: for a merge, in place of ``df``.

    Returns:
        how to continue the query, such as ``continue with .apply(df, shards=32) and checkpointLocation /checkpoints/scores-2``.

    Raises:
        StateError: it cannot be migrated, or a batch was started and not committed.
        PipelineError, ColumnError, OptionError: as for ``bm.check_upgrade``; or an invalid or existing folder.

    Example:
        ``print(bm.migrate(spark, "/checkpoints/scores", "/checkpoints/scores-2", pipeline, events, shards=32))``
    """
    flow, folder = checked("migrate", spark, checkpoint, pipeline)
    how = fuse_of("migrate", fuse, shard_by)
    old, new = (_without_escapes(name, of) for name, of in (("checkpoint", folder), ("new_checkpoint", new_checkpoint)))
    if not hasattr(spark, "sparkContext") or not hasattr(spark, "_jsparkSession"):
        raise OptionError("migrate: needs a classic session; Spark Connect does not give access to files")
    if location is not None and not re.match(r"[a-z][a-z0-9+.-]*:/", location):
        raise OptionError(
            f"migrate(location={printable(location)}): must be the URI of the query's checkpointLocation, such as "
            "'s3a://bucket/checkpoints/scores'"
        )
    from beamish.spark.checkpoint.hadoop_path import HadoopPath
    from beamish.spark.checkpoint.migration import in_place, unfinished

    stored, made = (HadoopPath.of(spark, uri) for uri in (old, new))
    if made.exists() and unfinished(made).exists():
        raise OptionError(
            f"migrate(new_checkpoint={printable(str(new_checkpoint))}): exists already, from a migration that was interrupted: delete "
            f"{printable_text(str(made))} and {printable_text(str(unfinished(made)))}, and migrate again (if a query has already "
            "continued from it, delete only the second)"
        )
    if made.exists():
        raise OptionError(
            f"migrate(new_checkpoint={printable(str(new_checkpoint))}): exists already; give a folder that does not exist"
        )
    with in_place(stored, made) as readable:
        shards = _carried_over(spark, (readable, made), flow, (df, inputs), shards=shards, location=location, fuse=how)
    names = ["df" if source.name is None else f"{source.name}=..." for source, *_ in flow.leaves]
    return f"continue with .apply({', '.join(names)}, shards={shards}) and checkpointLocation {printable_text(location or new)}"


def _carried_over(
    spark: SparkSession,
    folders: tuple[HadoopPath, HadoopPath],
    flow: Flow,
    given: tuple[DataFrame | None, Mapping[str, DataFrame]],
    *,
    shards: int | None,
    location: str | None,
    fuse: Fuse,
) -> int:
    """Create the new checkpoint; returns its number of shards.

    Raises:
        StateError, PipelineError, ColumnError, OptionError: as for ``migrate``.
    """
    from beamish.spark.checkpoint.migration import migrate as carry_over
    from beamish.spark.checkpoint.stored_query import next_run, read_query

    old, _ = folders
    stored = read_query(spark, str(old), flow)
    if stored.in_flight:
        raise StateError(
            f"migrate: batch {stored.batch + 1} was started and not committed, and a sink may have part of it; run the query with "
            ".trigger(availableNow=True) until it is committed, then migrate"
        )
    if len(stored.stages) != len(flow.flows):
        raise StateError(f"migrate: {of_stages(len(stored.stages), len(flow.flows)).in_words}")
    run = next_run(spark, stored, flow, given, shards=shards, fuse=fuse)
    carry_over(spark, stored, folders, run.bound(run.shards), ticks=run.ticks, location=location)
    return run.shards


def _without_escapes(name: str, folder: Any) -> str:
    """The text of a folder.

    Raises:
        OptionError: empty, or Spark's state reader cannot open it.
    """
    text = str(folder)
    if not text or quote(text, safe="/:@") != text:
        raise OptionError(
            f"migrate({name}={printable(text)}): Spark's state reader cannot open paths with blanks or with characters that a URI "
            "escapes; use letters, digits, '-', '_' and '.'"
        )
    return text.rstrip("/")
