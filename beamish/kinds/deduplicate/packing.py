"""Rows on their way to the shard that knows them again: one payload of Arrow bytes per shard.

columns: the rows' own, and
    EVENT_TIME      int64; null where the row has none
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from beamish.contract.sharding import times_of, to_shards
from beamish.kernels.buffers import cast
from beamish.kernels.codes import normalise
from beamish.kernels.reserved import EVENT_TIME
from beamish.kinds.deduplicate.plan import DuplicatesPlan


def pack_rows(plan: DuplicatesPlan, rows: pa.Table) -> Iterator[tuple[int, bytes]]:
    """Pack rows, one payload per shard.

    Args:
        plan: the stage's plan.
        rows: a source's, the plan's columns and ``EVENT_TIME``; or panes.
    """
    columns = [cast(rows[field.name].combine_chunks(), field.type) for field in plan.schema]
    rows = pa.table([*columns, times_of(plan.takes, rows)], names=[*plan.schema.names, EVENT_TIME])
    keys = ids_of(rows, [plan.id_schema.names[place] for place in plan.key_of_ids])
    yield from to_shards(rows, keys, 0, plan.shards)


def ids_of(rows: pa.Table, names: Sequence[str]) -> list[pa.Array]:
    """Columns by which rows are known again, normalised."""
    return [normalise(rows[name].combine_chunks()) for name in names]
