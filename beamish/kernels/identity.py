"""What a checkpoint holds of an option: enough to tell whether it still means the same.

An identity is made of what JSON has, so it comes back from a checkpoint as it was. It is not the repr: two lambdas
that print alike differ, and a field that a later version adds with a default changes nothing.
"""

from __future__ import annotations

import dataclasses
import enum
import json
import re
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any

import attrs

from beamish.kernels.codec import encode
from beamish.kernels.function_identity import FUNCTIONS, function_identity, same_function

_PLAIN = frozenset({type(None), bool, int, float, str, bytes, Decimal, date, datetime, timedelta})
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_AGAIN = "..."
"""Stands for a value inside itself."""

Identify = Callable[[Any], Any]


def identity(value: Any) -> Any:
    """The identity of a value.

    Args:
        value: an option, or what options are made of. One that has a method ``identity`` gives its own. Of an attrs
            class or a dataclass it is the name, and the fields that differ from their default; of a function see
            ``function_identity``; of other classes their repr if they define one, else the name and the attributes.

    Returns:
        None, bool, int, float, str, and lists and dicts of these.
    """
    return _identity(value, ())


def same_identity(then: Any, now: Any) -> bool:
    """Whether two identities are of values that mean the same, as far as can be told.

    Args:
        then: as read from a checkpoint.
        now: that of the option it is opened with.
    """
    if isinstance(then, dict) and isinstance(now, dict):
        if "digest" in then and "digest" in now:
            return same_function(then, now)
        return then.keys() == now.keys() and all(same_identity(then[name], now[name]) for name in then)
    if isinstance(then, list) and isinstance(now, list):
        return len(then) == len(now) and all(map(same_identity, then, now))
    if isinstance(then, bool) or isinstance(now, bool):
        return then is now
    return bool(then == now)


def _identity(value: Any, around: tuple[int, ...]) -> Any:
    """The identity of a value inside others, whose ids are ``around``."""
    if id(value) in around:
        return _AGAIN
    inner = partial(_identity, around=(*around, id(value)))
    own = None if isinstance(value, type) else getattr(type(value), "identity", None)
    if callable(own):
        return inner(own(value))
    if isinstance(value, enum.Enum):
        return inner(value.value)
    if type(value) in _PLAIN:
        return json.loads(encode(value))
    if isinstance(value, Mapping):
        return sorted(([inner(key), inner(item)] for key, item in value.items()), key=json.dumps)
    if isinstance(value, AbstractSet):
        return sorted(map(inner, value), key=json.dumps)
    if isinstance(value, (list, tuple)):
        return list(map(inner, value))
    if isinstance(value, FUNCTIONS):
        return function_identity(value, inner)
    return _object_identity(value, inner)


def _object_identity(value: Any, inner: Identify) -> Any:
    kind: Any = type(value)
    if attrs.has(kind):
        fields = _attrs_fields(value)
    elif dataclasses.is_dataclass(value):
        fields = _dataclass_fields(value)
    elif kind.__repr__ is not object.__repr__:
        return _ADDRESS.sub("", repr(value))
    else:
        return {"is": kind.__qualname__, **{name: inner(own) for name, own in _attributes(value).items()}}
    result: dict[str, Any] = {"is": kind.__qualname__}
    for name, own, default in fields:
        mine = inner(own)
        if default is attrs.NOTHING or not same_identity(inner(default), mine):
            result[name] = mine
    return result


def _attrs_fields(value: Any) -> Iterator[tuple[str, Any, Any]]:
    """The fields that make a value of an attrs class equal to another: name, value, default (``NOTHING``: none)."""
    for field in attrs.fields(type(value)):
        if field.eq:
            yield field.name, getattr(value, field.name), _attrs_default(value, field)


def _attrs_default(value: Any, field: attrs.Attribute[Any]) -> Any:
    default: Any = field.default
    if isinstance(default, attrs.Factory):  # type: ignore[arg-type]
        default = default.factory(value) if default.takes_self else default.factory()
    if default is attrs.NOTHING or field.converter is None:
        return default
    convert: Any = field.converter
    takes = (getattr(convert, "takes_self", False), value), (getattr(convert, "takes_field", False), field)
    arguments = [argument for wanted, argument in takes if wanted]
    return getattr(convert, "converter", convert)(default, *arguments)


def _attributes(value: Any) -> dict[str, Any]:
    """What is in the ``__dict__`` and the slots of an object."""
    state = object.__getstate__(value)
    named, slots = state if isinstance(state, tuple) else (state, None)
    return {**(named or {}), **(slots or {})}


def _dataclass_fields(value: Any) -> Iterator[tuple[str, Any, Any]]:
    for field in dataclasses.fields(value):
        if field.compare:
            default = field.default
            if field.default_factory is not dataclasses.MISSING:
                default = field.default_factory()
            yield field.name, getattr(value, field.name), attrs.NOTHING if default is dataclasses.MISSING else default
