"""Names of nested fields, and the columns that they stand for: ``a.b`` is the field ``b`` of the struct ``a``.

A name is a column's, if there is one of exactly this name; else a path through structs, its parts separated by dots. A part with a dot of
its own is written in backticks, as in Spark: ```a.b`.c``. A part of a source's name may be in another
case, if only one is alike.

A stage sees a field that it names as a column of that name. ``with_named`` adds it to the stage's columns, with the path as the metadata of
the Arrow field; ``with_fields`` to the rows, before they are packed. The field of a null struct is null.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

_PATH = b"beamish.path"
_PART = re.compile(r"`((?:[^`]|``)+)`|([^.`]+)")


def parts_of(name: Any) -> tuple[str, ...] | None:
    """The parts of a path; None: the name is not one."""
    if not isinstance(name, str) or "." not in name:
        return None
    parts, at = list[str](), 0
    while found := _PART.match(name, at):
        quoted, plain = found.groups()
        parts.append(plain if quoted is None else quoted.replace("``", "`"))
        at = found.end()
        if at == len(name):
            return tuple(parts) if len(parts) > 1 else None
        if name[at] != ".":
            return None
        at += 1
    return None


def spelled(names: Iterable[Any], part: str, *, any_case: bool = True) -> str | None:
    """The name that a part of a path means; None: none, or several in other cases."""
    known = [name for name in names if isinstance(name, str)]
    if part in known or not any_case:
        return part if part in known else None
    alike = [name for name in known if name.lower() == part.lower()]
    return alike[0] if len(alike) == 1 else None


def resolved(schema: pa.Schema, name: Any, *, any_case: bool = True) -> pa.Field | None:
    """The field that a path means, as a column of this name; None: no such path, or a column has this name."""
    parts = parts_of(name)
    if parts is None or name in schema.names:
        return None
    root = spelled(schema.names, parts[0], any_case=any_case)
    if root is None or schema.names.count(root) > 1:
        return None
    path, type_ = [root], schema.field(root).type
    for part in parts[1:]:
        if pa.types.is_null(type_):  # no row has the struct
            path.append(part)
            continue
        names = [field.name for field in type_] if pa.types.is_struct(type_) else []
        found = spelled(names, part, any_case=any_case)
        if found is None:
            return None
        path.append(found)
        type_ = type_.field(found).type
    return pa.field(name, type_, metadata={_PATH: json.dumps(path)})


def value_of(row: Mapping[str, Any], name: Any) -> Any:
    """A column of a Python row, or the nested field that a path means; None: missing."""
    parts = parts_of(name)
    if parts is None or name in row:
        return row.get(name)
    value: Any = row
    for part in parts:
        found = spelled(value, part) if isinstance(value, Mapping) else None
        value = None if found is None else value[found]
    return value


def path_of(field: pa.Field) -> Sequence[str] | None:
    """The path of a column that stands for a nested field; None: it is a column of the rows."""
    path: list[str] | None = json.loads(field.metadata[_PATH]) if field.metadata and _PATH in field.metadata else None
    return path


def as_columns(schema: pa.Schema) -> pa.Schema:
    """A schema whose nested fields are columns like others: those of a stage's output."""
    return pa.schema([field if path_of(field) is None else field.remove_metadata() for field in schema])


def with_named(schema: pa.Schema, known: pa.Schema, names: Iterable[Any], *, any_case: bool) -> pa.Schema:
    """A schema with the nested fields among these names, found in the ``known`` columns."""
    for name in dict.fromkeys(name for name in names if isinstance(name, str)):
        field = resolved(known, name, any_case=any_case)
        if field is not None and name not in schema.names:
            schema = schema.append(field)
    return schema


def with_fields(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows with the nested fields that a schema has as columns, where they are missing."""
    for field in schema:
        path = path_of(field)
        if path is not None and field.name not in rows.schema.names:
            root, *fields = path
            values = rows[root].combine_chunks()
            for name in fields:
                values = _child(values, name)
            rows = rows.append_column(field, values if values.type == field.type else values.cast(field.type))
    return rows


def _child(values: pa.Array, name: str) -> pa.Array:
    """A field of structs; null where the struct is."""
    if pa.types.is_null(values.type):
        return values
    return values.flatten()[values.type.get_field_index(name)]


def missing_words(schema: pa.Schema, name: Any) -> str:
    """Where a path ends short of a field, for a message; empty if there is not even its first column."""
    parts = parts_of(name)
    root = None if parts is None else spelled(schema.names, parts[0])
    if parts is None or root is None:
        return ""
    here, type_ = root, schema.field(root).type
    for part in parts[1:]:
        if not pa.types.is_struct(type_):
            return f"; {here!r} is {type_}, which has no fields"
        found = spelled([field.name for field in type_], part)
        if found is None:
            return f"; the fields of {here!r} are {[field.name for field in type_]}"
        here, type_ = f"{here}.{found}", type_.field(found).type
    return ""
