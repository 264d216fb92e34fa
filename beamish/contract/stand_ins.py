"""Stand-ins for options that cannot be read from a checkpoint: functions, expressions and classes of users' own."""

from __future__ import annotations

from typing import Any

import attrs

from beamish.accumulations.base.accumulation import Accumulation
from beamish.kernels.formulas import Formula
from beamish.kernels.spec import shown_spec
from beamish.triggers.trigger import Trigger
from beamish.windows.option import WindowOption


@attrs.frozen(repr=False)
class UnknownWindows(WindowOption):
    """Windows of which no more is known than these words."""

    words: str

    def describe(self) -> str:
        return self.words

    def __repr__(self) -> str:
        return self.words


@attrs.frozen
class UnknownTrigger(Trigger):
    """A trigger of which only its spec is known, in words."""

    words: str

    def describe(self) -> str:
        return f"as {self.words} says, which cannot be read without the pipeline"


@attrs.frozen(repr=False)
class UnknownAccumulation(Accumulation):
    """An accumulation of which only its spec is known, in words."""

    words: str

    def __repr__(self) -> str:
        return self.words


@attrs.frozen(eq=False, repr=False)
class StoredFormula(Formula):
    """The text of an expression."""

    expression: Any

    def __repr__(self) -> str:
        return str(self.expression)


def unknown_windows(spec: Any) -> UnknownWindows:
    """The stand-in for the windows of a spec."""
    return UnknownWindows(f"{shown_spec(spec)}, which cannot be read without the pipeline")


STAND_INS = {
    WindowOption: unknown_windows,
    Trigger: lambda spec: UnknownTrigger(shown_spec(spec)),
    Accumulation: lambda spec: UnknownAccumulation(shown_spec(spec)),
    Formula: StoredFormula,
}
"""By the type of an option's field what takes the place of an unreadable one (``kernels/spec.py``)."""
