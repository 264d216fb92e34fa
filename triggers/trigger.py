"""The contract of a trigger: when does a window fire, and when is it finished?

Each (key, window) has its own state for each trigger of the tree. A trigger is asked once per bundle and window,
and when a clock it waits for passes (docs/rules/triggers.md#when-a-window-is-asked). The engine holds the states of many
windows as columns and calls

    on_rows_columns      rows arrived for some windows
    should_fire_columns  which of these windows would fire?
    on_fire_columns      these windows fire now
    on_merge_columns     some windows merge
    wakes_at_columns     at which clock to evaluate these windows
    due_columns          at which watermark to evaluate these windows, besides their end
    waits_for_columns    what these windows wait for, in words
    clear                clear counts and timers;  reset: the initial state

Laws:

1. ``should_fire`` changes nothing, and depends on nothing but the state, the window, its values, the watermark and the clock.
2. After ``on_fire`` a trigger is finished or in its initial state, except for documented state.
3. ``on_merge`` does not depend on the order of its parts, and without parts it gives a new state.

A custom trigger overrides the methods for a single window (``create`` to ``wakes_at``); the methods on columns then call them
window by window. Built-in triggers override the methods on columns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from beamish.errors import OptionError, UserFunctionError, cause, check_memory, describe_foreign, shown
from beamish.kernels.codec import unshared
from beamish.kernels.identity import plain_repr
from beamish.markup import html_table

WindowIndices = NDArray[np.intp]
"""Indices of windows in the engine's table."""
Flags = NDArray[np.bool_]

NEVER_US = 2**63 - 1
"""No target: later than every clock."""


class State(Protocol):
    """The state of one trigger of the tree, for all windows of the table.

    Attributes:
        finished: bool, one per window.
        parts: the states of the sub-triggers, in order.

    ``state["name"]`` is the column declared under that name in ``Trigger.columns``, one entry per window.
    """

    @property
    def finished(self) -> Flags: ...
    @property
    def parts(self) -> Sequence[State]: ...
    def __getitem__(self, column: str) -> Any: ...


class Now(Protocol):
    """The clocks, for all windows of the table.

    Attributes:
        at_end: bool, one per window: the watermark (for a count window its reach) is at or past its end.
        clock_us: the processing-time clock.
        merging: whether the windows are of a merging kind.
        start_us, end_us: the windows' bounds, int64.
    """

    at_end: Flags
    clock_us: int
    merging: bool
    start_us: Any
    end_us: Any

    def watermark_us(self, window: int) -> int | None:
        """The watermark, or None before there is one; for a count window its reach, in rows."""

    def progress_us(self, at: WindowIndices) -> int | NDArray[np.int64]:
        """The same for these windows: the least int64 before there is one."""

    def earliest_us(self, at: WindowIndices) -> NDArray[np.int64]:
        """The least event time of the rows that are shown, int64, one per window: for triggers that ``needs_row_times``.

        After a change of the trigger, stored rows count as rows at the watermark, or without one at the window's start.
        """

    def value_is_within(self, name: str, at: WindowIndices, at_least: Any, at_most: Any) -> Flags:
        """Whether the value that a pane of each of these windows would have now is within these bounds (None: unbounded)."""

    def ask_at_end(self, at: WindowIndices) -> None:
        """Evaluate these windows when the watermark reaches their end, unless it has."""


class Waiting(Now, Protocol):
    """The same, for descriptions of windows that have not fired."""

    def until_end(self, at: WindowIndices) -> pa.Array:
        """Per window the condition of its end, in words: "the watermark to reach its end, 10:16:00 ..."."""


class Merge(Protocol):
    """Merging windows: ``into`` are the results' indices (a result may be one of its own parts).

    ``any``, ``all``, ``sum``, ``least`` and ``lists`` take a column of the whole table and give one entry per result,
    over its parts.
    """

    into: WindowIndices

    def any(self, column: Any) -> Any: ...
    def all(self, column: Any) -> Any: ...
    def sum(self, column: Any) -> Any: ...
    def least(self, column: Any) -> Any: ...
    def lists(self, column: Any) -> list[list[Any]]: ...
    def only(self, results: Flags) -> Merge: ...


@attrs.frozen
class TriggerContext:
    """The window that a custom trigger is evaluated for: bounds, watermark and clock, in microseconds since the epoch.

    For a count window the bounds are row numbers, and the watermark is the reach, also a row number.
    """

    start_us: int
    end_us: int
    watermark_us: int | None
    clock_us: int

    @property
    def at_end(self) -> bool:
        """Whether the watermark is at or past the window's end."""
        return self.watermark_us is not None and self.watermark_us >= self.end_us


class Trigger:
    """Decides when a window fires and when it is finished. Subclass it for triggers of your own.

    A subclass should be a frozen attrs class. A window's state is a plain value (None, bool, int, float, str, or
    lists and string-keyed dicts of these): it is stored in the checkpoint. The methods are pure functions.

    Example:
        >>> import attrs
        >>> from beamish.triggers import Trigger
        >>> @attrs.frozen
        ... class EveryOtherBundle(Trigger):
        ...     def create(self): return 0
        ...     def on_rows(self, state, count, context): return state + 1
        ...     def should_fire(self, state, context): return state >= 2
        ...     def on_fire(self, state, context): return 0, False
        ...     def on_merge(self, states, context): return sum(states)
        ...     def may_lose_rows(self, allowed_lateness_us): return False
    """

    waits_for_end: ClassVar[bool] = False
    """Whether a window with a row before its end is evaluated when the watermark reaches its end."""
    __repr__ = plain_repr

    def create(self) -> Any:
        """The state of a new window."""
        return None

    def on_rows(self, state: Any, count: int, context: TriggerContext, /) -> Any:
        """The state after ``count`` rows of one bundle arrived."""
        return state

    def should_fire(self, state: Any, context: TriggerContext, /) -> bool:
        """Whether the window fires."""
        raise NotImplementedError(f"{type(self).__name__}.should_fire(state, context) is not defined")

    def on_fire(self, state: Any, context: TriggerContext, /) -> tuple[Any, bool]:
        """The state after a firing, and whether the trigger is finished."""
        return self.create(), False

    def on_merge(self, states: Sequence[Any], context: TriggerContext, /) -> Any:
        """The state of a merged window, from the states of the windows that merge, in any order; that of a new row is one too."""
        raise NotImplementedError(
            f"{type(self).__name__}.on_merge(states, context) is not defined; merging windows need it"
        )

    def wakes_at(self, state: Any, /) -> int | None:
        """The clock, in microseconds, at which to evaluate the window; None: no timer."""
        return None

    def waits_for(self, state: Any, context: TriggerContext, /) -> str:
        """The condition that a window in this state waits for, to follow "it waits for" in ``why``."""
        return f"what {self!r} decides; its state is {shown(state)}"

    def may_lose_rows(self, allowed_lateness_us: int, /) -> bool:
        """Whether it can finish while rows may still arrive, which are then dropped.

        See docs/rules/triggers.md#triggers-that-can-lose-rows.
        """
        return True

    def describe(self) -> str:
        """When a window fires, to follow "a window fires"."""
        return f"as defined by {self!r}"

    def _repr_html_(self) -> str:
        return html_table((), [(repr(self), f"a window fires {self.describe()}")])

    def describe_repeated(self) -> str:
        """The same for a trigger that repeats."""
        return f"repeatedly {self.describe()}"

    def can_fire_before_end(self) -> bool:
        """Whether it may fire before the end of its window; if not, a window without an end emits nothing."""
        return True

    @property
    def asked_values(self) -> tuple[str, ...]:
        """The names of the accumulations whose values it reads."""
        return tuple(name for part in self.parts for name in part.asked_values)

    # The same on columns.

    @property
    def parts(self) -> tuple[Trigger, ...]:
        """The sub-triggers, in order."""
        return ()

    @property
    def columns(self) -> Mapping[str, tuple[str, Any]]:
        """The state's columns besides ``finished``: name to (dtype, initial value)."""
        return {"state": ("object", None)}

    @property
    def needs_clock(self) -> bool:
        """Whether the processing-time clock can fire it."""
        return type(self).wakes_at is not Trigger.wakes_at or any(part.needs_clock for part in self.parts)

    @property
    def needs_row_times(self) -> bool:
        """Whether it depends on the event times of rows, and the watermark can fire it before the end of a window."""
        return any(part.needs_row_times for part in self.parts)

    def on_rows_columns(self, s: State, at: WindowIndices, count: Any, now: Now) -> None:
        """``count[i]`` rows (int64, at least 1) of this bundle arrived for window ``at[i]``."""
        if self.waits_for_end:
            now.ask_at_end(at)
        for i, rows in zip(at.tolist(), count.tolist(), strict=True):
            s["state"][i] = (self._call(i, "on_rows", self._state(s, i), rows, _context(now, i)),)

    def should_fire_columns(self, s: State, at: WindowIndices, now: Now) -> Any:
        """Which of the windows ``at`` would fire: bool, one each."""
        answers = []
        for i in at.tolist():
            answer = self._call(i, "should_fire", self._state(s, i), _context(now, i))
            if not isinstance(answer, (bool, np.bool_)):
                raise self._wrong(i, f"should_fire returned {answer!r}: must be True or False")
            answers.append(answer)
        return np.array(answers, dtype=bool)

    def on_fire_columns(self, s: State, at: WindowIndices, now: Now) -> None:
        """The windows ``at`` fire."""
        for i in at.tolist():
            fired = self._call(i, "on_fire", self._state(s, i), _context(now, i))
            if not isinstance(fired, tuple) or len(fired) != 2 or not isinstance(fired[1], (bool, np.bool_)):
                raise self._wrong(
                    i, f"on_fire returned {fired!r}: must be a pair, (state, whether the trigger is finished)"
                )
            s["state"][i], s.finished[i] = (fired[0],), fired[1]

    def on_merge_columns(self, s: State, m: Merge, now: Now) -> None:
        """Windows merge. A new result has the initial state, one equal to a part has that part's."""
        for i, cells in zip(m.into.tolist(), m.lists(s["state"]), strict=True):
            if not cells:
                continue  # no parts: it stays new
            states = [unshared(self.create() if cell is None else cell[0]) for cell in cells]
            s["state"][i] = (self._call(i, "on_merge", states, _context(now, i)),)

    def _state(self, s: State, i: int) -> Any:
        """A copy of a window's state, since the methods may mutate it while the stored one may be shared or rolled back to."""
        cell = s["state"][i]
        return unshared(self.create() if cell is None else cell[0])

    def _call(self, window: int, method: str, *arguments: Any) -> Any:
        try:
            return getattr(self, method)(*arguments)
        except Exception as error:  # noqa: BLE001 - it is raised again
            check_memory(error)
            raise self._wrong(window, f"{method}{shown(arguments)} raised {describe_foreign(error)}") from cause(error)

    def _wrong(self, window: int, words: str) -> UserFunctionError:
        result = UserFunctionError(f"{self!r}.{words}; fix it and restart from the checkpoint; no data was lost")
        result.group = window
        return result

    def clear(self, s: State, at: WindowIndices) -> None:
        """Clear counts and timers in the windows ``at``, sub-triggers included."""
        for name, (_, new) in self.columns.items():
            s[name][at] = new
        for part, state in zip(self.parts, s.parts, strict=True):
            part.clear(state, at)

    def reset(self, s: State, at: WindowIndices) -> None:
        """Reset to the initial state in the windows ``at``: clear, and unfinish the whole tree."""
        self.clear(s, at)
        self._unfinish(s, at)

    def _unfinish(self, s: State, at: WindowIndices) -> None:
        s.finished[at] = False
        for part, state in zip(self.parts, s.parts, strict=True):
            part._unfinish(state, at)  # noqa: SLF001 - a trigger's own part

    def wakes_at_columns(self, s: State, at: WindowIndices) -> Any:
        """The least clock at which to evaluate the windows ``at``: int64, NEVER_US for none."""
        least = np.full(len(at), NEVER_US, dtype=np.int64)
        if type(self).wakes_at is not Trigger.wakes_at:
            for place, i in enumerate(at.tolist()):
                wake = self._call(i, "wakes_at", self._state(s, i))
                if wake is not None and not isinstance(wake, (int, np.integer)):
                    raise self._wrong(
                        i, f"wakes_at returned {wake!r}: must be None, or whole microseconds since the epoch"
                    )
                least[place] = NEVER_US if wake is None else min(max(wake, -NEVER_US), NEVER_US)
        for part, state in zip(self.parts, s.parts, strict=True):
            least = np.minimum(least, part.wakes_at_columns(state, at))
        return least

    def due_columns(self, s: State, at: WindowIndices) -> Any:
        """The least watermark at which to evaluate the windows ``at``, besides their end: int64, NEVER_US for none."""
        least = np.full(len(at), NEVER_US, dtype=np.int64)
        for part, state in zip(self.parts, s.parts, strict=True):
            least = np.minimum(least, part.due_columns(state, at))
        return least

    def waits_for_columns(self, s: State, at: WindowIndices, now: Waiting) -> pa.Array:
        """The conditions that the windows ``at``, which would not fire now, wait for, to follow "it waits for"."""
        words = [self._call(i, "waits_for", self._state(s, i), _context(now, i)) for i in at.tolist()]
        return pa.array(words, pa.string())


class Stateless(Trigger):
    """A built-in trigger without state, which is never finished."""

    def describe_repeated(self) -> str:
        return self.describe()

    @property
    def columns(self) -> Mapping[str, tuple[str, Any]]:
        return {}

    def on_rows_columns(self, s: State, at: WindowIndices, count: Any, now: Now) -> None:
        if self.waits_for_end:
            now.ask_at_end(at)

    def on_fire_columns(self, s: State, at: WindowIndices, now: Now) -> None:
        pass

    def on_merge_columns(self, s: State, m: Merge, now: Now) -> None:
        pass

    def may_lose_rows(self, allowed_lateness_us: int) -> bool:
        return False


def in_words(values: Any, words: Callable[[Any], str]) -> pa.Array:
    """Describe values, once per distinct value; values are a numpy array."""
    distinct, of = np.unique(values, return_inverse=True)
    return pa.array([words(value) for value in distinct.tolist()], pa.string()).take(pa.array(of))


def joined(*parts: Any) -> pa.Array:
    """Concatenate text entry by entry; a part is an array of text, or one text for all."""
    return pc.binary_join_element_wise(*parts, "")


def _context(now: Now, i: int) -> TriggerContext:
    return TriggerContext(int(now.start_us[i]), int(now.end_us[i]), now.watermark_us(i), now.clock_us)


def check_trigger(where: str, value: Any) -> Trigger:
    """Return ``value`` if it is a trigger.

    Raises:
        OptionError: it is not a trigger.
    """
    if isinstance(value, type) and issubclass(value, Trigger):
        raise OptionError(f"{where}={value.__name__}: a trigger class, not a trigger; write {value.__name__}(...)")
    if not isinstance(value, Trigger):
        raise OptionError(f"{where}={value!r}: must be a trigger, such as AfterWatermark() or AfterCount(100)")
    kind = type(value)
    if kind.should_fire is Trigger.should_fire and kind.should_fire_columns is Trigger.should_fire_columns:
        raise OptionError(
            f"{where}={value!r}: {kind.__name__} does not define should_fire; write should_fire(self, state, context), which returns whether the window fires now"
        )
    return value


if TYPE_CHECKING:  # type checkers treat a converter as a function of the value

    def read_trigger(value: Trigger) -> Trigger:
        """Read a field like ``check_trigger``."""

    def read_trigger_or_none(value: Trigger | None) -> Trigger | None:
        """Read a field like ``check_trigger``; None stays None."""

else:

    def _read_trigger(
        value: Trigger, option: Any, field: Any
    ) -> Trigger:  # names class and attribute in error messages
        return check_trigger(f"{type(option).__name__}({field.name})", value)

    def _read_trigger_or_none(value: Trigger | None, option: Any, field: Any) -> Trigger | None:
        return None if value is None else _read_trigger(value, option, field)

    read_trigger = attrs.Converter(_read_trigger, takes_self=True, takes_field=True)
    read_trigger_or_none = attrs.Converter(_read_trigger_or_none, takes_self=True, takes_field=True)
