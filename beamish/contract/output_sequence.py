"""When rows of output came out: the place of each among all that its shard ever gave, and where the watermark stood.

A shard gives its rows in order, and a key is always of the same shard. So whoever runs shards counts the rows of each, from
one step to the next, and the rows of a key are in order for ever (docs/rules/panes.md#pane-sequence). The watermark is the one that
the stage hands on (docs/rules/panes.md#pane-watermark).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from beamish.contract.schemas import TIMESTAMP
from beamish.instants import EARLIEST_US, LATEST_US


def came_out(rows: pa.Table, first: int, watermark_us: int | None) -> pa.Table:
    """Rows of output as one step of a shard gave them, numbered, with the watermark.

    Args:
        rows: of output.
        first: the number of the first of them.
        watermark_us: where it stands after the step, microseconds; None: there is none.
    """
    at = rows.schema.get_field_index("pane")
    field, chunks, number = rows.schema.field(at), [], first
    of_sequence, of_watermark = (field.type.get_field_index(name) for name in ("sequence", "watermark"))
    # At the end of time, and so on, it is the nearest that a timestamp can say.
    stood_us = None if watermark_us is None else min(max(watermark_us, EARLIEST_US), LATEST_US)
    stood = pa.scalar(stood_us, pa.int64()).cast(TIMESTAMP)
    for chunk in rows.column(at).chunks:
        columns = [chunk.field(i) for i in range(chunk.type.num_fields)]
        columns[of_sequence] = pa.array(np.arange(number, number + len(chunk), dtype=np.int64))
        columns[of_watermark] = pa.repeat(stood, len(chunk))
        chunks.append(pa.StructArray.from_arrays(columns, fields=list(field.type)))
        number += len(chunk)
    return rows.set_column(at, field, pa.chunked_array(chunks, field.type))
