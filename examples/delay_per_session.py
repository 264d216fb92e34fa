"""A chain on Spark, in one query: delay per aircraft session, then the distribution of sessions per day.

The first stage groups an aircraft's departures less than 12 hours apart into sessions and sums up their delay. The second takes
the sessions as rows and computes per day the number of sessions that ended, their flights, and the quantiles of their delay. A
session is emitted before it ends: when it grows, its pane is retracted and emitted again with a later end, often on another day.
The second stage follows, so its panes are correct after every batch.

At the end the program reads the panes in order, removes retracted ones, and compares the remaining days with the same two steps
in pandas. It exits with 1 if they differ.

    python examples/delay_per_session.py [--days N] [--batches N]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import pandas as pd
from pyspark.sql import DataFrame, Row

import beamish as bm
from beamish.accumulations import Count, Quantiles, Sum
from beamish.triggers import AfterWatermark, Always
from flights_and_weather import start_spark, write
from flights_replay import NEW_YORK, flights_as_they_left

GAP = "12 hours"
# No flight of the year is a day late, so no row arrives for an expired session. A session's retraction precedes its
# expiry, so a day with the sessions' lateness misses none either.
LATENESS = "1 day"
QUANTILES = (0.1, 0.5, 0.9)

SESSIONS = (
    bm.Pipeline()
    .event_time("scheduled", bm.BoundedOutOfOrderness("30 minutes"))
    .key_by("tailnum")
    .window(bm.Sessions(GAP))
    .trigger(AfterWatermark(early=Always(), late=Always()))
    .allowed_lateness(LATENESS)
    .accumulating_and_retracting()
    .accumulate(flights=Count(), delay=Sum("delay"))
)
DAYS = (
    bm.Pipeline()
    .window(bm.CalendarWindows(days=1, timezone=NEW_YORK))  # of the sessions' timestamps: the ends of their windows
    .trigger(AfterWatermark(early=Always(), late=Always()))
    .allowed_lateness(LATENESS)
    .accumulating_and_retracting()
    .only_updated_panes()
    .accumulate(sessions=Count(), flights=Sum("flights"), delay=Quantiles("delay", QUANTILES))
)
CHAIN = SESSIONS.then(DAYS)


def main() -> int:
    """Replay, report, check; 0 if the stream equals the batch computation."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--days", type=int, default=7, help="replay the first N days of 2013 (default: 7)")
    parser.add_argument("--batches", type=int, default=24, help="cut them into N files, one a micro-batch")
    arguments = parser.parse_args()

    begin = pd.Timestamp("2013-01-01", tz=NEW_YORK).tz_convert("UTC")
    end = begin + pd.Timedelta(days=arguments.days)
    flights = flights_as_they_left()[["tailnum", "scheduled", "delay", "entered"]]
    flights = flights[(flights["entered"] < end) & flights["tailnum"].notna()]
    with tempfile.TemporaryDirectory(prefix="sessions-") as name:
        folder = Path(name)
        write(flights, pd.date_range(begin, end, arguments.batches + 1), folder / "flights")
        rows = run(folder)
    return report(flights, rows)


def run(folder: Path) -> list[Row]:
    """Both stages over the files as a stream; the rows of output, batch by batch."""
    spark = start_spark()
    path = str(folder / "flights")
    files = spark.readStream.schema(spark.read.parquet(path).schema).option("maxFilesPerTrigger", 1).parquet(path)
    rows: list[Row] = []

    def keep(batch: DataFrame, _number: int) -> None:
        # Rows of a batch are unordered: order those of a window by (index, PANE before its RETRACTION).
        rows.extend(sorted(batch.collect(), key=lambda row: (row["pane"]["index"], row["pane"]["kind"])))

    query = (
        CHAIN.apply(files)
        .writeStream.foreachBatch(keep)
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return rows


def report(flights: pd.DataFrame, rows: list[Row]) -> int:
    """Report the output and compare it with a batch computation; 0 if they are equal."""
    live: dict[str, tuple[int, int, list[float]]] = {}
    retracted, equal = 0, True
    for row in rows:
        day = f"{pd.Timestamp(row['window']['start'], tz='UTC').tz_convert(NEW_YORK):%Y-%m-%d}"
        values = (row["sessions"], row["flights"], row["delay"])
        if row["pane"]["kind"] == "PANE":
            live[day] = values
        else:
            retracted += 1
            equal &= live.pop(day) == values
    print("day         sessions  flights  minutes of delay in a session: 10%, 50%, 90%")
    for day, (sessions, of_them, delay) in sorted(live.items()):
        print(f"{day}  {sessions:8}  {of_them:7}  {', '.join(f'{minutes:.1f}' for minutes in delay)}")
    print(f"{retracted} panes of days were retracted on the way")
    equal &= live == batch_days(flights)
    print("holds: the stream equals the batch computation" if equal else "FAILS: it differs from the batch computation")
    return 0 if equal else 1


def batch_days(flights: pd.DataFrame) -> dict[str, tuple[int, int, list[float]]]:
    """The same two steps in pandas."""
    ordered = flights.sort_values(["tailnum", "scheduled"])
    begins = ordered.groupby("tailnum")["scheduled"].diff().isna() | (
        ordered.groupby("tailnum")["scheduled"].diff() >= pd.Timedelta(GAP)
    )
    sessions = ordered.groupby(begins.cumsum()).agg(
        last=("scheduled", "max"), flights=("delay", "size"), delay=("delay", lambda delay: delay.sum(min_count=1))
    )
    over = sessions["last"] + pd.Timedelta(GAP) - pd.Timedelta(microseconds=1)
    days = sessions.groupby(over.dt.tz_convert(NEW_YORK).dt.strftime("%Y-%m-%d"))
    return {
        str(day): (
            len(of_day),
            int(of_day["flights"].sum()),
            [float(of_day["delay"].dropna().astype("float64").quantile(quantile)) for quantile in QUANTILES],
        )
        for day, of_day in days
    }


if __name__ == "__main__":
    sys.exit(main())
