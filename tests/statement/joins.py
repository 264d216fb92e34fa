"""Joins in SQL."""

from typing import Any

import beamish as bm
from beamish.testing import TestStream

WATERMARK = bm.BoundedOutOfOrderness(0)
TABLES = {
    "rates": bm.Pipeline().event_time("ts", WATERMARK).key_by("currency").versions("1 hour", deleted="gone"),
    "names": bm.Pipeline().event_time("ts", WATERMARK).key_by("id").versions("1 hour"),
}


ORDERS: list[dict[str, Any]] = [{"ts": 1, "id": 7, "item": "tea"}, {"ts": 2, "id": None, "item": "jam"}]
PAYMENTS: list[dict[str, Any]] = [
    {"ts": 3, "oid": 7, "amount": 4},
    {"ts": 20, "oid": 7, "amount": 5},
    {"ts": 3, "oid": None, "amount": 9},
]
PAID = TestStream().add(ORDERS, input="orders").add(PAYMENTS, input="payments").advance_watermark_to_infinity()
PAIRS = "FROM orders AS o {} JOIN payments AS p WITHIN 10 SECONDS ON o.id = p.oid {}"


RATES = [{"ts": 1, "currency": "EUR", "rate": 1.1, "gone": False}, {"ts": 20, "currency": "EUR", "gone": True}]
CHANGED = (
    TestStream()
    .add(RATES, input="rates")
    .add([{"ts": 10, "id": 7, "cur": "eur"}, {"ts": 30, "id": 8, "cur": "eur"}], input="orders")
    .add([{"ts": 5, "currency": "EUR", "rate": 1.2, "gone": False}], input="rates")
    .add([{"ts": 2, "id": 7, "name": "ann"}], input="names")
    .advance_watermark_to_infinity()
)
ENRICHED = """
    SELECT o.id, rate, n.name FROM orders o {how} JOIN rates ON rates.currency = upper(o.cur) {how} JOIN names n ON o.id = n.id {emit}
"""
