"""A value per row: each card payment with what the card paid in the minute before, and alerts that late payments correct.

A payment is emitted as soon as it arrives (early=Always()). It is an alert if it is the third of its card within a minute, or comes
from another country than the one before. A late payment changes what is right: its card's later rows are retracted and emitted
again, and an alert may appear or go.

    python examples/card_alerts.py
"""

import pyarrow.compute as pc

import beamish as bm
from beamish.accumulations import Count, Sum
from beamish.testing import TestStream
from beamish.triggers import AfterWatermark, Always

payments = (
    bm.Pipeline()
    .event_time("at", bm.BoundedOutOfOrderness("10 seconds"))
    .key_by("card")
    .over(bm.Preceding("1 minute"), order_by="number")
    .trigger(AfterWatermark(early=Always()))
    .allowed_lateness("10 minutes")
    .accumulating_and_retracting()
    .accumulate(payments=Count(), paid=Sum("amount"), before=bm.Lag("country"))
)
alerts = payments.having((pc.field("payments") >= 3) | (pc.field("country") != pc.field("before")))


def payment(at: int, number: int, amount: int, country: str) -> dict[str, object]:
    """One row of the stream."""
    return {"at": at, "card": 7, "number": number, "amount": amount, "country": country}


script = (
    TestStream()
    .add([payment(0, 1, 20, "NO")])
    .add([payment(30, 2, 5, "NO")])
    .add([payment(70, 4, 30, "SE")])  # from another country: an alert
    .advance_watermark_to(80)
    .add([payment(50, 3, 10, "SE")])  # late: the one at 70 follows it, so this is the alert, and that is the third
    .advance_watermark_to_infinity()
)
for title, pipeline in (("payments", payments), ("alerts", alerts)):
    print(title)
    for event, (_, panes) in enumerate(script.trace(pipeline), 1):
        for pane in panes:
            row = pane.values
            print(
                f"  event {event}: {pane.kind:10} number {row['number']} from {row['country']}, before {row['before']}: "
                f"{row['payments']} in a minute, {row['paid']} paid"
            )
