"""The answers to the queries: those in the output of a system, and the right ones, from plain Python.

An answer is a sorted list of rows of numbers and texts; times are milliseconds since the epoch. Systems name and nest their columns as
they like, so each has a function that makes rows of its output: ``of_panes`` for beamish. ``judge`` knows where the answers of systems may differ.
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


def _answer(query: str, rows: Iterable[Sequence[Any]]) -> list[Row]:
    """The answer that rows are; of q12 the bids of each user in all windows, since windows of the clock differ from run to run."""
    if query != "q12":
        return _sorted(rows)
    totals: Counter[int] = Counter()
    for bidder, bids in rows:
        totals[bidder] += bids
    return _sorted(totals.items())


# The rows of beamish's live panes.


def _window(pane: Pane) -> list[Any]:
    assert pane.window is not None
    return [pane.window.start, pane.window.end]


_OF_PANE: Mapping[str, Callable[[Pane], Iterable[Sequence[Any]]]] = {
    "q4": lambda pane: [[pane.key["category"], pane.values["mean"]]],
    "q5": lambda pane: [[*_window(pane), one["key"], one["value"]] for one in pane.values["hottest"]],
    "q6": lambda pane: [[pane.values["id"], pane.key["best.seller"], pane.values["best"]["at"], pane.values["mean"]]],
    "q7": lambda pane: [[*_window(pane), *(pane.values["highest"][name] for name in _BID)]],
    "q8": lambda pane: [[*_window(pane), pane.key["id"], pane.values["name"]]],
    "q9": lambda pane: [[pane.key["id"], *(pane.values["best"][name] for name in ("price", "bidder", "at"))]],
    "q11": lambda pane: [[*_window(pane), pane.key["bidder"], pane.values["bids"]]],
    "q12": lambda pane: [[pane.key["bidder"], pane.values["bids"]]],
    "q18": lambda pane: [[pane.values["last"][name] for name in _BID]],
    "q19": lambda pane: [[pane.values["best"]["row_number"], *(pane.values["best"][name] for name in _BID)]],
}
_OF_PANE = {**_OF_PANE, "q11-early": _OF_PANE["q11"]}


def of_panes(query: str, panes: Iterable[Pane]) -> list[Row]:
    """The answer that live panes of beamish give."""
    return _answer(query, (row for pane in panes for row in _OF_PANE[query](pane)))


# The rows of Spark's own queries.

_OF_ROW: Mapping[str, Callable[[Any], Sequence[Any]]] = {
    "q5": lambda row: [row.window.start, row.window.end, row.auction, row["count"]],
    "q7": lambda row: [row.window.start, row.window.end, *(row[name] for name in _BID)],
    "q8": lambda row: [row.window.start, row.window.end, row.id, row.name],
    "q11": lambda row: [row.window.start, row.window.end, row.bidder, row["count"]],
    "q12": lambda row: [row.bidder, row["count"]],
}


def of_spark(query: str, rows: Iterable[Any]) -> list[Row]:
    """The answer that rows of Spark's own query give; of q12 the last row of each window and user."""
    if query == "q12":
        rows = {(row.window, row.bidder): row for row in rows}.values()
    return _answer(query, map(_OF_ROW[query], rows))


# The changes of Flink's SQL, on Flink and here.

_OF_CHANGE: Mapping[str, Callable[[Sequence[Any]], Sequence[Any]]] = {
    "q9": lambda row: row[:4],
    "q12": lambda row: row[2:],
    "q18": lambda row: [row[0], row[1], row[2], row[5], row[6]],
    "q19": lambda row: [row[7], row[0], row[1], row[2], row[5], row[6]],
}


def of_changes(query: str, changes: Iterable[Sequence[Any]]) -> list[Row]:
    """The answer that changes give: each has its kind, +I, -U, +U or -D, then the SELECT list of on_flink.py.

    Flink's q9 has no -U: +U replaces the last row with the same first column.
    """
    rows: Counter[tuple[Any, ...]] = Counter()
    upserts: dict[Any, tuple[Any, ...]] = {}
    for kind, *values in changes:
        row, before = tuple(values), upserts.pop(values[0], None)
        if kind in ("+I", "+U"):
            rows[row] += 1
            upserts[values[0]] = row
            if query == "q9" and before is not None:
                rows[before] -= 1
        else:
            rows[row] -= 1
    if any(times < 0 for times in rows.values()):
        raise ValueError(f"{query}: a row is deleted that was not inserted")
    return _answer(query, map(_OF_CHANGE.get(query, list), rows.elements()))


# The right ones.


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


def _q6(events: Events) -> Iterable[Sequence[Any]]:
    won: dict[int, list[tuple[Any, int, int]]] = defaultdict(list)
    for id_, (auction, bid) in _winning(events).items():
        won[auction["seller"]].append((bid["dateTime"], id_, bid["price"]))
    for seller, own in won.items():
        own.sort()
        for i, (time, id_, _) in enumerate(own):
            prices = [price for _, _, price in own[max(i - 10, 0) : i + 1]]
            yield id_, seller, time, sum(prices) / len(prices)


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


def _q11(events: Events, gap_ms: int = 10_000) -> Iterable[Sequence[Any]]:
    times = defaultdict(list)
    for bid in events["bids"]:
        times[bid["bidder"]].append(_ms(bid["dateTime"]))
    for bidder, own in times.items():
        own.sort()
        start, bids = own[0], 0
        for before, now in itertools.pairwise([own[0], *own]):
            if now - before >= gap_ms:
                yield start, before + 10_000, bidder, bids
                start, bids = now, 0
            bids += 1
        yield start, own[-1] + 10_000, bidder, bids


def _q12(events: Events) -> Iterable[Sequence[Any]]:
    return Counter(bid["bidder"] for bid in events["bids"]).items()


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
    "q6": _q6,
    "q7": _q7,
    "q8": _q8,
    "q9": _q9,
    "q11": _q11,
    "q11-early": _q11,
    "q12": _q12,
    "q18": _q18,
    "q19": _q19,
}


def expected(query: str, events: Events) -> list[Row]:
    """The answer, from plain Python."""
    return _sorted(EXPECTED[query](events))


# Where answers may differ.

_OPEN: Mapping[str, Callable[[Row], Row]] = {
    "q9": lambda row: (row[0], row[1], row[3]),
    "q18": lambda row: (row[0], row[1], row[3]),
    "q19": lambda row: (row[0], row[1], row[3]),
}
"""The part of a row that Flink's SQL determines: of bids that tie in ORDER BY any may win."""
FLINK = "flink"
_IN_SQL = (FLINK, "flink-minibatch", "sql")


def judge(
    system: str, query: str, answer: Sequence[Row], events: Events, *, late: bool = False
) -> tuple[str, list[Row]]:
    """How an answer compares with plain Python's, and that one; "" if it differs. ``late``: others than beamish drop late rows."""
    right, in_flink = expected(query, events), system.startswith(FLINK)
    if late and system != "beamish":
        wrong = len(set(answer) ^ set(right))
        return f"late rows are dropped: {wrong:,} rows beside {len(right):,} right ones differ", right
    if in_flink and query.startswith("q11"):
        right = _sorted(_q11(events, gap_ms=10_001))
        return ("equal: bids 10 s apart are in one session" if list(answer) == right else ""), right
    if list(answer) == right:
        return "equal", right
    if in_flink and query == "q12":
        most: dict[Any, Any] = dict(right)
        fine = all(bids <= most.get(bidder, 0) for bidder, bids in answer)
        return ("no bid twice: windows of the clock that are open at the end are not emitted" if fine else ""), right
    if system == "sql" and query in ("q5", "q7"):
        windows = [row[:2] for row in answer]
        one = set(answer) <= set(right) and windows == sorted({row[:2] for row in right})
        return ("one of those that tie in each window" if one else ""), right
    if system in _IN_SQL and query in _OPEN:
        same = Counter(map(_OPEN[query], answer)) == Counter(map(_OPEN[query], right))
        real = query == "q9" or {row[-5:] for row in answer} <= {
            tuple(_plain(bid[name]) for name in _BID) for bid in events["bids"]
        }
        return ("equal, but for bids that tie" if same and real else ""), right
    return "", right
