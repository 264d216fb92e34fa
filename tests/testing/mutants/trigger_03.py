"""A pane whenever five more rows have arrived, at least.

Wrong: it asks whether the number of rows so far is a multiple of five. Rows come in bundles, so a bundle jumps over the multiple
and nothing fires; and with no rows at all it would fire, since 0 is a multiple.
"""

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
        return state % self.n == 0

    def on_fire(self, state, context):
        return state, False

    def on_merge(self, states, context):
        return sum(states)

    def may_lose_rows(self, allowed_lateness_us):
        return False


trigger = EveryFive()
