"""``bm.migrate``: a checkpoint carried over to a new one, for a pipeline that could not go on from it."""

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
    """Carry the checkpoint of a stopped query over to a new one, from which a query goes on that is refused by the old one.

    The pipeline may have another number of shards, lack accumulations that were there, whose values go (one under another name begins with
    no rows), have wider types, and need the clock or need it no longer; and all that may change anyway. Offsets, the watermark, the numbers
    of batches and the query's id stay, so sources go on where they were, and sinks know the query. The old checkpoint is only read.
    Spark's own partitions stay as many as they were. It also carries a checkpoint to another place: Spark notes absolute paths in it,
    and reads none that was moved or copied in any other way.

    Not carried over are other stages before or after, and whatever else means something else now: that is refused, and the new folder
    is not there.

    Args:
        spark: the session, classic; it runs the one batch that writes the state.
        checkpoint: the folder of the query's ``checkpointLocation``, on a file system that this process sees. The query is stopped.
        new_checkpoint: the folder of the new one, which is not there yet.
        pipeline: what is to go on from it.
        df: the stream that it is to be applied to, for its columns; None: they are those that the checkpoint noted.
        shards: with how many it is to be applied; None: as of ``bm.check_upgrade``.
        location: the URI under which the query will find the new one, where its folder is then copied to, such as
            ``"s3a://bucket/checkpoints/scores"``; None: the folder stays where it is.
        inputs: of a merge, in place of ``df``.

    Returns:
        how the query goes on, such as ``go on with .apply(df, shards=32) and checkpointLocation /checkpoints/scores-2``.

    Raises:
        StateError: it cannot be carried over, or a batch of it is begun and not done.
        PipelineError, ColumnError, OptionError: as of ``bm.check_upgrade``; or a folder is none, or is there already.

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
    """Make the new checkpoint; gives its number of shards.

    Raises:
        StateError, PipelineError, ColumnError, OptionError: as ``migrate``.
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
    """A folder that this process sees.

    Raises:
        OptionError: it is none.
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
