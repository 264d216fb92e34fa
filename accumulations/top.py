"""TopN and BottomN: the greatest and least values; TopNByKey and BottomNByKey: the keys with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import attrs
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beamish.accumulations.base.columnar import (
    Columnar,
    ListColumnar,
    check_orderable,
    column_field,
    count_field,
    flag_field,
)
from beamish.kernels.buffers import flags, list_column, list_lengths, plain, plain_type, struct_column, valid
from beamish.kernels.codes import normalise
from beamish.kernels.groups import Groups, gather_lists, items_of, lift_items
from beamish.kernels.order import Keys, run_starts, sort_keys


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
        array of the column's type, of at most ``n`` values; empty for no value.

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
        array of the column's type, of at most ``n`` values; empty for no value.

    Raises:
        OptionError: n is below 1, or the column is not a name.
        ColumnError: the column's type is not orderable.
    """

    n: int = count_field()
    column: str = column_field()


class _OutermostByKey(Columnar):
    __slots__ = ()

    n: int
    key: str
    value: str
    with_ties: bool
    greatest: ClassVar[bool]
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
        return [self._first(items, groups)]

    def combine(self, groups: Groups, state: Sequence[pa.Array]) -> list[pa.Array]:
        return [self._first(*items_of(state[0], groups))]

    def extract_columns(self, state: Sequence[pa.Array], types: Sequence[pa.DataType]) -> pa.Array:
        keys, values = state[0].flatten().flatten()
        return list_column(struct_column([normalise(keys), values], ["key", "value"]), list_lengths(state[0]))

    def _first(self, items: pa.Array, groups: Groups) -> pa.Array:
        # A key among the overall first n is among the first n of the part that holds its outermost value.
        distinct = len(sort_keys(items.flatten()[0]))
        best, of = items_of(gather_lists(items, groups, self._by_key, distinct=distinct), Groups.each(groups.count))
        if not self.with_ties:
            return gather_lists(best, of, self._by_value, keep=self.n)
        lists = gather_lists(best, of, self._by_value)
        best, of = items_of(lists, Groups.each(groups.count))
        kept = _position_of_first_equal([of.of, *self._of_value(best)], of) < self.n
        return list_column(best.filter(flags(kept)), of[kept].sizes())

    def _of_value(self, items: pa.Array) -> Keys:
        keys = sort_keys(items.flatten()[1])
        return [~key for key in keys] if self.greatest else keys

    def _by_key(self, items: pa.Array) -> Keys:
        return [*sort_keys(items.flatten()[0]), *self._of_value(items)]

    def _by_value(self, items: pa.Array) -> Keys:
        return [*self._of_value(items), *sort_keys(items.flatten()[0])]


def _position_of_first_equal(keys: Keys, groups: Groups) -> NDArray[np.int64]:
    """For sorted entries: the position, within its group, of the first entry that is equal in the keys."""
    first = run_starts(keys)
    positions: NDArray[np.int64] = groups.positions()[first][np.cumsum(first) - 1]
    return positions


@attrs.frozen
class TopNByKey(_OutermostByKey):
    """The ``n`` keys with the greatest values, each with its greatest value; rows with a null value are ignored.

    Args:
        n: the number of keys, at least 1.
        key: the column that identifies them; null is a key, and -0.0 and 0.0 are one key, returned as 0.0.
        value: the column to compare. Both are of any orderable type (all but maps).
        with_ties: whether keys whose value equals that of the last are returned too, as with SQL's RANK; default False.

    Returns:
        array of struct<key, value>, at most ``n`` without ties, by descending value, then by ascending key.

    Raises:
        OptionError: n is below 1, a column is not a name, or with_ties is not a bool.
        ColumnError: a column's type is not orderable.
    """

    n: int = count_field()
    key: str = column_field()
    value: str = column_field()
    with_ties: bool = flag_field(kw_only=True)

    greatest = True


@attrs.frozen
class BottomNByKey(_OutermostByKey):
    """The ``n`` keys with the least values, each with its least value; rows with a null value are ignored.

    Args:
        n: the number of keys, at least 1.
        key: the column that identifies them; null is a key, and -0.0 and 0.0 are one key, returned as 0.0.
        value: the column to compare. Both are of any orderable type (all but maps).
        with_ties: whether keys whose value equals that of the last are returned too, as with SQL's RANK; default False.

    Returns:
        array of struct<key, value>, at most ``n`` without ties, by ascending value, then by ascending key.

    Raises:
        OptionError: n is below 1, a column is not a name, or with_ties is not a bool.
        ColumnError: a column's type is not orderable.
    """

    n: int = count_field()
    key: str = column_field()
    value: str = column_field()
    with_ties: bool = flag_field(kw_only=True)

    greatest = False
