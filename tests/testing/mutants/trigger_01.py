"""A pane for every three new rows, and one with the rest when the window is over: it waits for the end."""

import attrs

from beamish.triggers import Trigger


@attrs.frozen
class EveryThreeAndTheRest(Trigger):
    n: int = 3
    waits_for_end = True

    def create(self):
        return 0

    def on_rows(self, state, count, context):
        return state + count

    def should_fire(self, state, context):
        over = context.watermark_us is not None and context.watermark_us >= context.end_us
        return state >= self.n or (over and state > 0)

    def on_fire(self, state, context):
        return 0, False

    def on_merge(self, states, context):
        return sum(states)

    def may_lose_rows(self, allowed_lateness_us):
        return False


trigger = EveryThreeAndTheRest()
