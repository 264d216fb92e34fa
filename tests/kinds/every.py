"""The contents of the folders of kinds."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import ModuleType


def strategies() -> list[ModuleType]:
    """The modules ``strategy`` of all kinds."""
    files = sorted(Path(__file__).parent.glob("*/strategy.py"))
    return [import_module(f"tests.kinds.{file.parent.name}.strategy") for file in files]
