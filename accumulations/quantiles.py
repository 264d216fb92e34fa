"""Quantiles and Median of a column of numbers, exact."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beamish.accumulations.base.columnar import ListColumnar, check_numbers, column_field
from beamish.accumulations.sums import as_double
from beamish.errors import OptionError
from beamish.kernels.buffers import Flags, column_of, list_column, list_lengths, numbers, starts, valid


class _Sorted(ListColumnar):
    """The state: all values as doubles, sorted."""

    __slots__ = ()

    column: str

    def check_types(self, name: str, types: Sequence[pa.DataType]) -> None:
        check_numbers(name, self, types)

    def item_type(self, types: Sequence[pa.DataType]) -> pa.DataType:
        return pa.float64()

    def items(self, columns: Sequence[pa.Array], event_time_us: NDArray[np.int64]) -> tuple[pa.Array, Flags | None]:
        values = as_double(columns[0])
        return values, valid(values)


def _quantile(values: NDArray[np.float64], start: NDArray[np.int64], count: NDArray[np.int64], p: float) -> Any:
    # Spark's percentile: linear interpolation around position (n - 1) * p.
    position = (count - 1) * p
    low, high = np.floor(position).astype(np.int64), np.ceil(position).astype(np.int64)
    lower, higher = values[start + low], values[start + high]
    with np.errstate(invalid="ignore"):
        between = (high - position) * lower + (position - low) * higher
    return np.where((low == high) | (lower == higher), lower, between)


def _probabilities(given: Any) -> tuple[float, ...]:
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise OptionError(f"Quantiles(probabilities={given!r}): must be a sequence of numbers; for one write (0.99,)")
    result = tuple(given)
    for p in result:
        if isinstance(p, bool) or not isinstance(p, (int, float)) or not 0 <= p <= 1:
            raise OptionError(
                f"Quantiles(probabilities={given!r}): {p!r} must be from 0 to 1; the 99th percentile is 0.99"
            )
    if not result:
        raise OptionError("Quantiles(probabilities=()): needs at least one; the quartiles are (0.25, 0.5, 0.75)")
    return tuple(map(float, result))


_probabilities.__annotations__["given"] = "Iterable[float]"  # shown by help()


@attrs.frozen
class Quantiles(_Sorted):
    """Quantiles of a column of numbers, nulls ignored, exact, interpolated linearly (Spark: ``percentile``).

    The state holds every value: it grows with the rows of the window.

    Args:
        column: an integer, float or decimal column; NaN is above all numbers.
        probabilities: which quantiles, each from 0 (the least value) to 1 (the greatest); default: the quartiles.

    Returns:
        array<double>, one for each probability, in their order; null if there is no value.

    Raises:
        OptionError: the column is not a name, or a probability is not from 0 to 1.
        ColumnError: the column is not numeric.
    """

    column: str = column_field()
    probabilities: tuple[float, ...] = attrs.field(default=(0.25, 0.5, 0.75), converter=_probabilities)

    def extract_columns(self, state: Sequence[pa.Array], types: Sequence[pa.DataType]) -> pa.Array:
        count = list_lengths(state[0])
        some, values = count > 0, numbers(state[0].flatten())
        start = starts(count)[some]
        found = np.empty((len(start), len(self.probabilities)))
        for i, p in enumerate(self.probabilities):
            found[:, i] = _quantile(values, start, count[some], p)
        lengths = np.where(some, len(self.probabilities), 0)
        return list_column(column_of(found.ravel()), lengths, some)


@attrs.frozen
class Median(_Sorted):
    """The median of a column of numbers, nulls ignored, exact (Spark: ``median``).

    The state holds every value: it grows with the rows of the window.

    Args:
        column: an integer, float or decimal column; NaN is above all numbers.

    Returns:
        double; null if there is no value.

    Raises:
        OptionError: the column is not a name.
        ColumnError: it is not numeric.
    """

    column: str = column_field()

    def value_type(self, types: Sequence[pa.DataType]) -> pa.DataType:
        return pa.float64()

    def extract_columns(self, state: Sequence[pa.Array], types: Sequence[pa.DataType]) -> pa.Array:
        count = list_lengths(state[0])
        some, median = count > 0, np.zeros(len(count))
        start = starts(count)
        median[some] = _quantile(numbers(state[0].flatten()), start[some], count[some], 0.5)
        return column_of(median, pa.float64(), some)
