"""A changelog with deletions, limited: at most one change of an account per minute, whatever the source sends.

The rows are changes as another system writes them: the account's balance, or that it is gone. Of several changes in a
minute only the newest, by the source's own numbers, comes out; a late one with a smaller number counts for nothing.

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
    """A change as it comes in."""
    at = NINE + timedelta(seconds=second)
    return {"changed_at": at, "number": number, "account": account, "balance": balance, "is_deleted": is_deleted}


script = (
    TestStream()
    .add([change(0, 1, "savings", 10), change(5, 3, "savings", 30), change(20, 4, "daily", 7)])
    .add([change(8, 2, "savings", 20)])  # it came late: number 3 is newer
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
