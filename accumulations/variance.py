"""Variance and StdDev of a column of numbers.

The state is (n, mean, m2): the number of values, their mean, and the sum of the squares of their distances from it. Parts
are merged by Chan, Golub and LeVeque's formula ("Updating formulae and a pairwise algorithm", 1979) for any number of
parts at once: the mean is the weighted mean of the means, and m2 = sum(m2_i + n_i * (mean_i - mean)**2).
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beamish.accumulations.base.columnar import Columnar, check_numbers, column_field, flag_field
from beamish.accumulations.sums import as_double
from beamish.kernels.buffers import Doubles, column_of, numbers, valid
from beamish.kernels.groups import Groups


def merged_mean(groups: Groups, n: NDArray[np.int64], mean: Doubles, total: NDArray[np.int64]) -> Doubles:
    """The means of groups of parts.

    Args:
        groups: of the parts.
        n, mean: the number of values of each part, above 0, and their mean.
        total: the number of values of each group.
    """
    # Means are kept as distances from one mean of the group, so that a single part stays exact to the last bit.
    near = np.zeros(groups.count)
    near[groups.of] = mean
    with np.errstate(invalid="ignore", over="ignore"):
        return near + groups.sum(n * (mean - near[groups.of])) / np.maximum(total, 1)


class _Spread(Columnar):
    __slots__ = ()

    population: bool
    mergers = (("sum", 0), (None, 0.0), (None, 0.0))

    def check_types(self, name: str, types: Sequence[pa.DataType]) -> None:
        check_numbers(name, self, types)

    def value_type(self, types: Sequence[pa.DataType]) -> pa.DataType:
        return pa.float64()

    def state_types(self, types: Sequence[pa.DataType]) -> Sequence[pa.DataType]:
        return pa.int64(), pa.float64(), pa.float64()

    def lift(self, columns: Sequence[pa.Array], event_time_us: NDArray[np.int64]) -> list[pa.Array]:
        column = as_double(columns[0])
        present, values = valid(column), numbers(column)
        if present is None:
            counts = np.ones(len(values), np.int64)
        else:
            counts, values = present.astype(np.int64), np.where(present, values, 0.0)
        return [column_of(counts), column_of(values), column_of(np.zeros(len(values)))]

    def combine(self, groups: Groups, state: Sequence[pa.Array]) -> list[pa.Array]:
        n, mean, m2 = (numbers(column) for column in state)
        some = n > 0
        if not some.all():
            groups, n, mean, m2 = groups[some], n[some], mean[some], m2[some]
        total = groups.sum(n)
        merged = merged_mean(groups, n, mean, total)
        with np.errstate(invalid="ignore", over="ignore"):
            squares = groups.sum(m2 + n * (mean - merged[groups.of]) ** 2)
        return [column_of(total), column_of(merged), column_of(squares)]

    def _variance(self, state: Sequence[pa.Array]) -> tuple[Doubles, NDArray[np.bool_]]:
        n, m2 = numbers(state[0]), numbers(state[2])
        divisor = n if self.population else n - 1
        present = divisor > 0
        return np.divide(m2, divisor, out=np.zeros(len(n)), where=present), present


@attrs.frozen
class Variance(_Spread):
    """The variance of a column, nulls ignored (Spark: ``var_samp``, ``var_pop``).

    Args:
        column: a column of numbers.
        population: divide by the number of values, not by one less; default False, as Spark's ``variance``.

    Returns:
        double; null for no value, and for a single one unless ``population``.

    Raises:
        OptionError: the column is not a name.
        ColumnError: it is not numeric.
    """

    column: str = column_field()
    population: bool = flag_field()

    def extract_columns(self, state: Sequence[pa.Array], types: Sequence[pa.DataType]) -> pa.Array:
        variance, present = self._variance(state)
        return column_of(variance, pa.float64(), present)


@attrs.frozen
class StdDev(_Spread):
    """The standard deviation of a column, nulls ignored (Spark: ``stddev_samp``, ``stddev_pop``).

    Args:
        column: a column of numbers.
        population: treat the values as the whole population, not a sample; default False, as Spark's ``stddev``.

    Returns:
        double; null for no value, and for a single one unless ``population``.

    Raises:
        OptionError: the column is not a name.
        ColumnError: it is not numeric.
    """

    column: str = column_field()
    population: bool = flag_field()

    def extract_columns(self, state: Sequence[pa.Array], types: Sequence[pa.DataType]) -> pa.Array:
        variance, present = self._variance(state)
        return column_of(np.sqrt(variance), pa.float64(), present)
