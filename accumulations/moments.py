"""Skewness and Kurtosis of a column; Covariance, Correlation and LinearRegression of two.

The state is a number of values, means, and sums of products of distances from them. Parts are merged as in ``variance.py``, any number
of them at once: with d = mean_i - mean, m3 = sum(m3_i + 3 d m2_i + n_i d**3), m4 = sum(m4_i + 4 d m3_i + 6 d**2 m2_i + n_i d**4), and
the sum of products is sum(xy_i + n_i dx dy) (Pébay, "Formulas for robust, one-pass parallel computation of covariances and
arbitrary-order statistical moments", 2008).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import attrs
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beamish.accumulations.base.columnar import Columnar, check_numbers, column_field, flag_field
from beamish.accumulations.sums import as_double
from beamish.accumulations.variance import merged_mean
from beamish.kernels.buffers import Doubles, Flags, column_of, numbers, struct_column, valid
from beamish.kernels.groups import Groups


class _Moments(Columnar):
    """The state: the number of rows with all values, the means of the columns, and as many sums of products."""

    __slots__ = ()

    means: ClassVar[int]

    def check_types(self, name: str, types: Sequence[pa.DataType]) -> None:
        check_numbers(name, self, types)

    def value_type(self, types: Sequence[pa.DataType]) -> pa.DataType:
        return pa.float64()

    def state_types(self, types: Sequence[pa.DataType]) -> Sequence[pa.DataType]:
        return [pa.int64(), *[pa.float64()] * (len(self.mergers) - 1)]

    def lift(self, columns: Sequence[pa.Array], event_time_us: NDArray[np.int64]) -> list[pa.Array]:
        doubles = [as_double(column) for column in columns]
        present = np.ones(len(event_time_us), bool)
        for some in map(valid, doubles):
            present = present if some is None else present & some
        values = [column_of(np.where(present, numbers(column), 0.0)) for column in doubles]
        products = [column_of(np.zeros(len(present)))] * (len(self.mergers) - 1 - len(values))
        return [column_of(present.astype(np.int64)), *values, *products]

    def combine(self, groups: Groups, state: Sequence[pa.Array]) -> list[pa.Array]:
        n, *rest = map(numbers, state)
        some = n > 0
        if not some.all():
            groups, n, rest = groups[some], n[some], [part[some] for part in rest]
        total = groups.sum(n)
        means, products = rest[: self.means], rest[self.means :]
        merged = [merged_mean(groups, n, mean, total) for mean in means]
        with np.errstate(invalid="ignore", over="ignore"):
            distances = [mean - of_all[groups.of] for mean, of_all in zip(means, merged, strict=True)]
            sums = [groups.sum(product) for product in self.moved(n, distances, products)]
        return [column_of(part) for part in (total, *merged, *sums)]

    def moved(self, n: Doubles, distances: Sequence[Doubles], products: Sequence[Doubles]) -> Sequence[Doubles]:
        """The sums of products of parts, about means that are these distances away."""
        raise NotImplementedError


class _Shape(_Moments):
    __slots__ = ()

    column: str
    means = 1

    def moved(self, n: Doubles, distances: Sequence[Doubles], products: Sequence[Doubles]) -> Sequence[Doubles]:
        (d,), m2, m3, *m4 = distances, *products
        return [
            m2 + n * d**2,
            m3 + 3 * d * m2 + n * d**3,
            *(fourth + 4 * d * m3 + 6 * d**2 * m2 + n * d**4 for fourth in m4),
        ]


@attrs.frozen
class Skewness(_Shape):
    """The skewness of a column, of the values as a population, nulls ignored (Spark: ``skewness``).

    Args:
        column: a column of numbers.

    Returns:
        double; null for no value, and where all values are equal.

    Raises:
        OptionError: the column is not a name.
        ColumnError: it is not numeric.
    """

    column: str = column_field()

    mergers = (("sum", 0), *((None, 0.0),) * 3)

    def extract_columns(self, state: Sequence[pa.Array], types: Sequence[pa.DataType]) -> pa.Array:
        n, _, m2, m3 = map(numbers, state)
        return _quotient(np.sqrt(n) * m3, m2 * np.sqrt(m2))


@attrs.frozen
class Kurtosis(_Shape):
    """The excess kurtosis of a column, of the values as a population, nulls ignored (Spark: ``kurtosis``).

    Args:
        column: a column of numbers.

    Returns:
        double, 0 for a normal distribution; null for no value, and where all values are equal.

    Raises:
        OptionError: the column is not a name.
        ColumnError: it is not numeric.
    """

    column: str = column_field()

    mergers = (("sum", 0), *((None, 0.0),) * 4)

    def extract_columns(self, state: Sequence[pa.Array], types: Sequence[pa.DataType]) -> pa.Array:
        n, _, m2, _, m4 = map(numbers, state)
        return _quotient(n * m4 - 3 * m2**2, m2**2)


class _OfPairs(_Moments):
    """Sums of products: of x and y, of x, of y."""

    __slots__ = ()

    x: str
    y: str
    means = 2
    mergers = (("sum", 0), *((None, 0.0),) * 5)

    @property
    def inputs(self) -> tuple[str, ...]:
        return self.x, self.y

    def moved(self, n: Doubles, distances: Sequence[Doubles], products: Sequence[Doubles]) -> Sequence[Doubles]:
        (dx, dy), (xy, xx, yy) = distances, products
        return [xy + n * dx * dy, xx + n * dx**2, yy + n * dy**2]


@attrs.frozen
class Covariance(_OfPairs):
    """The covariance of two columns, over the rows that have both (Spark: ``covar_samp``, ``covar_pop``).

    Args:
        x: a column of numbers.
        y: another.
        population: divide by the number of rows, not by one less; default False.

    Returns:
        double; null for no row, and for a single one unless ``population``.

    Raises:
        OptionError: a column is not a name, or population is not a bool.
        ColumnError: a column is not numeric.
    """

    x: str = column_field()
    y: str = column_field()
    population: bool = flag_field()

    def extract_columns(self, state: Sequence[pa.Array], types: Sequence[pa.DataType]) -> pa.Array:
        n, _, _, xy, _, _ = map(numbers, state)
        return _quotient(xy, n if self.population else n - 1)


@attrs.frozen
class Correlation(_OfPairs):
    """Pearson's correlation of two columns, over the rows that have both (Spark: ``corr``).

    Args:
        x: a column of numbers.
        y: another.

    Returns:
        double, from -1 to 1; null for fewer than two rows, and where all values of a column are equal.

    Raises:
        OptionError: a column is not a name.
        ColumnError: a column is not numeric.
    """

    x: str = column_field()
    y: str = column_field()

    def extract_columns(self, state: Sequence[pa.Array], types: Sequence[pa.DataType]) -> pa.Array:
        _, _, _, xy, xx, yy = map(numbers, state)
        return _quotient(xy, np.sqrt(xx) * np.sqrt(yy))


_REGRESSION = ("slope", "intercept", "r2", "avgx", "avgy", "sxx", "syy", "sxy")


@attrs.frozen
class LinearRegression(_OfPairs):
    """The least-squares line of y by x, over the rows that have both (Spark: ``regr_slope`` and the others that begin so).

    Args:
        y: the dependent column, a number; first, as in SQL.
        x: the independent column, a number.

    Returns:
        struct<count bigint, slope, intercept, r2, avgx, avgy, sxx, syy, sxy double>: the number of rows, the line, its coefficient of
        determination, the means, and the sums of squares and of products of the distances from them. All but the count are null for
        no row; slope, intercept and r2 also where all x are equal. r2 is 1 where all y are equal.

    Raises:
        OptionError: a column is not a name.
        ColumnError: a column is not numeric.
    """

    y: str = column_field()
    x: str = column_field()

    def value_type(self, types: Sequence[pa.DataType]) -> pa.DataType:
        return pa.struct([("count", pa.int64()), *((name, pa.float64()) for name in _REGRESSION)])

    def extract_columns(self, state: Sequence[pa.Array], types: Sequence[pa.DataType]) -> pa.Array:
        n, avgx, avgy, sxy, sxx, syy = map(numbers, state)
        some, varied = n > 0, sxx != 0
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            slope = np.divide(sxy, sxx, out=np.zeros(len(n)), where=varied)
            r2 = np.divide(slope * sxy, syy, out=np.ones(len(n)), where=syy != 0)
            line = [slope, avgy - slope * avgx, r2]
        doubles = [column_of(part, pa.float64(), varied) for part in line]
        doubles += [column_of(part, pa.float64(), some) for part in (avgx, avgy, sxx, syy, sxy)]
        return struct_column([column_of(n), *doubles], ["count", *_REGRESSION])


def _quotient(a: Doubles, b: Doubles) -> pa.Array:
    """A column of quotients, null where the divisor is not above 0 (NaN is)."""
    present: Flags = ~(b <= 0)
    with np.errstate(invalid="ignore", over="ignore"):
        return column_of(np.divide(a, b, out=np.zeros(len(a)), where=present), pa.float64(), present)
