"""Accumulations over retracting input, as downstream stages use them.

Each row carries a sign, 1 for a row and -1 for the removal of an equal one. Where subtraction is exact (counts, sums and means of
whole numbers and decimals, a user's ``retract``) the accumulator subtracts. Otherwise it is the multiset of rows, which is
accumulated when a value is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from beamish.accumulations.base.accumulation import Accumulation, KeptRows
from beamish.accumulations.base.columnar import Columnar
from beamish.accumulations.base.python import add_rows
from beamish.kernels.buffers import Ints, column_of, list_column, numbers, pick, plain, struct_column, valid
from beamish.kernels.groups import Groups, items_of
from beamish.kernels.order import run_starts, sort_keys, sort_order
from beamish.kernels.state_fields import Field, combine_fields

_HELD = Field(pa.int64(), "sum", 0)
"""Number of values in a sum, less the removed ones."""


def retractable(accumulation: Accumulation, types: Sequence[pa.DataType]) -> Accumulation:
    """Bind an accumulation to signed rows: its first input column is the sign, int8."""
    if isinstance(accumulation, Columnar) and accumulation.is_invertible(types):
        return Invertible(accumulation)
    if accumulation.python and accumulation.retract is not None:
        return Retracting(accumulation)
    return Multiset(accumulation)


@attrs.frozen
class _Retractable(Columnar):
    inner: Accumulation

    @property
    def inputs(self) -> tuple[str, ...] | None:
        return self.inner.inputs

    def check(self, name: str, *, merging: bool) -> None:
        self.inner.check(name, merging=merging)

    def value_type(self, types: Sequence[pa.DataType]) -> pa.DataType:
        return self.inner.value_type(types)


@attrs.frozen
class Invertible(_Retractable):
    """Sums that support subtraction. The last state column counts the values."""

    inner: Columnar

    def fields(self, types: Sequence[pa.DataType]) -> tuple[Field, ...]:
        return (*self.inner.fields(types), _HELD)

    def reduce(self, columns: Sequence[pa.Array], event_time_us: Ints, groups: Groups) -> list[pa.Array]:
        sign, *values = columns
        signs = numbers(sign).astype(np.int64)
        for column in values:
            present = valid(column)
            signs = signs if present is None else signs * present
        lifted = [
            pc.if_else(pc.less(sign, 0), pc.negate(column), column) for column in self.inner.lift(values, event_time_us)
        ]
        return self.combine(groups, [*lifted, column_of(signs)])

    def combine(self, groups: Groups, state: Sequence[pa.Array]) -> list[pa.Array]:
        return combine_fields([*self._inner_fields(state[:-1]), _HELD], groups, state)

    def extract_columns(self, state: Sequence[pa.Array], types: Sequence[pa.DataType]) -> pa.Array:
        *sums, held = state
        none = pc.equal(held, 0)
        left = [
            pc.if_else(none, pa.scalar(field.initial, field.type), column)
            for column, field in zip(sums, self._inner_fields(sums), strict=True)
        ]
        return self.inner.extract_columns(left, types)

    def _inner_fields(self, sums: Sequence[pa.Array]) -> tuple[Field, ...]:
        return self.inner.fields_of([column.type for column in sums])


@attrs.frozen
class Retracting(_Retractable):
    """A custom accumulation with ``retract``, which is called for removals after the bundle's rows are added."""

    def fields(self, types: Sequence[pa.DataType]) -> tuple[Field, ...]:
        return self.inner.fields(types)

    def create(self) -> Any:
        return self.inner.create()

    def add(self, accumulator: Any, value: Any) -> Any:
        sign, row = value
        if sign > 0:
            return self.inner.add(accumulator, row)
        return self.inner.retract(accumulator, row)

    def dump(self, accumulator: Any) -> Any:
        return self.inner.dump(accumulator)

    def load(self, dumped: Any) -> Any:
        return self.inner.load(dumped)

    def reduce(self, columns: Sequence[pa.Array], event_time_us: Ints, groups: Groups) -> list[pa.Array]:
        return self.add_rows([pa.nulls(groups.count, pa.binary())], columns, event_time_us, groups)

    def add_rows(
        self, state: Sequence[pa.Array], columns: Sequence[pa.Array], event_time_us: Ints, groups: Groups
    ) -> list[pa.Array]:
        sign, *own = columns
        rows = [plain(column).to_pylist() for column in own]
        values = list(zip(sign.to_pylist(), rows[0] if len(rows) == 1 else zip(*rows, strict=True), strict=True))
        removed_last = (numbers(sign) < 0).astype(np.int64)
        return [add_rows(self, state[0], values, groups, [removed_last, event_time_us])]

    def combine(self, groups: Groups, state: Sequence[pa.Array]) -> list[pa.Array]:
        return self.inner.combine(groups, state)

    def extract_columns(self, state: Sequence[pa.Array], types: Sequence[pa.DataType]) -> pa.Array:
        return self.inner.extract_columns(state, types)


@attrs.frozen
class Multiset(_Retractable):
    """Rows stored as a list of (event time, values, count), accumulated when a value is read."""

    def kept(self, types: Sequence[pa.DataType]) -> Mapping[str, pa.DataType]:
        return self.inner.kept(types)

    def kept_rows(self, state: Sequence[pa.Array], types: Sequence[pa.DataType], name: str) -> KeptRows:
        return self.inner.kept_rows(self._as_inner(state), types, name)

    def fields(self, types: Sequence[pa.DataType]) -> tuple[Field, ...]:
        columns = [
            ("time", pa.int64()),
            *((f"value{i}", type_) for i, type_ in enumerate(types)),
            ("times", pa.int64()),
        ]
        return (Field(pa.list_(pa.struct(columns)), None, ()),)

    def reduce(self, columns: Sequence[pa.Array], event_time_us: Ints, groups: Groups) -> list[pa.Array]:
        sign, *values = columns
        names = ["time", *(f"value{i}" for i in range(len(values))), "times"]
        items = struct_column([column_of(event_time_us), *values, sign.cast(pa.int64())], names)
        return [_count_items(items, groups)]

    def combine(self, groups: Groups, state: Sequence[pa.Array]) -> list[pa.Array]:
        return [_count_items(*items_of(state[0], groups))]

    def extract_columns(self, state: Sequence[pa.Array], types: Sequence[pa.DataType]) -> pa.Array:
        return self.inner.extract_columns(self._as_inner(state), types)

    def check_state(self, state: Sequence[pa.Array], types: Sequence[pa.DataType]) -> None:
        self.inner.check_state(self._as_inner(state), types)

    def _as_inner(self, state: Sequence[pa.Array]) -> list[pa.Array]:
        """The state of the wrapped accumulation for these rows."""
        items, groups = items_of(state[0], Groups.each(len(state[0])))
        *columns, times = items.flatten()
        rows = np.repeat(np.arange(len(items), dtype=np.int64), np.maximum(numbers(times), 0))
        time, *values = (pick(column, rows) for column in columns)
        return self.inner.reduce(values, numbers(time), groups[rows])


@attrs.frozen
class _Rows(Columnar):
    columns: tuple[str, ...]

    @property
    def inputs(self) -> tuple[str, ...]:
        return self.columns


class Keeper(Multiset):
    """The rows themselves, without a value; needed to recognise the removal of a dropped row."""

    @classmethod
    def of(cls, columns: Sequence[str]) -> Keeper:
        """Rows as structs of these columns."""
        return cls(_Rows(tuple(columns)))

    def check_state(self, state: Sequence[pa.Array], types: Sequence[pa.DataType]) -> None:
        pass


def _count_items(items: pa.Array, groups: Groups) -> pa.Array:
    """Lists of distinct items, one per group, each with its total count; items with count 0 are left out."""
    *columns, times = items.flatten()
    keys = [groups.of, *(key for column in columns for key in sort_keys(plain(column)))]
    order = sort_order(keys)
    starts = np.flatnonzero(run_starts([key[order] for key in keys]))
    total = np.add.reduceat(numbers(times)[order], starts) if len(starts) else np.zeros(0, dtype=np.int64)
    kept = total != 0
    rows = order[starts[kept]]
    names = [field.name for field in items.type]
    distinct = struct_column([*(pick(column, rows) for column in columns), column_of(total[kept])], names)
    return list_column(distinct, groups[rows].sizes())
