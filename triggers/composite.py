"""The base of triggers with several sub-triggers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from beamish.errors import OptionError
from beamish.triggers.trigger import Now, State, Trigger, Waiting, WindowIndices, check_trigger, joined


class Composite(Trigger):
    """Several triggers, given as arguments: ``AfterAny(AfterCount(100), AfterProcessingTime("1 minute"))``.

    Equal by class and parts. Its only state is ``finished``.

    Raises:
        OptionError: no part is given, or a part is not a trigger.
    """

    __slots__ = ("_parts",)
    _parts: tuple[Trigger, ...]
    _fires: ClassVar[str]
    """How it fires by its parts, such as "at the first of"."""
    _waits: ClassVar[str]
    """What it waits for, such as "the first of"."""

    def __init__(self, *triggers: Trigger) -> None:
        name = type(self).__name__
        if len(triggers) == 1 and isinstance(triggers[0], (list, tuple)):
            raise OptionError(f"{name}({triggers[0]!r}): give the triggers one by one: {name}(*triggers)")
        if not triggers:
            raise OptionError(f"{name}(): needs at least one trigger")
        checked = tuple(check_trigger(f"{name}(#{i + 1})", part) for i, part in enumerate(triggers))
        object.__setattr__(self, "_parts", checked)

    def describe(self) -> str:
        if len(self.parts) == 1:
            return self.parts[0].describe()
        return f"{self._fires} ({'; '.join(part.describe() for part in self.parts)})"

    @property
    def parts(self) -> tuple[Trigger, ...]:
        return self._parts

    @property
    def columns(self) -> Mapping[str, tuple[str, Any]]:
        return {}

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.parts == self.parts

    def __hash__(self) -> int:
        return hash((type(self), self.parts))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.parts))})"

    def identity(self) -> Any:
        """Its identity in a checkpoint."""
        return type(self).__name__, self.parts

    def __reduce__(self) -> tuple[type[Composite], tuple[Trigger, ...]]:
        return type(self), self.parts

    def on_rows_columns(self, s: State, at: WindowIndices, count: Any, now: Now) -> None:
        for part, state in zip(self.parts, s.parts, strict=True):
            part.on_rows_columns(state, at, count, now)

    def waits_for_columns(self, s: State, at: WindowIndices, now: Waiting) -> pa.Array:
        each: list[Any] = []
        for part, state in zip(self.parts, s.parts, strict=True):
            own = part.waits_for_columns(state, at, now)
            each += ["; " * bool(each), pc.if_else(pa.array(state.finished[at]), "(done)", own)]
        return joined(*each) if len(self.parts) == 1 else joined(f"{self._waits} (", *each, ")")
