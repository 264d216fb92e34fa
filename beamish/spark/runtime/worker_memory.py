"""Memory settings of Spark's workers: garbage collection, and Arrow's allocator.

After each task Spark's daemon runs ``gc.collect()`` in a worker (``pyspark/daemon.py``), which visits every object: with pandas,
pyarrow and beamish imported some 90,000, at 30 to 40 ms of CPU. A small batch has three tasks.

Arrow's own allocator retains freed memory: a step with 9 MB in use takes 40 MB more from the system than the system's allocator
does, and is no faster.
"""

from __future__ import annotations

import gc
import os
from functools import cache

import pyarrow as pa

_MANY = 5_000
"""Number of objects whose collection costs some 2 ms."""
_TIMES = 4
"""How often a worker freezes its objects: once per kind of task is enough; always would keep user objects for ever."""

_times = iter(range(_TIMES))


def spare_memory() -> None:
    """Reduce a worker's memory overhead; called when a task begins."""
    _leave_out_what_stays()
    _give_back_what_is_freed()


@cache
def _give_back_what_is_freed() -> None:
    """Use the system allocator for Arrow, unless another one was chosen; once, so that a later choice is kept."""
    if "ARROW_DEFAULT_MEMORY_POOL" not in os.environ:
        pa.set_memory_pool(pa.system_memory_pool())


def _leave_out_what_stays() -> None:
    """Freeze objects that survived the collection after the previous task, if there are many.

    These are imports and long-lived objects; the current task has created few yet. A frozen object is still freed when its
    reference count drops to 0; only cycles among such objects are no longer found.
    """
    if len(gc.get_objects(generation=2)) > _MANY and next(_times, None) is not None:
        gc.freeze()
