"""ApproxCountDistinct: HyperLogLog.

A value's 64-bit hash selects one of 2**p registers by its upper p bits; its rank is the position of the first 1 in the other q =
64 - p bits. A register keeps the greatest rank, so merging takes maxima. The state lists only non-empty registers, as ``register
<< 8 | rank``. The estimate is Ertl's improved one ("New cardinality estimation algorithms for HyperLogLog sketches", 2017,
algorithm 6), which needs no bias tables and no special case for small counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import attrs
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beamish.accumulations.base.columnar import ListColumnar, check_orderable, column_field
from beamish.errors import OptionError
from beamish.kernels.buffers import Doubles, Flags, column_of, list_lengths, numbers, plain, valid
from beamish.kernels.codes import hash_values
from beamish.kernels.groups import Groups
from beamish.kernels.order import Keys

_FINEST, _COARSEST = 0.00217, 0.39  # 2**18 and 2**4 registers


@attrs.frozen
class ApproxCountDistinct(ListColumnar):
    """Approximate number of distinct values of a column, nulls ignored (Spark: ``approx_count_distinct``).

    The state takes at most 4 bytes for each of (1.106 / rsd)**2 registers, rounded up to a power of two. The result does not
    depend on the order of rows; it differs from that of Spark's sketch.

    Args:
        column: of any type but maps. -0.0 is 0.0, all NaN are one value.
        rsd: the relative standard deviation, 0.00217 to 0.39; default 0.05 as Spark's: two of three times the
            number is within 5 percent.

    Returns:
        bigint; 0 if there is no value.

    Raises:
        OptionError: the column is not a name, or rsd is out of range.
        ColumnError: the column holds maps.
    """

    column: str = column_field()
    rsd: float = attrs.field(default=0.05)

    distinct = 1

    @rsd.validator
    def _check(self, _: object, value: object) -> None:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not _FINEST <= value <= _COARSEST:
            raise OptionError(
                f"ApproxCountDistinct(rsd={value!r}): must be from {_FINEST} to {_COARSEST}; for an exact count use "
                "CountDistinct"
            )

    @property
    def precision(self) -> int:
        """Base-2 logarithm of the number of registers."""
        return math.ceil(2 * math.log2(1.106 / self.rsd))

    def check_types(self, name: str, types: Sequence[pa.DataType]) -> None:
        check_orderable(name, self, types)

    def item_type(self, types: Sequence[pa.DataType]) -> pa.DataType:
        return pa.uint32()

    def value_type(self, types: Sequence[pa.DataType]) -> pa.DataType:
        return pa.int64()

    def items(self, columns: Sequence[pa.Array], event_time_us: NDArray[np.int64]) -> tuple[pa.Array, Flags | None]:
        column = plain(columns[0])
        hashes = hash_values(column)
        p = np.uint64(self.precision)
        rest = (hashes << p) | np.uint64(1 << (self.precision - 1))  # the added 1 bounds the rank by q + 1
        packed = (hashes >> (np.uint64(64) - p)) << np.uint64(8) | (_leading_zeros(rest) + np.uint64(1))
        return column_of(packed, pa.uint32()), valid(column)

    def keys_of(self, items: pa.Array) -> Keys:
        packed = numbers(items).astype(np.int64)
        return [packed >> 8, 255 - (packed & 255)]

    def extract_columns(self, state: Sequence[pa.Array], types: Sequence[pa.DataType]) -> pa.Array:
        sizes = list_lengths(state[0])
        m, q = float(2**self.precision), 64 - self.precision
        groups = Groups.each(len(sizes)).repeat(sizes)
        rank = numbers(state[0].flatten()).astype(np.int64) & 255
        full = groups[rank > q].sizes()
        weights = np.where(rank > q, 0.0, np.ldexp(1.0, -rank.astype(np.int32)))
        z = groups.sum(weights) + m * math.ldexp(1.0, -q) * _tau(1.0 - full / m) + m * _sigma(1.0 - sizes / m)
        estimate = np.divide(m * m / (2.0 * math.log(2.0)), z, out=np.zeros(groups.count), where=sizes > 0)
        return column_of(np.rint(estimate).astype(np.int64))


def _leading_zeros(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    zeros = np.zeros(len(values), np.uint64)
    for bits in (32, 16, 8, 4, 2, 1):
        clear = values < np.uint64(1 << (64 - bits))
        zeros += clear * np.uint64(bits)
        values = np.where(clear, values << np.uint64(bits), values)
    return zeros


def _sigma(x: Doubles) -> Doubles:
    # x + sum over k >= 1 of x**(2**k) * 2**(k - 1); infinite at 1, which a non-empty group does not reach.
    x = np.where(x < 1.0, x, 0.0)
    total, scale = x.copy(), 1.0
    while True:
        x = x * x
        before = total
        total = total + x * scale
        scale *= 2.0
        if np.array_equal(before, total):
            return total


def _tau(x: Doubles) -> Doubles:
    # (1 - x - sum over k >= 1 of (1 - x**(2**-k))**2 * 2**-k) / 3; 0 at 0 and at 1.
    x = np.where((x > 0.0) & (x < 1.0), x, 1.0)
    total, scale = 1.0 - x, 1.0
    while True:
        x = np.sqrt(x)
        before = total
        scale *= 0.5
        total = total - (1.0 - x) ** 2 * scale
        if np.array_equal(before, total):
            return total / 3.0
