"""The right modules, and the wrong ones: a right one with the lines of wrong.diff."""

from __future__ import annotations

import sys
import warnings
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

_FOLDER = Path(__file__).parent
_DIFF = (_FOLDER / "wrong.diff").read_text("utf-8").split("=== ")[1:]
WRONG = {name: hunks for name, _, hunks in (part.partition("\n") for part in _DIFF)}


def right(name: str) -> ModuleType:
    """Right code."""
    return import_module(f"tests.testing.mutants.{name}")


@cache
def wrong(name: str) -> ModuleType:
    """Wrong code."""
    source = (_FOLDER / f"{name}.py").read_text("utf-8")
    for hunk in WRONG[name].split("@@\n")[1:]:
        before, after = (
            "".join(f"{line[1:]}\n" for line in hunk.splitlines() if line[:1] in (" ", sign)) for sign in "-+"
        )
        assert f"\n{source}".count(f"\n{before}") == 1, f"{name}: these lines must be there once:\n{before}"
        source = f"\n{source}".replace(f"\n{before}", f"\n{after}")[1:]
    module = ModuleType(f"tests.testing.mutants.{name}_wrong")
    sys.modules[module.__name__] = module
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a composition warns of what is wrong
        exec(compile(source, f"{name} with wrong.diff", "exec"), vars(module))
    return module
