"""Whether a task is of the first batch of a query's run, as far as its worker knows."""

from __future__ import annotations

from pyspark import TaskContext

_RUN = "spark.jobGroup.id"
"""The local property in which Spark's streaming queries have the id of their run: it is another after each start."""
_BATCH = "streaming.sql.batchId"

_first_batches: dict[str, str] = {}
"""The first batch that this worker has seen of each run."""


def in_first_batch() -> bool:
    """Whether this worker has seen no other batch of the run that its task is of.

    In the first batch of a run all workers say so, however often their tasks are tried; one that comes to the run later says so once too.
    """
    context = TaskContext.get()
    run, batch = (None, None) if context is None else map(context.getLocalProperty, (_RUN, _BATCH))
    if run is None or batch is None:
        return False
    return _first_batches.setdefault(run, batch) == batch
