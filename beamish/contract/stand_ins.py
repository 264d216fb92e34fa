"""Stand-ins for options that cannot be read from a checkpoint: functions, expressions and classes of users' own."""

from __future__ import annotations

import attrs
import pyarrow.compute as pc

from beamish.accumulations.base.accumulation import Accumulation
from beamish.kernels.expressions import Formula
from beamish.kernels.spec import StandIns, shown_spec
from beamish.triggers.trigger import Trigger
from beamish.windows.option import WindowOption


@attrs.frozen(repr=False)
class StandIn:
    """An option of which only its spec is known, in words."""

    words: str

    def __repr__(self) -> str:
        return self.words


class UnknownWindows(StandIn, WindowOption):
    """Windows that cannot be read."""

    def describe(self) -> str:
        return f"{self.words}, which cannot be read without the pipeline"


class UnknownTrigger(StandIn, Trigger):
    """A trigger that cannot be read."""

    def describe(self) -> str:
        return f"as defined by {self.words}, which cannot be read without the pipeline"


class UnknownAccumulation(StandIn, Accumulation):
    """An accumulation that cannot be read."""


@attrs.frozen(eq=False, repr=False)
class UnknownFormula(Formula):
    """An expression of which only the text is known."""

    expression: pc.Expression = attrs.field(factory=lambda: pc.scalar(True), init=False)  # noqa: FBT003
    words: str

    def __repr__(self) -> str:
        return self.words

    def identity(self) -> str:
        return self.words


STAND_INS: StandIns = {
    WindowOption: lambda spec: UnknownWindows(shown_spec(spec)),
    Trigger: lambda spec: UnknownTrigger(shown_spec(spec)),
    Accumulation: lambda spec: UnknownAccumulation(shown_spec(spec)),
    Formula: UnknownFormula,
}
"""By the type of an option's field what takes the place of an unreadable one (``kernels/spec.py``)."""
