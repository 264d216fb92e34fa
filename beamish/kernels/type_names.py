"""Types as Spark writes them ("bigint", "array<struct<a:int>>"), read as Arrow types; and which types hold all values of another.

Type widening: types that hold all values of another one, so that stored values can be read in the wider type. Integers to wider ones, and
decimals to ones with more integral digits. Values stay equal, and so do their hashes (``codes.py``): a key stays in its shard and its
segment.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from beamish.errors import OptionError

_SIMPLE = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "byte": pa.int8(),
    "smallint": pa.int16(),
    "short": pa.int16(),
    "int": pa.int32(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "long": pa.int64(),
    "float": pa.float32(),
    "real": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "void": pa.null(),
}
_WORD = re.compile(r"\s*(`[^`]+`|\w+|[<>(),:])\s*")


def parsed_type(where: str, words: Any) -> pa.DataType:
    """Parse a Spark type name.

    Args:
        where: the option it belongs to, for the message.
        words: such as ``bigint``, ``decimal(10,2)``, ``array<string>``, ``map<string,int>``, ``struct<a:int,b:date>``.

    Raises:
        OptionError: not a Spark type.
    """
    tokens = _WORD.findall(words) if isinstance(words, str) else []
    if not tokens or _WORD.sub("", words):
        raise _unknown(where, words)
    try:
        type_, rest = _read(tokens)
    except (IndexError, KeyError, ValueError) as error:
        raise _unknown(where, words) from error
    if rest:
        raise _unknown(where, words)
    return type_


def spark_name(type_: pa.DataType) -> str:
    """The Spark name of a numeric type."""
    if pa.types.is_decimal128(type_):
        return f"decimal({type_.precision},{type_.scale})"
    return {"int64": "bigint"}.get(str(type_), str(type_))


def _unknown(where: str, words: object) -> OptionError:
    return OptionError(
        f"{where}: {words!r} is not a Spark type; write one such as 'bigint', 'double', 'string', 'decimal(10,2)', "
        "'array<string>' or 'struct<a:int,b:string>'"
    )


def _read(tokens: list[str]) -> tuple[pa.DataType, list[str]]:
    head, rest = tokens[0].lower(), tokens[1:]
    if head in ("decimal", "dec", "numeric"):
        if rest[:1] != ["("]:
            return pa.decimal128(10, 0), rest
        if rest[2] == ")":
            return pa.decimal128(int(rest[1]), 0), rest[3:]
        _expect(rest[2] == "," and rest[4] == ")")
        return pa.decimal128(int(rest[1]), int(rest[3])), rest[5:]
    if head == "array":
        _expect(rest[0] == "<")
        item, rest = _read(rest[1:])
        _expect(rest[0] == ">")
        return pa.list_(item), rest[1:]
    if head == "map":
        _expect(rest[0] == "<")
        key, rest = _read(rest[1:])
        _expect(rest[0] == ",")
        item, rest = _read(rest[1:])
        _expect(rest[0] == ">")
        return pa.map_(key, item), rest[1:]
    if head == "struct":
        return _read_struct(rest)
    return _SIMPLE[head], rest


def _read_struct(rest: list[str]) -> tuple[pa.DataType, list[str]]:
    _expect(rest[0] == "<")
    if rest[1] == ">":
        return pa.struct([]), rest[2:]
    fields: list[pa.Field] = []
    while rest[0] != ">":
        _expect(rest[0] == ("," if fields else "<"))
        name, rest = rest[1].strip("`"), rest[2:]
        type_, rest = _read(rest[1:] if rest[0] == ":" else rest)
        fields.append(pa.field(name, type_))
    return pa.struct(fields), rest[1:]


def _expect(holds: bool) -> None:
    if not holds:
        raise ValueError("not a type")


_WHOLE = ("int8", "int16", "int32", "int64")
_DECIMAL = re.compile(r"decimal128\((\d+), (-?\d+)\)")


def widens(then: str, now: str) -> bool:
    """Whether a type is a widening of another one; both as Arrow type names."""
    if then in _WHOLE and now in _WHOLE:
        return _WHOLE.index(then) < _WHOLE.index(now)
    both = _DECIMAL.fullmatch(then), _DECIMAL.fullmatch(now)
    if both[0] is None or both[1] is None:
        return False
    return both[0][2] == both[1][2] and int(both[0][1]) < int(both[1][1])


def same_or_wider(then: Sequence[Sequence[str]], now: Sequence[Sequence[str]]) -> bool:
    """Whether columns are the same, but for types that hold all that they held; each is its name and its type."""
    return len(then) == len(now) and all(
        was[0] == is_[0] and (was[1] == is_[1] or widens(was[1], is_[1])) for was, is_ in zip(then, now, strict=True)
    )
