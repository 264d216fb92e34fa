"""Fields of structs, items of lists and maps."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from beamish.statement.functions.types import RefusedError, common, known


def field(values: pa.Array, name: str) -> pa.Array:
    """A field of structs; upper and lower case are the same where one field only has the name (RefusedError: there is none)."""
    if pa.types.is_null(values.type):
        return values
    names = [one.name for one in values.type] if pa.types.is_struct(values.type) else []
    found = [one for one in names if one == name] or [one for one in names if one.lower() == name.lower()]
    if len(found) != 1:
        raise RefusedError(f"there is no field {name!r}; the fields are {names}")
    return known(pc.struct_field(values, found[0]))


def _item(columns: Sequence[pa.Array], lenient: Any) -> pa.Array:
    values, keys = columns
    type_ = values.type
    if pa.types.is_null(type_):
        return values
    if pa.types.is_map(type_):
        found = [None if row is None else dict(row).get(key) for row, key in _pairs(values, keys)]
        return known(pa.array(found, type_.item_type))
    if pa.types.is_struct(type_) and pa.types.is_string(keys.type):  # a dict of a script
        names = set(keys.to_pylist()) & {one.name for one in type_}
        found = [None if row is None else row.get(key) for row, key in _pairs(values, keys)]
        return known(pc.struct_field(values, names.pop()) if len(names) == 1 else pa.array(found))
    if pa.types.is_list(type_) and pa.types.is_integer(keys.type):
        found = [None if row is None or at is None else _at(row, at, lenient) for row, at in _pairs(values, keys)]
        return known(pa.array(found, type_.value_type))
    raise RefusedError(f"[{keys.type}] of {type_}: in a script an item of a list, a struct or a map")


def _pairs(values: pa.Array, keys: pa.Array) -> Any:
    return zip(values.to_pylist(), keys.to_pylist(), strict=True)


def _at(row: list[Any], at: int, lenient: Any) -> Any:
    if not 0 <= at < len(row):
        if lenient:
            return None
        raise RefusedError(f"there is no item {at}, counted from 0, of {len(row)} (Spark: INVALID_ARRAY_INDEX)")
    return row[at]


def _array(columns: Sequence[pa.Array], _: Any) -> pa.Array:
    if not columns:
        raise RefusedError("an empty ARRAY: in a script with an item or more")
    items = common(columns)
    rows = zip(*(column.to_pylist() for column in items), strict=True)
    return pa.array([list(row) for row in rows], pa.list_(items[0].type))


def _slice(columns: Sequence[pa.Array], n: Any) -> pa.Array:
    (lists,) = columns
    parts = [None if row is None else row[:n] if n > 0 else row[n:] for row in lists.to_pylist()]
    return pa.array(parts, lists.type)


def _values(columns: Sequence[pa.Array], _: Any) -> pa.Array:
    """The field ``value`` of each struct in lists."""
    (lists,) = columns
    type_ = pa.list_(lists.type.value_type.field("value").type)
    return pa.array([None if row is None else [one["value"] for one in row] for row in lists.to_pylist()], type_)


def _sorted(columns: Sequence[pa.Array], _: Any) -> pa.Array:
    """Lists without nulls, the greatest first."""
    (lists,) = columns
    return pa.array(
        [None if row is None else sorted(row, key=_order, reverse=True) for row in lists.to_pylist()], lists.type
    )


def _order(value: Any) -> Any:
    return (isinstance(value, float) and math.isnan(value), value)  # NaN is above all numbers


def _struct(columns: Sequence[pa.Array], names: Any) -> pa.Array:
    return pc.make_struct(*columns, field_names=names)


FUNCTIONS: Mapping[str, Callable[[Sequence[pa.Array], Any], pa.Array]] = {
    "ARRAY": _array,
    "FIELD": lambda columns, name: field(columns[0], name),
    "ITEM": _item,
    "GET": lambda columns, _: _item(columns, lenient=True),
    "SLICE": _slice,
    "SORT_ARRAY": _sorted,
    "STRUCT": _struct,
    "VALUES": _values,
}
