"""Totals of the state columns that are summed: exact, so that what leaves a span is subtracted without a trace.

A value is a few whole numbers, its *limbs*: value = sum(limb[i] * 2^(32 * i)) * 2^least. Limbs are added and subtracted one by one as 64-bit
integers, without carries, which are made when a total is read. So no order and no subtraction changes a total, and a total of doubles is
rounded once. A double far from 1 does not fit its limbs; it is counted, and spans that hold one are recombined from slices.

columns of a field's totals, int64:
    2 limbs of a bigint, 4 of a decimal, 5 of a double
    of a double: the number of values that do not fit
    where the total of no values is null: the number of values
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import attrs
import numpy as np
import pyarrow as pa

from beamish.kernels.buffers import Doubles, Flags, Ints, column_of, decimal_column, limbs, numbers, valid
from beamish.kernels.state_fields import Field, check_decimals, check_fits
from beamish.kinds.window.plan.binding import BoundAccumulation

_BITS, _MASK = 32, 0xFFFFFFFF
_DOUBLE_LIMBS, _LEAST, _GREATEST = 5, -96, 62
"""Doubles from 2^-43 to 2^62, and 0, fit."""


def has_totals(bound: BoundAccumulation) -> bool:
    """Whether the state of an accumulation is sums."""
    return all(field.merger == "sum" and _limbs_of(field.type) for field in bound.fields)


def _limbs_of(type_: pa.DataType) -> int:
    if pa.types.is_int64(type_):
        return 2
    if pa.types.is_decimal128(type_):
        return 4
    return _DOUBLE_LIMBS if pa.types.is_float64(type_) else 0


@attrs.frozen(eq=False)
class FieldTotals:
    """The totals of a state column.

    Attributes:
        field: the column.
    """

    field: Field

    @cached_property
    def limbs(self) -> int:
        """Number of limbs."""
        return _limbs_of(self.field.type)

    @property
    def counts_unfit(self) -> bool:
        """Whether values may not fit."""
        return bool(pa.types.is_float64(self.field.type))

    @property
    def counts_present(self) -> bool:
        """Whether the total of no values is null."""
        return self.field.initial is None

    @property
    def width(self) -> int:
        """Number of columns."""
        return self.limbs + self.counts_unfit + self.counts_present

    def lift(self, column: pa.Array) -> Ints:
        """Values as totals: int64[n, width]."""
        totals = np.zeros((len(column), self.width), np.int64)
        present = valid(column)
        if pa.types.is_float64(self.field.type):
            values = numbers(column) if present is None else np.where(present, numbers(column), 0.0)
            fits = _fit(values)
            totals[:, : self.limbs] = _of_doubles(np.where(fits, values, 0.0))
            totals[:, self.limbs] = ~fits
        elif pa.types.is_decimal128(self.field.type):
            high, low = limbs(column)
            parts = (low & _MASK, low >> _BITS, high & _MASK, high >> _BITS)
            for i, part in enumerate(parts):
                totals[:, i] = part.astype(np.int64)
        else:
            values = numbers(column)
            totals[:, 0], totals[:, 1] = values & _MASK, values >> _BITS
        if present is not None:
            totals[~present] = 0
        if self.counts_present:
            totals[:, -1] = 1 if present is None else present
        return totals

    def read(self, totals: Ints) -> pa.Array:
        """Totals as values.

        Raises:
            NumericOverflowError: one does not fit the column's type.
        """
        present = totals[:, -1] > 0 if self.counts_present else None
        carried = _carried(totals[:, : self.limbs])
        if pa.types.is_float64(self.field.type):
            return column_of(_to_doubles(carried), self.field.type, present)
        top = carried[:, -1]
        check_fits(self.field, top != top.astype(np.int32))
        if pa.types.is_decimal128(self.field.type):
            low = (carried[:, 0] | carried[:, 1] << _BITS).view(np.uint64)
            high = carried[:, 2] | top << _BITS
            check_decimals(self.field, high, low)
            return decimal_column(high, low, self.field.type, present)
        return column_of(carried[:, 0] | top << _BITS, self.field.type, present)

    def carried(self, totals: Ints) -> Ints:
        """The same totals, so that as many can be added as to none."""
        return np.concatenate([_carried(totals[:, : self.limbs]), totals[:, self.limbs :]], axis=1)

    def unfit(self, totals: Ints) -> Flags:
        """Whether a total lacks values that do not fit: bool, one each."""
        return totals[:, self.limbs] > 0 if self.counts_unfit else np.zeros(len(totals), bool)


@attrs.frozen(eq=False)
class Totals:
    """The totals of accumulations, side by side.

    Attributes:
        accumulations: those whose state is sums.
    """

    accumulations: Sequence[BoundAccumulation]

    @cached_property
    def fields(self) -> dict[str, list[tuple[FieldTotals, slice]]]:
        """By accumulation its fields, each with its columns."""
        found: dict[str, list[tuple[FieldTotals, slice]]] = {}
        first = 0
        for bound in self.accumulations:
            own = found[bound.name] = []
            for field in map(FieldTotals, bound.fields):
                own.append((field, slice(first, first + field.width)))
                first += field.width
        return found

    @cached_property
    def width(self) -> int:
        """Number of columns."""
        return sum(field.width for own in self.fields.values() for field, _ in own)

    def lift(self, state: pa.Table) -> Ints:
        """Accumulators as totals: int64[n, width]."""
        totals = np.zeros((state.num_rows, self.width), np.int64)
        for bound in self.accumulations:
            columns = bound.state_of(state)
            for (field, at), column in zip(self.fields[bound.name], columns, strict=True):
                totals[:, at] = field.lift(column)
        return totals

    def read(self, name: str, totals: Ints) -> list[pa.Array]:
        """The accumulators of one of them."""
        return [field.read(totals[:, at]) for field, at in self.fields[name]]

    def carried(self, totals: Ints) -> Ints:
        """The same totals, so that as many can be added as to none."""
        found = totals.copy()
        for own in self.fields.values():
            for field, at in own:
                found[:, at] = field.carried(totals[:, at])
        return found

    def suffice(self, name: str) -> bool:
        """Whether an accumulation has totals, and all values fit them."""
        return name in self.fields and not any(field.counts_unfit for field, _ in self.fields[name])

    def unfit(self, name: str, totals: Ints) -> Flags:
        """Whether its accumulators lack values that do not fit."""
        unfit: Flags = np.logical_or.reduce([field.unfit(totals[:, at]) for field, at in self.fields[name]])
        return unfit


def _fit(values: Doubles) -> Flags:
    """Which doubles fit their limbs."""
    size = np.abs(values)
    fits: Flags = (size == 0) | ((size >= 2.0 ** (_LEAST + 53)) & (size < 2.0**_GREATEST))  # not NaN
    return fits


def _of_doubles(values: Doubles) -> Ints:
    """The limbs of doubles that fit: int64[n, 5]."""
    mantissa, exponent = np.frexp(values)
    whole = np.abs(mantissa * 2.0**53).astype(np.int64)
    shift = np.where(whole > 0, exponent.astype(np.int64) - 53 - _LEAST, 0)
    place, by = shift // _BITS, shift % _BITS
    low, high = (whole & _MASK) << by, (whole >> _BITS) << by
    parts = low & _MASK, (low >> _BITS) + (high & _MASK), high >> _BITS
    found, rows = np.zeros((len(values), _DOUBLE_LIMBS + 2), np.int64), np.arange(len(values))
    for i, part in enumerate(parts):
        found[rows, place + i] = part
    return found[:, :_DOUBLE_LIMBS] * np.where(values < 0, -1, 1)[:, None]


def _carried(totals: Ints) -> Ints:
    """Limbs from 0 to 2^32, but for the last, which has the sign."""
    found = totals.copy()
    for i in range(found.shape[1] - 1):
        found[:, i + 1] += found[:, i] >> _BITS
        found[:, i] &= _MASK
    return found


def _to_doubles(carried: Ints) -> Doubles:
    """The nearest doubles, ties to even."""
    negative = carried[:, -1] < 0
    size = _carried(np.where(negative[:, None], -carried, carried))
    # Two more limbs below, so that there are always three from the first on; and the carry of the last.
    size = np.concatenate(
        [np.zeros((len(size), 2), np.int64), size[:, :-1], size[:, -1:] & _MASK, size[:, -1:] >> _BITS], axis=1
    )
    first = size.shape[1] - 1 - np.argmax(size[:, ::-1] > 0, axis=1)
    first = np.maximum(first, 2)
    rows = np.arange(len(size))
    top, middle, low = (size[rows, first - i].astype(np.uint64) for i in range(3))
    _, digits = np.frexp(top.astype(np.float64))
    spare = (_BITS - digits).astype(np.uint64)
    word = (top << np.uint64(_BITS) | middle) << spare | low >> (np.uint64(_BITS) - spare)
    rest = (low << spare) & np.uint64(_MASK) > 0
    below = np.cumsum(size > 0, axis=1)
    rest |= np.where(first > 2, below[rows, first - 3], 0) > 0
    nearest = (word | rest).astype(np.float64)  # one of 64 bits is enough for all that is below
    exponent = _BITS * (first - 3) - spare.astype(np.int64) + _LEAST
    values: Doubles = np.ldexp(nearest, exponent)
    return np.where(negative, -values, values)
