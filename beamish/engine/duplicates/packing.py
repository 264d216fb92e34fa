"""Rows on their way to the shard that knows them again: one payload of Arrow bytes per shard.

columns: the rows' own, and
    EVENT_TIME      int64; null where the row has none
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from beamish.engine.windowing.packing import shards_of_keys
from beamish.kernels.buffers import cast
from beamish.kernels.codes import factorize_rows, normalise
from beamish.kernels.ipc import from_bytes, to_bytes
from beamish.kernels.reserved import EVENT_TIME
from beamish.plan.duplicates_plan import DuplicatesPlan


def pack_rows(plan: DuplicatesPlan, rows: pa.Table) -> Iterator[tuple[int, bytes]]:
    """Pack rows, one payload per shard.

    Args:
        plan: the stage's plan.
        rows: a source's, the plan's columns and ``EVENT_TIME``; or panes.
    """
    time = rows["timestamp"].cast(pa.int64()) if plan.takes.is_panes else rows[EVENT_TIME]
    columns = [cast(rows[field.name].combine_chunks(), field.type) for field in plan.schema]
    rows = pa.table([*columns, time], names=[*plan.schema.names, EVENT_TIME])
    by = [name for name in plan.id_schema.names if name in plan.takes.keys] or plan.id_schema.names
    keys = ids_of(rows, by)
    by_key = factorize_rows(keys, rows.num_rows)
    shard = shards_of_keys(keys, by_key, plan.shards)[by_key.of]
    for number in np.unique(shard).tolist():
        yield number, to_bytes(rows.filter(pa.array(shard == number)))


def unpack_rows(payloads: Sequence[bytes]) -> pa.Table:
    """The payloads of a shard as one table."""
    return pa.concat_tables([from_bytes(payload) for payload in payloads]).combine_chunks()


def ids_of(rows: pa.Table, names: Sequence[str]) -> list[pa.Array]:
    """Columns by which rows are known again, normalised."""
    return [normalise(rows[name].combine_chunks()) for name in names]
