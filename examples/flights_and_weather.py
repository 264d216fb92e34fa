"""Two streams: every flight from New York with the weather of its hour at its airport.

Flights arrive when they leave (see flights_replay.py); their event time is their scheduled departure. An hour's weather is
reported at the end of that hour. So a punctual flight is first emitted without weather, then retracted and emitted again with it
when the report arrives - a left outer join in accumulating-and-retracting mode. The watermark is the lesser of the two streams'.

At the end the program reads the panes in order, removes retracted ones, and compares the rest with a plain pandas join of the
rows that were not dropped. It exits with 1 if they differ.

    python examples/flights_and_weather.py [--days N] [--batches N]
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession

import beamish as bm
from beamish.accumulations import LeftOuterJoin
from beamish.triggers import AfterWatermark, Always
from flights_replay import NEW_YORK, data_folder, flights_as_they_left

WITH_WEATHER = (
    bm.merge(
        flights=bm.Pipeline().event_time("scheduled", bm.BoundedOutOfOrderness("30 minutes")).key_by("origin"),
        weather=bm.Pipeline().event_time("hour", bm.BoundedOutOfOrderness(0)).key_by("airport"),
    )
    .window(bm.FixedWindows("1 hour"))
    .trigger(AfterWatermark(early=Always(), late=Always()))
    .allowed_lateness("1 hour")
    .accumulating_and_retracting()
    .only_updated_panes()
    .with_dropped()
    .accumulate(pairs=LeftOuterJoin("flights", "weather"))
)


def main() -> int:
    """Replay, join, report, check; 0 if the stream equals the batch computation."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--days", type=int, default=7, help="replay the first N days of 2013 (default: 7)")
    parser.add_argument("--batches", type=int, default=24, help="cut them into N files a stream, one a micro-batch")
    arguments = parser.parse_args()

    begin = pd.Timestamp("2013-01-01", tz=NEW_YORK).tz_convert("UTC")
    end = begin + pd.Timedelta(days=arguments.days)
    flights = flights_as_they_left()[["flight_id", "origin", "scheduled", "delay", "entered"]]
    flights = flights[flights["entered"] < end]
    weather = reports()
    weather = weather[weather["entered"] < end]
    with tempfile.TemporaryDirectory(prefix="weather-") as name:
        folder = Path(name)
        cuts = pd.date_range(begin, end, arguments.batches + 1)
        write(flights, cuts, folder / "flights")
        write(weather, cuts, folder / "weather")
        rows = run(WITH_WEATHER.apply, folder, ("flights", "weather"))
    return report(flights, weather, rows)


def reports() -> pd.DataFrame:
    """The hourly weather of the three airports; each report arrives at the end of its hour."""
    table = pd.read_csv(data_folder() / "weather.csv")
    hour = pd.to_datetime(table["time_hour"], utc=True)
    weather = pd.DataFrame({"airport": table["origin"], "hour": hour, "temp": table["temp"], "visib": table["visib"]})
    weather["entered"] = hour + pd.Timedelta(hours=1)
    return weather


def write(rows: pd.DataFrame, cuts: pd.DatetimeIndex, folder: Path) -> None:
    """Write a file for each span of the replay, with increasing modification times, which determine Spark's order."""
    folder.mkdir()
    schema = pa.Schema.from_pandas(rows.drop(columns="entered"), preserve_index=False)  # a span without rows has it too
    for number, (start, end) in enumerate(pairwise(cuts)):
        path = folder / f"{number:04d}.parquet"
        part = rows[(rows["entered"] >= start) & (rows["entered"] < end)].drop(columns="entered")
        part.to_parquet(path, index=False, coerce_timestamps="us", schema=schema)
        os.utime(path, (number, number))


def run(join: Callable[..., DataFrame], folder: Path, names: tuple[str, ...]) -> list[Row]:
    """Join the folders of these names as streams, one file of each per micro-batch; the rows of output, in order."""
    spark = start_spark()

    def stream(name: str) -> DataFrame:
        path = str(folder / name)
        files = spark.readStream.schema(spark.read.parquet(path).schema).option("maxFilesPerTrigger", 1)
        return files.parquet(path)

    rows: list[Row] = []
    panes = join(**{name: stream(name) for name in names})
    query = (
        panes.writeStream.foreachBatch(lambda batch, _: rows.extend(batch.collect()))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return rows


def start_spark() -> SparkSession:
    """A local session with the state store that streaming pipelines need."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    return (
        SparkSession.builder.master("local[2]")
        .config(
            "spark.sql.streaming.stateStore.providerClass",
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
        )
        .config("spark.sql.shuffle.partitions", 2)
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )


def pair_of(flight: Any, weather: Any) -> tuple[Any, ...]:
    """A flight's number and its temperature; no weather: None."""
    return flight["flight_id"], None if weather is None else weather["temp"]


def report(flights: pd.DataFrame, weather: pd.DataFrame, rows: list[Row]) -> int:
    """Report the output and compare it with a batch join; 0 if they are equal."""
    live: Counter[tuple[Any, ...]] = Counter()
    dropped: dict[str, set[Any]] = {"flights": set(), "weather": set()}
    alone_early, taken_back = set(), set()
    for row in rows:
        if row["pane"]["kind"] == "DROPPED":
            flight, hour = row["dropped"]["row"]["flights"], row["dropped"]["row"]["weather"]
            dropped["weather" if flight is None else "flights"].add(
                (hour["airport"], hour["hour"]) if flight is None else flight["flight_id"]
            )
            continue
        pair = pair_of(row["pairs"]["flights"], row["pairs"]["weather"])
        live[pair] += 1 if row["pane"]["kind"] == "PANE" else -1
        if pair[1] is None and row["pane"]["kind"] == "PANE":
            alone_early.add(pair[0])
        elif pair[1] is None:
            taken_back.add(pair[0])

    came = flights[~flights["flight_id"].isin(dropped["flights"])]
    expected = batch_join(came, weather)
    alone = sum(temperature is None for _, temperature in expected)
    print(f"{len(flights):,} flights, {len(weather):,} reports of the weather")
    print(f"{len(dropped['flights'])} flights and {len(dropped['weather'])} reports came too late for their hour")
    print(f"{len(alone_early):,} flights came out without weather; {len(alone_early - taken_back)} of them for good")
    print(f"{len(expected):,} rows in the end, {alone} without weather")
    problem = +live != expected or dropped["weather"]
    print("FAILS: the stream differs from the batch join" if problem else "holds: the stream equals the batch join")
    return 1 if problem else 0


def batch_join(flights: pd.DataFrame, weather: pd.DataFrame) -> Counter[tuple[Any, ...]]:
    """The same join in pandas."""
    hours = flights.assign(hour=flights["scheduled"].dt.floor("h"), airport=flights["origin"])
    joined = hours.merge(weather, on=["airport", "hour"], how="left", indicator=True)
    found = joined["_merge"] == "both"
    return Counter(
        (int(flight), float(temp) if both else None)
        for flight, temp, both in zip(joined["flight_id"], joined["temp"], found, strict=True)
    )


if __name__ == "__main__":
    sys.exit(main())
