"""A pane five seconds (of the clock) after the first row that is in no pane yet.

Wrong: of windows that merge it takes the last deadline of the list, whatever the order of its parts is: often a later one, or none,
since that part has just fired. Then the others' rows are reported too late, or not before another row.
"""

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
        return states[-1]

    def may_lose_rows(self, allowed_lateness_us):
        return False


trigger = FiveSecondsAfterTheFirst()
