"""The batch of a task, and whether it is the first one of the run seen by this worker."""

from __future__ import annotations

from collections.abc import Hashable

from pyspark import TaskContext

_RUN = "spark.jobGroup.id"
"""The local property with the run id of Spark's streaming queries, which changes with each start."""
_BATCH = "streaming.sql.batchId"

_first_batches: dict[tuple[str, Hashable], str] = {}
"""The first batch of each run, and of each part of it, seen by this worker."""


def batch_number() -> int:
    """The batch number of the task; 0 outside of streaming queries."""
    context = TaskContext.get()
    return int((context and context.getLocalProperty(_BATCH)) or 0)


def in_first_batch(part: Hashable = None) -> bool:
    """Whether this worker has seen no other batch of the task's run.

    Args:
        part: a part of the run, such as a stage and partition; None: the whole run.

    In the first batch of a run it is true in all workers, including retried tasks; in a worker that joins later it is true once too.
    """
    context = TaskContext.get()
    run, batch = (None, None) if context is None else map(context.getLocalProperty, (_RUN, _BATCH))
    if run is None or batch is None:
        return False
    return _first_batches.setdefault((run, part), batch) == batch
