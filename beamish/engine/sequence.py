"""The numbers of rows of output: each has its place among all that its shard ever gave (docs/semantics.md#pane-sequence).

A shard gives its rows in order, and a key is always of the same shard. So whoever runs shards counts the rows of each, from
one step to the next, and the rows of a key are in order for ever.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa


def with_sequence(rows: pa.Table, first: int) -> pa.Table:
    """Rows of output as one step of a shard gave them, numbered from ``first``."""
    at = rows.schema.get_field_index("pane")
    field, chunks, number = rows.schema.field(at), [], first
    of_sequence = field.type.get_field_index("sequence")
    for chunk in rows.column(at).chunks:
        columns = [chunk.field(i) for i in range(chunk.type.num_fields)]
        columns[of_sequence] = pa.array(np.arange(number, number + len(chunk), dtype=np.int64))
        chunks.append(pa.StructArray.from_arrays(columns, fields=list(field.type)))
        number += len(chunk)
    return rows.set_column(at, field, pa.chunked_array(chunks, field.type))
