"""The identity of options and functions in a checkpoint: enough to tell whether they still mean the same.

An identity is plain JSON, so it is read back unchanged. It is not the repr: two lambdas with the same repr differ, and a field
added by a later version with a default changes nothing.

The identity of a function: its name, if importable, else a digest of its code.

A name identifies the function, not its code. A lambda or inner function has no unique name, so it is identified by its code:
bytecode, constants, names, and the values in its closure.
"""

from __future__ import annotations

import dataclasses
import enum
import hashlib
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import partial
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, TypeVar

import attrs
import numpy as np

from beamish.errors import OptionError
from beamish.exports import import_all
from beamish.kernels.codec import encode

T = TypeVar("T")


class Named(dict[str, T]):
    """An immutable, hashable dict."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))


class InOrder(Named[T]):
    """The same, whose order a checkpoint keeps."""

    def identity(self) -> tuple[tuple[str, T], ...]:
        """The parts that a checkpoint holds."""
        return tuple(self.items())


FUNCTIONS = (type, ModuleType, FunctionType, BuiltinFunctionType, MethodType, partial)
"""Types that ``function_identity`` accepts: functions, and other objects identified by name."""

_PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"


def function_identity(function: Any, identify: Callable[[Any], Any]) -> Any:
    """The identity of a function, class or module.

    Args:
        function: one of ``FUNCTIONS``.
        identify: returns the identity of its values.

    Returns:
        "module.qualname"; for a method of an object its name and the object; for a partial function its parts; for one without a
        unique name {"function": qualname, "python": version, "digest": of its code}.
    """
    if isinstance(function, partial):
        parts = function.args, function.keywords
        return {"is": "partial", "function": identify(function.func), "arguments": identify(parts)}
    if isinstance(function, ModuleType):
        return function.__name__
    owner = getattr(function, "__self__", None)
    if owner is not None and not isinstance(owner, ModuleType):
        return {"method": function.__qualname__, "of": identify(owner)}
    if isinstance(function, FunctionType) and "<" in function.__qualname__:
        return {"function": function.__qualname__, "python": _PYTHON, "digest": _digest(function, identify)}
    return f"{function.__module__}.{function.__qualname__}"


def same_function(then: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Whether two identities with a digest are of the same function.

    Versions of Python compile the same text to different code: across versions only names are compared.
    """
    what = "digest" if then["python"] == now["python"] else "function"
    return bool(then[what] == now[what])


def _digest(function: FunctionType, identify: Callable[[Any], Any]) -> str:
    parts = [
        _code(function.__code__, identify),
        identify(function.__defaults__),
        identify(function.__kwdefaults__),
        [_content(cell, identify) for cell in function.__closure__ or ()],
    ]
    return hashlib.sha256(json.dumps(parts).encode("ascii")).hexdigest()


def _code(code: CodeType, identify: Callable[[Any], Any]) -> list[Any]:
    return [
        code.co_code.hex(),
        code.co_exceptiontable.hex(),
        [code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags],
        [_constant(constant, identify) for constant in code.co_consts],
        list(code.co_names),
    ]


def _constant(constant: Any, identify: Callable[[Any], Any]) -> Any:
    """A constant with its type: 1, 1.0 and True are different constants."""
    if isinstance(constant, CodeType):
        return _code(constant, identify)
    if isinstance(constant, tuple):
        return ["tuple", *(_constant(item, identify) for item in constant)]
    return [type(constant).__name__, identify(constant)]


def _content(cell: CellType, identify: Callable[[Any], Any]) -> Any:
    try:
        return ["value", identify(cell.cell_contents)]
    except ValueError:  # a variable that is not assigned yet
        return ["unset"]


_PLAIN = frozenset({type(None), bool, int, float, str, bytes, Decimal, date, datetime, timedelta})
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_AGAIN = "..."
"""Replaces a reference to an enclosing value."""


def _ignore(_: Any) -> None:
    pass


def identity(value: Any) -> Any:
    """The identity of a value.

    Args:
        value: an option, or a part of one. A method ``identity`` takes precedence. For an attrs class or a dataclass it is the
            name, and the fields that differ from their default; for a function see ``function_identity``; for other classes the
            repr if they define one, else the name and the attributes.

    Returns:
        None, bool, int, float, str, and lists and dicts of these.
    """
    return _identity(value, (), _ignore)


def check_says_what_it_is(where: str, option: Any) -> None:
    """Check that an option's identity distinguishes it from others of its class.

    Raises:
        OptionError: it contains an object without a meaningful repr or readable attributes.
    """
    opaque: list[Any] = []
    _identity(option, (), opaque.append)
    for found in opaque[:1]:
        held = "it" if found is option else f"it holds {found!r}, which"
        raise OptionError(
            f"{where}={option!r}: {held} has no identity, so a checkpoint could not distinguish it from another; make it a "
            "frozen attrs class (@attrs.frozen) of plain values, or give its class a method identity(self) that returns them"
        )


def plain_repr(option: Any) -> str:
    """The repr of an option whose class defines none: name and attributes."""
    held = ", ".join(f"{name.lstrip('_')}={own!r}" for name, own in _attributes(option).items())
    return f"{type(option).__name__}({held})"


def same_identity(then: Any, now: Any) -> bool:
    """Whether two identities mean the same, as far as known.

    Args:
        then: read from a checkpoint.
        now: of the current option.
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


def _identity(value: Any, around: tuple[int, ...], opaque: Callable[[Any], None]) -> Any:
    """The identity of a value inside others, whose ids are ``around``; ``opaque`` is called with what does not say what it is."""
    if id(value) in around:
        return _AGAIN
    inner = partial(_identity, around=(*around, id(value)), opaque=opaque)
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
        return function_identity(value, partial(inner, opaque=_ignore))
    if isinstance(value, np.ndarray):
        return _array_identity(value)
    return _object_identity(value, inner, opaque)


def _array_identity(array: Any) -> str:
    """The repr of an array; with a digest for a long one, whose repr is abbreviated."""
    shown = _ADDRESS.sub("", repr(array))
    return f"{shown} {hashlib.sha256(array.tobytes()).hexdigest()}" if "..." in shown else shown


def _object_identity(value: Any, inner: partial[Any], opaque: Callable[[Any], None]) -> Any:
    kind: Any = type(value)
    if attrs.has(kind):
        fields = _attrs_fields(value)
    elif dataclasses.is_dataclass(value):
        fields = _dataclass_fields(value)
    elif _has_own_repr(kind):
        shown = repr(value)
        if _ADDRESS.search(shown):
            opaque(value)
        return _ADDRESS.sub("", shown)
    else:
        if not hasattr(value, "__dict__") and not any("__slots__" in vars(base) for base in kind.__mro__):
            opaque(value)
        return {"is": _name(kind), **{name: inner(own) for name, own in _attributes(value).items()}}
    result: dict[str, Any] = {"is": _name(kind)}
    quietly = partial(inner, opaque=_ignore)
    for name, own, default in fields:
        mine = inner(own)
        if default is attrs.NOTHING or not same_identity(quietly(default), mine):
            result[name] = mine
    return result


def _name(kind: Any) -> str:
    """The name of a class; of a user's own that is called as one of beamish's, with its module."""
    ours = (one for base in kind.__mro__ for one in family(base))
    clashes = not is_ours(kind) and any(one.__qualname__ == kind.__qualname__ for one in ours)
    return f"{kind.__module__}.{kind.__qualname__}" if clashes else kind.__qualname__


def is_ours(kind: type) -> bool:
    """Whether a class is beamish's."""
    return kind.__module__.startswith("beamish.")


def family(kind: Any) -> Iterator[Any]:
    """A class and its subclasses, as far as they are beamish's.

    The last of classes with the same name: attrs replaces a class to add slots, and the first stays until it is collected.
    """
    import_all()
    yield from _known_family(kind)


def _known_family(kind: Any) -> Iterator[Any]:
    if is_ours(kind):
        yield kind
        for below in {(one.__module__, one.__qualname__): one for one in kind.__subclasses__()}.values():
            yield from _known_family(below)


def _has_own_repr(kind: type) -> bool:
    shown_by: Any = kind.__repr__
    return shown_by is not object.__repr__ and shown_by is not plain_repr


def _attrs_fields(value: Any) -> Iterator[tuple[str, Any, Any]]:
    """The fields that determine the equality of an attrs value: name, value, default (``NOTHING``: none)."""
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
    """The ``__dict__`` and slots of an object."""
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
