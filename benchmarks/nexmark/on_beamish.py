"""The queries on beamish, as users would write them: ``queries(longest_ms)[name]`` is a pipeline.

Its live rows at the end are the answer (answers.py): a row stands until it is retracted. ``late_queries()`` are those of the late profile.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow.compute as pc

import beamish as bm
from beamish.accumulations import Count, First, InnerJoin, Max, Mean, TopNByKey, TopRows
from beamish.triggers import AfterWatermark, Always

_SOURCE = bm.Pipeline().event_time("dateTime", bm.BoundedOutOfOrderness("4 seconds"))
_BIDS = _SOURCE.key_by("auction")
_TEN_SECONDS = bm.FixedWindows("10 seconds")


_Panes = Callable[[bm.Pipeline], bm.Pipeline]
"""Sets when windows emit their panes."""


def _final(windowed: bm.Pipeline) -> bm.Pipeline:
    """A stage that drops late rows: one pane per window."""
    return windowed


def _late(windowed: bm.Pipeline) -> bm.Pipeline:
    """A stage that takes rows up to an hour late, and corrects its answer by them."""
    corrected = windowed.trigger(AfterWatermark(late=Always())).accumulating_and_retracting()
    return corrected.allowed_lateness("1 hour")


def _standing(keyed: bm.Pipeline) -> bm.Pipeline:
    """A stage over all time, whose rows stand until they are retracted."""
    return keyed.window(bm.GlobalWindow()).trigger(Always()).accumulating_and_retracting()


def _bids_in_time(longest_ms: int, **columns: pc.Expression) -> bm.Pipeline:
    """Each auction with each of its bids while it is open, with these columns."""
    inputs = bm.merge(auctions=_SOURCE.key_by("id"), bids=_BIDS)
    window = bm.Within(of="bids", after=f"{longest_ms} milliseconds")
    pairs = inputs.window(window).accumulate(pair=InnerJoin("auctions", "bids"))
    in_time = pc.field("pair", "bids", "dateTime") <= pc.field("pair", "auctions", "expires")
    return pairs.having(in_time).with_columns(price=pc.field("pair", "bids", "price"), **columns)


def q4(longest_ms: int) -> bm.Pipeline:
    """The mean of the winning bids of each category."""
    bids = _bids_in_time(longest_ms, category=pc.field("pair", "auctions", "category"))
    winning = bm.Pipeline().key_by("id", "category").accumulate(final=Max("price"))
    return bids.then(winning).then(_standing(bm.Pipeline().key_by("category")).accumulate(mean=Mean("final")))


def q5(panes: _Panes = _final) -> bm.Pipeline:
    """The auctions with the most bids of the last 10 seconds, every 2 seconds; all of them if several have as many."""
    counts = panes(_BIDS.window(bm.SlidingWindows("10 seconds", "2 seconds"))).accumulate(bids=Count())
    most = TopNByKey(1, key="auction", value="bids", with_ties=True)
    return counts.then(panes(bm.Pipeline()).accumulate(hottest=most))


def q9(longest_ms: int, **columns: pc.Expression) -> bm.Pipeline:
    """The winning bid of each auction: the highest one, of equals the first."""
    of_bid = {"bidder": pc.field("pair", "bids", "bidder"), "at": pc.field("pair", "bids", "dateTime")}
    best = TopRows(1, by=["price", "at"], least=[False, True])
    return _bids_in_time(longest_ms, **of_bid, **columns).then(bm.Pipeline().key_by("id").accumulate(best=best))


def q6(longest_ms: int) -> bm.Pipeline:
    """The mean of a seller's last eleven winning bids at each of them, in the order of the bids, and of auctions if those tie."""
    # A winning bid is emitted when its window ends: it is as old as that is long.
    at = bm.Pipeline().event_time("best.at", bm.BoundedOutOfOrderness(f"{3 * longest_ms} milliseconds"))
    by_seller = at.key_by("best.seller").over(bm.PrecedingRows(10)).accumulate(mean=Mean("best.price"))
    return q9(longest_ms, seller=pc.field("pair", "auctions", "seller")).then(by_seller)


def q7(panes: _Panes = _final) -> bm.Pipeline:
    """The highest bids of every 10 seconds."""
    return panes(_SOURCE.window(_TEN_SECONDS)).accumulate(highest=TopRows(1, by="price", with_ties=True))


def q8(panes: _Panes = _final) -> bm.Pipeline:
    """New people who open an auction within the same 10 seconds."""
    inputs = bm.merge(persons=_SOURCE.key_by("id"), auctions=_SOURCE.key_by("seller"))
    both = panes(inputs.window(_TEN_SECONDS)).accumulate(
        name=First("name").of("persons"), new=Count().of("persons"), opened=Count().of("auctions")
    )
    return both.having((pc.field("new") > 0) & (pc.field("opened") > 0))


def q11(panes: _Panes = _final) -> bm.Pipeline:
    """The number of bids of each user in each session of activity."""
    return panes(_SOURCE.key_by("bidder").window(bm.Sessions("10 seconds"))).accumulate(bids=Count())


def q11_early() -> bm.Pipeline:
    """q11, with the number so far after each batch."""
    return q11(lambda windowed: windowed.trigger(AfterWatermark(early=Always())).accumulating_and_retracting())


def q12() -> bm.Pipeline:
    """The number of bids of each user in 10 seconds of the clock: windows over the time at which a bid arrives."""
    arrived = bm.Pipeline().event_time("p_time", bm.BoundedOutOfOrderness(0)).key_by("bidder").window(_TEN_SECONDS)
    return arrived.trigger(AfterWatermark(early=Always())).accumulating().accumulate(bids=Count())


def q18() -> bm.Pipeline:
    """The last bid of each user on each auction."""
    return _standing(_BIDS.key_by("bidder", "auction")).accumulate(last=TopRows(1, by=["dateTime", "price"]))


def q19() -> bm.Pipeline:
    """The ten highest bids of each auction."""
    return _standing(_BIDS).accumulate(best=TopRows(10, by="price"))


def queries(longest_ms: int) -> dict[str, bm.Pipeline]:
    """The pipelines; ``longest_ms``: how long after its time an auction expires at most."""
    return {
        "q4": q4(longest_ms),
        "q5": q5(),
        "q6": q6(longest_ms),
        "q7": q7(),
        "q8": q8(),
        "q9": q9(longest_ms),
        "q11": q11(),
        "q11-early": q11_early(),
        "q12": q12(),
        "q18": q18(),
        "q19": q19(),
    }


def late_queries() -> dict[str, bm.Pipeline]:
    """The pipelines whose windows end, for rows that are late: answers are corrected for an hour."""
    return {"q5": q5(_late), "q7": q7(_late), "q8": q8(_late), "q11": q11(_late)}
