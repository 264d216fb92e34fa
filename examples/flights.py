"""The main job: every flight from New York in 2013, as a stream, in the order of actual departures.

A flight's event time is its scheduled departure, so a flight delayed by hours is a row that is hours late. Two
streaming queries read the year file by file and stop (Trigger.AvailableNow):

A  departures, cancelled flights and mean delay per airport and hour, with early, on-time and late panes
B  sessions per aircraft: departures that follow each other by less than a day

Both retract: a pane that replaces another is preceded by a RETRACTION of that one. At the end the program compares the live panes
with plain pandas over the same flights. It exits with 1 if they differ. Query A also maintains a SQLite table that is correct at
every moment.

    python examples/flights.py [--flights N] [--batches N] [--table flights.db]
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import attrs
import pandas as pd
from pyspark.sql import DataFrame, SparkSession

import beamish as bm
import flights_check as plain
from beamish.accumulations import Count, Mean, Sum
from beamish.triggers import AfterWatermark, Always
from flights_replay import NEW_YORK, files_of, flights_as_they_left, write_files

# A row up to half an hour behind the latest one is on time. An hourly window accepts rows for one more hour.
DELAY, LATENESS = "30 minutes", "1 hour"
# No flight of the year is a day late, so no row arrives for an expired session: nothing is dropped, and the live
# sessions can be compared with a batch computation (docs/rules/panes.md#ledger).
GAP, SESSION_LATENESS = "24 hours", "24 hours"

BY_HOUR = (
    bm.Pipeline()
    .event_time("scheduled", bm.BoundedOutOfOrderness(DELAY))
    .key_by("origin")
    .window(bm.FixedWindows("1 hour"))
    .trigger(AfterWatermark(early=Always(), late=Always()))  # a pane for every batch with rows
    .allowed_lateness(LATENESS)
    .accumulating_and_retracting()
    .with_dropped()
    .accumulate(departures=Count("delay"), cancelled=Sum("cancelled"), mean_delay=Mean("delay"))
)

BY_AIRCRAFT = (
    bm.Pipeline()
    .event_time("scheduled", bm.BoundedOutOfOrderness(DELAY))
    .key_by("tailnum")
    .window(bm.Sessions(GAP))
    .trigger(AfterWatermark(early=Always(), late=Always()))
    .allowed_lateness(SESSION_LATENESS)
    .accumulating_and_retracting()
    .with_dropped()
    .accumulate(departures=Count("delay"), miles=Sum("distance"))
)


@attrs.frozen
class Result:
    """The output of a query: panes and retractions, dropped rows, and its duration."""

    panes: pd.DataFrame
    dropped: pd.DataFrame
    seconds: float


def main() -> int:
    """Replay, run both queries, report, check; 0 if the streams equal the batch computation."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--flights", type=int, help="replay only the first N flights (default: all)")
    parser.add_argument("--batches", type=int, default=48, help="cut them into N files, one a micro-batch")
    parser.add_argument(
        "--table", type=Path, default=Path("flights.db"), help="the SQLite file for the hours; made anew"
    )
    arguments = parser.parse_args()

    flights = flights_as_they_left()[: arguments.flights]
    parts = files_of(flights, arguments.batches)
    describe(flights)
    with tempfile.TemporaryDirectory(prefix="flights-") as name:
        folder = Path(name)
        write_files(parts, folder / "flights")
        spark = start_spark(folder / "spark.log")
        stream = (
            spark.readStream.schema(spark.read.parquet(str(folder / "flights")).schema)
            .option("maxFilesPerTrigger", 1)
            .parquet(str(folder / "flights"))
        )
        print(f"\nA. Airport and hour: {len(parts)} files, one a micro-batch")
        arguments.table.unlink(missing_ok=True)  # a table belongs to a query, and this is a new query
        table = bm.sinks.sql(f"sqlite:///{arguments.table}", "hourly")
        hours = run(stream, BY_HOUR, folder / "hours", len(parts), table)
        print(
            f"\nB. Sessions of an aircraft: the same files, {int(flights['cancelled'].sum()):,} cancelled flights left out"
        )
        sessions = run(stream.where("cancelled = 0"), BY_AIRCRAFT, folder / "sessions", len(parts))
        spark.stop()

    print("\n" + "=" * 96)
    problems = report_hours(flights, parts, hours) + report_table(flights, hours, arguments.table)
    problems += report_sessions(flights, sessions)
    print("\nThe check failed." if problems else "\nAll checks hold.")
    return 1 if problems else 0


def describe(flights: pd.DataFrame) -> None:
    """Report the input."""
    delay = flights["delay"].dropna()
    cancelled = int(flights["cancelled"].sum())
    print(
        f"{len(flights):,} flights from New York, {local(flights['entered'].iloc[0])} to "
        f"{local(flights['entered'].iloc[-1])} (New York time):\n"
        f"{len(delay):,} departed, in this order they are replayed; {int((delay > 60).sum()):,} of them more than an "
        f"hour after schedule, one {int(delay.max()) // 60} h {int(delay.max()) % 60} min.\n"
        f"{cancelled:,} were cancelled: they enter at their scheduled time, the first at which all can see it."
    )


def start_spark(log: Path) -> SparkSession:
    """A local session for beamish. Logs of Spark and its workers go to a file."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # the workers' Python; Spark's default is any python3
    builder = (
        SparkSession.builder.master("local[2]")
        .appName("flights")
        .config(
            "spark.sql.streaming.stateStore.providerClass",
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
        )
        .config("spark.sql.shuffle.partitions", 2)
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.ui.enabled", "false")
        .config("spark.log.level", "ERROR")
    )
    with log.open("wb") as file:  # Spark's processes inherit the standard error at their start
        ours = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            return builder.getOrCreate()
        finally:
            os.dup2(ours, 2)
            os.close(ours)


def run(
    events: DataFrame,
    pipeline: bm.Pipeline,
    folder: Path,
    batches: int,
    table: Callable[[DataFrame, int], None] | None = None,
) -> Result:
    """Run a pipeline over all files, into parquet and a table, and read its output."""
    began = time.monotonic()

    def write(batch: DataFrame, number: int) -> None:
        batch.persist()  # it is used twice, and would be computed twice
        batch.write.mode("overwrite").parquet(str(folder / "out" / f"batch={number}"))
        if table is not None:
            table(batch, number)
        batch.unpersist()

    query = (
        bm.observe(events.transform(pipeline))
        .writeStream.foreachBatch(write)
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    bm.progress(query, every=max(1, batches // 8))
    query.awaitTermination()  # raises the query's error

    written = events.sparkSession.read.parquet(str(folder / "out")).drop("batch")
    columns = written.columns
    window, pane = columns.index("window"), columns.index("pane")
    keys, values = columns[:window], columns[window + 1 : pane]
    panes = bm.panes(written).select(*keys, "window.*", *values, "pane.*", "timestamp").toPandas()
    dropped = bm.dropped(written).drop("window").toPandas()
    for column in ("start", "end", "timestamp"):
        panes[column] = panes[column].dt.tz_localize("UTC")
    print(f"took {time.monotonic() - began:.0f} s")
    return Result(panes, dropped, time.monotonic() - began)


def report_hours(flights: pd.DataFrame, parts: list[pd.DataFrame], hours: Result) -> plain.Problems:
    """Show the output of query A and check it."""
    print("\nA. Airport and hour\n")
    show_counts(hours)
    live, unbalanced = plain.live_panes(hours.panes, ["origin"])
    busy = live[live["departures"] >= 10].sort_values("mean_delay", ascending=False).head(8)
    print("\n  The slowest hours with at least ten departures (New York time, minutes)\n")
    print(f"    {'airport':8} {'hour':17} {'departures':>10} {'cancelled':>10} {'mean delay':>11}   last pane")
    for pane in records(busy):
        print(
            f"    {pane['origin']:8} {local(pane['start']):17} {pane['departures']:10,} {pane['cancelled']:10,} "
            f"{pane['mean_delay']:11.1f}   {pane['timing']}, number {pane['index']}"
        )
    worst = live.sort_values("cancelled", ascending=False).head(3)
    print("  Most flights cancelled: ", end="")
    print("; ".join(f"{pane['cancelled']} at {pane['origin']}, {local(pane['start'])}" for pane in records(worst)))

    print("\n  Checked against pandas\n")
    dropped = set(hours.dropped["flight_id"])
    kept = flights[~flights["flight_id"].isin(dropped)]
    expected = plain.hourly(kept)
    problems = say(
        f"each of {count(hours, 'RETRACTION'):,} retractions takes back a pane, and no window has two live", unbalanced
    )
    problems += say(
        f"{len(live):,} live panes equal a groupby of the {len(kept):,} flights not dropped",
        plain.differences(live, expected, ["origin"], ["departures", "cancelled", "mean_delay"]),
    )
    late = plain.too_late(parts, pd.Timedelta(DELAY), pd.Timedelta(LATENESS))
    wrong = late ^ dropped
    problems += say(
        f"{len(dropped):,} dropped flights are the {len(late):,} whose hour was over by more than {LATENESS} when they came",
        [f"flights {sorted(wrong)[:5]} differ"] if wrong else [],
    )
    departures, cancelled = int(live["departures"].sum()), int(live["cancelled"].sum())
    problems += say(
        f"none is lost: {departures:,} departures + {cancelled:,} cancelled + {len(dropped):,} dropped "
        f"= {departures + cancelled + len(dropped):,}",
        [] if departures + cancelled + len(dropped) == len(flights) else [f"there are {len(flights):,} flights"],
    )
    return problems


def report_table(flights: pd.DataFrame, hours: Result, path: Path) -> plain.Problems:
    """Show the table of query A, and check it."""
    query = "SELECT origin, window_start, window_end, departures, cancelled, mean_delay FROM hourly ORDER BY 2, 1"
    with closing(sqlite3.connect(path)) as database:
        table = pd.read_sql_query(query, database)
    print(f"\n  The SQLite table 'hourly' in {path}, kept batch by batch: {len(table):,} rows, the last\n")
    print("    " + table.tail(3).to_string(index=False, float_format="%.1f").replace("\n", "\n    "))
    print("\n  Checked against pandas\n")
    table = table.rename(columns={"window_start": "start", "window_end": "end"})
    for column in ("start", "end"):
        table[column] = pd.to_datetime(table[column], utc=True)
    expected = plain.hourly(flights[~flights["flight_id"].isin(set(hours.dropped["flight_id"]))])
    return say(
        f"its {len(table):,} rows equal a groupby of the flights not dropped",
        plain.differences(table, expected, ["origin"], ["departures", "cancelled", "mean_delay"]),
    )


def report_sessions(flights: pd.DataFrame, sessions: Result) -> plain.Problems:
    """Show the output of query B and check it."""
    print("\nB. Sessions of an aircraft\n")
    show_counts(sessions)
    live, unbalanced = plain.live_panes(sessions.panes, ["tailnum"])
    longest = live.sort_values(["departures", "miles"], ascending=False).head(5)
    print(f"\n  Most departures less than {GAP} apart\n")
    print(f"    {'aircraft':9} {'first':17} {'last':17} {'departures':>10} {'miles':>8}")
    for pane in records(longest):
        print(
            f"    {pane['tailnum']:9} {local(pane['start']):17} {local(pane['end'] - pd.Timedelta(GAP)):17} "
            f"{pane['departures']:10,} {pane['miles']:8,}"
        )

    print("\n  Checked against pandas\n")
    departed = flights[flights["cancelled"] == 0]
    kept = departed[~departed["flight_id"].isin(set(sessions.dropped["flight_id"]))]
    longest_delay = pd.Timedelta(minutes=int(departed["delay"].max()))
    problems = say(
        f"each of {count(sessions, 'RETRACTION'):,} retractions takes back a pane, and no window has two live",
        unbalanced,
    )
    problems += say(
        f"the longest delay, {longest_delay}, is below the allowed lateness of {SESSION_LATENESS}: none meets a closed session",
        [] if longest_delay < pd.Timedelta(SESSION_LATENESS) else ["sessions may have closed too soon to be compared"],
    )
    problems += say(
        f"{len(live):,} live panes equal pandas' sessions of the {len(kept):,} flights that departed",
        plain.differences(live, plain.sessions(kept, pd.Timedelta(GAP)), ["tailnum"], ["departures", "miles"]),
    )
    bare = flights["tailnum"].isna()
    print(
        f"    left out: {len(flights) - len(departed):,} cancelled flights, whose aircraft did not leave "
        f"({int(bare.sum()):,} never had one assigned); A shows them"
    )
    return problems


def show_counts(result: Result) -> None:
    """A table of panes by timing, retractions, and dropped rows by reason."""
    kinds = result.panes.groupby(["timing", "kind"]).size()
    print(f"    {'':10} {'panes':>10} {'retracted':>10} {'live':>10}")
    for timing in ("EARLY", "ON_TIME", "LATE"):
        fired, taken = (int(kinds.get((timing, kind), 0)) for kind in ("PANE", "RETRACTION"))
        print(f"    {timing:10} {fired:10,} {taken:10,} {fired - taken:10,}")
    print(f"    dropped rows: {len(result.dropped):,}")
    for reason, rows in result.dropped.groupby("reason"):
        behind = rows["late_by"] / 60e6
        print(f"      {reason}: {len(rows):,}, {behind.min():.0f} to {behind.max():.0f} minutes behind the watermark")


def count(result: Result, kind: str) -> int:
    """Number of rows of a kind written."""
    return int((result.panes["kind"] == kind).sum())


def say(claim: str, problems: plain.Problems) -> plain.Problems:
    """Print a claim and whether it holds; returns the problems."""
    print(f"    {'FAILS ' if problems else 'holds '} {claim}")
    for problem in problems:
        print(f"           {problem}")
    return problems


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows, as dicts."""
    return [{str(name): value for name, value in row.items()} for row in frame.to_dict("records")]


def local(instant: pd.Timestamp) -> str:
    """A time in New York's time zone."""
    return instant.tz_convert(NEW_YORK).strftime("%Y-%m-%d %H:%M")


if __name__ == "__main__":
    sys.exit(main())
