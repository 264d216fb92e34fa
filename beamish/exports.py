"""Public names that are imported when they are first used (PEP 562), so that a Spark worker imports only what its stage runs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any

_LAZY: dict[str, Mapping[str, str]] = {}
"""By package the modules of its names."""


def exported(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a package.

    Args:
        package: its name.
        modules: by module the public names that it defines, separated by blanks.
    """
    homes = {name: module for module, names in modules.items() for name in names.split()}
    _LAZY[package] = homes

    def get(name: str) -> Any:
        module = homes.get(name)
        if module is None:
            owner = sys.modules[package]
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name, obj=owner)
        found = import_module(module)
        value = found if module == f"{package}.{name}" else getattr(found, name)
        setattr(sys.modules[package], name, value)
        return value

    return get


@cache
def import_all() -> None:
    """Import every module with public names, for what looks classes up by their names."""
    done: set[str] = set()
    while modules := {module for homes in _LAZY.values() for module in homes.values()} - done:
        for module in modules:
            import_module(module)
        done |= modules
