"""BitAnd, BitOr and BitXor of integers; BoolAnd, BoolOr and CountIf of booleans."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import attrs
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beamish.accumulations.base.columnar import Columnar, check_booleans, check_integers, column_field
from beamish.kernels.buffers import cast, column_of, numbers, plain, plain_type, valid
from beamish.kernels.groups import Groups
from beamish.kernels.state_fields import Merger


class _Bits(Columnar):
    __slots__ = ()

    column: str
    mergers = ((None, None),)
    operation: ClassVar[np.ufunc]
    neutral: ClassVar[int]

    def check_types(self, name: str, types: Sequence[pa.DataType]) -> None:
        check_integers(name, self, types)

    def value_type(self, types: Sequence[pa.DataType]) -> pa.DataType:
        type_ = plain_type(types[0])
        return pa.int64() if pa.types.is_null(type_) else type_

    def lift(self, columns: Sequence[pa.Array], event_time_us: NDArray[np.int64]) -> list[pa.Array]:
        return [cast(plain(columns[0]), self.value_type([columns[0].type]))]

    def combine(self, groups: Groups, state: Sequence[pa.Array]) -> list[pa.Array]:
        values, present = numbers(state[0]), valid(state[0])
        if present is not None:
            values, groups = values[present], groups[present]
        result = np.full(groups.count, self.neutral, values.dtype)
        self.operation.at(result, groups.of, values)
        return [column_of(result, state[0].type, groups.occupied())]


@attrs.frozen
class BitAnd(_Bits):
    """The bitwise AND of a column, nulls ignored (Spark: ``bit_and``).

    Args:
        column: a column of integers.

    Returns:
        the type of the column; null for no value.

    Raises:
        OptionError: the column is not a name.
        ColumnError: it is not of integers.
    """

    column: str = column_field()

    operation = np.bitwise_and
    neutral = -1


@attrs.frozen
class BitOr(_Bits):
    """The bitwise OR of a column, nulls ignored (Spark: ``bit_or``).

    Args:
        column: a column of integers.

    Returns:
        the type of the column; null for no value.

    Raises:
        OptionError: the column is not a name.
        ColumnError: it is not of integers.
    """

    column: str = column_field()

    operation = np.bitwise_or
    neutral = 0


@attrs.frozen
class BitXor(_Bits):
    """The bitwise XOR of a column, nulls ignored (Spark: ``bit_xor``).

    Args:
        column: a column of integers.

    Returns:
        the type of the column; null for no value.

    Raises:
        OptionError: the column is not a name.
        ColumnError: it is not of integers.
    """

    column: str = column_field()

    operation = np.bitwise_xor
    neutral = 0


class _Booleans(Columnar):
    """The state is counts, so that a row can be retracted."""

    __slots__ = ()

    column: str
    counted: ClassVar[tuple[bool, ...]] = (True, False)
    """The values that are counted."""
    mergers: ClassVar[tuple[tuple[Merger | None, Any], ...]] = (("sum", 0), ("sum", 0))

    def check_types(self, name: str, types: Sequence[pa.DataType]) -> None:
        check_booleans(name, self, types)

    def is_invertible(self, types: Sequence[pa.DataType]) -> bool:
        return True

    def value_type(self, types: Sequence[pa.DataType]) -> pa.DataType:
        return pa.bool_()

    def state_types(self, types: Sequence[pa.DataType]) -> Sequence[pa.DataType]:
        return [pa.int64()] * len(self.counted)

    def lift(self, columns: Sequence[pa.Array], event_time_us: NDArray[np.int64]) -> list[pa.Array]:
        column = cast(plain(columns[0]), pa.bool_())
        present, values = valid(column), numbers(column).astype(bool)
        some = np.ones(len(values), bool) if present is None else present
        return [column_of((some & (values == value)).astype(np.int64)) for value in self.counted]


@attrs.frozen
class BoolAnd(_Booleans):
    """Whether all values of a column are true, nulls ignored (Spark: ``bool_and``, ``every``; Beam: ``combiners.All``).

    Args:
        column: a column of booleans.

    Returns:
        boolean; null for no value.

    Raises:
        OptionError: the column is not a name.
        ColumnError: it is not of booleans.
    """

    column: str = column_field()

    def extract_columns(self, state: Sequence[pa.Array], types: Sequence[pa.DataType]) -> pa.Array:
        yes, no = map(numbers, state)
        return column_of(no == 0, pa.bool_(), (yes > 0) | (no > 0))


@attrs.frozen
class BoolOr(_Booleans):
    """Whether any value of a column is true, nulls ignored (Spark: ``bool_or``, ``any``, ``some``).

    Args:
        column: a column of booleans.

    Returns:
        boolean; null for no value.

    Raises:
        OptionError: the column is not a name.
        ColumnError: it is not of booleans.
    """

    column: str = column_field()

    def extract_columns(self, state: Sequence[pa.Array], types: Sequence[pa.DataType]) -> pa.Array:
        yes, no = map(numbers, state)
        return column_of(yes > 0, pa.bool_(), (yes > 0) | (no > 0))


@attrs.frozen
class CountIf(_Booleans):
    """The number of rows in which a column is true (Spark: ``count_if``).

    Args:
        column: a column of booleans.

    Returns:
        bigint; 0 for no rows.

    Raises:
        OptionError: the column is not a name.
        ColumnError: it is not of booleans.
    """

    column: str = column_field()

    counted = (True,)
    mergers = (("sum", 0),)

    def value_type(self, types: Sequence[pa.DataType]) -> pa.DataType:
        return pa.int64()
