"""A rate-limited changelog with deletions: at most one change of an account per minute.

The rows are changes from another system: the account's balance, or its deletion. Of several changes in a minute only the newest,
by the source's own numbers, is emitted; a late one with a smaller number is ignored.

    python examples/limited_changes.py
"""

from datetime import UTC, datetime, timedelta

import beamish as bm
from beamish.testing import TestStream

accounts = (
    bm.Pipeline()
    .event_time("changed_at", bm.BoundedOutOfOrderness("10 seconds"))
    .key_by("account")
    .changes(deleted="is_deleted", sequence_by="number")
    .suppress(bm.UntilTimeLimit("1 minute", clock="event"))
)

NINE = datetime(2024, 5, 1, 9, tzinfo=UTC)


def change(second: int, number: int, account: str, balance: int, *, is_deleted: bool = False) -> dict[str, object]:
    """An input change."""
    at = NINE + timedelta(seconds=second)
    return {"changed_at": at, "number": number, "account": account, "balance": balance, "is_deleted": is_deleted}


script = (
    TestStream()
    .add([change(0, 1, "savings", 10), change(5, 3, "savings", 30), change(20, 4, "daily", 7)])
    .add([change(8, 2, "savings", 20)])  # arrives late: number 3 is newer
    .advance_watermark_to(NINE + timedelta(seconds=60))
    .add([change(70, 5, "daily", 0, is_deleted=True), change(75, 6, "savings", 40)])
    .advance_watermark_to(NINE + timedelta(seconds=80))
    .advance_watermark_to(NINE + timedelta(seconds=150))
)

for event, rows in script.trace(accounts):
    print(type(event).__name__)
    for row in rows:
        what = "is gone" if row.kind is bm.PaneKind.RETRACTION else f"has {row.values['balance']}"
        print(f"  {row.timestamp:%H:%M:%S} {row.key['account']} {what}")

print("still held:", [held.key["account"] for held in accounts.state(TestStream(script.events[:4])).held()])
