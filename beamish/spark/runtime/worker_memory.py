"""What Spark's workers spend on memory: collections of garbage, and what Arrow has freed and not given back.

After each task Spark's daemon has a worker collect garbage (``gc.collect()`` in ``pyspark/daemon.py``), which looks at every object that
there is: with pandas, pyarrow and beamish imported some 90,000, at 30 to 40 ms of CPU. A small batch has three tasks.

Arrow's own allocator keeps what is freed for the next that asks: a step that has 9 MB in use takes 40 MB more from the system than the
system's allocator does, and is no faster.
"""

from __future__ import annotations

import gc
import os
from functools import cache

import pyarrow as pa

_MANY = 5_000
"""Objects whose collection costs some 2 ms."""
_TIMES = 4
"""How often a worker leaves out what is there: once per kind of task would do; always, it would keep for ever what a user's function holds for long."""

_times = iter(range(_TIMES))


def spare_memory() -> None:
    """Have a worker spend little on memory; to be said when a task begins."""
    _leave_out_what_stays()
    _give_back_what_is_freed()


@cache
def _give_back_what_is_freed() -> None:
    """Have Arrow take memory from the system, unless somebody has chosen otherwise; once, so that a later choice stands."""
    if "ARROW_DEFAULT_MEMORY_POOL" not in os.environ:
        pa.set_memory_pool(pa.system_memory_pool())


def _leave_out_what_stays() -> None:
    """Leave out of collections what outlived the one after the task before, if it is much.

    It is what tasks imported and keep. Of the task that begins there is little yet. An object that is left out is freed as
    ever when nothing refers to it; only circles are no more looked for among such objects.
    """
    if len(gc.get_objects(generation=2)) > _MANY and next(_times, None) is not None:
        gc.freeze()
