"""Final rows in SQL: an aircraft's sessions of departures, each once, when no departure can join them any more.

The statement and the pipeline are equivalent, and give the same rows over the same replay of flights (see flights_replay.py). The
statement adds a condition on the input, a condition on the sessions, and a SELECT list.

    python examples/final_sessions_sql.py [--days N] [--batches N]
"""

import argparse
import sys
import tempfile
from pathlib import Path

import pandas as pd
from pyspark.sql import DataFrame, Row

import beamish as bm
from beamish.accumulations import Count, Mean, Sum
from beamish.triggers import Never
from flights_and_weather import start_spark, write
from flights_replay import NEW_YORK, flights_as_they_left

WATERMARK = bm.BoundedOutOfOrderness("30 minutes")

IN_SQL = bm.sql(
    """
    SELECT tailnum, COUNT(*) AS flights, SUM(distance) AS miles, AVG(delay) AS mean_delay
    FROM departures WINDOW SESSION (12 HOURS, GRACE PERIOD 2 HOURS)
    WHERE cancelled = 0
    GROUP BY tailnum
    HAVING COUNT(*) >= 3
    EMIT FINAL
    """,
    event_time="scheduled",
    watermark=WATERMARK,
)
BY_HAND = (
    bm.Pipeline()
    .event_time("scheduled", WATERMARK)
    .key_by("tailnum")
    .window(bm.Sessions("12 hours", late_rows="session"))
    .trigger(Never())
    .allowed_lateness("2 hours")
    .accumulating()
    .accumulate(flights=Count(), miles=Sum("distance"), mean_delay=Mean("delay"))
)


def by_hand(departures: DataFrame) -> DataFrame:
    """The equivalent pipeline."""
    panes = departures.where("cancelled = 0").transform(BY_HAND).where("flights >= 3")
    return panes.select("tailnum", "flights", "miles", "mean_delay", "window", "pane", "timestamp")


def main() -> int:
    """Run both over the same files; 0 if they give the same rows."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--days", type=int, default=7, help="replay the first N days of 2013 (default: 7)")
    parser.add_argument("--batches", type=int, default=12, help="cut them into N files, one a micro-batch")
    arguments = parser.parse_args()

    begin = pd.Timestamp("2013-01-01", tz=NEW_YORK).tz_convert("UTC")
    end = begin + pd.Timedelta(days=arguments.days)
    flights = flights_as_they_left()
    with tempfile.TemporaryDirectory(prefix="sessions-") as name:
        folder = Path(name)
        write(flights[flights["entered"] < end], pd.date_range(begin, end, arguments.batches + 1), folder / "flights")
        path = str(folder / "flights")
        spark = start_spark()
        rows = spark.readStream.schema(spark.read.parquet(path).schema).option("maxFilesPerTrigger", 1).parquet(path)
        in_sql = run(rows.transform(IN_SQL), folder / "in_sql")
        hand_made = run(by_hand(rows), folder / "by_hand")
    for row in in_sql[:5]:
        session = f"{row['window']['start']:%d %H:%M} to {row['window']['end']:%d %H:%M}"
        print(
            f"{row['tailnum']}  {session}  {row['flights']} flights, {row['miles']:5,} miles, {row['mean_delay']:5.1f} minutes late"
        )
    same = set(in_sql) == set(hand_made) and len(in_sql) == len(hand_made)
    print(
        f"{'holds' if same else 'FAILS'}: the statement and the pipeline by hand give the same {len(in_sql):,} sessions"
    )
    return 0 if same else 1


def run(panes: DataFrame, checkpoint: Path) -> list[Row]:
    """All rows of a stream, in order."""
    rows: list[Row] = []
    query = (
        panes.writeStream.foreachBatch(lambda batch, _: rows.extend(batch.collect()))
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return sorted(rows, key=lambda row: (str(row["tailnum"]), row["window"]["start"]))


if __name__ == "__main__":
    sys.exit(main())
