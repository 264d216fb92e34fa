"""Fields of structs, items of lists and maps."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from beamish.statement.functions.types import RefusedError, common, known


def field(values: pa.Array, name: str) -> pa.Array:
    """A field of structs; upper and lower case are the same where one field only has the name (RefusedError: not found)."""
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
    return pa.array([list(row) for row in _rows(items)], pa.list_(items[0].type))


def _slice(columns: Sequence[pa.Array], n: Any) -> pa.Array:
    (lists,) = columns
    parts = [None if row is None else row[:n] if n > 0 else row[n:] for row in lists.to_pylist()]
    return pa.array(parts, lists.type)


def _values(columns: Sequence[pa.Array], _: Any) -> pa.Array:
    """The field ``value`` of each struct in lists."""
    (lists,) = columns
    if not pa.types.is_list(lists.type) or not pa.types.is_struct(lists.type.value_type):  # of nulls only
        return lists
    type_ = pa.list_(lists.type.value_type.field("value").type)
    return pa.array([None if row is None else [one["value"] for one in row] for row in lists.to_pylist()], type_)


def _reversed(columns: Sequence[pa.Array], _: Any) -> pa.Array:
    """Lists from their end: of a set, the greatest first."""
    (lists,) = columns
    return pa.array([None if row is None else row[::-1] for row in lists.to_pylist()], lists.type)


def _map(columns: Sequence[pa.Array], _: Any) -> pa.Array:
    if not columns or len(columns) % 2:
        raise RefusedError("MAP takes keys and values: MAP('a', 1, 'b', 2)")
    keys, values = common(columns[::2]), common(columns[1::2])
    pairs = zip(_rows(keys), _rows(values), strict=True)
    return pa.array([_entries(of, to) for of, to in pairs], pa.map_(keys[0].type, values[0].type))


def _map_of_entries(columns: Sequence[pa.Array], _: Any) -> pa.Array:
    """Lists of structs of two fields as maps; the first fields are distinct."""
    (lists,) = columns
    rows = [None if row is None else [tuple(entry.values()) for entry in row] for row in lists.to_pylist()]
    return pa.array(rows, pa.map_(*(one.type for one in lists.type.value_type)))


def _rows(columns: Sequence[pa.Array]) -> Any:
    return zip(*(column.to_pylist() for column in columns), strict=True)


def _entries(keys: Sequence[Any], values: Sequence[Any]) -> list[tuple[Any, Any]]:
    if None in keys:
        raise RefusedError("a key is null (Spark: NULL_MAP_KEY)")
    if len(set(keys)) < len(keys):
        raise RefusedError(f"a key is there twice in {list(keys)} (Spark: DUPLICATED_MAP_KEY)")
    return list(zip(keys, values, strict=True))


def _sum_list(columns: Sequence[pa.Array], _: Any) -> pa.Array:
    (lists,) = columns
    type_ = lists.type.value_type if pa.types.is_list(lists.type) else None
    if type_ is None or not (pa.types.is_integer(type_) or pa.types.is_float64(type_) or pa.types.is_null(type_)):
        raise RefusedError(f"{lists.type}: must be an array of whole numbers or of DOUBLE")
    sums = [
        None if row is None or all(item is None for item in row) else sum(item for item in row if item is not None)
        for row in lists.to_pylist()
    ]
    return pa.array(sums, pa.int64() if pa.types.is_integer(type_) else type_)


def _attr(columns: Sequence[pa.Array], _: Any) -> pa.Array:
    """The least value where it is the greatest, of as many values as rows."""
    rows = [least if some == every and _same(least, most) else None for some, every, least, most in _rows(columns)]
    return pa.array(rows, columns[2].type)


def _same(a: Any, b: Any) -> bool:
    return a == b or (isinstance(a, float) and isinstance(b, float) and math.isnan(a) and math.isnan(b))


def _struct(columns: Sequence[pa.Array], names: Any) -> pa.Array:
    return pc.make_struct(*columns, field_names=names)


FUNCTIONS: Mapping[str, Callable[[Sequence[pa.Array], Any], pa.Array]] = {
    "ARRAY": _array,
    "ATTR": _attr,
    "FIELD": lambda columns, name: field(columns[0], name),
    "ITEM": _item,
    "MAP": _map,
    "MAP_OF_ENTRIES": _map_of_entries,
    "GET": lambda columns, _: _item(columns, lenient=True),
    "REVERSE": _reversed,
    "SLICE": _slice,
    "STRUCT": _struct,
    "SUM_LIST": _sum_list,
    "VALUES": _values,
}
