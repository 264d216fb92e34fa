"""Collect: all values of a column, as a list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beamish.accumulations.base.accumulation import KeptRows
from beamish.accumulations.base.arguments import check_orderable, column_field, flag_field
from beamish.accumulations.base.columnar import ListColumnar
from beamish.kernels.arrays import Flags
from beamish.kernels.buffers import (
    column_of,
    list_column,
    list_lengths,
    numbers,
    plain,
    plain_type,
    struct_column,
    valid,
)
from beamish.kernels.groups import Groups
from beamish.kernels.lists import items_of
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
