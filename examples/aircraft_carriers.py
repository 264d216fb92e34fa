"""The carrier of an aircraft over time: the history of a table (SCD type 2) from a stream of flights.

Each flight from New York in 2013 has the carrier of its aircraft on that day. ``versions`` turns the flights into a table: a row
for each period in which an aircraft belongs to a carrier. With ``only_updated`` a flight of the same carrier starts no new
version, so most aircraft have one. When another carrier takes over, the open version is retracted and emitted again with its end.
Flights arrive when they leave but count from their scheduled departure, so many are out of order: none is lost while the
watermark is less than the history ahead of it.

A few flights share their aircraft and their scheduled departure: most of them never left. ``sequence_by`` chooses between them,
so the result does not depend on the order of arrival.

At the end the program removes retracted versions and compares the remaining ones with a pandas computation over the whole year.
It exits with 1 if they differ.

    python examples/aircraft_carriers.py
"""

from __future__ import annotations

import sys
from collections import Counter
from datetime import datetime

import pandas as pd
import pyarrow as pa

import beamish as bm
from beamish.testing import TestStream
from flights_replay import flights_as_they_left

CARRIERS = (
    bm.Pipeline()
    .event_time("scheduled", bm.BoundedOutOfOrderness("1 day"))
    .key_by("tailnum")
    .versions(history="2 days", values=["carrier"], sequence_by="flight_id", only_updated=True)
)

Version = tuple[str, str, datetime, datetime | None]


def main() -> int:
    """Replay the year week by week, report, check; 0 if the versions equal the batch computation."""
    flights = flights_as_they_left()[["flight_id", "tailnum", "carrier", "scheduled", "entered"]]
    flights = flights[flights["tailnum"].notna()]
    panes = CARRIERS.run(replay(flights))

    live = Counter(map(version_of, bm.live(panes)))
    shared = int(flights.duplicated(["tailnum", "scheduled"], keep=False).sum())
    aircraft = Counter(tailnum for tailnum, *_ in live)
    changed = sorted(tailnum for tailnum, versions in aircraft.items() if versions > 1)
    print(f"{len(flights):,} flights; {shared} of them share aircraft and scheduled departure with another")
    retracted = sum(pane.kind is bm.PaneKind.RETRACTION for pane in panes)
    print(f"{retracted} versions were taken back on the way, to come again with their end")
    print(
        f"{live.total():,} versions of {len(aircraft):,} aircraft in the end; {len(changed)} aircraft changed carrier:"
    )
    for tailnum in changed:
        spans = sorted((version for version in live if version[0] == tailnum), key=lambda version: version[2])
        print(f"  {tailnum}  " + ", then ".join(f"{carrier} from {begin:%d %b}" for _, carrier, begin, _ in spans))
    holds = live == batch(flights)
    print("holds: the versions equal the batch computation" if holds else "FAILS: the versions differ from the batch's")
    return 0 if holds else 1


def version_of(pane: bm.Pane) -> Version:
    """A pane as a tuple: the carrier of an aircraft, from when and until when."""
    row = pane.values  # noqa: PD011 - a pane's
    return pane.key["tailnum"], row["carrier"], row["valid_from"], row["valid_to"]


def replay(flights: pd.DataFrame) -> TestStream:
    """A script: a week's flights, then the watermark, a day behind the latest of them, which drops nothing."""
    script = TestStream()
    for _, week in flights.groupby(pd.Grouper(key="entered", freq="7D")):
        script = script.add(pa.Table.from_pandas(week.drop(columns="entered"), preserve_index=False).to_pylist())
        script = script.advance_watermark_to(week["scheduled"].max() - pd.Timedelta("1 day"))
    return script


def batch(flights: pd.DataFrame) -> Counter[Version]:
    """The same by pandas: runs of one carrier in an aircraft's flights by time."""
    ordered = flights.sort_values(["tailnum", "scheduled", "flight_id"]).drop_duplicates(
        ["tailnum", "scheduled"], keep="last"
    )
    before = ordered.groupby("tailnum")["carrier"].shift()
    begins = ordered[ordered["carrier"] != before]
    ends = begins.groupby("tailnum")["scheduled"].shift(-1)
    return Counter(
        (tailnum, carrier, begin, None if pd.isna(end) else end)
        for tailnum, carrier, begin, end in zip(
            begins["tailnum"], begins["carrier"], begins["scheduled"], ends, strict=True
        )
    )


if __name__ == "__main__":
    sys.exit(main())
