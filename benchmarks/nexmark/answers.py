"""The answers to the queries: what an output says, and what it should, from plain Python.

An answer is a sorted list of rows of numbers and texts; times are milliseconds since the epoch. Systems name and nest their columns as
they like, so each has a function that makes rows of its output: ``of_panes`` for beamish.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from beamish.pane import Pane

Row = tuple[Any, ...]
Events = Mapping[str, Sequence[Mapping[str, Any]]]
"""``persons``, ``auctions`` and ``bids``, each a list of rows."""

_BID = ("auction", "bidder", "price", "dateTime", "extra")


def checksum(answer: Iterable[Row]) -> str:
    """A checksum of an answer."""
    return hashlib.sha256(json.dumps([list(row) for row in answer]).encode()).hexdigest()


def _ms(time: datetime) -> int:
    return round(time.timestamp() * 1000)


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return _ms(value)
    return round(value, 6) if isinstance(value, float) else value


def _sorted(rows: Iterable[Sequence[Any]]) -> list[Row]:
    """Rows in order, without those of the events that close the input: only their ids are negative."""
    plain = (tuple(map(_plain, row)) for row in rows)
    return sorted(row for row in plain if not any(isinstance(value, (int, float)) and value < 0 for value in row))


# What beamish's live panes say.


def _window(pane: Pane) -> list[Any]:
    assert pane.window is not None
    return [pane.window.start, pane.window.end]


_OF_PANE: Mapping[str, Callable[[Pane], Iterable[Sequence[Any]]]] = {
    "q4": lambda pane: [[pane.key["category"], pane.values["mean"]]],
    "q5": lambda pane: [[*_window(pane), one["key"], one["value"]] for one in pane.values["hottest"]],
    "q7": lambda pane: [[*_window(pane), *(pane.values["highest"][name] for name in _BID)]],
    "q8": lambda pane: [[*_window(pane), pane.key["id"], pane.values["name"]]],
    "q9": lambda pane: [[pane.key["id"], *(pane.values["best"][name] for name in ("price", "bidder", "at"))]],
    "q11": lambda pane: [[*_window(pane), pane.key["bidder"], pane.values["bids"]]],
    "q18": lambda pane: [[pane.values["last"][name] for name in _BID]],
    "q19": lambda pane: [[pane.values["best"]["row_number"], *(pane.values["best"][name] for name in _BID)]],
}
_OF_PANE = {**_OF_PANE, "q11 early": _OF_PANE["q11"]}


def of_panes(query: str, panes: Iterable[Pane]) -> list[Row]:
    """The answer that live panes of beamish give."""
    return _sorted(row for pane in panes for row in _OF_PANE[query](pane))


# What Spark's rows say.

_OF_ROW: Mapping[str, Callable[[Any], Sequence[Any]]] = {
    "q5": lambda row: [row.window.start, row.window.end, row.auction, row["count"]],
    "q7": lambda row: [row.window.start, row.window.end, *(row[name] for name in _BID)],
    "q8": lambda row: [row.window.start, row.window.end, row.id, row.name],
    "q11": lambda row: [row.window.start, row.window.end, row.bidder, row["count"]],
}


def of_spark(query: str, rows: Iterable[Any]) -> list[Row]:
    """The answer that rows of Spark's own query give."""
    return _sorted(map(_OF_ROW[query], rows))


# What they should say.


def _winning(events: Events) -> dict[int, tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Per auction itself and its winning bid."""
    auctions = {one["id"]: one for one in events["auctions"]}
    found: dict[int, Mapping[str, Any]] = {}
    for bid in events["bids"]:
        auction = auctions.get(bid["auction"])
        if auction is None or not auction["dateTime"] <= bid["dateTime"] <= auction["expires"]:
            continue
        best = found.get(bid["auction"])
        if best is None or _rank(bid) < _rank(best):
            found[bid["auction"]] = bid
    return {id_: (auctions[id_], bid) for id_, bid in found.items()}


def _rank(bid: Mapping[str, Any]) -> tuple[Any, ...]:
    return -bid["price"], bid["dateTime"], *bid.values()


def _q4(events: Events) -> Iterable[Sequence[Any]]:
    prices = defaultdict(list)
    for auction, bid in _winning(events).values():
        prices[auction["category"]].append(bid["price"])
    return [(category, sum(own) / len(own)) for category, own in prices.items()]


def _q5(events: Events) -> Iterable[Sequence[Any]]:
    counts: dict[int, Counter[int]] = defaultdict(Counter)
    for bid in events["bids"]:
        last = _ms(bid["dateTime"]) // 2_000 * 2_000
        for start in range(last - 8_000, last + 1, 2_000):
            counts[start][bid["auction"]] += 1
    for start, own in counts.items():
        most = max(own.values())
        yield from ((start, start + 10_000, auction, most) for auction, bids in own.items() if bids == most)


def _by_ten_seconds(rows: Iterable[Mapping[str, Any]]) -> dict[int, list[Mapping[str, Any]]]:
    found = defaultdict(list)
    for row in rows:
        found[_ms(row["dateTime"]) // 10_000 * 10_000].append(row)
    return found


def _q7(events: Events) -> Iterable[Sequence[Any]]:
    for start, bids in _by_ten_seconds(events["bids"]).items():
        highest = max(bid["price"] for bid in bids)
        yield from ((start, start + 10_000, *(bid[name] for name in _BID)) for bid in bids if bid["price"] == highest)


def _q8(events: Events) -> Iterable[Sequence[Any]]:
    sellers = {start: {one["seller"] for one in own} for start, own in _by_ten_seconds(events["auctions"]).items()}
    for start, persons in _by_ten_seconds(events["persons"]).items():
        for one in persons:
            if one["id"] in sellers.get(start, ()):
                yield start, start + 10_000, one["id"], one["name"]


def _q9(events: Events) -> Iterable[Sequence[Any]]:
    return [(id_, bid["price"], bid["bidder"], bid["dateTime"]) for id_, (_, bid) in _winning(events).items()]


def _q11(events: Events) -> Iterable[Sequence[Any]]:
    times = defaultdict(list)
    for bid in events["bids"]:
        times[bid["bidder"]].append(_ms(bid["dateTime"]))
    for bidder, own in times.items():
        own.sort()
        start, bids = own[0], 0
        for before, now in itertools.pairwise([own[0], *own]):
            if now - before >= 10_000:
                yield start, before + 10_000, bidder, bids
                start, bids = now, 0
            bids += 1
        yield start, own[-1] + 10_000, bidder, bids


def _q18(events: Events) -> Iterable[Sequence[Any]]:
    last: dict[tuple[int, int], tuple[Any, ...]] = {}
    for bid in events["bids"]:
        of, rank = (bid["bidder"], bid["auction"]), (bid["dateTime"], bid["price"])
        if of not in last or rank > last[of][0]:
            last[of] = (rank, bid)
    return [[bid[name] for name in _BID] for _, bid in last.values()]


def _q19(events: Events) -> Iterable[Sequence[Any]]:
    bids = defaultdict(list)
    for bid in events["bids"]:
        bids[bid["auction"]].append(bid)
    for own in bids.values():
        best = sorted(own, key=lambda bid: (-bid["price"], *bid.values()))[:10]
        yield from ((number, *(bid[name] for name in _BID)) for number, bid in enumerate(best, 1))


EXPECTED: Mapping[str, Callable[[Events], Iterable[Sequence[Any]]]] = {
    "q4": _q4,
    "q5": _q5,
    "q7": _q7,
    "q8": _q8,
    "q9": _q9,
    "q11": _q11,
    "q11 early": _q11,
    "q18": _q18,
    "q19": _q19,
}


def expected(query: str, events: Events) -> list[Row]:
    """The answer, from plain Python."""
    return _sorted(EXPECTED[query](events))
