"""Calendar days: an hourly meter in New York, over the days on which the clocks change.

The same pipeline runs on a stream; here on a batch DataFrame, where each window emits one final pane.

    python examples/calendar_days.py
"""

from pyspark.sql import SparkSession

import beamish as bm
from beamish.accumulations import Count

by_day = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness("1 hour"))
    .window(bm.CalendarWindows(days=1, timezone="America/New_York"))
    .accumulate(readings=Count())
)

spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.sql.shuffle.partitions", 2)
    .config("spark.sql.session.timeZone", "UTC")
    .getOrCreate()
)

for first_midnight in ("2024-03-09T05:00:00Z", "2024-11-02T04:00:00Z"):  # of New York, in UTC
    readings = spark.range(72).selectExpr(f"timestamp'{first_midnight}' + make_interval(0, 0, 0, 0, id) as ts")
    days = readings.transform(by_day)
    days.selectExpr(
        "date(from_utc_timestamp(window.start, 'America/New_York')) as day",
        "window.start as start_utc",
        "window.end as end_utc",
        "readings",
    ).orderBy("day").show()
