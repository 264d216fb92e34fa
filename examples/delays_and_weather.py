"""Two aggregates joined by key and window, in one query: each airport's hourly delays and its hourly weather.

Flights are summed up by airport and hour of their scheduled departure, and so are the weather reports; then the two are joined by
airport and hour. A flight that leaves late corrects the sum of its hour: the old pane is retracted, and with it the pair that it
was in, so the joined rows are correct after every batch. Either side may come first: `FullOuterJoin` shows an hour without its
weather until the report arrives.

At the end the program reads the pairs in order, removes retracted ones, and compares the rest with two pandas group-bys and their
merge. It exits with 1 if they differ.

    python examples/delays_and_weather.py [--days N] [--batches N]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
from pyspark.sql import Row

import beamish as bm
from beamish.accumulations import Count, FullOuterJoin, Max, Min, Sum
from beamish.triggers import AfterWatermark, Always
from flights_and_weather import reports, run, write
from flights_replay import NEW_YORK, flights_as_they_left


def hourly(time: str, out_of_order: str, airport: str) -> bm.Pipeline:
    """Hourly windows by airport, updated with every batch; a flight may leave a day late."""
    return (
        bm.Pipeline()
        .event_time(time, bm.BoundedOutOfOrderness(out_of_order))
        .key_by(airport)
        .window(bm.FixedWindows("1 hour"))
        .trigger(AfterWatermark(early=Always(), late=Always()))
        .allowed_lateness("2 days")
        .accumulating_and_retracting()
        .only_updated_panes()
    )


DELAYS = hourly("scheduled", "30 minutes", "origin").accumulate(flights=Count(), minutes=Sum("delay"))
WEATHER = hourly("hour", "0 seconds", "airport").accumulate(visibility=Min("visib"), warmest=Max("temp"))
BOTH = (
    bm.merge(delays=DELAYS, weather=WEATHER)  # without a window of its own: panes are joined by their hour
    .trigger(AfterWatermark(early=Always(), late=Always()))
    .allowed_lateness("2 days")
    .accumulating_and_retracting()
    .only_updated_panes()
    .accumulate(hour=FullOuterJoin("delays", "weather"))
)


def main() -> int:
    """Replay, join, report, check; 0 if the stream equals the batch computation."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--days", type=int, default=7, help="replay the first N days of 2013 (default: 7)")
    parser.add_argument("--batches", type=int, default=24, help="cut them into N files per stream, one per micro-batch")
    arguments = parser.parse_args()

    begin = pd.Timestamp("2013-01-01", tz=NEW_YORK).tz_convert("UTC")
    end = begin + pd.Timedelta(days=arguments.days)
    flights = flights_as_they_left()[["flight_id", "origin", "scheduled", "delay", "entered"]]
    flights = flights[flights["entered"] < end]
    weather = reports()
    weather = weather[weather["entered"] < end]
    with tempfile.TemporaryDirectory(prefix="delays-") as name:
        folder = Path(name)
        cuts = pd.date_range(begin, end, arguments.batches + 1)
        write(flights, cuts, folder / "delays")
        write(weather, cuts, folder / "weather")
        rows = run(BOTH.apply, folder, ("delays", "weather"))
    return report(flights, weather, rows)


def report(flights: pd.DataFrame, weather: pd.DataFrame, rows: list[Row]) -> int:
    """Report the output and compare it with a batch computation; 0 if they are equal."""
    live: Counter[tuple[Any, ...]] = Counter()
    for row in rows:
        live[values_of(row)] += 1 if row["pane"]["kind"] == "PANE" else -1
    retracted = sum(row["pane"]["kind"] == "RETRACTION" for row in rows)
    expected = Counter(in_batch(flights, weather))
    alone = sum(visibility is None for _, _, _, _, visibility, _ in expected)
    print(f"{len(flights):,} flights, {len(weather):,} reports of the weather")
    print(f"{len(rows) - retracted:,} pairs came out, {retracted:,} of them were taken back")
    print(f"{len(expected):,} hours of an airport in the end, {alone} of them without weather")
    for airport, hour, departures, minutes, visibility, _ in sorted(expected, key=lambda pair: -(pair[3] or 0))[:3]:
        sight = "no report" if visibility is None else f"{visibility:g} miles of sight"
        print(f"  {airport} {hour}: {departures} flights, {minutes:,.0f} minutes late in all, {sight}")
    problem = +live != expected
    print("FAILS: the stream differs from the batch join" if problem else "holds: the stream equals the batch join")
    return 1 if problem else 0


def values_of(row: Row) -> tuple[Any, ...]:
    """A pair as plain values: airport, hour, flights, minutes, visibility, warmest."""
    delays, weather = row["hour"]["delays"], row["hour"]["weather"]
    left = (None, None) if delays is None else (delays["flights"], delays["minutes"])
    right = (None, None) if weather is None else (weather["visibility"], weather["warmest"])
    return row["origin"], f"{row['window']['start']:%d %b %H:00}", *left, *right


def in_batch(flights: pd.DataFrame, weather: pd.DataFrame) -> list[tuple[Any, ...]]:
    """The same in pandas."""
    hours = flights.assign(airport=flights["origin"], hour=flights["scheduled"].dt.floor("h"))
    delays = hours.groupby(["airport", "hour"])["delay"].agg(flights="size", minutes=lambda of: of.sum(min_count=1))
    sight = weather.groupby(["airport", "hour"]).agg(visibility=("visib", "min"), warmest=("temp", "max"))
    joined = delays.join(sight, how="outer").reset_index().astype(object)
    joined = joined.where(joined.notna(), None)
    return [
        (row.airport, f"{row.hour:%d %b %H:00}", row.flights, row.minutes, row.visibility, row.warmest)
        for row in joined.itertuples()
    ]


if __name__ == "__main__":
    sys.exit(main())
