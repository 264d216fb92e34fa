"""A custom window option: sessions with a gap per row.

A row has the maximum silence of its device before its session ends. ``columns`` names the columns passed to ``assign`` besides
the timestamp, and ``merging`` merges overlapping windows of a key. Triggers, lateness, panes and retractions work as with the
built-in windows.

    python examples/custom_window.py
"""

from collections.abc import Iterable

import attrs

import beamish as bm
from beamish.accumulations import Count
from beamish.testing import TestStream

SECOND = 1_000_000  # times are microseconds


@attrs.frozen
class SessionsWithGap(bm.WindowOption):
    """A row starts as ``[ts, ts + gap)``, with the gap in its column ``gap``, in seconds; overlapping windows merge."""

    columns = ("gap",)
    merging = True

    def assign(self, timestamp_us: int, *values: int) -> Iterable[tuple[int, int]]:
        (gap,) = values
        yield timestamp_us, timestamp_us + gap * SECOND


visits = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness("5 seconds"))
    .key_by("device")
    .window(SessionsWithGap())
    .accumulate(signals=Count())
)

script = (
    TestStream()
    .add([{"ts": ts, "device": "phone", "gap": 10} for ts in (0, 8, 30)])
    .add([{"ts": ts, "device": "buoy", "gap": 600} for ts in (0, 8, 30, 500)])
    .advance_watermark_to_infinity()
)

for pane in sorted(visits.run(script), key=lambda pane: (pane.key["device"], pane.window)):
    print(f"{pane.key['device']:6} {pane.start:%H:%M:%S} to {pane.end:%H:%M:%S}  {pane.values['signals']} signals")
