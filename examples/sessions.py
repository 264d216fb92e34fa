"""Sessions that grow and merge, with retractions: a consumer never counts a visit twice.

A user's clicks belong to one session as long as less than 30 minutes pass between them. Panes are emitted early, with every
bundle. When a session grows its bounds change, so the pane with the old bounds is retracted at once.

    python examples/sessions.py
"""

from datetime import UTC, datetime

import beamish as bm
from beamish.accumulations import Count, Sum
from beamish.testing import TestStream
from beamish.triggers import AfterWatermark, Always

sessions = (
    bm.Pipeline()
    .event_time("at", bm.BoundedOutOfOrderness("10 minutes"))
    .key_by("user")
    .window(bm.Sessions("30 minutes"))
    .trigger(AfterWatermark(early=Always(), late=Always()))
    .allowed_lateness("1 hour")
    .accumulating_and_retracting()
    .retract_merged(bm.AT_MERGE)
    .accumulate(clicks=Count(), spent=Sum("price"))
)


def click(hour: int, minute: int, price: int) -> dict[str, object]:
    """One row of the stream."""
    return {"at": datetime(2024, 5, 1, hour, minute, tzinfo=UTC), "user": "ann", "price": price}


script = (
    TestStream()
    .add([click(9, 0, 5)])
    .add([click(9, 40, 3)])  # 40 minutes later: a second session
    .add([click(9, 20, 1)])  # out of order, between the two: they merge
    .advance_watermark_to(datetime(2024, 5, 1, 11, 0, tzinfo=UTC))
    .advance_watermark_to_infinity()
)

live = 0
for pane in sessions.run(script):
    live += pane.values["spent"] if pane.kind == bm.PaneKind.PANE else -pane.values["spent"]
    print(
        f"{pane.start:%H:%M} to {pane.end:%H:%M}  {pane.kind:10}  {pane.timing:7}  "
        f"clicks={pane.values['clicks']} spent={pane.values['spent']}   so far spent in all: {live}"
    )
