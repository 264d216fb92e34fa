"""A batch for a table: one row per identity, in columns of supported types."""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from beamish.kernels.codes import factorize_rows, hash_rows, normalise
from beamish.kernels.image_columns import DELETED, SEQUENCE


@attrs.frozen(eq=False)
class Batch:
    """The net change of a batch.

    Attributes:
        rows: identity, data, ``_sequence`` and ``_deleted``; one row per identity.
        identity: the columns that identify a row.
        nested: columns with JSON, as text.
    """

    rows: pa.Table
    identity: tuple[str, ...]
    nested: frozenset[str] = frozenset()

    @classmethod
    def net(cls, rows: pa.Table, identity: tuple[str, ...], nested: frozenset[str] = frozenset()) -> Batch:
        """Keep the row with the greatest sequence for each identity.

        Args:
            rows: as ``rows`` of a batch, with any number of rows per identity, in any order.
            identity: the columns that identify a row: null equals null, -0.0 equals 0.0, NaN equals NaN.
            nested: columns with JSON, as text.
        """
        for name in identity:
            column = rows[name].combine_chunks()
            rows = rows.set_column(rows.schema.get_field_index(name), rows.schema.field(name), normalise(column))
        groups = factorize_rows([rows[name] for name in identity], rows.num_rows)
        newest = groups.first([-np.asarray(rows[SEQUENCE], dtype=np.int64)])
        return cls(rows.take(newest), identity, nested)

    @property
    def data(self) -> list[str]:
        """The columns without ``_deleted``."""
        return [name for name in self.rows.column_names if name != DELETED]

    @property
    def schema(self) -> pa.Schema:
        """All columns with their types."""
        return self.rows.schema

    @property
    def nulls(self) -> list[str]:
        """The nullable columns of the identity in this batch."""
        return [name for name in self.identity if self.rows[name].null_count]

    def digest(self) -> str:
        """An order-independent digest of the changes: identities, sequences, deletions."""
        columns = [self.rows[name] for name in (*self.identity, SEQUENCE, DELETED)]
        return f"rows {np.add.reduce(hash_rows(columns, self.rows.num_rows)):016x}"

    def null_patterns(self) -> Iterator[frozenset[str]]:
        """The sets of identity columns that are null together: a condition on each set can use an index."""
        flags = {name: pc.is_null(self.rows[name]) for name in self.nulls}
        if not flags:
            yield frozenset()
            return
        for row in pa.table(flags).group_by(list(flags)).aggregate([]).to_pylist():
            yield frozenset(name for name, null in row.items() if null)
