"""Collect, CollectSet and CountDistinct: values as a list, or without duplicates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beamish.accumulations.base.accumulation import KeptRows
from beamish.accumulations.base.columnar import ListColumnar, check_column, check_orderable, column_field, flag_field
from beamish.errors import OptionError
from beamish.kernels.buffers import (
    Flags,
    column_of,
    list_column,
    list_lengths,
    numbers,
    plain,
    plain_type,
    struct_column,
    valid,
)
from beamish.kernels.codes import normalise
from beamish.kernels.groups import Groups, items_of
from beamish.kernels.order import Keys, sort_keys


@attrs.frozen
class Collect(ListColumnar):
    """All values of a column that are not null, in the order of event times (Spark: ``collect_list``).

    Values of one event time are in Spark's sort order, so the list does not depend on the order of arrival. The state holds every
    value: it grows with the rows of the window.

    Args:
        column: of any orderable type (all but maps).
        sorted_by: a column to order by before the event time, nulls first; default: none.
        descending: whether to reverse the list: the greatest or latest first, nulls of ``sorted_by`` last.

    Returns:
        array of the column's type; empty if there is no value.

    Raises:
        OptionError: a column is not a name, or descending is not a bool.
        ColumnError: a column's type is not orderable.
    """

    column: str = column_field()
    sorted_by: str | None = column_field(optional=True)
    descending: bool = flag_field()

    @property
    def inputs(self) -> tuple[str, ...]:
        return (self.column,) if self.sorted_by is None else (self.column, self.sorted_by)

    def check_types(self, name: str, types: Sequence[pa.DataType]) -> None:
        check_orderable(name, self, types)

    def item_type(self, types: Sequence[pa.DataType]) -> pa.DataType:
        by = [("by", plain_type(types[1]))] if self.sorted_by is not None else []
        return pa.struct([*by, ("time", pa.int64()), ("value", plain_type(types[0]))])

    def value_type(self, types: Sequence[pa.DataType]) -> pa.DataType:
        return pa.list_(plain_type(types[0]))

    def items(self, columns: Sequence[pa.Array], event_time_us: NDArray[np.int64]) -> tuple[pa.Array, Flags | None]:
        values, by = plain(columns[0]), [plain(column) for column in columns[1:]]
        names = ["by", "time", "value"][-2 - len(by) :]
        return struct_column([*by, column_of(event_time_us), values], names), valid(values)

    def keys_of(self, items: pa.Array) -> Keys:
        keys = [key for part in items.flatten() for key in sort_keys(part)]
        return [~key for key in keys] if self.descending else keys

    def kept(self, types: Sequence[pa.DataType]) -> Mapping[str, pa.DataType]:
        return {"": pa.struct([(self.column, types[0])])}

    def kept_rows(self, state: Sequence[pa.Array], types: Sequence[pa.DataType], name: str) -> KeptRows:
        items, of = items_of(state[0], Groups.each(len(state[0])))
        return numbers(items.field("time")), struct_column([items.field("value")], [self.column]), of.of

    def extract_columns(self, state: Sequence[pa.Array], types: Sequence[pa.DataType]) -> pa.Array:
        return list_column(state[0].flatten().field("value"), list_lengths(state[0]))


_ALL_KEYS = 1_000_000


@attrs.frozen
class CollectSet(ListColumnar):
    """The distinct values of a column that are not null, in Spark's sort order (Spark: ``collect_set``).

    -0.0 and 0.0 are one value, returned as 0.0; all NaN are one value.

    Args:
        column: of any orderable type (all but maps).

    Returns:
        array of the column's type; empty if there is no value.

    Raises:
        OptionError: the column is not a name.
        ColumnError: its type is not orderable.
    """

    column: str = column_field()

    distinct = _ALL_KEYS

    def check_types(self, name: str, types: Sequence[pa.DataType]) -> None:
        check_orderable(name, self, types)

    def extract_columns(self, state: Sequence[pa.Array], types: Sequence[pa.DataType]) -> pa.Array:
        return normalise(state[0])


@attrs.frozen(init=False, repr=False)
class CountDistinct(ListColumnar):
    """The number of distinct values of a column, or of distinct combinations of several (Spark: ``count_distinct``).

    Exact: the state holds every distinct value. For many values ``ApproxCountDistinct`` needs far less state.

    Args:
        columns: one or more columns of orderable types (all but maps); a row with a null in one is ignored.

    Returns:
        bigint; 0 if there is no value.

    Raises:
        OptionError: no column, or one that is not a name.
        ColumnError: a column's type is not orderable.
    """

    columns: tuple[str, ...]

    distinct = _ALL_KEYS

    def __init__(self, *columns: str) -> None:
        if not columns:
            raise OptionError("CountDistinct(): needs at least one column; to count rows use Count()")
        for i, column in enumerate(columns):
            check_column(f"CountDistinct(#{i + 1}={column!r})", column)
        self.__attrs_init__(columns)

    def __repr__(self) -> str:
        return f"CountDistinct({', '.join(map(repr, self.columns))})"

    @property
    def inputs(self) -> tuple[str, ...]:
        return self.columns

    def check_types(self, name: str, types: Sequence[pa.DataType]) -> None:
        check_orderable(name, self, types)

    def item_type(self, types: Sequence[pa.DataType]) -> pa.DataType:
        if len(types) == 1:
            return plain_type(types[0])
        return pa.struct([(f"c{i}", plain_type(type_)) for i, type_ in enumerate(types)])

    def value_type(self, types: Sequence[pa.DataType]) -> pa.DataType:
        return pa.int64()

    def items(self, columns: Sequence[pa.Array], event_time_us: NDArray[np.int64]) -> tuple[pa.Array, Flags | None]:
        values = [plain(column) for column in columns]
        if len(values) == 1:
            return values[0], valid(values[0])
        masks = [mask for mask in map(valid, values) if mask is not None]
        present = np.logical_and.reduce(masks) if masks else None
        return struct_column(values, [f"c{i}" for i in range(len(values))]), present

    def extract_columns(self, state: Sequence[pa.Array], types: Sequence[pa.DataType]) -> pa.Array:
        return column_of(list_lengths(state[0]))
