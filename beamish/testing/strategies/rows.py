"""Rows of a schema: small values that repeat, each of the type that Spark passes to Python."""

from __future__ import annotations

import dataclasses
import re
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from beamish.errors import OptionError
from beamish.kernels.type_names import parsed_type

Rows = st.SearchStrategy[dict[str, Any]]

_COLUMN = re.compile(r"\s*(`[^`]+`|\w+)(?:\s*:\s*|\s+)(.+?)(\s+not\s+null)?\s*", re.IGNORECASE | re.DOTALL)
_COMMENT = re.compile(r"\s+comment\s+'[^']*'", re.IGNORECASE)
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_PYTHON: dict[Any, pa.DataType] = {
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
    bytes: pa.binary(),
    Decimal: pa.decimal128(10, 2),
    date: pa.date32(),
    datetime: pa.timestamp("us", "UTC"),
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def rows(schema: Any, *, nulls: bool = False, **columns: st.SearchStrategy[Any]) -> Rows:
    """Rows of a schema, as dicts.

    Values are small and repeat, so that keys meet; they shrink to 0, ``"a"``, the epoch. Floats are tenths, whose sums are not exact.

    Args:
        schema: Spark DDL (``"user string, amount double"``), a PySpark ``StructType``, a pyarrow schema, or a dataclass.
        nulls: whether nullable columns have nulls.
        columns: strategies of columns, in place of those of their types.

    Raises:
        OptionError: not a schema, an unsupported type, or ``columns`` has a name that the schema lacks.

    Example:
        >>> from beamish.testing import strategies as st
        >>> st.rows("user string, amount double").example()  # doctest: +SKIP
        {'user': 'c', 'amount': 1.3}
    """
    fields = list(_fields(schema))
    names = [field.name for field in fields]
    if unknown := columns.keys() - set(names):
        raise OptionError(
            f"rows({schema!r}, {min(unknown)}=...): the schema has no such column; it has {', '.join(names)}"
        )
    drawn = {field.name: _values(field, nulls=nulls) for field in fields if field.name not in columns} | columns
    return _dicts({name: drawn[name] for name in names})


def _dicts(columns: Mapping[str, st.SearchStrategy[Any]]) -> Rows:
    """Dicts in the order of the columns."""
    return st.tuples(*columns.values()).map(lambda values: dict(zip(columns, values, strict=True)))


def _fields(schema: Any) -> Iterator[pa.Field]:
    if isinstance(schema, str):
        yield from map(_column, _split(schema))
    elif isinstance(schema, pa.Schema):
        yield from schema
    elif hasattr(schema, "simpleString") and hasattr(schema, "fields"):
        for one in schema.fields:
            yield pa.field(one.name, parsed_type(f"rows({one.name})", one.dataType.simpleString()), one.nullable)
    elif dataclasses.is_dataclass(schema):
        kind = schema if isinstance(schema, type) else type(schema)
        for name, hint in typing.get_type_hints(kind).items():
            yield _hinted(name, hint)
    else:
        raise OptionError(
            f"rows({schema!r}): must be Spark DDL, such as 'user string, ts timestamp', a StructType, a pyarrow schema or a dataclass"
        )


def _split(ddl: str) -> list[str]:
    """The columns of a DDL text, without comments: split at the commas outside brackets."""
    depth, columns = 0, [""]
    for letter in _COMMENT.sub("", ddl):
        depth += (letter in "<(") - (letter in ">)")
        if letter == "," and not depth:
            columns.append("")
        else:
            columns[-1] += letter
    return columns


def _column(words: str) -> pa.Field:
    found = _COLUMN.fullmatch(words)
    if found is None:
        raise OptionError(f"rows({words!r}): a column is a name and a Spark type, such as 'user string'")
    name, type_, required = found.groups()
    return pa.field(name.strip("`"), parsed_type(f"rows({name})", type_), nullable=required is None)


def _hinted(name: str, hint: Any) -> pa.Field:
    of = typing.get_args(hint)
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        (inner,) = (one for one in of if one is not type(None))
        return _hinted(name, inner).with_nullable(nullable=True)
    if typing.get_origin(hint) is list:
        return pa.field(name, pa.list_(_hinted(name, of[0]).type), nullable=False)
    if hint not in _PYTHON:
        known = ", ".join(one.__name__ for one in _PYTHON)
        raise OptionError(
            f"rows({name}: {hint!r}): unsupported; use {known}, a list of these, or give {name}=a strategy"
        )
    return pa.field(name, _PYTHON[hint], nullable=False)


def _values(field: pa.Field, *, nulls: bool) -> st.SearchStrategy[Any]:
    values = _of_type(field.name, field.type)
    return values | st.none() if nulls and field.nullable else values


def numbers(most: int, least: int = 0) -> st.SearchStrategy[int]:
    """Whole numbers that shrink to 0, at most 100 of them.

    Hypothesis also draws integers from 100 on that stand in loaded modules, and so does ``sampled_from`` its index: in another process a seed
    would draw others.
    """
    assert most - least < 100  # noqa: S101 - an index of 100 could be such an integer
    return st.sampled_from([*range(most + 1), *range(-1, least - 1, -1)])


_OF_TYPES: list[tuple[Callable[[pa.DataType], bool], st.SearchStrategy[Any]]] = [
    (pa.types.is_boolean, st.booleans()),
    (pa.types.is_integer, numbers(20) | numbers(90, -5)),
    (
        pa.types.is_floating,
        numbers(20).map(lambda tenths: tenths / 10) | numbers(60, -30).map(lambda tenths: tenths / 10),
    ),
    (pa.types.is_string, st.sampled_from(_LETTERS)),
    (pa.types.is_binary, st.sampled_from(_LETTERS).map(str.encode)),
    (pa.types.is_date, numbers(30).map(lambda days: date(1970, 1, 1) + timedelta(days=days))),
    (pa.types.is_null, st.none()),
]


def _of_type(name: str, type_: pa.DataType) -> st.SearchStrategy[Any]:
    for is_type, values in _OF_TYPES:
        if is_type(type_):
            return values
    if pa.types.is_timestamp(type_):
        epoch = _EPOCH if type_.tz else _EPOCH.replace(tzinfo=None)
        return numbers(60).map(lambda seconds: epoch + timedelta(seconds=seconds))
    if pa.types.is_decimal(type_):
        most = min(10**type_.precision - 1, 9_999)
        hundreds, ones = numbers(most // 112, -(most // 1_000)), numbers(min(most, 99))
        return st.builds(lambda high, low: Decimal(100 * high + low).scaleb(-type_.scale), hundreds, ones)
    if pa.types.is_list(type_):
        return st.lists(_of_type(name, type_.value_type), max_size=3)
    if pa.types.is_struct(type_):
        return _dicts({inner.name: _of_type(name, inner.type) for inner in type_})
    raise OptionError(f"rows({name}): no values of type {type_} are drawn; give them: rows(..., {name}=a strategy)")
