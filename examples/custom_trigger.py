"""A trigger of your own: panes after 1, 2, 4, 8 ... rows, so a busy window says something soon and does not say it a thousand times.

It is a few plain functions of a window's state, here ``(rows so far, rows at which it fires next)``: the state that is new, after
rows, after a firing, and of windows that merged; and whether it fires now. What they are given besides says where the window, the
watermark and the clock are (``TriggerContext``). It goes wherever a built-in one does: here as the early part of
``AfterWatermark``, over sessions that merge.

    python examples/custom_trigger.py
"""

from collections.abc import Sequence

import attrs

import beamish as bm
from beamish.accumulations import Count
from beamish.testing import TestStream
from beamish.triggers import AfterWatermark, Trigger, TriggerContext

State = tuple[int, int]


@attrs.frozen
class Doubling(Trigger):
    """Fires at 1, 2, 4, 8 ... rows of a window, in all bundles together."""

    def create(self) -> State:
        return 0, 1

    def on_rows(self, state: State, count: int, context: TriggerContext) -> State:
        rows, due = state
        return rows + count, due

    def should_fire(self, state: State, context: TriggerContext) -> bool:
        rows, due = state
        return rows >= due

    def on_fire(self, state: State, context: TriggerContext) -> tuple[State, bool]:
        rows, _ = state
        return (rows, 2 ** rows.bit_length()), False  # not finished: it goes on

    def on_merge(self, states: Sequence[State], context: TriggerContext) -> State:
        return sum(rows for rows, _ in states), max(due for _, due in states)

    def may_lose_rows(self, allowed_lateness_us: int) -> bool:
        return False  # it is never finished, so no row finds it so

    def describe(self) -> str:
        return "after 1, 2, 4, 8 ... rows"

    def waits_for(self, state: State, context: TriggerContext) -> str:
        rows, due = state
        return f"{due - rows} more rows"  # for whoever asks why it did not fire


visits = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness("5 seconds"))
    .key_by("user")
    .window(bm.Sessions("10 seconds"))
    .trigger(AfterWatermark(early=Doubling()))
    .accumulating()
    .accumulate(clicks=Count())
)

script = TestStream()
for second in (0, 5, 8, 11, 30, 22, 15, 40, 45):  # 15 makes one visit of those before and that of 22 and 30
    script = script.add([{"ts": second, "user": "ann"}])

for pane in visits.run(script.advance_watermark_to_infinity()):
    print(f"{pane.start:%M:%S} to {pane.end:%M:%S}  {pane.timing:7} {pane.values['clicks']} clicks")
