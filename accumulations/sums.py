"""Count, Sum, SumList, Product and Mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beamish.accumulations.base.columnar import Columnar, check_lists_of_numbers, check_numbers, column_field
from beamish.kernels.buffers import column_of, decimal_column, limbs, numbers, plain, plain_type, valid
from beamish.kernels.groups import Groups, items_of
from beamish.kernels.state_fields import mean_overflow


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


_LARGEST = np.iinfo(np.int64).max


def _sum_type(type_: pa.DataType) -> pa.DataType:
    type_ = plain_type(type_)
    if pa.types.is_decimal128(type_):
        return pa.decimal128(min(type_.precision + 10, 38), type_.scale)
    return pa.int64() if pa.types.is_integer(type_) else pa.float64()


def _is_exact(type_: pa.DataType) -> bool:
    """Whether subtraction undoes addition: not for floats."""
    return not pa.types.is_floating(type_)


def as_double(column: pa.Array) -> pa.Array:
    """A numeric column as double."""
    column = plain(column)
    return column if pa.types.is_float64(column.type) else column.cast(pa.float64(), safe=False)


@attrs.frozen
class Sum(Columnar):
    """The sum of a column, nulls ignored (Spark: ``sum``).

    Args:
        column: an integer, float or decimal column.

    Returns:
        bigint for integers, double for floats, decimal(p + 10, s) (at most 38 digits) for decimal(p, s); null if
        there is no value.

    Raises:
        OptionError: the column is not a name.
        ColumnError: it is not numeric.
        NumericOverflowError: a sum, or an intermediate sum, does not fit its type.
    """

    column: str = column_field()

    mergers = (("sum", None),)

    def check_types(self, name: str, types: Sequence[pa.DataType]) -> None:
        check_numbers(name, self, types)

    def is_invertible(self, types: Sequence[pa.DataType]) -> bool:
        return _is_exact(types[0])

    def value_type(self, types: Sequence[pa.DataType]) -> pa.DataType:
        return _sum_type(types[0])

    def lift(self, columns: Sequence[pa.Array], event_time_us: NDArray[np.int64]) -> list[pa.Array]:
        column = plain(columns[0])
        type_ = _sum_type(column.type)
        return [column if type_ == column.type else column.cast(type_)]


@attrs.frozen
class SumList(Columnar):
    """The sum of all items of an array column, null items ignored (ksqlDB: ``SUM_LIST``).

    Args:
        column: a column of arrays of integers, floats or decimals.

    Returns:
        as ``Sum`` of the items: bigint, double or decimal; null for no item.

    Raises:
        OptionError: the column is not a name.
        ColumnError: it is not an array of numbers.
        NumericOverflowError: a sum, or an intermediate sum, does not fit its type.
    """

    column: str = column_field()

    mergers = (("sum", None),)

    def check_types(self, name: str, types: Sequence[pa.DataType]) -> None:
        check_lists_of_numbers(name, self, types)

    def is_invertible(self, types: Sequence[pa.DataType]) -> bool:
        return _is_exact(self.value_type(types))

    def value_type(self, types: Sequence[pa.DataType]) -> pa.DataType:
        type_ = plain_type(types[0])
        return _sum_type(type_.value_type if pa.types.is_list(type_) else type_)

    def lift(self, columns: Sequence[pa.Array], event_time_us: NDArray[np.int64]) -> list[pa.Array]:
        return self.reduce(columns, event_time_us, Groups.each(len(event_time_us)))

    def reduce(self, columns: Sequence[pa.Array], event_time_us: NDArray[np.int64], groups: Groups) -> list[pa.Array]:
        type_ = self.value_type([columns[0].type])
        lists = plain(columns[0]) if pa.types.is_list(plain_type(columns[0].type)) else columns[0].cast(pa.list_(type_))
        items, of = items_of(lists, groups)
        return self.combine(of, [plain(items).cast(type_)])


@attrs.frozen
class Product(Columnar):
    """The product of a column as double, nulls ignored (Spark: ``product``).

    Args:
        column: an integer, float or decimal column.

    Returns:
        double; null for no value.

    Raises:
        OptionError: the column is not a name.
        ColumnError: it is not numeric.
    """

    column: str = column_field()

    mergers = ((None, None),)

    def check_types(self, name: str, types: Sequence[pa.DataType]) -> None:
        check_numbers(name, self, types)

    def value_type(self, types: Sequence[pa.DataType]) -> pa.DataType:
        return pa.float64()

    def lift(self, columns: Sequence[pa.Array], event_time_us: NDArray[np.int64]) -> list[pa.Array]:
        return [as_double(columns[0])]

    def combine(self, groups: Groups, state: Sequence[pa.Array]) -> list[pa.Array]:
        values, present = numbers(state[0]), valid(state[0])
        if present is not None:
            values, groups = values[present], groups[present]
        product = np.ones(groups.count)
        with np.errstate(invalid="ignore", over="ignore", under="ignore"):
            np.multiply.at(product, groups.of, values)
        return [column_of(product, pa.float64(), groups.occupied())]


@attrs.frozen
class Mean(Columnar):
    """The arithmetic mean of a column, nulls ignored (Spark: ``avg``).

    Args:
        column: an integer, float or decimal column.

    Returns:
        double; for decimal(p, s) decimal(p + 4, s + 4), at most 38 digits, rounded half up. Null for no value.

    Raises:
        OptionError: the column is not a name.
        ColumnError: it is not numeric.
        NumericOverflowError: a decimal sum or mean does not fit its type.
    """

    column: str = column_field()

    mergers = (("sum", None), ("sum", 0))

    def check_types(self, name: str, types: Sequence[pa.DataType]) -> None:
        check_numbers(name, self, types)

    def is_invertible(self, types: Sequence[pa.DataType]) -> bool:
        return _is_exact(types[0])

    def value_type(self, types: Sequence[pa.DataType]) -> pa.DataType:
        type_ = plain_type(types[0])
        if pa.types.is_decimal128(type_):
            return pa.decimal128(min(type_.precision + 4, 38), min(type_.scale + 4, 38))
        return pa.float64()

    def state_types(self, types: Sequence[pa.DataType]) -> Sequence[pa.DataType]:
        total = _sum_type(types[0])
        return total if pa.types.is_decimal128(total) else pa.float64(), pa.int64()

    def lift(self, columns: Sequence[pa.Array], event_time_us: NDArray[np.int64]) -> list[pa.Array]:
        column = plain(columns[0])
        present = valid(column)
        counts = np.ones(len(column), np.int64) if present is None else present.astype(np.int64)
        if pa.types.is_decimal128(column.type):
            return [column.cast(_sum_type(column.type)), column_of(counts)]
        return [as_double(column), column_of(counts)]

    def extract_columns(self, state: Sequence[pa.Array], types: Sequence[pa.DataType]) -> pa.Array:
        total, count = state[0], numbers(state[1])
        if pa.types.is_decimal128(total.type):
            return self._divide(total, count, self.value_type(types))
        present = count > 0
        mean = np.divide(numbers(total), count, out=np.zeros(len(count)), where=present)
        return column_of(mean, pa.float64(), present)

    def check_state(self, state: Sequence[pa.Array], types: Sequence[pa.DataType]) -> None:
        if pa.types.is_decimal128(state[0].type):
            self.extract_columns(state, types)

    def _divide(self, total: pa.Array, count: NDArray[np.int64], type_: pa.DataType) -> pa.Array:
        # Round half up, away from zero: twice the magnitude plus the count, over twice the count.
        present = count > 0
        factor, divisor = 10 ** (type_.scale - total.type.scale), np.where(present, count, 1)
        high, low = limbs(total if total.null_count == 0 else total.fill_null(0))
        short = np.ascontiguousarray(low).view(np.int64)
        room = (_LARGEST - int(divisor.max(initial=1))) // (2 * factor)
        fits = bool((high == short >> 63).all()) and -room < short.min(initial=0) and short.max(initial=0) < room
        amount: NDArray[Any] = short
        if not fits:  # Python integers, in object arrays: exact at any size
            amount, divisor = high.astype(object) * 2**64 + low.astype(object), divisor.astype(object)
        magnitude = (2 * factor * abs(amount) + divisor) // (2 * divisor)
        if bool((magnitude >= 10**type_.precision).any()):
            raise mean_overflow(self.column, type_, int(np.flatnonzero(magnitude >= 10**type_.precision)[0]))
        mean = np.where(amount < 0, -magnitude, magnitude)
        if fits:
            return decimal_column(mean >> 63, mean.view(np.uint64), type_, present)
        words = (mean & (2**64 - 1)).astype(np.uint64)
        return decimal_column((mean >> 64).astype(np.int64), words, type_, present)
