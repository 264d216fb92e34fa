"""``bm.migrate``: migrate a checkpoint to a new one, for an incompatible pipeline."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from beamish.addresses import printable, printable_text
from beamish.checkpoint.comparison import of_stages
from beamish.checkpoint.upgrade import checked
from beamish.errors import OptionError, StateError
from beamish.flow import Flow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


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
        checkpoint: the query's ``checkpointLocation``, on a file system of this process. The query must be stopped.
        new_checkpoint: the new folder, which must not exist.
        pipeline: the pipeline that continues.
        df: the stream that it will be applied to, for its columns; None: the stored schemas.
        shards: the new number of shards; None: as for ``bm.check_upgrade``.
        location: the URI that the new folder will be copied to, such as ``"s3a://bucket/checkpoints/scores"``; None: the folder
            stays where it is.
        inputs: for a merge, in place of ``df``.

    Returns:
        how to continue the query, such as ``go on with .apply(df, shards=32) and checkpointLocation /checkpoints/scores-2``.

    Raises:
        StateError: it cannot be migrated, or a batch was started and not committed.
        PipelineError, ColumnError, OptionError: as for ``bm.check_upgrade``; or an invalid or existing folder.

    Example:
        ``print(bm.migrate(spark, "/checkpoints/scores", "/checkpoints/scores-2", pipeline, events, shards=32))``
    """
    flow, folder = checked("migrate", spark, checkpoint, pipeline)
    old, new = _local("checkpoint", folder), _local("new_checkpoint", new_checkpoint)
    if new.exists():
        raise OptionError(
            f"migrate(new_checkpoint={printable(str(new_checkpoint))}): is there already; give a folder that is not"
        )
    if not hasattr(spark, "sparkContext") or not hasattr(spark, "_jsparkSession"):
        raise OptionError(
            "migrate: works on the driver's file system, so not through Spark Connect; run it where the driver is"
        )
    if location is not None and not re.match(r"[a-z][a-z0-9+.-]*:/", location):
        raise OptionError(
            f"migrate(location={printable(location)}): must be a URI as the query will have it, such as 's3a://bucket/checkpoints/scores'"
        )
    from beamish.spark.checkpoint.paths import in_place

    with in_place(old, new) as readable:
        shards = _carried_over(spark, (readable, new), flow, (df, inputs), shards=shards, location=location)
    names = ["df" if source.name is None else f"{source.name}=..." for source, *_ in flow.leaves]
    return f"go on with .apply({', '.join(names)}, shards={shards}) and checkpointLocation {printable_text(location or str(new))}"


def _carried_over(
    spark: SparkSession,
    folders: tuple[Path, Path],
    flow: Flow,
    given: tuple[DataFrame | None, Mapping[str, DataFrame]],
    *,
    shards: int | None,
    location: str | None,
) -> int:
    """Create the new checkpoint; returns its number of shards.

    Raises:
        StateError, PipelineError, ColumnError, OptionError: as for ``migrate``.
    """
    from beamish.spark.checkpoint.migration import migrate as carry_over
    from beamish.spark.checkpoint.stored_query import next_run, read_query

    old, _ = folders
    stored = read_query(spark, str(old))
    if stored.in_flight:
        raise StateError(
            f"migrate: batch {stored.batch + 1} is begun and not done, and a sink may have some of it; run the query once more "
            "(.trigger(availableNow=True)) until it is done, stop it, and migrate then"
        )
    if len(stored.stages) != len(flow.flows):
        raise StateError(f"migrate: {of_stages(len(stored.stages), len(flow.flows)).in_words}")
    run = next_run(spark, stored, flow, given, shards)
    carry_over(spark, stored, folders, run.bound(run.shards), ticks=run.ticks, location=location)
    return run.shards


def _local(name: str, folder: Any) -> Path:
    """A folder on a file system of this process.

    Raises:
        OptionError: it is not.
    """
    text = str(folder)
    path = text.removeprefix("file://").removeprefix("file:") if text.startswith("file:") else text
    if "://" in path or not path or not path.isprintable():
        raise OptionError(
            f"migrate({name}={printable(text)}): must be a folder that this process sees; copy the checkpoint to one, migrate it there "
            "with location= the place of the new one, and copy it to that place"
        )
    if quote(str(Path(path).absolute())) != str(Path(path).absolute()):
        raise OptionError(
            f"migrate({name}={printable(text)}): Spark's readers of state do not find folders whose names have blanks, or letters that are written "
            "otherwise in a URI; give one of plain letters, digits, '-', '_' and '.'"
        )
    return Path(path).absolute()
