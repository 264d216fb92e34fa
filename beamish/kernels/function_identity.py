"""The identity of a function: its name, if importable, else a digest of its code.

A name identifies the function, not its code. A lambda or inner function has no unique name, so it is identified by its code:
bytecode, constants, names, and the values in its closure.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Mapping
from functools import partial
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

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
