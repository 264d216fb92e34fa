"""Page views per hour on Spark: early panes during the hour, one on time, late ones after it.

Three files are three micro-batches. Spark moves the watermark between batches, ten minutes behind the latest view.

    python examples/hourly_counts.py
"""

import os
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

import beamish as bm
from beamish.accumulations import Count, CountDistinct
from beamish.triggers import AfterWatermark, Always

by_hour = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness("10 minutes"))
    .window(bm.FixedWindows("1 hour"))
    .trigger(AfterWatermark(early=Always(), late=Always()))
    .allowed_lateness("1 hour")
    .accumulating()
    .accumulate(views=Count(), users=CountDistinct("user"))
)

FILES = [
    "10:05,ann 10:40,bob 10:55,ann",  # the watermark will be 10:45
    "11:20,ann 10:50,cem",  # 11:10: the hour from 10 to 11 is over
    "12:30,dee 10:58,bob",  # bob's view is late, but accepted; 12:20
]


def write_files(folder: Path) -> None:
    """One file a micro-batch; Spark reads files in the order of their modification times."""
    for number, views in enumerate(FILES):
        path = folder / f"views-{number}.csv"
        path.write_text(
            "".join(f"2024-05-01T{view.split(',')[0]}:00Z,{view.split(',')[1]}\n" for view in views.split())
        )
        os.utime(path, (number, number))


spark = (
    SparkSession.builder.master("local[2]")
    .config(
        "spark.sql.streaming.stateStore.providerClass",
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    )
    .config("spark.sql.shuffle.partitions", 2)
    .config("spark.sql.session.timeZone", "UTC")
    .getOrCreate()
)

with tempfile.TemporaryDirectory() as name:
    write_files(Path(name))
    views = spark.readStream.schema("ts timestamp, user string").option("maxFilesPerTrigger", 1).csv(name)
    panes = views.transform(by_hour)
    panes.writeStream.format("memory").queryName("hours").trigger(availableNow=True).start().awaitTermination()

spark.sql("""
    select date_format(window.start, 'HH:mm') as hour, views, users, pane.timing, pane.index, pane.is_last
    from hours order by window, pane.index
""").show()
