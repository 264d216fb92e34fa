"""TopN and BottomN: the greatest and least values; TopNByKey and BottomNByKey: the keys with them; TopRows: the first rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

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
from beamish.errors import ColumnError, OptionError
from beamish.kernels.buffers import (
    Flags,
    Ints,
    column_of,
    flags,
    list_column,
    list_lengths,
    pick,
    plain,
    plain_type,
    starts,
    struct_column,
    valid,
)
from beamish.kernels.codes import normalise
from beamish.kernels.groups import Groups, KeysOf, gather_lists, items_of, lift_items
from beamish.kernels.order import Keys, is_orderable, sort_keys


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


def _read_by(by: Any) -> tuple[str, ...]:
    names = (by,) if isinstance(by, str) else tuple(by) if isinstance(by, Iterable) else ()
    if not names or not all(isinstance(name, str) and name for name in names) or len(set(names)) < len(names):
        raise OptionError(f"TopRows(by={by!r}): must be the name of a column, or several, each once")
    return names


_read_by.__annotations__["by"] = "str | Iterable[str]"  # shown by help()


def _least_field() -> Any:
    """An attrs field that holds a bool, or one for each column of ``by``."""
    return attrs.field(default=False, converter=attrs.Converter(_read_least, takes_self=True), kw_only=True)


def _by_field() -> Any:
    """An attrs field that holds the names of columns; type checkers see fields of unknown defaults alike."""
    return attrs.field(converter=_read_by)


def _read_least(least: Any, top: Any) -> bool | tuple[bool, ...]:
    if isinstance(least, bool):
        return least
    each = tuple(least) if isinstance(least, Iterable) else ()
    if len(each) != len(top.by) or not all(isinstance(one, bool) for one in each):
        raise OptionError(
            f"TopRows(least={least!r}): must be True or False, or a list with one of them for each column of by={list(top.by)!r}"
        )
    return each if len(set(each)) > 1 else all(each)


_read_least.__annotations__["least"] = "bool | Sequence[bool]"  # shown by help()


NUMBER = "row_number"
"""The number of a row among the first ones."""


@attrs.frozen
class TopRows(ListColumnar):
    """The ``n`` rows with the greatest values, each as a row of output: SQL's Top-N by ``ROW_NUMBER()``.

    A row is a struct of the input's columns and ``row_number``, from 1. Ties are by all columns, in ascending order. It must be the
    only accumulation. With ``accumulating_and_retracting()`` a change of the first rows retracts them, and emits those that are now.

    Args:
        n: the number of rows, at least 1.
        by: the column to compare, or several, the first decides; in Spark's descending order, nulls last.
        least: whether rows with the least values are first, in Spark's ascending order, nulls first; or a list with one bool
            for each column of ``by``: ``TopRows(3, by=["score", "name"], least=[False, True])``.
        with_ties: whether rows that equal the last in ``by`` are returned too, as with SQL's RANK; default False.

    Returns:
        rows of a struct of the input's columns and ``row_number`` (bigint).

    Raises:
        OptionError: n is below 1, ``by`` is not a name, least is neither a bool nor one for each column of ``by``, or with_ties is not a bool.
        ColumnError: a column is missing, a map, or called ``row_number``.

    Example:
        >>> import beamish as bm
        >>> from beamish.accumulations import TopRows
        >>> from beamish.triggers import Always
        >>> best = (
        ...     bm.Pipeline()
        ...     .event_time("ts", bm.BoundedOutOfOrderness(0))
        ...     .key_by("shop")
        ...     .window(bm.GlobalWindow())
        ...     .trigger(Always())
        ...     .accumulating_and_retracting()
        ...     .accumulate(best=TopRows(1, by="price"))
        ... )
        >>> script = bm.testing.TestStream().add([{"ts": 1, "shop": "a", "price": 5}]).add([{"ts": 2, "shop": "a", "price": 7}])
        >>> [(str(pane.kind), pane.values["best"]["price"]) for pane in best.run(script)]
        [('PANE', 5), ('RETRACTION', 5), ('PANE', 7)]
    """

    n: int = count_field()
    by: str | Sequence[str] = _by_field()
    least: bool | Sequence[bool] = _least_field()
    with_ties: bool = flag_field(kw_only=True)

    explodes: ClassVar[bool] = True

    @property
    def inputs(self) -> None:
        return None

    @property
    def keep(self) -> int | None:
        return self.n

    def check_types(self, name: str, types: Sequence[pa.DataType]) -> None:
        names, where = [field.name for field in types[0]], f"accumulate({name}={self!r})"
        for column in self.by:
            if column not in names:
                raise ColumnError(f"{where}: no column {column!r}; columns are {names}")
        if NUMBER in map(str.lower, names):
            raise ColumnError(f"{where}: the output has a column {NUMBER!r} of its own; rename yours")
        for field in types[0]:
            if not is_orderable(plain_type(field.type)):
                raise ColumnError(
                    f"{where}: column {field.name!r} is {field.type}, and ties of rows are by all columns, each of a type with an order; "
                    "turn a map into an array with map_entries first"
                )

    def items(self, columns: Sequence[pa.Array], event_time_us: NDArray[np.int64]) -> tuple[pa.Array, None]:
        return plain(columns[0]), None

    def keys_of(self, items: pa.Array) -> Keys:
        return [*self._keys_by(items), *sort_keys(items)]

    def _keys_by(self, items: pa.Array) -> Keys:
        """The sort keys of the columns to compare."""
        fields = dict(zip([field.name for field in items.type], items.flatten(), strict=True))
        each = [self.least] * len(self.by) if isinstance(self.least, bool) else self.least
        return [
            key if least else ~key
            for column, least in zip(self.by, each, strict=True)
            for key in sort_keys(fields[column])
        ]

    @property
    def ties_of(self) -> KeysOf | None:
        return self._keys_by if self.with_ties else None

    def output_type(self, types: Sequence[pa.DataType]) -> pa.DataType:
        return pa.struct([*self.item_type(types), (NUMBER, pa.int64())])

    def explode(self, values: pa.Array, whole: Flags, null_key: Flags) -> tuple[Ints, pa.Array]:
        lengths = np.where(whole, 0, list_lengths(values))
        row = np.repeat(np.arange(len(values), dtype=np.int64), np.where(whole, 1, lengths))
        number = np.arange(len(row), dtype=np.int64) - np.searchsorted(row, row)
        first = starts(list_lengths(values))
        items = pick(values.flatten(), np.where(whole[row], -1, first[row] + number))
        names = [*(field.name for field in items.type), NUMBER]
        columns = [*items.flatten(), column_of(number + 1)]
        return row, pa.StructArray.from_arrays(columns, names=names, mask=flags(whole[row]))


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
        return gather_lists(best, of, self._by_value, keep=self.n, ties_of=self._of_value if self.with_ties else None)

    def _of_value(self, items: pa.Array) -> Keys:
        keys = sort_keys(items.flatten()[1])
        return [~key for key in keys] if self.greatest else keys

    def _by_key(self, items: pa.Array) -> Keys:
        return [*sort_keys(items.flatten()[0]), *self._of_value(items)]

    def _by_value(self, items: pa.Array) -> Keys:
        return [*self._of_value(items), *sort_keys(items.flatten()[0])]


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
