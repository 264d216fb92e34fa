"""A rate limit for a slow sink: each team's total at most once per minute of the clock, always correct.

The pipeline fires with every batch and retracts what it replaces; ``suppress`` emits one net change per team and minute. The sink
applies rows in the order of their pane: a RETRACTION removes the old total, a PANE sets the new one.

    python examples/rate_limit.py
"""

import beamish as bm
from beamish.accumulations import Count, Sum
from beamish.testing import TestStream
from beamish.triggers import Always

totals = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness("30 seconds"))
    .key_by("team")
    .window(bm.FixedWindows("1 hour"))
    .trigger(Always())
    .accumulating_and_retracting()
    .accumulate(total=Sum("score"), plays=Count())
)
limited = totals.suppress(bm.UntilTimeLimit("1 minute", clock="processing"), name="slow_sink")

script = TestStream()
for second in range(0, 200, 10):  # a batch per ten seconds, a play of either team in each
    plays = [{"ts": second, "team": team, "score": 1 + second % 3} for team in ("red", "blue")]
    script = script.step(plays if second < 130 else [], clock=second)

table: dict[str, int] = {}
writes = 0
for number, (_, panes) in enumerate(script.trace(limited)):
    for pane in panes:
        writes += 1
        if pane.kind is bm.PaneKind.RETRACTION:
            del table[pane.key["team"]]
        else:
            table[pane.key["team"]] = pane.values["total"]
    if panes:
        print(f"{10 * number:3} seconds: {dict(sorted(table.items()))}")

unlimited = len(totals.run(script))
print(f"{writes} writes in place of {unlimited}")
