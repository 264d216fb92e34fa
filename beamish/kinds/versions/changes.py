"""The changes of a table in memory, each with its validity interval; the intervals of a key are contiguous.

columns (one entry per change; ``_us``: int64, microseconds since the epoch):
    from_us         its time
    to_us           the time of the key's next change; END_OF_TIME_US: none
    step            int64: the number of the step in which it arrived
    deletes         bool
    counts          bool: the effective one of its key and time (others are stored only if changes are retracted)
    version_us      the start of its version; its own time unless it extends a version of equal values
    panes           int64: the number of panes of that version; stored at its last change
    late            bool: whether the last pane was LATE
    hash            uint32: of its key
cells: keys as ``key.<name>``, values as ``value.<name>``, ``sequence`` if there is one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import attrs
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beamish.instants import END_OF_TIME_US
from beamish.kernels.codes import hash_rows
from beamish.kinds.versions.plan import TablePlan
from beamish.tables.records import Records


@attrs.frozen(eq=False)
class Changes(Records):
    """Changes of a table."""

    COLUMNS: ClassVar[dict[str, tuple[str, Any]]] = {
        "from_us": ("int64", 0),
        "to_us": ("int64", END_OF_TIME_US),
        "step": ("int64", 0),
        "deletes": ("bool", False),
        "counts": ("bool", True),
        "version_us": ("int64", 0),
        "panes": ("int64", 0),
        "late": ("bool", False),
        "hash": ("uint32", 0),
    }

    @property
    def values(self) -> list[pa.Array]:
        """The value columns."""
        return self.named("value.")


def hash_keys(keys: Sequence[pa.Array], count: int) -> NDArray[np.uint32]:
    """Hash each key: the same in every process for equal keys.

    Args:
        keys: normalised key columns.
        count: number of rows.
    """
    return (hash_rows(keys, count) & np.uint64(0xFFFF_FFFF)).astype(np.uint32)


def cells_schema(plan: TablePlan) -> pa.Schema:
    """The columns of keys, values and sequence."""
    sequence = [] if plan.sequence is None else [pa.field("sequence", plan.sequence.type)]
    keys = [pa.field(f"key.{field.name}", field.type) for field in plan.key_schema]
    return pa.schema([*keys, *(pa.field(f"value.{field.name}", field.type) for field in plan.value_schema), *sequence])
