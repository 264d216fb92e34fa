"""Clicks per user and hour, with an early pane for every two."""

import attrs

import beamish as bm
from beamish.accumulations import Count
from beamish.triggers import AfterWatermark, Trigger

DISORDER = 60  # seconds by which the source's rows may be late


@attrs.frozen
class EveryTwo(Trigger):
    n: int = 2

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


pipeline = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness("1 minute"))
    .key_by("user")
    .window(bm.FixedWindows("1 hour"))
    .trigger(AfterWatermark(early=EveryTwo()))
    .accumulating()
    .accumulate(clicks=Count())
)
rows = "user string, ts timestamp"
expected = None
