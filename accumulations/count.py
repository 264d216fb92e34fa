"""Count: the number of rows."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beamish.accumulations.base.arguments import column_field
from beamish.accumulations.base.columnar import Columnar
from beamish.kernels.buffers import column_of, valid
from beamish.kernels.groups import Groups


@attrs.frozen
class Count(Columnar):
    """The number of rows, or of rows with a value in a column (Spark: ``count(*)``, ``count(column)``).

    Args:
        column: count the rows in which it is not null; default: all rows, as ``count(*)``.

    Returns:
        bigint; 0 for no rows.

    Raises:
        OptionError: the column is not a name.

    Example:
        >>> from beamish.accumulations import Count
        >>> Count(), Count("user")
        (Count(column=None), Count(column='user'))
    """

    column: str | None = column_field(optional=True)

    mergers = (("sum", 0),)

    @property
    def inputs(self) -> tuple[str, ...]:
        return () if self.column is None else (self.column,)

    def is_invertible(self, types: Sequence[pa.DataType]) -> bool:
        return True

    def value_type(self, types: Sequence[pa.DataType]) -> pa.DataType:
        return pa.int64()

    def lift(self, columns: Sequence[pa.Array], event_time_us: NDArray[np.int64]) -> list[pa.Array]:
        present = valid(columns[0]) if columns else None
        ones = np.ones(len(event_time_us), np.int64) if present is None else present.astype(np.int64)
        return [column_of(ones)]

    def reduce(self, columns: Sequence[pa.Array], event_time_us: NDArray[np.int64], groups: Groups) -> list[pa.Array]:
        present = valid(columns[0]) if columns else None
        return [column_of((groups if present is None else groups[present]).sizes())]
