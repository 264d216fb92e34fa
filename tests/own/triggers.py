"""Triggers as users write them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from beamish.triggers import Trigger, TriggerContext
from tests.seconds import S


@attrs.frozen
class EveryOtherBundle(Trigger):
    """A user's trigger that counts bundles."""

    def create(self):
        return 0

    def on_rows(self, state: int, count: int, context: TriggerContext):
        return state + 1

    def should_fire(self, state: int, context: TriggerContext):
        return state >= 2

    def on_fire(self, state: int, context: TriggerContext):
        return 0, False

    def on_merge(self, states: Sequence[int], context: TriggerContext):
        return sum(states)

    def may_lose_rows(self, allowed_lateness_us: int):
        return False


@attrs.frozen
class QuietFor(Trigger):
    """A user's trigger: when no row has come for ``us`` on the clock; finished after ``times`` firings."""

    us: int = 2 * S
    times: int = 2

    @property
    def needs_clock(self):
        return True

    def create(self):
        return {"wake": None, "fired": 0}

    def on_rows(self, state: dict[str, Any], count: int, context: TriggerContext):
        return {**state, "wake": context.clock_us + self.us}

    def should_fire(self, state: dict[str, Any], context: TriggerContext):
        return state["wake"] is not None and context.clock_us >= state["wake"]

    def on_fire(self, state: dict[str, Any], context: TriggerContext):
        return {"wake": None, "fired": state["fired"] + 1}, state["fired"] + 1 >= self.times

    def on_merge(self, states: Sequence[dict[str, Any]], context: TriggerContext):
        wakes = [state["wake"] for state in states if state["wake"] is not None]
        return {"wake": max(wakes, default=None), "fired": max(state["fired"] for state in states)}

    def wakes_at(self, state: dict[str, Any]):
        return state["wake"]


@attrs.frozen
class AtEndOnce(Trigger):
    """A user's trigger that waits for the end of the window."""

    waits_for_end = True

    def create(self):
        return False

    def on_rows(self, state: bool, count: int, context: TriggerContext):
        return state

    def should_fire(self, state: bool, context: TriggerContext):
        return not state and context.at_end

    def on_fire(self, state: bool, context: TriggerContext):
        return True, False

    def on_merge(self, states: Sequence[bool], context: TriggerContext):
        return all(states)

    def may_lose_rows(self, allowed_lateness_us: int):
        return False
