"""Built-in accumulations: their methods work on whole columns; their arguments, and the checks on the columns they name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import attrs
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beamish.accumulations.base.accumulation import Accumulation
from beamish.errors import ColumnError, OptionError
from beamish.kernels.buffers import Flags, flags, plain, plain_type, valid
from beamish.kernels.groups import Groups, KeysOf, gather_lists, lift_items, merge_lists
from beamish.kernels.order import Keys, is_orderable, sort_keys
from beamish.kernels.state_fields import Field, Merger, combine_fields


def column_field(*, optional: bool = False) -> Any:
    """An attrs field that holds a column name, or None if ``optional``."""

    def check(owner: Any, attribute: attrs.Attribute[Any], value: object) -> None:
        if not (optional and value is None):
            check_column(f"{type(owner).__name__}({attribute.name}={value!r})", value)

    return attrs.field(default=None, validator=check) if optional else attrs.field(validator=check)


def check_column(where: str, value: object) -> None:
    """Check that a value is a column name (OptionError: it is not a column name)."""
    if not isinstance(value, str) or not value:
        raise OptionError(
            f"{where}: must be the name of a column; for an expression add a column with df.withColumn first"
        )


def flag_field(*, kw_only: bool = False) -> Any:
    """An attrs field that holds a bool, False by default."""

    def check(owner: Any, attribute: attrs.Attribute[Any], value: object) -> None:
        if not isinstance(value, bool):
            raise OptionError(f"{type(owner).__name__}({attribute.name}={value!r}): must be True or False")

    return attrs.field(default=False, validator=check, kw_only=kw_only)


def count_field() -> Any:
    """An attrs field that holds a count, at least 1."""

    def check(owner: Any, attribute: attrs.Attribute[Any], value: object) -> None:
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise OptionError(
                f"{type(owner).__name__}({attribute.name}={value!r}): must be a whole number of at least 1; "
                "for all values use Collect"
            )

    return attrs.field(validator=check)


def function_field(*, optional: bool = False) -> Any:
    """An attrs field that holds a function, or None if ``optional``."""

    def check(owner: Any, attribute: attrs.Attribute[Any], value: object) -> None:
        if not callable(value) and not (optional and value is None):
            raise OptionError(
                f"{type(owner).__name__}({attribute.name}={value!r}): must be a function of two arguments"
            )

    if optional:
        return attrs.field(default=None, validator=check, repr=function_name)
    return attrs.field(validator=check, repr=function_name)


def function_name(function: Callable[..., Any] | None) -> str:
    """The qualified name of a function, importable from its module."""
    if function is None:
        return "None"
    name = getattr(function, "__qualname__", None) or repr(function)
    module = getattr(function, "__module__", None)
    return name if module in (None, "builtins", "__main__") else f"{module}.{name}"


def is_number(type_: pa.DataType) -> bool:
    """Whether it can be summed: signed integer, float, decimal (or a column of only nulls)."""
    kind = pa.types
    return bool(
        (kind.is_integer(type_) and not kind.is_uint64(type_))
        or kind.is_floating(type_)
        or kind.is_decimal128(type_)
        or kind.is_null(type_)
    )


def check_numbers(name: str, owner: Any, types: Sequence[pa.DataType]) -> None:
    """Check that the input columns of an accumulation are numeric (ColumnError: a column is not numeric)."""
    _check(name, owner, types, test=is_number, what="a number", fix="cast it to bigint, double or decimal first")


def check_lists_of_numbers(name: str, owner: Any, types: Sequence[pa.DataType]) -> None:
    """Check that the input columns of an accumulation are arrays of numbers (ColumnError: a column is not)."""
    _check(
        name, owner, types, test=_is_list_of_numbers, what="an array of numbers", fix="cast it to array<bigint> first"
    )


def _is_list_of_numbers(type_: pa.DataType) -> bool:
    return bool((pa.types.is_list(type_) and is_number(type_.value_type)) or pa.types.is_null(type_))


def check_integers(name: str, owner: Any, types: Sequence[pa.DataType]) -> None:
    """Check that the input columns of an accumulation are of integers (ColumnError: a column is not)."""
    _check(name, owner, types, test=_is_integer, what="an integer", fix="cast it to bigint first")


def _is_integer(type_: pa.DataType) -> bool:
    return bool(pa.types.is_signed_integer(type_) or pa.types.is_null(type_))


def check_booleans(name: str, owner: Any, types: Sequence[pa.DataType]) -> None:
    """Check that the input columns of an accumulation are of booleans (ColumnError: a column is not)."""
    _check(name, owner, types, test=_is_boolean, what="a boolean", fix="compare it first, as in amount > 100")


def _is_boolean(type_: pa.DataType) -> bool:
    return bool(pa.types.is_boolean(type_) or pa.types.is_null(type_))


def check_orderable(name: str, owner: Any, types: Sequence[pa.DataType]) -> None:
    """Check that the input columns of an accumulation are orderable (ColumnError: a column is not orderable)."""
    _check(
        name,
        owner,
        types,
        test=is_orderable,
        what="a type with an order",
        fix="turn a map into an array with map_entries first",
    )


def _check(
    name: str, owner: Any, types: Sequence[pa.DataType], *, test: Callable[[pa.DataType], bool], what: str, fix: str
) -> None:
    for column, type_ in zip(owner.inputs, types, strict=True):
        if not test(plain_type(type_)):
            raise ColumnError(f"accumulate({name}={owner!r}): column {column!r} is {type_}, and must be {what}; {fix}")


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

    @property
    def ties_of(self) -> KeysOf | None:
        """The first sort keys of items: those that agree in them with the last kept item are kept too; None: they are not."""
        return None

    def lift(self, columns: Sequence[pa.Array], event_time_us: NDArray[np.int64]) -> list[pa.Array]:
        return [lift_items(*self.items(columns, event_time_us))]

    def reduce(self, columns: Sequence[pa.Array], event_time_us: NDArray[np.int64], groups: Groups) -> list[pa.Array]:
        items, present = self.items(columns, event_time_us)
        if present is not None:
            items, groups = items.filter(flags(present)), groups[present]
        kept: Any = {"distinct": self.distinct, "keep": self.keep, "ties_of": self.ties_of}
        return [gather_lists(items, groups, self.keys_of, **kept)]

    def combine(self, groups: Groups, state: Sequence[pa.Array]) -> list[pa.Array]:
        kept: Any = {"distinct": self.distinct, "keep": self.keep, "ties_of": self.ties_of}
        return [merge_lists(state[0], groups, self.keys_of, **kept)]
