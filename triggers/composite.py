"""AfterAll, AfterAny, AfterEach and OrFinally: fire when all of several triggers do, when one does, one after the other, until another fires."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from beamish.errors import OptionError
from beamish.triggers.default import Never
from beamish.triggers.trigger import (
    Merge,
    Now,
    State,
    Trigger,
    Waiting,
    WindowIndices,
    check_trigger,
    joined,
    read_trigger,
)


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
    """The condition in words, such as "the first of"."""

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


class Once(Composite):
    """A composite that is finished whenever it fires, its parts too or not: it loses rows unless it fires at the expiry at the earliest."""

    __slots__ = ()

    def may_lose_rows(self, allowed_lateness_us: int) -> bool:
        return allowed_lateness_us > 0 or self.can_fire_before_end()


class AfterAll(Once):
    """Fires when every sub-trigger is finished or ready, and is finished.

    Unfinished sub-triggers see the rows and fire with it. After merging it is finished if all of them are.

    Example:
        >>> from beamish.triggers import AfterAll, AfterCount, AfterProcessingTime
        >>> AfterAll(AfterCount(100), AfterProcessingTime("1 minute")).describe()
        'at the last of (after 100 rows; 1 minute on the clock after its first row)'
    """

    __slots__ = ()
    _fires = "at the last of"
    _waits = "all of"

    def can_fire_before_end(self) -> bool:
        return all(part.can_fire_before_end() for part in self.parts)

    def on_rows_columns(self, s: State, at: WindowIndices, count: Any, now: Now) -> None:
        for part, state in zip(self.parts, s.parts, strict=True):
            unfinished = ~state.finished[at]
            part.on_rows_columns(state, at[unfinished], count[unfinished], now)

    def should_fire_columns(self, s: State, at: WindowIndices, now: Now) -> Any:
        ready = np.ones(len(at), dtype=bool)
        for part, state in zip(self.parts, s.parts, strict=True):
            ready &= state.finished[at] | part.should_fire_columns(state, at, now)
        return ready

    def on_fire_columns(self, s: State, at: WindowIndices, now: Now) -> None:
        for part, state in zip(self.parts, s.parts, strict=True):
            part.on_fire_columns(state, at[~state.finished[at]], now)
        s.finished[at] = True

    def on_merge_columns(self, s: State, m: Merge, now: Now) -> None:
        finished = np.ones(len(m.into), dtype=bool)
        for part, state in zip(self.parts, s.parts, strict=True):
            part.on_merge_columns(state, m, now)
            finished &= state.finished[m.into]
        s.finished[m.into] = finished


class AfterAny(Once):
    """Fires when any sub-trigger is finished or ready, and is finished (Beam: AfterFirst/AfterAny).

    The ready ones fire, the others are cleared. After merging it is finished if one of them is.

    Example:
        >>> from beamish.triggers import AfterAny, AfterCount, AfterProcessingTime
        >>> AfterAny(AfterCount(100), AfterProcessingTime("1 minute")).describe()
        'at the first of (after 100 rows; 1 minute on the clock after its first row)'
    """

    __slots__ = ()
    _fires = "at the first of"
    _waits = "the first of"

    def can_fire_before_end(self) -> bool:
        return any(part.can_fire_before_end() for part in self.parts)

    def should_fire_columns(self, s: State, at: WindowIndices, now: Now) -> Any:
        ready = np.zeros(len(at), dtype=bool)
        for part, state in zip(self.parts, s.parts, strict=True):
            ready |= state.finished[at] | part.should_fire_columns(state, at, now)
        return ready

    def on_fire_columns(self, s: State, at: WindowIndices, now: Now) -> None:
        for part, state in zip(self.parts, s.parts, strict=True):
            fires = part.should_fire_columns(state, at, now) & ~state.finished[at]
            part.on_fire_columns(state, at[fires], now)
            part.clear(state, at[~fires])
        s.finished[at] = True

    def on_merge_columns(self, s: State, m: Merge, now: Now) -> None:
        s.finished[m.into] = False
        for part, state in zip(self.parts, s.parts, strict=True):
            part.on_merge_columns(state, m, now)
            s.finished[m.into] |= state.finished[m.into]


class AfterEach(Composite):
    """Fires when the current sub-trigger does; moves to the next when it is finished; finished with the last.

    Only the current one sees rows; in merging windows all do, and those not reached are cleared at a firing. Merging merges
    them in order up to the first unfinished one; the rest is reset.

    Example:
        >>> from beamish.triggers import AfterCount, AfterEach
        >>> AfterEach(AfterCount(1), AfterCount(10)).describe()
        'in turn (after 1 row; after 10 rows)'
    """

    __slots__ = ()
    _fires = "in turn"

    def can_fire_before_end(self) -> bool:
        return self.parts[0].can_fire_before_end()

    def _current(self, s: State, at: WindowIndices) -> Iterator[tuple[Trigger, State, Any]]:
        """Each part with its state, and the windows of ``at`` in which it is the current one."""
        reached = np.ones(len(at), dtype=bool)
        for part, state in zip(self.parts, s.parts, strict=True):
            finished = state.finished[at]
            yield part, state, reached & ~finished
            reached = reached & finished

    def on_rows_columns(self, s: State, at: WindowIndices, count: Any, now: Now) -> None:
        for part, state, current in self._current(s, at):
            sees = current | now.merging
            part.on_rows_columns(state, at[sees], count[sees], now)

    def should_fire_columns(self, s: State, at: WindowIndices, now: Now) -> Any:
        ready = np.zeros(len(at), dtype=bool)
        for part, state, current in self._current(s, at):
            ready[current] = part.should_fire_columns(state, at[current], now)
        return ready

    def on_fire_columns(self, s: State, at: WindowIndices, now: Now) -> None:
        passed = np.zeros(len(at), dtype=bool)
        finished = np.ones(len(at), dtype=bool)
        for part, state, current in list(self._current(s, at)):
            if now.merging:
                part.clear(state, at[passed])
            part.on_fire_columns(state, at[current], now)
            passed |= current
            finished &= state.finished[at]
        s.finished[at] = finished

    def on_merge_columns(self, s: State, m: Merge, now: Now) -> None:
        reached = np.ones(len(m.into), dtype=bool)
        for part, state in zip(self.parts, s.parts, strict=True):
            part.on_merge_columns(state, m.only(reached), now)
            part.reset(state, m.into[~reached])
            reached = reached & state.finished[m.into]
        s.finished[m.into] = reached

    def may_lose_rows(self, allowed_lateness_us: int) -> bool:
        return all(part.may_lose_rows(allowed_lateness_us) for part in self.parts)

    def waits_for_columns(self, s: State, at: WindowIndices, now: Waiting) -> pa.Array:
        words = pa.array(["nothing but its expiry"] * len(at), pa.string())
        for part, state, current in self._current(s, at):
            words = pc.if_else(pa.array(current), part.waits_for_columns(state, at, now), words)
        return words


@attrs.frozen
class OrFinally(Trigger):
    """Fires when ``main`` or ``finally_`` does; finished when ``finally_`` fires or ``main`` is finished.

    Both see all rows. When ``finally_`` is ready only it fires and ``main`` is cleared. After merging it is finished if either is.

    Args:
        main: the trigger that runs.
        finally_: the trigger that ends it.

    Raises:
        OptionError: one of them is not a trigger.

    Example:
        >>> from beamish.triggers import AfterCount, AfterWatermark, OrFinally, Repeatedly
        >>> OrFinally(Repeatedly(AfterCount(10)), AfterWatermark()).describe()
        'every 10 rows, until it fires for the last time when the watermark reaches its end'
    """

    main: Trigger = attrs.field(converter=read_trigger)
    finally_: Trigger = attrs.field(converter=read_trigger)

    def describe(self) -> str:
        return f"{self.main.describe()}, until it fires for the last time {self.finally_.describe()}"

    def describe_repeated(self) -> str:
        return f"repeatedly ({self.describe()})"

    def can_fire_before_end(self) -> bool:
        return self.main.can_fire_before_end() or self.finally_.can_fire_before_end()

    @property
    def parts(self) -> tuple[Trigger, ...]:
        return self.main, self.finally_

    @property
    def columns(self) -> Mapping[str, tuple[str, Any]]:
        return {}

    def on_rows_columns(self, s: State, at: WindowIndices, count: Any, now: Now) -> None:
        for part, state in zip(self.parts, s.parts, strict=True):
            part.on_rows_columns(state, at, count, now)

    def should_fire_columns(self, s: State, at: WindowIndices, now: Now) -> Any:
        main, finally_ = s.parts
        return self.main.should_fire_columns(main, at, now) | self.finally_.should_fire_columns(finally_, at, now)

    def on_fire_columns(self, s: State, at: WindowIndices, now: Now) -> None:
        main, finally_ = s.parts
        ends = self.finally_.should_fire_columns(finally_, at, now)
        self.finally_.on_fire_columns(finally_, at[ends], now)
        self.main.clear(main, at[ends])
        self.main.on_fire_columns(main, at[~ends], now)
        s.finished[at] = ends | main.finished[at]

    def on_merge_columns(self, s: State, m: Merge, now: Now) -> None:
        for part, state in zip(self.parts, s.parts, strict=True):
            part.on_merge_columns(state, m, now)
        s.finished[m.into] = s.parts[0].finished[m.into] | s.parts[1].finished[m.into]

    def may_lose_rows(self, allowed_lateness_us: int) -> bool:
        ends = self.finally_ != Never() if allowed_lateness_us > 0 else self.finally_.can_fire_before_end()
        return ends or self.main.may_lose_rows(allowed_lateness_us)

    def waits_for_columns(self, s: State, at: WindowIndices, now: Waiting) -> pa.Array:
        main, finally_ = (
            part.waits_for_columns(state, at, now) for part, state in zip(self.parts, s.parts, strict=True)
        )
        return joined(main, "; or, for the last time, for ", finally_)
