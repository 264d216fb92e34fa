"""What a worker of Spark's keeps for its life is left out of its garbage collections.

After each task Spark's daemon has a worker collect garbage (``gc.collect()`` in ``pyspark/daemon.py``), which looks at every object that
there is: with pandas, pyarrow and beamish imported some 90,000, at 30 to 40 ms of CPU. A small batch has three tasks.
"""

from __future__ import annotations

import gc

_MANY = 5_000
"""Objects whose collection costs some 2 ms."""
_TIMES = 4
"""How often a worker leaves out what is there: once per kind of task would do; always, it would keep for ever what a user's function holds for long."""

_times = iter(range(_TIMES))


def spare_what_stays() -> None:
    """Leave out what outlived the collection after the task before, if it is much; to be said when a task begins.

    It is what tasks imported and keep. Of the task that begins there is little yet. An object that is left out is freed as
    ever when nothing refers to it; only circles are no more looked for among such objects.
    """
    if len(gc.get_objects(generation=2)) > _MANY and next(_times, None) is not None:
        gc.freeze()
