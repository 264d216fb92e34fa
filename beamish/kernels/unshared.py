"""Values returned by user functions: none may share a mutable object with another."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any

import numpy as np


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
