"""Values of users' functions: unshared copies, and bytes: JSON, in which everything JSON has not is an object of one tag.

``decode(encode(value))`` equals ``value``, with the same types throughout, and a value always gives the same bytes (sets are
sorted; dicts keep their order). Never pickle: reading a checkpoint must not run code.

An aware datetime keeps a ZoneInfo by its key; any other time zone becomes its offset from UTC.
"""

from __future__ import annotations

import base64
import json
import types
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from math import isfinite
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

from beamish.errors import shown

ALLOWED = (
    "None, bool, int, float, str, bytes, Decimal, date, datetime, timedelta, and lists, tuples, sets, frozensets and "
    "dicts of these"
)

_LONGEST_INT = 10**300
"""Larger ints are written in base 16: Python limits the decimal digits it reads."""


def encode(value: Any) -> bytes:
    """Encode a value (TypeError: it is, or contains, something other than ``ALLOWED``)."""
    try:
        return _to_json(_tagged(value)).encode("ascii")
    except RecursionError:
        raise TypeError("a value that contains itself, or is nested too deeply") from None


def decode(data: bytes) -> Any:
    """Decode the bytes of ``encode``."""
    return _from_json(data.decode("ascii"))


_to_json = json.JSONEncoder(separators=(",", ":")).encode


def _tagged(value: Any) -> Any:
    write = _WRITE.get(type(value))
    if write is None:
        raise TypeError(f"a {type(value).__module__}.{type(value).__qualname__} ({shown(value)[:80]})")
    return write(value)


def _untagged(tagged: dict[str, Any]) -> Any:
    ((tag, content),) = tagged.items()
    return _READ[tag](content)


_from_json = json.JSONDecoder(object_hook=_untagged).decode


def _same(value: Any) -> Any:
    return value


def _write_int(value: int) -> Any:
    return value if -_LONGEST_INT < value < _LONGEST_INT else {"i": hex(value)}


def _write_float(value: float) -> Any:
    return value if isfinite(value) else {"f": repr(value)}


def _write_str(value: str) -> Any:
    if value.isascii():
        return value
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:  # half a surrogate pair: JSON might join two of them
        return {"u": [ord(letter) for letter in value]}
    return value


def _write_datetime(value: datetime) -> Any:
    naive = value.replace(tzinfo=None, fold=0).isoformat()
    if value.tzinfo is None:
        return {"n": [naive, value.fold]}
    if isinstance(value.tzinfo, ZoneInfo) and value.tzinfo.key:
        return {"z": [naive, value.fold, value.tzinfo.key]}
    offset = value.utcoffset()
    if offset is None:
        raise TypeError(f"a datetime whose time zone {value.tzinfo!r} has no offset from UTC")
    return {"o": [naive, value.fold, offset // timedelta(microseconds=1)]}


def _write_set(tag: str) -> Callable[[Any], Any]:
    def write(value: Any) -> Any:
        return {tag: sorted(map(_tagged, value), key=_to_json)}

    return write


_WRITE: dict[type, Callable[[Any], Any]] = {
    type(None): _same,
    bool: _same,
    int: _write_int,
    float: _write_float,
    str: _write_str,
    bytes: lambda value: {"b": base64.b64encode(value).decode("ascii")},
    Decimal: lambda value: {"D": str(value)},
    date: lambda value: {"d": value.isoformat()},
    datetime: _write_datetime,
    timedelta: lambda value: {"e": [value.days, value.seconds, value.microseconds]},
    list: lambda value: [_tagged(item) for item in value],
    tuple: lambda value: {"t": [_tagged(item) for item in value]},
    set: _write_set("s"),
    frozenset: _write_set("S"),
    dict: lambda value: {"m": [[_tagged(key), _tagged(item)] for key, item in value.items()]},
}


def _read_offset(content: list[Any]) -> datetime:
    naive, fold, offset_us = content
    return datetime.fromisoformat(naive).replace(tzinfo=timezone(timedelta(microseconds=offset_us)), fold=fold)


_READ: dict[str, Callable[[Any], Any]] = {
    "i": lambda content: int(content, 16),
    "f": float,
    "u": lambda content: "".join(map(chr, content)),
    "b": base64.b64decode,
    "D": Decimal,
    "d": date.fromisoformat,
    "n": lambda content: datetime.fromisoformat(content[0]).replace(fold=content[1]),
    "z": lambda content: datetime.fromisoformat(content[0]).replace(tzinfo=ZoneInfo(content[2]), fold=content[1]),
    "o": _read_offset,
    "e": lambda content: timedelta(content[0], content[1], content[2]),
    "t": tuple,
    "s": set,
    "S": frozenset,
    "m": lambda content: {key: item for key, item in content},  # noqa: C416 - the pairs are lists
}


def unshared(value: Any) -> Any:
    """Copy a value: plain lists, tuples, dicts, sets and arrays are copied; other objects are kept."""
    kind = type(value)
    if kind is list:
        return [unshared(item) for item in value]
    if kind is tuple:
        return tuple(unshared(item) for item in value)
    if kind is dict:
        return {key: unshared(item) for key, item in value.items()}
    return value.copy() if kind in (set, np.ndarray) else value


def shared_object(one: Any, other: Any) -> Any:
    """A mutable object that both values share and that ``unshared`` does not copy, or None."""
    of_other = {id(found) for found in _mutable(other)}
    return next((found for found in _mutable(one) if id(found) in of_other), None)


def _mutable(value: Any) -> Iterator[Any]:
    kind = type(value)
    if kind in (list, tuple, dict):
        for item in value.values() if kind is dict else value:
            yield from _mutable(item)
    elif (
        kind not in (set, np.ndarray, object)
        and not isinstance(value, (type, types.FunctionType))
        and not _hashed(value)
    ):
        yield value


def _hashed(value: Any) -> bool:
    """Whether it is hashable by value, as immutable objects are."""
    kind: Any = type(value)
    if kind.__hash__ is object.__hash__:
        return False
    try:
        hash(value)
    except TypeError:
        return False
    return True
