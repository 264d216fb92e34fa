"""Min and Max, MinBy and MaxBy: the least and greatest value, or the value of the row whose other column is least or greatest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import attrs
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beamish.accumulations.base.columnar import Columnar, check_orderable, column_field
from beamish.kernels.buffers import column_of, pick, plain, plain_type, valid
from beamish.kernels.groups import Groups
from beamish.kernels.order import Keys, sort_keys


class _Extreme(Columnar):
    __slots__ = ()

    def check_types(self, name: str, types: Sequence[pa.DataType]) -> None:
        check_orderable(name, self, types)

    def value_type(self, types: Sequence[pa.DataType]) -> pa.DataType:
        return plain_type(types[0])

    def lift(self, columns: Sequence[pa.Array], event_time_us: NDArray[np.int64]) -> list[pa.Array]:
        return [plain(columns[0])]


@attrs.frozen
class Min(_Extreme):
    """The least value of a column in Spark's order, nulls ignored; NaN only if there is nothing else (Spark: ``min``).

    Args:
        column: of any orderable type (all but maps); strings are compared by bytes, structs field by field.

    Returns:
        the column's type; null if there is no value.

    Raises:
        OptionError: the column is not a name.
        ColumnError: its type is not orderable.
    """

    column: str = column_field()

    mergers = (("min", None),)


@attrs.frozen
class Max(_Extreme):
    """The greatest value of a column in Spark's order, nulls ignored; NaN is above all (Spark: ``max``).

    Args:
        column: of any orderable type (all but maps); strings are compared by bytes, structs field by field.

    Returns:
        the column's type; null if there is no value.

    Raises:
        OptionError: the column is not a name.
        ColumnError: its type is not orderable.
    """

    column: str = column_field()

    mergers = (("max", None),)


class _ExtremeBy(Columnar):
    """The state: ``by`` of the row, null before the first row, and its value."""

    __slots__ = ()

    column: str
    by: str
    mergers = ((None, None), (None, None))
    greatest: ClassVar[bool]

    @property
    def inputs(self) -> tuple[str, ...]:
        return self.column, self.by

    def check_types(self, name: str, types: Sequence[pa.DataType]) -> None:
        check_orderable(name, self, types)

    def value_type(self, types: Sequence[pa.DataType]) -> pa.DataType:
        return plain_type(types[0])

    def state_types(self, types: Sequence[pa.DataType]) -> Sequence[pa.DataType]:
        return plain_type(types[1]), plain_type(types[0])

    def lift(self, columns: Sequence[pa.Array], event_time_us: NDArray[np.int64]) -> list[pa.Array]:
        values, by = map(plain, columns)
        return [by, values]

    def combine(self, groups: Groups, state: Sequence[pa.Array]) -> list[pa.Array]:
        by, values = state
        present = np.zeros(len(by), bool) if pa.types.is_null(by.type) else valid(by)
        rows = np.arange(len(by)) if present is None else np.flatnonzero(present)
        keys, there = self._keys(by.take(column_of(rows))), groups[rows]
        best = there.first(keys)[there.of]
        # Values are compared only among rows that are equal in the other column.
        rows = rows[np.logical_and.reduce([key == key[best] for key in keys])]
        chosen = groups[rows].first(self._keys(values.take(column_of(rows))))
        found = chosen >= 0
        chosen[found] = rows[chosen[found]]
        return [pick(by, chosen), pick(values, chosen)]

    def _keys(self, column: pa.Array) -> Keys:
        return [~key for key in sort_keys(column)] if self.greatest else sort_keys(column)

    def extract_columns(self, state: Sequence[pa.Array], types: Sequence[pa.DataType]) -> pa.Array:
        return state[1]


@attrs.frozen
class MinBy(_ExtremeBy):
    """The value of a column in the row with the least value of another column, ignoring rows with a null there (Spark: ``min_by``).

    Among several such rows the least value is taken, null first, so the result does not depend on the order of arrival.

    Args:
        column: the column whose value is given.
        by: the column that is compared. Both are of any orderable type (all but maps).

    Returns:
        the type of ``column``; null if there is no row, or if that row has no value.

    Raises:
        OptionError: a column is not a name.
        ColumnError: a column's type is not orderable.
    """

    column: str = column_field()
    by: str = column_field()

    greatest = False


@attrs.frozen
class MaxBy(_ExtremeBy):
    """The value of a column in the row with the greatest value of another column, like ``MinBy`` (Spark: ``max_by``).

    Among several such rows the greatest value is taken, null last; NaN is above all.

    Args:
        column: the column whose value is given.
        by: the column that is compared. Both are of any orderable type (all but maps).

    Returns:
        the type of ``column``; null if there is no row, or if that row has no value.

    Raises:
        OptionError: a column is not a name.
        ColumnError: a column's type is not orderable.
    """

    column: str = column_field()
    by: str = column_field()

    greatest = True
