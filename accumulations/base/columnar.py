"""Base classes of the built-in accumulations, which work on whole columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beamish.accumulations.base.accumulation import Accumulation
from beamish.kernels.arrays import Flags
from beamish.kernels.buffers import flags, plain, plain_type, valid
from beamish.kernels.fields import Field, Merger, combine_fields
from beamish.kernels.groups import Groups
from beamish.kernels.lists import gather_lists, lift_items, merge_lists
from beamish.kernels.order import Keys, sort_keys


class Columnar(Accumulation):
    """An accumulation on columns whose state columns are merged by sum, min or max."""

    __slots__ = ()

    python: ClassVar[bool] = False
    mergers: ClassVar[tuple[tuple[Merger | None, Any], ...]] = ()
    """How each state column is merged, and its value for no rows."""

    def is_invertible(self, types: Sequence[pa.DataType]) -> bool:
        """Whether its state is sums, so that subtracting a row exactly undoes adding it."""
        return False

    def state_types(self, types: Sequence[pa.DataType]) -> Sequence[pa.DataType]:
        """Types of the state columns; by default the type of its value."""
        return (self.value_type(types),)

    def fields(self, types: Sequence[pa.DataType]) -> tuple[Field, ...]:
        return self.fields_of(self.state_types(types))

    def fields_of(self, state_types: Sequence[pa.DataType]) -> tuple[Field, ...]:
        """The state columns, given their types."""
        column = ", ".join(self.inputs or ())
        return tuple(
            Field(type_, merger, initial, column)
            for type_, (merger, initial) in zip(state_types, self.mergers, strict=True)
        )

    def reduce(self, columns: Sequence[pa.Array], event_time_us: NDArray[np.int64], groups: Groups) -> list[pa.Array]:
        return self.combine(groups, self.lift(columns, event_time_us))

    def add_rows(
        self,
        state: Sequence[pa.Array],
        columns: Sequence[pa.Array],
        event_time_us: NDArray[np.int64],
        groups: Groups,
    ) -> list[pa.Array]:
        new = self.reduce(columns, event_time_us, groups)
        each = Groups.each(groups.count)
        both = [pa.concat_arrays([old, added]) for old, added in zip(state, new, strict=True)]
        return self.combine(each.followed_by(each), both)

    def combine(self, groups: Groups, state: Sequence[pa.Array]) -> list[pa.Array]:
        return combine_fields(self.fields_of([column.type for column in state]), groups, state)

    def extract_columns(self, state: Sequence[pa.Array], types: Sequence[pa.DataType]) -> pa.Array:
        return state[0]


class ListColumnar(Columnar):
    """An accumulation whose state is one list of items per group, ordered by their sort keys."""

    __slots__ = ()

    mergers = ((None, ()),)
    distinct: ClassVar[int] = 0
    """Items that agree in this many leading keys are duplicates, and one is kept; 0: all items are kept."""

    def item_type(self, types: Sequence[pa.DataType]) -> pa.DataType:
        """The item type; by default that of the column."""
        return plain_type(types[0])

    def state_types(self, types: Sequence[pa.DataType]) -> Sequence[pa.DataType]:
        return (pa.list_(self.item_type(types)),)

    def value_type(self, types: Sequence[pa.DataType]) -> pa.DataType:
        return pa.list_(self.item_type(types))

    def items(self, columns: Sequence[pa.Array], event_time_us: NDArray[np.int64]) -> tuple[pa.Array, Flags | None]:
        """The items of rows, and which rows have one (None: all); by default the non-null values."""
        values = plain(columns[0])
        return values, valid(values)

    def keys_of(self, items: pa.Array) -> Keys:
        """The sort keys of items."""
        return sort_keys(items)

    @property
    def keep(self) -> int | None:
        """Maximum number of items kept, the first in order; None: all."""
        return None

    def lift(self, columns: Sequence[pa.Array], event_time_us: NDArray[np.int64]) -> list[pa.Array]:
        return [lift_items(*self.items(columns, event_time_us))]

    def reduce(self, columns: Sequence[pa.Array], event_time_us: NDArray[np.int64], groups: Groups) -> list[pa.Array]:
        items, present = self.items(columns, event_time_us)
        if present is not None:
            items, groups = items.filter(flags(present)), groups[present]
        return [gather_lists(items, groups, self.keys_of, distinct=self.distinct, keep=self.keep)]

    def combine(self, groups: Groups, state: Sequence[pa.Array]) -> list[pa.Array]:
        return [merge_lists(state[0], groups, self.keys_of, distinct=self.distinct, keep=self.keep)]
