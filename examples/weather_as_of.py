"""An as-of join on Spark: every flight from New York with the last weather report of its airport before its scheduled departure.

Flights arrive when they leave (see flights_replay.py); their event time is their scheduled departure. A report is valid from its
hour until the next one, and arrives an hour late. So a flight that is emitted at once (early=True) matches an old report, or none
that is recent enough; when the right one arrives, the row is retracted and emitted again with the correct match.

flights_and_weather.py does the same with hourly windows, and has no match if the report of that hour is missing. Here the flight
matches the previous report, unless that is too old (tolerance).

At the end the program reads the rows in order, removes retracted ones, and compares the rest with pandas.merge_asof. Then it
joins the whole year as a batch, with the tolerance and without. It exits with 1 if they differ.

    python examples/weather_as_of.py [--days N] [--batches N]
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
from pyspark.sql import functions as F

import beamish as bm
from flights_and_weather import reports, run, start_spark, write
from flights_replay import NEW_YORK, flights_as_they_left

WEATHER = (
    bm.Pipeline()
    .event_time("hour", bm.BoundedOutOfOrderness(0))
    .key_by("airport")
    .versions(history="1 day", values=["temp", "visib"])
)
FLIGHTS = bm.Pipeline().event_time("scheduled", bm.BoundedOutOfOrderness("30 minutes"))


def with_weather(tolerance: str | None) -> bm.Pipeline:
    """The join; with a tolerance for the age of a report at the scheduled departure."""
    return bm.as_of_join(
        flights=FLIGHTS, weather=WEATHER, on={"origin": "airport"}, how="left", tolerance=tolerance, early=True
    ).accumulating_and_retracting()


TOLERANCE = "2 hours"


def main() -> int:
    """Replay, join, report, check; 0 if the stream and the batch equal pandas."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--days", type=int, default=3, help="replay the first N days of 2013 (default: 3)")
    parser.add_argument("--batches", type=int, default=24, help="cut them into N files per stream, one per micro-batch")
    arguments = parser.parse_args()

    begin = pd.Timestamp("2013-01-01", tz=NEW_YORK).tz_convert("UTC")
    end = begin + pd.Timedelta(days=arguments.days)
    flights = flights_as_they_left()[["flight_id", "origin", "scheduled", "entered"]]
    weather = reports()
    came, known = (rows[(rows["entered"] >= begin) & (rows["entered"] < end)] for rows in (flights, weather))
    with tempfile.TemporaryDirectory(prefix="weather-") as name:
        folder = Path(name)
        cuts = pd.date_range(begin, end, arguments.batches + 1)
        write(came, cuts, folder / "flights")
        write(known, cuts, folder / "weather")
        rows = run(with_weather(TOLERANCE).with_dropped().apply, folder, ("flights", "weather"))
        holds = report(came, known, rows)
        holds &= year(flights, weather, folder)
    return 0 if holds else 1


def report(flights: pd.DataFrame, weather: pd.DataFrame, rows: list[Row]) -> bool:
    """Report the output and compare it with pandas; whether they are equal."""
    joined = [row for row in rows if row["pane"]["kind"] != "DROPPED"]
    live: Counter[tuple[Any, ...]] = Counter()
    for row in joined:
        live[row["flight_id"], *met(row)] += 1 if row["pane"]["kind"] == "PANE" else -1
    expected = batch(flights, weather, TOLERANCE)
    final = {flight: match for flight, *match in expected}
    first = [row for row in joined if row["pane"]["kind"] == "PANE" and row["pane"]["is_first"]]
    alone = [row for row in first if row["weather"] is None]
    old = [row for row in first if row["weather"] is not None and [*met(row)] != final[row["flight_id"]]]
    taken_back = sum(row["pane"]["kind"] == "RETRACTION" for row in joined)
    print(f"{len(flights):,} flights, {len(weather):,} reports of the weather")
    print(
        f"{len(first):,} flights came out as they left: {len(alone):,} without weather, {len(old):,} with old weather"
    )
    print(f"{taken_back:,} rows were taken back; {len(rows) - len(joined)} flights or reports were dropped")
    most_wrong = sorted(old, key=lambda row: abs(met(row)[1] - final[row["flight_id"]][1]))[-1:]
    for example in alone[:1] + most_wrong:
        show([row for row in joined if row["flight_id"] == example["flight_id"]])
    print(f"{+live.total():,} rows in the end, {sum(hour is None for _, hour, _ in expected)} without weather")
    holds = +live == Counter(expected) and len(rows) == len(joined)
    print("holds: the stream equals pandas.merge_asof" if holds else "FAILS: the stream differs from pandas.merge_asof")
    return holds


def show(rows: list[Row]) -> None:
    """The rows of one flight, in order."""
    print(
        f"flight {rows[0]['flight_id']} should leave {rows[0]['origin']} on {rows[0]['scheduled']:%d %B at %H:%M} (UTC):"
    )
    for row in sorted(rows, key=lambda row: (row["pane"]["index"], row["pane"]["kind"])):
        hour, temp = met(row)
        weather = "no weather" if hour is None else f"{temp:g} degrees Fahrenheit, reported for {hour:%H:%M}"
        print(f"  {row['pane']['kind']:10} {row['pane']['timing']:7} {weather}")


def met(row: Row) -> tuple[Any, ...]:
    """The match of a flight: its start of validity, and the temperature; (None, None) without a match."""
    weather = row["weather"]
    if weather is None:
        return None, None
    return pd.Timestamp(weather["valid_from"]), weather["temp"]


def batch(flights: pd.DataFrame, weather: pd.DataFrame, tolerance: str | None) -> list[tuple[Any, ...]]:
    """The same join in pandas: flight, start of validity of its weather, temperature."""
    joined = pd.merge_asof(
        flights.sort_values("scheduled"),
        weather[["airport", "hour", "temp"]].sort_values("hour"),
        left_on="scheduled",
        right_on="hour",
        left_by="origin",
        right_by="airport",
        tolerance=None if tolerance is None else pd.Timedelta(tolerance),
    )
    hours = joined["hour"].dt.tz_localize(None)
    return [
        (flight, None, None) if pd.isna(hour) else (flight, hour, temp)
        for flight, hour, temp in zip(joined["flight_id"].tolist(), hours, joined["temp"].tolist(), strict=True)
    ]


def year(flights: pd.DataFrame, weather: pd.DataFrame, folder: Path) -> bool:
    """The year as a batch: number of flights without weather, by the pipeline and by pandas; whether they agree."""
    spark = start_spark()
    frames = {}
    for name, rows in (("flights", flights), ("weather", weather)):
        path = folder / f"{name}.parquet"
        rows.drop(columns="entered").to_parquet(path, index=False, coerce_timestamps="us")
        frames[name] = spark.read.parquet(str(path))
    print(f"the {len(flights):,} flights of the year, as a batch:")
    holds = True
    for tolerance in (TOLERANCE, None):
        without = (
            with_weather(tolerance)
            .apply(flights=frames["flights"], weather=frames["weather"])
            .where(F.col("weather").isNull())
            .count()
        )
        expected = sum(hour is None for _, hour, _ in batch(flights, weather, tolerance))
        words = "without tolerance" if tolerance is None else f"with tolerance={tolerance!r}"
        print(f"  {words} {without:,} stay without weather (pandas.merge_asof: {expected:,})")
        holds &= without == expected
    return holds


if __name__ == "__main__":
    sys.exit(main())
