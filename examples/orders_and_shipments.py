"""Orders joined with their shipments, each pair once; unmatched orders and shipments in any order of arrival.

An order may be shipped in several boxes, and a shipment may arrive before its order. Each pair is emitted when its second row
arrives, and is never repeated or retracted, so it can be appended to a log. An order is stored for 30 days: then it is emitted
alone if nothing was shipped. A shipment waits for its order for a day. Older rows are listed as dropped. On Spark:
``shipped.apply(orders=..., shipments=...)``.

    python examples/orders_and_shipments.py
"""

import beamish as bm
from beamish.accumulations import LeftOuterJoin
from beamish.testing import TestStream
from beamish.triggers import AfterCount, Repeatedly

DAY = 86_400

orders = bm.Pipeline().event_time("ordered", bm.BoundedOutOfOrderness("1 hour")).key_by("order")
shipments = bm.Pipeline().event_time("shipped", bm.BoundedOutOfOrderness("1 hour")).key_by("order")
shipped = (
    bm.merge(orders=orders, shipments=shipments)
    .window(bm.GlobalWindow())
    .trigger(Repeatedly(AfterCount(1)))
    .discarding()
    .with_dropped()
    .accumulate(
        pair=LeftOuterJoin("orders", "shipments", once=True, keep_for={"orders": "30 days", "shipments": "1 day"})
    )
)

script = (
    TestStream()
    .add([{"order": 7, "ordered": 0, "item": "tea"}, {"order": 8, "ordered": 0, "item": "jam"}], input="orders")
    .add(
        [{"order": 7, "shipped": 1 * DAY, "box": "a"}, {"order": 9, "shipped": 2 * DAY, "box": "b"}], input="shipments"
    )
    .add([{"order": 9, "ordered": 1.5 * DAY, "item": "nuts"}], input="orders")
    .add([{"order": 7, "shipped": 2 * DAY, "box": "c"}], input="shipments")
    .advance_watermark_to(30 * DAY)
    .add(
        [{"order": 8, "shipped": 28 * DAY, "box": "d"}, {"order": 9, "shipped": 31 * DAY, "box": "e"}],
        input="shipments",
    )
)

for number, (_, rows) in enumerate(script.trace(shipped), 1):
    for row in rows:
        if row.kind is bm.PaneKind.DROPPED:
            late = row.values["shipments"]
            print(f"event {number}: order {row.key['order']}: box {late['box']} is too old: {row.reason}")
            continue
        order, shipment = row.values["pair"]["orders"], row.values["pair"]["shipments"]
        box = f"in box {shipment['box']}" if shipment else "was not shipped"
        print(f"event {number}: order {row.key['order']}: {order['item']} {box}")
