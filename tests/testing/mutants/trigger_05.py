"""A pane five seconds (of the clock) after the first row that is in no pane yet; merged windows keep the earliest deadline."""

import attrs

from beamish.triggers import Trigger


@attrs.frozen
class FiveSecondsAfterTheFirst(Trigger):
    delay_us: int = 5_000_000

    def create(self):
        return None  # or the clock at which to fire

    def on_rows(self, state, count, context):
        return context.clock_us + self.delay_us if state is None else state

    def should_fire(self, state, context):
        return state is not None and context.clock_us >= state

    def on_fire(self, state, context):
        return None, False

    def wakes_at(self, state):
        return state

    def on_merge(self, states, context):
        return min((state for state in states if state is not None), default=None)

    def may_lose_rows(self, allowed_lateness_us):
        return False


trigger = FiveSecondsAfterTheFirst()
