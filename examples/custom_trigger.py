"""A custom trigger: panes after 1, 2, 4, 8 ... rows, so a busy window fires early but not a thousand times.

It is a few plain functions of a window's state, here ``(rows so far, rows at which it fires next)``: the new state, the state
after rows, after a firing, and after a merge; and whether it fires now. They also receive the window, the watermark and the clock
(``TriggerContext``). It works wherever a built-in one does: here as the early part of ``AfterWatermark``, over sessions.

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
    """Fires at 1, 2, 4, 8 ... rows of a window, over all bundles."""

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
        return (rows, 2 ** rows.bit_length()), False  # not finished: it continues

    def on_merge(self, states: Sequence[State], context: TriggerContext) -> State:
        return sum(rows for rows, _ in states), max(due for _, due in states)

    def may_lose_rows(self, allowed_lateness_us: int) -> bool:
        return False  # never finished, so no row arrives after it

    def describe(self) -> str:
        return "after 1, 2, 4, 8 ... rows"

    def waits_for(self, state: State, context: TriggerContext) -> str:
        rows, due = state
        return f"{due - rows} more rows"  # shown when asked why it did not fire


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
for second in (0, 5, 8, 11, 30, 22, 15, 40, 45):  # 15 merges the earlier visits with that of 22 and 30
    script = script.add([{"ts": second, "user": "ann"}])

for pane in visits.run(script.advance_watermark_to_infinity()):
    print(f"{pane.start:%M:%S} to {pane.end:%M:%S}  {pane.timing:7} {pane.values['clicks']} clicks")
