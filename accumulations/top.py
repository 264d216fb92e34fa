"""TopN, BottomN and TopNByKey: the greatest and least values, and the keys with the greatest values."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beamish.accumulations.base.columnar import Columnar, ListColumnar, check_orderable, column_field, count_field
from beamish.kernels.buffers import flags, list_column, list_lengths, plain, plain_type, struct_column, valid
from beamish.kernels.codes import normalise
from beamish.kernels.groups import Groups, gather_lists, items_of, lift_items
from beamish.kernels.order import Keys, sort_keys


class _Outermost(ListColumnar):
    __slots__ = ()

    n: int
    column: str

    @property
    def keep(self) -> int | None:
        return self.n

    def check_types(self, name: str, types: Sequence[pa.DataType]) -> None:
        check_orderable(name, self, types)


@attrs.frozen
class TopN(_Outermost):
    """The ``n`` greatest values of a column, the greatest first, nulls ignored (Beam: ``Top.largest``).

    Args:
        n: the number of values, at least 1; equal values are counted individually.
        column: of any orderable type (all but maps).

    Returns:
        array of the column's type, of at most ``n`` values; empty if there is no value.

    Raises:
        OptionError: n is below 1, or the column is not a name.
        ColumnError: the column's type is not orderable.
    """

    n: int = count_field()
    column: str = column_field()

    def keys_of(self, items: pa.Array) -> Keys:
        return [~key for key in sort_keys(items)]


@attrs.frozen
class BottomN(_Outermost):
    """The ``n`` least values of a column, the least first, nulls ignored (Beam: ``Top.smallest``).

    Args:
        n: the number of values, at least 1; equal values are counted individually.
        column: of any orderable type (all but maps).

    Returns:
        array of the column's type, of at most ``n`` values; empty if there is no value.

    Raises:
        OptionError: n is below 1, or the column is not a name.
        ColumnError: the column's type is not orderable.
    """

    n: int = count_field()
    column: str = column_field()


@attrs.frozen
class TopNByKey(Columnar):
    """The ``n`` keys with the greatest values, each with its greatest value; rows with a null value are ignored.

    Args:
        n: the number of keys, at least 1.
        key: the column that identifies them; null is a key, and -0.0 and 0.0 are one key, returned as 0.0.
        value: the column to compare. Both are of any orderable type (all but maps).

    Returns:
        array of struct<key, value>, at most ``n``, by descending value, then by ascending key.

    Raises:
        OptionError: n is below 1, or a column is not a name.
        ColumnError: a column's type is not orderable.
    """

    n: int = count_field()
    key: str = column_field()
    value: str = column_field()

    mergers = ((None, ()),)

    @property
    def inputs(self) -> tuple[str, ...]:
        return self.key, self.value

    def check_types(self, name: str, types: Sequence[pa.DataType]) -> None:
        check_orderable(name, self, types)

    def value_type(self, types: Sequence[pa.DataType]) -> pa.DataType:
        return pa.list_(pa.struct([("key", plain_type(types[0])), ("value", plain_type(types[1]))]))

    def lift(self, columns: Sequence[pa.Array], event_time_us: NDArray[np.int64]) -> list[pa.Array]:
        keys, values = map(plain, columns)
        return [lift_items(struct_column([keys, values], ["key", "value"]), valid(values))]

    def reduce(self, columns: Sequence[pa.Array], event_time_us: NDArray[np.int64], groups: Groups) -> list[pa.Array]:
        keys, values = map(plain, columns)
        items, present = struct_column([keys, values], ["key", "value"]), valid(values)
        if present is not None:
            items, groups = items.filter(flags(present)), groups[present]
        return [self._top(items, groups)]

    def combine(self, groups: Groups, state: Sequence[pa.Array]) -> list[pa.Array]:
        return [self._top(*items_of(state[0], groups))]

    def extract_columns(self, state: Sequence[pa.Array], types: Sequence[pa.DataType]) -> pa.Array:
        keys, values = state[0].flatten().flatten()
        return list_column(struct_column([normalise(keys), values], ["key", "value"]), list_lengths(state[0]))

    def _top(self, items: pa.Array, groups: Groups) -> pa.Array:
        # A key among the overall first n is among the first n of the part that holds its greatest value.
        distinct = len(sort_keys(items.flatten()[0]))
        best = gather_lists(items, groups, _by_key, distinct=distinct)
        return gather_lists(*items_of(best, Groups.each(groups.count)), _by_value, keep=self.n)


def _by_key(items: pa.Array) -> Keys:
    keys, values = items.flatten()
    return [*sort_keys(keys), *(~key for key in sort_keys(values))]


def _by_value(items: pa.Array) -> Keys:
    keys, values = items.flatten()
    return [*(~key for key in sort_keys(values)), *sort_keys(keys)]
