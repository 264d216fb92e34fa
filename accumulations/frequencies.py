"""Histogram, Mode, MostFrequent and Entropy: how often a column has each of its values."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beamish.accumulations.base.columnar import Columnar, check_orderable, column_field, count_field
from beamish.kernels.buffers import (
    column_of,
    list_column,
    list_lengths,
    numbers,
    pick,
    plain,
    plain_type,
    struct_column,
    valid,
)
from beamish.kernels.codes import normalise
from beamish.kernels.groups import Groups, gather_lists, items_of, lift_items
from beamish.kernels.order import Keys, run_starts, sort_keys, sort_order

_NAMES = ("value", "count")


class _Frequencies(Columnar):
    """The state is a list of the distinct values with their counts, by value."""

    __slots__ = ()

    column: str
    mergers = ((None, ()),)

    def check_types(self, name: str, types: Sequence[pa.DataType]) -> None:
        check_orderable(name, self, types)

    def state_types(self, types: Sequence[pa.DataType]) -> Sequence[pa.DataType]:
        return (pa.list_(pa.struct([("value", plain_type(types[0])), ("count", pa.int64())])),)

    def value_type(self, types: Sequence[pa.DataType]) -> pa.DataType:
        return self.state_types(types)[0]

    def lift(self, columns: Sequence[pa.Array], event_time_us: NDArray[np.int64]) -> list[pa.Array]:
        values = plain(columns[0])
        return [lift_items(struct_column([values, column_of(np.ones(len(values), np.int64))], _NAMES), valid(values))]

    def combine(self, groups: Groups, state: Sequence[pa.Array]) -> list[pa.Array]:
        items, of = items_of(state[0], groups)
        values, counts = items.flatten()
        keys = [of.of, *sort_keys(values)]
        order = sort_order(keys)
        first = np.flatnonzero(run_starts([key[order] for key in keys]))
        total = np.add.reduceat(numbers(counts)[order], first) if len(first) else np.zeros(0, np.int64)
        distinct = struct_column([values.take(column_of(order[first])), column_of(total)], _NAMES)
        return [list_column(distinct, of[order[first]].sizes())]


@attrs.frozen
class Histogram(_Frequencies):
    """The distinct values of a column with their counts, nulls ignored (ksqlDB: ``HISTOGRAM``).

    The state holds every distinct value. -0.0 and 0.0 are one value, returned as 0.0; all NaN are one value.

    Args:
        column: of any orderable type (all but maps).

    Returns:
        array of struct<value, count bigint>, in Spark's sort order of the values; empty for no value.

    Raises:
        OptionError: the column is not a name.
        ColumnError: its type is not orderable.
    """

    column: str = column_field()

    def extract_columns(self, state: Sequence[pa.Array], types: Sequence[pa.DataType]) -> pa.Array:
        return list_column(_normalised(state[0].flatten()), list_lengths(state[0]))


@attrs.frozen
class MostFrequent(_Frequencies):
    """The ``n`` most frequent values of a column with their counts, nulls ignored.

    Exact: the state holds every distinct value, as that of ``Histogram``.

    Args:
        n: the number of values, at least 1.
        column: of any orderable type (all but maps).

    Returns:
        array of struct<value, count bigint>, at most ``n``, by descending count, then by ascending value.

    Raises:
        OptionError: n is below 1, or the column is not a name.
        ColumnError: its type is not orderable.
    """

    n: int = count_field()
    column: str = column_field()

    def extract_columns(self, state: Sequence[pa.Array], types: Sequence[pa.DataType]) -> pa.Array:
        items, of = items_of(state[0], Groups.each(len(state[0])))
        return gather_lists(_normalised(items), of, _by_count, keep=self.n)


@attrs.frozen
class Mode(_Frequencies):
    """The most frequent value of a column, the least of several, nulls ignored (Spark: ``mode(column, deterministic => true)``).

    The state holds every distinct value, as that of ``Histogram``.

    Args:
        column: of any orderable type (all but maps).

    Returns:
        the type of the column; null for no value.

    Raises:
        OptionError: the column is not a name.
        ColumnError: its type is not orderable.
    """

    column: str = column_field()

    def value_type(self, types: Sequence[pa.DataType]) -> pa.DataType:
        return plain_type(types[0])

    def extract_columns(self, state: Sequence[pa.Array], types: Sequence[pa.DataType]) -> pa.Array:
        items, of = items_of(state[0], Groups.each(len(state[0])))
        return pick(normalise(items.flatten()[0]), of.first(_by_count(items)))


@attrs.frozen
class Entropy(_Frequencies):
    """The Shannon entropy of the values of a column, nulls ignored.

    The state holds every distinct value, as that of ``Histogram``.

    Args:
        column: of any orderable type (all but maps).

    Returns:
        double, in bits: 0 where all values are equal, 1 for two values that are equally frequent; null for no value.

    Raises:
        OptionError: the column is not a name.
        ColumnError: its type is not orderable.
    """

    column: str = column_field()

    def value_type(self, types: Sequence[pa.DataType]) -> pa.DataType:
        return pa.float64()

    def extract_columns(self, state: Sequence[pa.Array], types: Sequence[pa.DataType]) -> pa.Array:
        items, of = items_of(state[0], Groups.each(len(state[0])))
        counts = numbers(items.field("count"))
        share = counts / of.sum(counts)[of.of]
        return column_of(of.sum(share * np.log2(1 / share)), pa.float64(), of.occupied())


def _by_count(items: pa.Array) -> Keys:
    values, counts = items.flatten()
    return [~numbers(counts), *sort_keys(values)]


def _normalised(items: pa.Array) -> pa.Array:
    values, counts = items.flatten()
    return struct_column([normalise(values), counts], _NAMES)
