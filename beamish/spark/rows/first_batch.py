"""The batch that a task is of, and whether it is the first one of a query's run, as far as its worker knows."""

from __future__ import annotations

from collections.abc import Hashable

from pyspark import TaskContext

_RUN = "spark.jobGroup.id"
"""The local property in which Spark's streaming queries have the id of their run: it is another after each start."""
_BATCH = "streaming.sql.batchId"

_first_batches: dict[tuple[str, Hashable], str] = {}
"""The first batch that this worker has seen of each run, and of each part of it."""


def batch_number() -> int:
    """The number of the batch that the task is of; 0 outside of streaming queries."""
    context = TaskContext.get()
    return int((context and context.getLocalProperty(_BATCH)) or 0)


def in_first_batch(part: Hashable = None) -> bool:
    """Whether this worker has seen no other batch of the run that its task is of.

    Args:
        part: the part of the run that is asked for, such as a stage and partition; None: all of it.

    In the first batch of a run all workers say so, however often their tasks are tried; one that comes to the run later says so once too.
    """
    context = TaskContext.get()
    run, batch = (None, None) if context is None else map(context.getLocalProperty, (_RUN, _BATCH))
    if run is None or batch is None:
        return False
    return _first_batches.setdefault((run, part), batch) == batch
