"""The laws of triggers (beamish/triggers/trigger.py), on scripts, and their check.

A script has rows, watermarks and clocks of one window, from 0 to ``SIZE`` seconds.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

import attrs
import numpy as np
from hypothesis import strategies as st

from beamish.durations import DurationLike, duration
from beamish.errors import OptionError
from beamish.kernels.codec import decode, encode
from beamish.script import Event, as_step, in_words
from beamish.testing.laws.report import Law, require, search
from beamish.testing.laws.seen import Seen
from beamish.testing.laws.variants import shorter
from beamish.testing.stream import TestStream
from beamish.triggers import Trigger, TriggerContext
from beamish.triggers.trigger import check_trigger as read

SIZE = 100
"""Seconds of the window."""
SIZE_US = SIZE * 1_000_000
MOST_TIMERS = 100
"""Timers that a window may have without new rows."""


def check_trigger(
    trigger: Trigger,
    *,
    allowed_lateness: DurationLike = 30,
    merging: bool = True,
    rearms: bool = True,
    examples: int = 200,
    seed: int = 0,
    floor: float = 0.02,
) -> Seen:
    """Check a trigger of your own on drawn scripts of a window.

    The laws: ``should_fire`` changes nothing; windows do not share state; a state is stored and restored unchanged; what fires a
    window is a row, its timer or its end, as ``wakes_at`` and ``waits_for_end`` declare; after a firing it waits again; without new
    rows its timers run out; it finishes, and fires early, only as ``may_lose_rows`` and ``can_fire_before_end`` declare; a merge does not depend on the order
    of its parts or on its steps.

    Args:
        trigger: the trigger, with the methods of a single window (``create`` to ``wakes_at``).
        allowed_lateness: of the window.
        merging: whether its windows merge too; False for a trigger without ``on_merge``.
        rearms: whether it waits again after a firing; False for one that, once it has fired, does so with each bundle.
        examples: the number of examples.
        seed: of the examples; another seed draws others.
        floor: share of the examples in which it must fire, and in which each law must have something to compare; 0: none.

    Returns:
        what was drawn.

    Raises:
        LawError: a law does not hold, with the smallest script that breaks it.
        VacuousError: it fired in too few examples, or a law had too little to compare.
        OptionError: not a trigger, or a built-in one.

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
        >>> check_trigger(EveryOtherBundle(), examples=20).examples
        20
    """
    read("check_trigger(trigger)", trigger)
    if type(trigger).should_fire is Trigger.should_fire:
        raise OptionError(
            f"check_trigger({trigger!r}): a built-in trigger, which has no methods of a single window; check triggers of your own"
        )
    lateness_us = duration("check_trigger(allowed_lateness)", allowed_lateness).us
    seen = Seen()

    def laws_of(scripts: Sequence[TestStream]) -> Mapping[Law, Sequence[Any]]:
        a, b, c, after = scripts
        laws: dict[Law, Sequence[Any]] = {
            windows_do_not_share_state: (trigger, a, b),
            should_fire_changes_nothing: (trigger, a),
            state_restores_window: (trigger, a),
            firings_are_announced: (trigger, a),
            timers_run_out: (trigger, a),
            finishes_as_declared: (trigger, a, lateness_us / 1e6),
            fires_early_as_declared: (trigger, a),
        }
        if rearms:
            laws[firing_rearms] = (trigger, a)
        if merging:
            laws |= {
                state_merged_alone_is_unchanged: (trigger, a, after),
                states_merge_in_any_order: (trigger, a, b, after),
                states_merge_in_steps_as_at_once: (trigger, a, b, c, after),
            }
        return laws

    def counted(window: _Window, script: TestStream) -> None:
        outcomes: Counter[str] = Counter()
        for event in script.events:
            outcome, early = window.step(event), not window.context.at_end
            outcomes.update([outcome])
            outcomes["early"] += outcome == _FIRES and early
            outcomes["waited"] += outcome == _WAITS and early and bool(as_step(event).rows)
        firings = outcomes[_FIRES] + outcomes[_FINISHES]
        rows = sum(len(as_step(event).rows) for event in script.events)
        seen.add({"rows": rows, "firings": firings, "finished": outcomes[_FINISHES]})
        can_rearm.update(name for name in ("early", "waited") if outcomes[name])

    can_rearm: set[str] = set()
    moves = _moves(lateness_us / 1e6)
    script = _sizes.flatmap(lambda fewest: st.lists(moves, min_size=fewest, max_size=6)).map(_script)
    compared = search(
        st.tuples(script, script, script, script),
        laws_of,
        examples=examples,
        seed=seed,
        held=lambda scripts: counted(_Window(trigger), scripts[0]),
        smaller=_smaller,
    )
    seen.note(compared)
    merges: list[Law] = [states_merge_in_any_order, states_merge_in_steps_as_at_once] if merging else []
    # A trigger that fires with each bundle, or only at the end, or finishes then, has nothing to wait for again.
    waits_again: list[Law] = [firing_rearms] if rearms and len(can_rearm) == 2 else []
    return seen.check("firings", windows_do_not_share_state, *waits_again, *merges, floor=floor)


def _smaller(arguments: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """The arguments of a law with a shorter script."""
    for place, script in enumerate(arguments):
        for one in shorter(script) if isinstance(script, TestStream) else ():
            yield (*arguments[:place], one, *arguments[place + 1 :])


def should_fire_changes_nothing(trigger: Trigger, script: TestStream) -> None:
    """``should_fire`` returns the same when it is called again, and changes no state."""
    window = _Window(trigger)
    for event in script.events:
        window.step(event)
        before = copy.deepcopy(window.state)
        expected = [trigger.should_fire(window.state, window.context), before]
        given = [trigger.should_fire(copy.deepcopy(before), window.context), window.state]
        require(should_fire_changes_nothing, expected=expected, given=given)


def windows_do_not_share_state(trigger: Trigger, script: TestStream, other: TestStream) -> bool:
    """A window fires as it would alone, whatever happens in another window.

    It compares two windows that both have rows.
    """
    expected = _Window(trigger).run(script)
    one, another, given = _Window(trigger), _Window(trigger), []
    for event, of_another in zip_longest(script.events, other.events):
        if of_another is not None:
            another.step(of_another)
        if event is not None:
            given.append(one.step(event))
    require(windows_do_not_share_state, expected=expected, given=given)
    return one.has_rows and another.has_rows


def state_restores_window(trigger: Trigger, script: TestStream) -> None:
    """A window whose state is stored and restored after each event fires as before."""
    expected, window, given = _Window(trigger).run(script), _Window(trigger), []
    for event in script.events:
        given.append(window.step(event))
        window.state = decode(encode(window.state))
    require(state_restores_window, expected=expected, given=given)


def firings_are_announced(trigger: Trigger, script: TestStream) -> None:
    """A window is not ready before the timer of ``wakes_at``, if there are timers; one that is ready at its end ``waits_for_end``."""
    window, has_timers = _Window(trigger), type(trigger).wakes_at is not Trigger.wakes_at
    for event in script.events:
        before, due = window.is_ready(), window.advance(event)
        if window.is_ready() and not before and (has_timers or as_step(event).clock_us is None):
            given = "evaluated" if due else f"ready after {in_words(event)}, but not evaluated"
            require(firings_are_announced, expected="evaluated", given=given)
        if due:
            window.evaluate()


def firing_rearms(trigger: Trigger, script: TestStream) -> bool:
    """A window that was not ready after its first rows is not ready right after it fired, before another row arrives.

    It compares firings, before the end, of windows that were not ready after an earlier row.
    """
    window, waited, compared = _Window(trigger), False, False
    for event in script.events:
        fired = window.step(event) == _FIRES
        waited |= bool(as_step(event).rows) and not fired
        if fired and waited and not window.context.at_end:
            require(firing_rearms, expected="ready: False", given=f"ready: {window.is_ready()}")
            compared = True
    return compared


def timers_run_out(trigger: Trigger, script: TestStream) -> None:
    """Without new rows the timers of a window run out, so that a quiet stream becomes silent."""
    window, wakes = _Window(trigger), 0
    window.run(script)
    while (wake := window.wakes_at()) is not None and wakes < MOST_TIMERS:
        window.clock_us = max(window.clock_us, wake)
        window.evaluate()
        wakes += 1
    given = "no timer" if wake is None else f"after {wakes} timers another one, at {wake / 1e6} seconds"
    require(timers_run_out, expected="no timer", given=given)


def finishes_as_declared(trigger: Trigger, script: TestStream, allowed_lateness: float) -> None:
    """A trigger whose ``may_lose_rows`` is False does not finish before its window expires."""
    window, lateness_us = _Window(trigger), round(allowed_lateness * 1_000_000)
    for event in script.events:
        window.step(event)
        if window.finished and (window.watermark_us is None or window.watermark_us < SIZE_US + lateness_us):
            given = trigger.may_lose_rows(lateness_us)
            require(finishes_as_declared, expected="may_lose_rows: True", given=f"may_lose_rows: {given}")


def fires_early_as_declared(trigger: Trigger, script: TestStream) -> None:
    """A trigger whose ``can_fire_before_end`` is False does not fire before the end of its window."""
    window = _Window(trigger)
    for event in script.events:
        if window.step(event) in (_FIRES, _FINISHES) and not window.context.at_end:
            given = trigger.can_fire_before_end()
            require(
                fires_early_as_declared, expected="can_fire_before_end: True", given=f"can_fire_before_end: {given}"
            )


def state_merged_alone_is_unchanged(trigger: Trigger, part: TestStream, after: TestStream) -> None:
    """A window that results from a single one continues as that one."""
    for window in _open_windows(trigger, part):
        merged = _merged(trigger, [window])
        require(state_merged_alone_is_unchanged, expected=window.continued(after), given=merged.continued(after))


def states_merge_in_any_order(trigger: Trigger, a: TestStream, b: TestStream, after: TestStream) -> bool:
    """A merged window continues alike, whatever the order of its parts.

    It compares merges of two windows that have rows and are not finished.
    """
    parts = _open_windows(trigger, a, b)
    if len(parts) == 2:
        one, other = (_merged(trigger, ordered).continued(after) for ordered in (parts, parts[::-1]))
        require(states_merge_in_any_order, expected=one, given=other)
    return len(parts) == 2


def states_merge_in_steps_as_at_once(
    trigger: Trigger, a: TestStream, b: TestStream, c: TestStream, after: TestStream
) -> bool:
    """Three windows that merge one after the other continue as those that merge at once.

    It compares merges of three windows that have rows and are not finished.
    """
    parts = _open_windows(trigger, a, b, c)
    if len(parts) == 3:
        at_once, in_steps = _merged(trigger, parts), _merged(trigger, [_merged(trigger, parts[:2]), parts[2]])
        expected, given = at_once.continued(after), in_steps.continued(after)
        require(states_merge_in_steps_as_at_once, expected=expected, given=given)
    return len(parts) == 3


_sizes = st.sampled_from((0, 0, 5))
"""The fewest moves of a script: by itself Hypothesis draws mostly few."""


def _moves(lateness: float) -> st.SearchStrategy[tuple[str, float]]:
    """Rows, clocks and watermarks: at, just before and after the end of the window and its lateness."""
    edges = (SIZE, SIZE - 1, SIZE / 2, SIZE + 10, SIZE + lateness, SIZE + max(lateness - 1, 0), SIZE + 86_400)
    return st.one_of(
        st.tuples(st.just("rows"), st.sampled_from((1, 2, 3))),
        st.tuples(st.just("rows one by one"), st.sampled_from((1, 2, 3, 4, 5, 6))),
        st.tuples(st.just("clock"), st.sampled_from((1, 2, 5, 10, 30, 60, 300, 3_600, 86_400))),
        st.tuples(st.just("watermark"), st.sampled_from(edges)),
    )


def _script(moves: Sequence[tuple[str, float]]) -> TestStream:
    script, watermark = TestStream(), 0.0
    for kind, by in moves:
        if kind == "rows":
            script = script.add([{"ts": 0}] * int(by))
        elif kind == "rows one by one":
            for _ in range(int(by)):
                script = script.add([{"ts": 0}])
        elif kind == "clock":
            script = script.advance_processing_time_by(by)
        else:
            watermark = max(watermark, by)
            script = script.advance_watermark_to(watermark)
    return script


_FIRES, _FINISHES, _WAITS = "fires", "fires and finishes", "does not fire"


@attrs.define
class _Window:
    """A window and its trigger, evaluated as the engine does (docs/rules/triggers.md#when-a-window-is-asked)."""

    trigger: Trigger
    state: Any = attrs.Factory(lambda self: copy.deepcopy(self.trigger.create()), takes_self=True)
    has_rows: bool = False
    asks_at_end: bool = False
    finished: bool = False
    watermark_us: int | None = None
    clock_us: int = 0

    @property
    def context(self) -> TriggerContext:
        return TriggerContext(0, SIZE_US, self.watermark_us, self.clock_us)

    def run(self, script: TestStream) -> list[str]:
        """Whether it fires, at each event."""
        return [self.step(event) for event in script.events]

    def continued(self, script: TestStream) -> list[str]:
        """The same, with its state at the beginning."""
        return [f"ready: {self.is_ready()}", f"timer: {self.wakes_at()}", *self.run(script)]

    def step(self, event: Event) -> str:
        return self.evaluate() if self.advance(event) else _WAITS

    def advance(self, event: Event) -> bool:
        """Rows arrive, or a clock moves; returns whether the window is evaluated."""
        step, was_at_end = as_step(event), self.context.at_end
        self.watermark_us = self.watermark_us if step.watermark_us is None else step.watermark_us
        self.clock_us = self.clock_us if step.clock_us is None else step.clock_us
        if self.finished or not (self.has_rows or step.rows):
            return False
        if step.rows:
            self.has_rows = True
            self.state = self.trigger.on_rows(copy.deepcopy(self.state), len(step.rows), self.context)
            self.asks_at_end |= self.trigger.waits_for_end and not self.context.at_end
            return True
        ends = self.asks_at_end and self.context.at_end and not was_at_end
        wake = self.wakes_at()
        return ends or (step.clock_us is not None and wake is not None and wake <= self.clock_us)

    def evaluate(self) -> str:
        if not self.is_ready():
            return _WAITS
        self.state, self.finished = self.trigger.on_fire(copy.deepcopy(self.state), self.context)
        _check_bool("on_fire(...)[1]", self.finished)
        return _FINISHES if self.finished else _FIRES

    def is_ready(self) -> bool:
        if self.finished or not self.has_rows:
            return False
        answer = self.trigger.should_fire(copy.deepcopy(self.state), self.context)
        _check_bool("should_fire", answer)
        return answer

    def wakes_at(self) -> int | None:
        return None if self.finished else self.trigger.wakes_at(copy.deepcopy(self.state))


def _check_bool(what: str, answer: Any) -> None:
    if not isinstance(answer, (bool, np.bool_)):
        raise TypeError(f"{what} is {answer!r}: must be True or False")


def _open_windows(trigger: Trigger, *scripts: TestStream) -> list[_Window]:
    """The windows after these scripts that have rows and are not finished."""
    windows = [_Window(trigger) for _ in scripts]
    for window, script in zip(windows, scripts, strict=True):
        window.run(script)
    return [window for window in windows if window.has_rows and not window.finished]


def _merged(trigger: Trigger, parts: Sequence[_Window]) -> _Window:
    watermarks = [part.watermark_us for part in parts if part.watermark_us is not None]
    merged = _Window(
        trigger,
        has_rows=True,
        asks_at_end=any(part.asks_at_end for part in parts),
        watermark_us=max(watermarks, default=None),
        clock_us=max(part.clock_us for part in parts),
    )
    merged.state = trigger.on_merge([copy.deepcopy(part.state) for part in parts], merged.context)
    return merged
