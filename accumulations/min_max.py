"""Min and Max: the least and the greatest value."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beamish.accumulations.base.arguments import check_orderable, column_field
from beamish.accumulations.base.columnar import Columnar
from beamish.kernels.buffers import plain, plain_type


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
