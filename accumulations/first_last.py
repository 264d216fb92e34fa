"""First and Last: the value of the earliest and of the latest row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import attrs
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beamish.accumulations.base.columnar import Columnar, check_orderable, column_field, flag_field
from beamish.kernels.buffers import column_of, numbers, pick, plain, plain_type, valid
from beamish.kernels.groups import Groups
from beamish.kernels.order import sort_keys


class _Edge(Columnar):
    """The state: the event time of the row, null before the first row, and its value."""

    __slots__ = ()

    column: str
    ignore_nulls: bool
    mergers = ((None, None), (None, None))
    latest: ClassVar[bool]

    def check_types(self, name: str, types: Sequence[pa.DataType]) -> None:
        check_orderable(name, self, types)

    def value_type(self, types: Sequence[pa.DataType]) -> pa.DataType:
        return plain_type(types[0])

    def state_types(self, types: Sequence[pa.DataType]) -> Sequence[pa.DataType]:
        return pa.int64(), plain_type(types[0])

    def lift(self, columns: Sequence[pa.Array], event_time_us: NDArray[np.int64]) -> list[pa.Array]:
        values = plain(columns[0])
        return [column_of(event_time_us, pa.int64(), valid(values) if self.ignore_nulls else None), values]

    def combine(self, groups: Groups, state: Sequence[pa.Array]) -> list[pa.Array]:
        times, values = state
        present = valid(times)
        rows = np.arange(len(times)) if present is None else np.flatnonzero(present)
        chosen = self._edge(groups, numbers(times), values, rows)
        return [pick(times, chosen), pick(values, chosen)]

    def _edge(
        self, groups: Groups, times: NDArray[np.int64], values: pa.Array, rows: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        # Values are compared only among the rows with the group's edge time.
        key = times[rows]
        key = ~key if self.latest else key
        there = groups[rows]
        rows = rows[key == there.least(key)[there.of]]
        keys = sort_keys(values.take(column_of(rows)))
        chosen = groups[rows].first([~key for key in keys] if self.latest else keys)
        found = chosen >= 0
        chosen[found] = rows[chosen[found]]
        return chosen

    def extract_columns(self, state: Sequence[pa.Array], types: Sequence[pa.DataType]) -> pa.Array:
        return state[1]


@attrs.frozen
class First(_Edge):
    """The value of the row with the least event time, and among rows of the same time the least value, null first.

    Args:
        column: of any orderable type (all but maps).
        ignore_nulls: look only at rows with a value; default False, as Spark's ``first``.

    Returns:
        the column's type; null if there is no row.

    Raises:
        OptionError: the column is not a name.
        ColumnError: its type is not orderable.
    """

    column: str = column_field()
    ignore_nulls: bool = flag_field()

    latest = False


@attrs.frozen
class Last(_Edge):
    """The value of the row with the greatest event time, and among rows of the same time the greatest value.

    Args:
        column: of any orderable type (all but maps).
        ignore_nulls: look only at rows with a value; default False, as Spark's ``last``.

    Returns:
        the column's type; null if there is no row.

    Raises:
        OptionError: the column is not a name.
        ColumnError: its type is not orderable.
    """

    column: str = column_field()
    ignore_nulls: bool = flag_field()

    latest = True
