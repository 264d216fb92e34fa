"""Arguments of accumulations, and checks of the columns they name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs
import pyarrow as pa

from beamish.errors import ColumnError, OptionError
from beamish.kernels.buffers import plain_type
from beamish.kernels.order import is_orderable


def column_field(*, optional: bool = False) -> Any:
    """An attrs field that holds a column name, or None if ``optional``."""

    def check(owner: Any, attribute: attrs.Attribute[Any], value: object) -> None:
        if not (optional and value is None):
            check_column(f"{type(owner).__name__}({attribute.name}={value!r})", value)

    return attrs.field(default=None, validator=check) if optional else attrs.field(validator=check)


def check_column(where: str, value: object) -> None:
    """Check that a value is a column name.

    Raises:
        OptionError: it is not a column name.
    """
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
    """Check that the input columns of an accumulation are numeric.

    Raises:
        ColumnError: a column is not numeric.
    """
    _check(name, owner, types, test=is_number, what="a number", fix="cast it to bigint, double or decimal first")


def check_orderable(name: str, owner: Any, types: Sequence[pa.DataType]) -> None:
    """Check that the input columns of an accumulation are orderable.

    Raises:
        ColumnError: a column is not orderable.
    """
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
