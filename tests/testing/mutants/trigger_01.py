"""A pane for every three new rows, and one with the rest when the window is over.

Wrong: ``should_fire`` knows about the end, but nothing says that the trigger waits for it (``waits_for_end``), so it is not
asked when the watermark arrives there. The rest comes only as the window expires, an hour later under a lateness of an hour.
"""

import attrs

from beamish.triggers import Trigger


@attrs.frozen
class EveryThreeAndTheRest(Trigger):
    n: int = 3

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
