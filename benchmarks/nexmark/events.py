"""The events of Nexmark: people, auctions and bids, the same for the same seed.

    python -m benchmarks.nexmark.events build/nexmark --events 10000000 --files 40 --seed 1

The proportions, ids and times are those of nexmark/nexmark's generator (6b3646c). Its random numbers have no seed, so answers of two
runs differ there; here each number is a hash of the seed, the event and what it is for, so that any range of events can be made alone.

Event ``n`` is a person if ``n mod 50`` is 0, an auction if it is 1 to 3, else a bid. Its time is ``n / rate`` after the start, in
milliseconds. Events are out of order within groups: at place ``p`` is event ``p // group * group + p * 953 % group``.

A folder has ``persons``, ``auctions`` and ``bids``; file ``i`` of each is from the ``i``-th part of all events. The last file has one more
event of each kind, ``CLOSES_AFTER`` later, which closes what is open: Flink ends a bounded input with the last watermark, Spark does not.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import os
from pathlib import Path

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

VERSION = 1
"""The version: other events for the same settings have another."""
KINDS = ("persons", "auctions", "bids")
READS = {
    "q4": ("auctions", "bids"),
    "q6": ("auctions", "bids"),
    "q8": ("persons", "auctions"),
    "q9": ("auctions", "bids"),
}
"""The kinds that queries read, if not bids alone."""
START_MS = 1_700_000_000_000
CLOSES_AFTER_MS = 60_000
_FIRST_ID, _FIRST_CATEGORY, _CATEGORIES = 1_000, 10, 5
_PERSONS, _AUCTIONS, _EACH = 1, 3, 50
_PEOPLE, _OPEN_AUCTIONS, _AHEAD = 1_000, 100, 10
_HOT_AUCTION, _HOT_SELLER, _HOT_BIDDER, _HOT_CHANNEL = 2, 4, 4, 2
_HOT_EVERY = 100
_PERSON_BYTES, _AUCTION_BYTES, _BID_BYTES = 200, 500, 100
_CHANNELS = 10_000
_CITIES = (
    "Phoenix",
    "Los Angeles",
    "San Francisco",
    "Boise",
    "Portland",
    "Bend",
    "Redmond",
    "Seattle",
    "Kent",
    "Cheyenne",
)
_STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
_FIRST_NAMES = ("Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter")
_LAST_NAMES = ("Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris")
_HOT_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
_TIME = pa.timestamp("ms", "UTC")

Ints = NDArray[np.int64]


@attrs.frozen
class Settings:
    """The settings of the events.

    Attributes:
        events: their number.
        seed: of all that is drawn.
        rate: events per second of event time.
        group: number of events within which they are out of order; 1: in order.
    """

    events: int
    seed: int = 1
    rate: int = 100_000
    group: int = 1_000

    def time_ms(self, number: Ints) -> Ints:
        """The times of events by their numbers, milliseconds since the epoch."""
        return START_MS + number * 1_000 // self.rate

    @property
    def longest_auction_ms(self) -> int:
        """How long after its time an auction expires at most."""
        return 1 + 2 * (_open_events() * 1_000 // self.rate + 1)


def _open_events() -> int:
    """In how many events as many auctions begin as are open at a time."""
    return _OPEN_AUCTIONS * _EACH // _AUCTIONS


class _Draws:
    """Uniform numbers of events: a hash of the seed, the event and the purpose (splitmix64)."""

    def __init__(self, seed: int, number: Ints) -> None:
        self._seed, self._number = seed, number

    def bits(self, purpose: str) -> NDArray[np.uint64]:
        salt = int.from_bytes(hashlib.blake2b(f"{self._seed} {purpose}".encode(), digest_size=8).digest(), "big")
        with np.errstate(over="ignore"):
            z = self._number.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(salt)
            z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))

    def unit(self, purpose: str) -> NDArray[np.float64]:
        """From 0 until below 1."""
        return (self.bits(purpose) >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def below(self, purpose: str, limit: Ints | int) -> Ints:
        """Whole numbers from 0 until below a limit."""
        return (self.unit(purpose) * limit).astype(np.int64)

    def of(self, purpose: str, words: tuple[str, ...]) -> pa.Array:
        """Words."""
        return pa.array(words).take(pa.array(self.below(purpose, len(words))))

    def price(self, purpose: str) -> Ints:
        """Prices, in cents."""
        return np.round(10.0 ** (self.unit(purpose) * 6) * 100).astype(np.int64)


def tables(settings: Settings, first: int, last: int) -> dict[str, pa.Table]:
    """The people, auctions and bids at places from one to before another, in this order."""
    place = np.arange(first, last, dtype=np.int64)
    number = place // settings.group * settings.group + place * 953 % settings.group
    kind = number % _EACH
    is_person, is_auction = kind < _PERSONS, (kind >= _PERSONS) & (kind < _PERSONS + _AUCTIONS)
    return {
        "persons": _persons(settings, number[is_person]),
        "auctions": _auctions(settings, number[is_auction]),
        "bids": _bids(settings, number[~is_person & ~is_auction]),
    }


def _last_person(number: Ints) -> Ints:
    return number // _EACH * _PERSONS + np.minimum(number % _EACH, _PERSONS - 1)


def _last_auction(number: Ints) -> Ints:
    each, place = number // _EACH, number % _EACH
    before = place < _PERSONS
    return (each - before) * _AUCTIONS + np.where(before, _AUCTIONS - 1, np.minimum(place - _PERSONS, _AUCTIONS - 1))


def _some_person(draws: _Draws, purpose: str, number: Ints) -> Ints:
    people = _last_person(number) + 1
    active = np.minimum(people, _PEOPLE)
    return people - active + draws.below(purpose, active + _AHEAD)


def _hot(draws: _Draws, purpose: str, ratio: int) -> NDArray[np.bool_]:
    return draws.below(f"{purpose} is hot", ratio) > 0


def _extra(draws: _Draws, size: int, *columns: pa.Array) -> pa.Array:
    """Text that fills rows up to a size in bytes; numbers have 8."""
    taken = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        is_text = pa.types.is_string(column.type)
        taken += pc.binary_length(column).to_numpy() if is_text else 8
    letters = [bytes(97 + (i * 31 + j * 17) % 26 for j in range(size)).decode() for i in range(64)]
    wanted = np.maximum(size - taken, 0)
    which = draws.below("extra", len(letters))
    pool = pa.array([text[:length] for text in letters for length in range(size + 1)])
    return pool.take(pa.array(which * (size + 1) + wanted))


def _joined(*parts: pa.Array | str) -> pa.Array:
    return pc.binary_join_element_wise(*parts, "")


def _digits(numbers: Ints, width: int) -> pa.Array:
    return pc.utf8_lpad(pa.array(numbers).cast(pa.string()), width, "0")


def _persons(settings: Settings, number: Ints) -> pa.Table:
    draws = _Draws(settings.seed, number)
    first, last = draws.of("first name", _FIRST_NAMES), draws.of("last name", _LAST_NAMES)
    company = pc.utf8_lower(last)
    name = _joined(first, " ", last)
    email = _joined(pc.utf8_lower(first), ".", _digits(number, 1), "@", company, ".com")
    card = [_digits(draws.below(f"card {i}", 10_000), 4) for i in range(4)]
    card = _joined(card[0], " ", card[1], " ", card[2], " ", card[3])
    city, state = draws.of("city", _CITIES), draws.of("state", _STATES)
    id_ = pa.array(_last_person(number) + _FIRST_ID)
    return pa.table(
        {
            "id": id_,
            "name": name,
            "emailAddress": email,
            "creditCard": card,
            "city": city,
            "state": state,
            "dateTime": pa.array(settings.time_ms(number)).cast(_TIME),
            "extra": _extra(draws, _PERSON_BYTES, id_, name, email, card, city, state, id_),
        }
    )


def _auctions(settings: Settings, number: Ints) -> pa.Table:
    draws, time_ms = _Draws(settings.seed, number), settings.time_ms(number)
    id_ = pa.array(_last_auction(number) + _FIRST_ID)
    hot = _last_person(number) // _HOT_EVERY * _HOT_EVERY
    seller = np.where(_hot(draws, "seller", _HOT_SELLER), hot, _some_person(draws, "seller", number))
    initial = draws.price("initial bid")
    horizon_ms = settings.time_ms(number + _open_events()) - time_ms
    expires_ms = time_ms + 1 + draws.below("expires", np.maximum(2 * horizon_ms, 1))
    item, description = _joined("item ", _digits(number, 1)), _joined("the item of event ", _digits(number, 1))
    return pa.table(
        {
            "id": id_,
            "itemName": item,
            "description": description,
            "initialBid": initial,
            "reserve": initial + draws.price("reserve"),
            "dateTime": pa.array(time_ms).cast(_TIME),
            "expires": pa.array(expires_ms).cast(_TIME),
            "seller": seller + _FIRST_ID,
            "category": _FIRST_CATEGORY + draws.below("category", _CATEGORIES),
            "extra": _extra(draws, _AUCTION_BYTES, id_, item, description, *[id_] * 6),
        }
    )


def _bids(settings: Settings, number: Ints) -> pa.Table:
    draws = _Draws(settings.seed, number)
    last = _last_auction(number)
    least = np.maximum(last - _OPEN_AUCTIONS, 0)
    some = least + draws.below("auction", last - least + 1 + _AHEAD)
    auction = np.where(_hot(draws, "auction", _HOT_AUCTION), last // _HOT_EVERY * _HOT_EVERY, some)
    hot = _last_person(number) // _HOT_EVERY * _HOT_EVERY + 1
    bidder = np.where(_hot(draws, "bidder", _HOT_BIDDER), hot, _some_person(draws, "bidder", number))
    cold = _joined("channel-", _digits(draws.below("channel", _CHANNELS), 1))
    is_hot = pa.array(_hot(draws, "channel", _HOT_CHANNEL))
    channel = pc.if_else(is_hot, draws.of("hot channel", _HOT_CHANNELS), cold)
    url = _joined("https://www.nexmark.com/item.htm?channel=", channel)
    price = draws.price("price")
    return pa.table(
        {
            "auction": auction + _FIRST_ID,
            "bidder": bidder + _FIRST_ID,
            "price": price,
            "channel": channel,
            "url": url,
            "dateTime": pa.array(settings.time_ms(number)).cast(_TIME),
            "extra": _extra(draws, _BID_BYTES, *[pa.array(price)] * 4, channel, url),
        }
    )


def closing(settings: Settings) -> dict[str, pa.Table]:
    """An event of each kind ``CLOSES_AFTER_MS`` after the last; its ids are negative, and no two are equal."""
    number = np.array([-(-settings.events // _EACH) * _EACH + settings.rate * CLOSES_AFTER_MS // 1_000], np.int64)
    made = {
        "persons": _persons(settings, number),
        "auctions": _auctions(settings, number),
        "bids": _bids(settings, number),
    }
    own = -1
    for name, columns in (("persons", ("id",)), ("auctions", ("id", "seller")), ("bids", ("auction", "bidder"))):
        for column in columns:
            place = made[name].schema.get_field_index(column)
            made[name] = made[name].set_column(place, column, pa.array([own], pa.int64()))
            own -= 1
    return made


def write(settings: Settings, folder: Path, files: int) -> dict[str, str]:
    """Write the events as Parquet files; returns the checksum of each kind."""
    bounds = [settings.events * i // files for i in range(files + 1)]
    sums = {name: hashlib.sha256() for name in KINDS}
    for i, (first, last) in enumerate(itertools.pairwise(bounds)):
        made = tables(settings, first, last)
        if i == files - 1:
            made = {name: pa.concat_tables([table, closing(settings)[name]]) for name, table in made.items()}
        for name, table in made.items():
            path = folder / name / f"{i:05}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(table, path)
            os.utime(path, (START_MS // 1_000 + i,) * 2)  # Spark reads the oldest first
            sums[name].update(_bytes(table))
    found = {name: one.hexdigest() for name, one in sums.items()}
    about = {"version": VERSION, **attrs.asdict(settings), "files": files, "sha256": found}
    (folder / "about.json").write_text(json.dumps(about, indent=1) + "\n", "utf-8")
    return found


def rows_read(query: str, folder: Path) -> int:
    """How many events of a folder a query reads."""
    files = (path for kind in READS.get(query, ("bids",)) for path in (folder / kind).iterdir())
    return sum(pq.read_metadata(path).num_rows for path in files)


def _bytes(table: pa.Table) -> bytes:
    """The columns of a table one after the other: numbers and times as 64 bits, texts by their lengths, then in UTF-8."""
    parts = []
    for column in table.columns:
        whole = column.combine_chunks()
        if pa.types.is_string(whole.type):
            parts += [pc.binary_length(whole).to_numpy().astype("<i8").tobytes(), "".join(whole.to_pylist()).encode()]
        else:
            parts.append(whole.cast(pa.int64()).to_numpy().astype("<i8").tobytes())
    return b"".join(parts)


def main() -> None:
    """Write events."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--files", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rate", type=int, default=100_000)
    parser.add_argument("--group", type=int, default=1_000)
    said = parser.parse_args()
    settings = Settings(said.events, said.seed, said.rate, said.group)
    print(json.dumps(write(settings, said.folder, said.files), indent=1))


if __name__ == "__main__":
    main()
