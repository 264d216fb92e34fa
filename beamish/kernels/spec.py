"""Options from their spec: a value again, from its identity (``identity.py``) and its type.

Nothing is unpickled or evaluated, and no name in a spec imported: a class is looked up by its name among the subclasses of a field's type that beamish defines, and
what is made must have the spec that was read. Functions, expressions and classes of users' own cannot be read; stand-ins take their place.

Law (tests/laws/test_specs.py): an option of beamish's classes and plain values is equal to what is read from its spec.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import attrs

from beamish.durations import Duration
from beamish.kernels.codec import decode
from beamish.kernels.identity import family, identity, same_identity

StandIns = Mapping[type, Callable[[Any], Any]]
"""Placeholders for unreadable values, by the type of the field; called with the spec."""
_PLAIN = (bool, int, float, str, bytes, Decimal, date, datetime, timedelta)


class UnreadableError(Exception):
    """A spec is not that of a value of this type."""


def read_spec(spec: Any, kind: Any, stand_ins: StandIns | None = None) -> Any:
    """The value of a type with this spec; ``stand_ins``: what is made where something in it cannot be read.

    Raises:
        UnreadableError: no value of this type has this spec, or it cannot be read.
    """
    try:
        value = _Reader(stand_ins or {}).read(spec, kind)
    except Exception as error:
        raise UnreadableError(str(error)) from error
    if not stand_ins and not same_identity(spec, identity(value)):
        raise UnreadableError(f"{value!r} has another spec")
    return value


def shown_spec(spec: Any, kind: Any = None) -> str:
    """A spec much as one would write the value, which may be of this type; also if it cannot be read."""
    with suppress(UnreadableError):
        return _shown(spec, None if kind is None else read_spec(spec, kind))
    return _shown(spec, None)


def _shown(spec: Any, value: Any) -> str:
    match spec:
        case {"is": name, **fields}:
            shown = (f"{field}={_shown(own, getattr(value, str(field), None))}" for field, own in fields.items())
            return f"{name}({', '.join(shown)})"
        case [str(name), [{"is": _} | [str(), [*_]], *_] as parts]:
            values = [None] * len(parts) if value is None else value.parts
            return f"{name}({', '.join(map(_shown, parts, values))})"
    return repr(spec if value is None else value)


@attrs.frozen
class _Reader:
    """Reads specs (see ``read_spec``)."""

    stand_ins: StandIns

    def read(self, spec: Any, kind: Any) -> Any:
        if kind in self.stand_ins:
            try:
                return read_spec(spec, kind)
            except UnreadableError:
                return self._read_partly(spec, kind)
        origin, arguments = get_origin(kind), get_args(kind)
        if origin in (Union, UnionType):
            return None if spec is None and NoneType in arguments else self._read_one_of(spec, arguments)
        if origin is Literal:
            return arguments[arguments.index(spec)]
        if origin in (tuple, Sequence):
            return tuple(self.read(part, arguments[0]) for part in spec)
        if origin is Mapping:
            return {name: self.read(part, arguments[1]) for name, part in spec}
        if kind is Any or kind in _PLAIN:
            return _plain(spec, kind)
        return kind(spec) if issubclass(kind, enum.Enum) else self._read_object(spec, kind)

    def _read_partly(self, spec: Any, kind: Any) -> Any:
        """With stand-ins for what cannot be read in it, or one for all of it."""
        others = {other: made for other, made in self.stand_ins.items() if other is not kind}
        with suppress(Exception):
            return _Reader(others).read(spec, kind)
        return self.stand_ins[kind](spec)

    def _read_one_of(self, spec: Any, kinds: Sequence[Any]) -> Any:
        for kind in kinds:
            with suppress(Exception):  # another type may have it
                return self.read(spec, kind)
        raise UnreadableError(f"{spec!r} fits no type of {kinds}")

    def _read_object(self, spec: Any, kind: Any) -> Any:
        if kind is Duration:
            return Duration(spec)
        name = spec["is"] if isinstance(spec, dict) else spec[0]
        option: Any = next(one for one in family(kind) if one.__qualname__ == name)
        if not attrs.has(option):  # such as AfterAny(*triggers)
            return option(*(self.read(part, kind) for part in spec[1]))
        fields, types = attrs.fields_dict(option), _types(option)
        if "__attrs_init__" in vars(option):  # such as CountDistinct(*columns)
            (only,) = fields
            return option(*self.read(spec[only], types[only]))
        parts: dict[str, Any] = {name: part for name, part in spec.items() if name != "is"}
        return option(**{str(fields[name].alias): self.read(part, types[name]) for name, part in parts.items()})


def _plain(spec: Any, kind: Any) -> Any:
    value = decode(json.dumps(spec).encode("ascii")) if isinstance(spec, dict) else spec
    if kind is Any:
        return tuple(_plain(part, Any) for part in value) if isinstance(value, list) else value
    if type(value) not in ((int, float) if kind is float else (kind,)):
        raise UnreadableError(f"{value!r} is not a {kind.__name__}")
    return value


@cache
def _types(option: type) -> dict[str, Any]:
    return get_type_hints(option)
