"""A pane whenever five more rows have arrived, at least: counted since the last firing."""

import attrs

from beamish.triggers import Trigger


@attrs.frozen
class EveryFive(Trigger):
    n: int = 5

    def create(self):
        return 0

    def on_rows(self, state, count, context):
        return state + count

    def should_fire(self, state, context):
        return state >= self.n

    def on_fire(self, state, context):
        return 0, False

    def on_merge(self, states, context):
        return sum(states)

    def may_lose_rows(self, allowed_lateness_us):
        return False


trigger = EveryFive()
