"""A pane for every three clicks of a visit.

Wrong: a merged visit starts to count anew (``on_merge`` returns ``create()``), so clicks before the merge are lost.
"""

import attrs

from beamish.triggers import Trigger


@attrs.frozen
class EveryThreeClicks(Trigger):
    n: int = 3

    def create(self):
        return 0

    def on_rows(self, state, count, context):
        return state + count

    def should_fire(self, state, context):
        return state >= self.n

    def on_fire(self, state, context):
        return 0, False

    def on_merge(self, states, context):
        return self.create()

    def may_lose_rows(self, allowed_lateness_us):
        return False


trigger = EveryThreeClicks()
