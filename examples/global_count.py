"""One window for all of time, and a pane for every three payments of an account.

The global window never ends, so the trigger must not wait for its end. Discarding: each pane has the payments since the last one.
The trigger is evaluated once per bundle: a bundle of more than three gives a single pane.

    python examples/global_count.py
"""

import beamish as bm
from beamish.accumulations import Collect, Count, Sum
from beamish.testing import TestStream
from beamish.triggers import AfterCount, Repeatedly

every_third = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness("1 minute"))
    .key_by("account")
    .window(bm.GlobalWindow())
    .trigger(Repeatedly(AfterCount(3)))
    .discarding()
    .accumulate(payments=Count(), total=Sum("amount"), amounts=Collect("amount"))
)


def payments(*amounts: int) -> list[dict[str, object]]:
    """A bundle of payments."""
    return [{"ts": second, "account": "savings", "amount": amount} for second, amount in enumerate(amounts)]


script = TestStream().add(payments(10, 20)).add(payments(30)).add(payments(1, 2, 3, 4)).add(payments(50))

for pane in every_third.run(script):
    print(f"pane {pane.index} of {pane.key['account']}: {pane.values}")
print("the payment of 50 waits for two more")
