"""Knock-on delay: departures of aircraft that landed late, and their average delay, hour by hour.

The table has each aircraft's last landing, if it was half an hour late or more: a punctual landing deletes it. A departure is
joined with an earlier landing: ``allow_exact_matches=False`` excludes one in the same minute. After 6 hours a landing no longer
matters (``tolerance``). The join is inner, so departures without a match are left out. A stage after the join computes the mean
delay per hour.

The data lacks landing times: a landing is the departure plus the time in the air.

At the end the program compares the hours with ``pandas.merge_asof`` and a group-by. It exits with 1 if they differ.

    python examples/knock_on_delay.py [--days N]
"""

from __future__ import annotations

import argparse
import sys
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pandas as pd
import pyarrow as pa

import beamish as bm
from beamish.accumulations import Count, Mean
from beamish.testing import TestStream
from flights_replay import NEW_YORK, data_folder, flights_as_they_left

LATE = 30  # minutes
TOLERANCE = "6 hours"

LANDINGS = (
    bm.Pipeline()
    .event_time("landed", bm.BoundedOutOfOrderness(0))
    .key_by("tailnum")
    .versions(history="1 hour", values=["minutes_late"], deleted="in_time")
)
AFTER_LATE = bm.as_of_join(
    departures=bm.Pipeline().event_time("departed", bm.BoundedOutOfOrderness(0)),
    late_landings=LANDINGS,
    on="tailnum",
    tolerance=TOLERANCE,
    allow_exact_matches=False,
)
HOURS = AFTER_LATE.then(
    bm.Pipeline().key_by().window(bm.FixedWindows("1 hour")).accumulate(departures=Count(), delay=Mean("delay"))
)


def main() -> int:
    """Replay, report, check; 0 if the stream equals the batch computation."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--days", type=int, default=7, help="replay the first N days of 2013 (default: 7)")
    arguments = parser.parse_args()

    begin = pd.Timestamp("2013-01-01", tz=NEW_YORK).tz_convert("UTC")
    end = begin + pd.Timedelta(days=arguments.days)
    departures, landings = of_the_year()
    left = departures[departures["departed"] < end]
    down = landings[landings["landed"] < end]
    panes = HOURS.run(replay(left, down, pd.date_range(begin, end, freq="1h")))
    hours: dict[Any, tuple[int, float]] = {}
    for pane in panes:
        if pane.window is not None:
            row = pane.values  # noqa: PD011 - a pane's
            hours[pane.start] = row["departures"], row["delay"]

    late = int((~down["in_time"]).sum())
    print(f"{len(left):,} departures and {len(down):,} landings, {late:,} of these {LATE} minutes late or more")
    print("departures after a late landing, in the worst hours (New York time):")
    for start, (count, delay) in sorted(hours.items(), key=lambda hour: -hour[1][0] * hour[1][1])[:5]:
        print(
            f"  {start.astimezone(ZoneInfo(NEW_YORK)):%d %b %H:00}  {count} departures, {delay:.0f} minutes late on average"
        )
    joined = batch(departures, landings)
    met = joined["minutes_late"].notna()
    print(
        f"in the whole year, by pandas: {met.sum():,} departures after a late landing, {joined.loc[met, 'delay'].mean():.0f} "
        f"minutes late on average; all others {joined.loc[~met, 'delay'].mean():.0f} minutes"
    )
    joined = batch(left, down).dropna(subset="minutes_late")
    expected = joined.groupby(joined["departed"].dt.floor("h"))["delay"].agg(["size", "mean"])
    holds = hours == {start: (row["size"], row["mean"]) for start, row in expected.iterrows()}
    print("holds: the hours equal the batch computation" if holds else "FAILS: they differ from the batch computation")
    return 0 if holds else 1


def of_the_year() -> tuple[pd.DataFrame, pd.DataFrame]:
    """All departures and all landings of the year."""
    flown = pd.read_csv(data_folder() / "flights.csv.zip", usecols=["air_time", "arr_delay"])
    flights = flights_as_they_left().join(flown, on="flight_id")
    departures = flights.loc[flights["departed"].notna(), ["tailnum", "departed", "delay"]]
    landings = flights[flights["air_time"].notna()]
    landed = landings["departed"] + pd.to_timedelta(landings["air_time"], unit="min")
    late = landings["arr_delay"].astype("int64")
    return departures, pd.DataFrame(
        {"tailnum": landings["tailnum"], "landed": landed, "minutes_late": late, "in_time": late < LATE}
    ).sort_values("landed")


def replay(departures: pd.DataFrame, landings: pd.DataFrame, hours: pd.DatetimeIndex) -> TestStream:
    """A script: what left and what landed in an hour, then the watermark at its end."""
    script = TestStream()
    for begin, end in pairwise(hours):
        for name, time, rows in (("departures", "departed", departures), ("late_landings", "landed", landings)):
            own = rows[(rows[time] >= begin) & (rows[time] < end)]
            script = script.add(pa.Table.from_pandas(own, preserve_index=False).to_pylist(), input=name)
        script = script.advance_watermark_to(end)
    return script


def batch(departures: pd.DataFrame, landings: pd.DataFrame) -> pd.DataFrame:
    """The same join in pandas; ``minutes_late`` is missing if the aircraft did not land late before."""
    joined = pd.merge_asof(
        departures.astype({"delay": "int64"}),
        landings,
        left_on="departed",
        right_on="landed",
        by="tailnum",
        tolerance=pd.Timedelta(TOLERANCE),
        allow_exact_matches=False,
    )
    return joined.assign(minutes_late=joined["minutes_late"].where(joined["in_time"] == False))  # noqa: E712 - missing is neither


if __name__ == "__main__":
    sys.exit(main())
