"""Sequence numbers of output rows within their shard, and the watermark at which they are emitted.

A shard emits its rows in order, and a key always belongs to the same shard. So the runner numbers the rows of each shard across
steps, and the rows of a key stay in order (docs/rules/panes.md#pane-sequence). The watermark is the one that the stage forwards
(docs/rules/panes.md#pane-watermark).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from beamish.contract.schemas import TIMESTAMP
from beamish.instants import EARLIEST_US, LATEST_US


def came_out(rows: pa.Table, first: int, watermark_us: int | None) -> pa.Table:
    """Number the output rows of one step of a shard, and add the watermark.

    Args:
        rows: of output.
        first: the number of the first row.
        watermark_us: after the step, microseconds, or None.
    """
    at = rows.schema.get_field_index("pane")
    field, chunks, number = rows.schema.field(at), [], first
    of_sequence, of_watermark = (field.type.get_field_index(name) for name in ("sequence", "watermark"))
    # At the end of time it is the latest timestamp.
    stood_us = None if watermark_us is None else min(max(watermark_us, EARLIEST_US), LATEST_US)
    stood = pa.scalar(stood_us, pa.int64()).cast(TIMESTAMP)
    for chunk in rows.column(at).chunks:
        columns = [chunk.field(i) for i in range(chunk.type.num_fields)]
        columns[of_sequence] = pa.array(np.arange(number, number + len(chunk), dtype=np.int64))
        columns[of_watermark] = pa.repeat(stood, len(chunk))
        chunks.append(pa.StructArray.from_arrays(columns, fields=list(field.type)))
        number += len(chunk)
    return rows.set_column(at, field, pa.chunked_array(chunks, field.type))
