"""Deduplication of payments from a file that is delivered twice; duplicates are listed.

A payment is deduplicated by its id for a day of event time. ``once`` forwards the rows, each once, with the columns of the
stream; ``once.then(spent)`` sums them up by card, in the same query. Spark's ``dropDuplicatesWithinWatermark`` drops rows
silently; here each dropped row has a reason.

    python examples/replayed_files.py
"""

import os
import tempfile
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import beamish as bm
from beamish.accumulations import Count, Sum

once = bm.Pipeline().event_time("at", bm.BoundedOutOfOrderness("10 minutes")).deduplicate("payment", within="1 day")
spent = bm.Pipeline().key_by("card").window(bm.FixedWindows("1 hour")).accumulate(payments=Count(), euros=Sum("euros"))

MORNING = "1,2024-05-01T09:10:00Z,ann,20\n2,2024-05-01T09:30:00Z,bob,5\n3,2024-05-01T09:40:00Z,ann,12\n"
FILES = [
    MORNING,
    MORNING,  # delivered again
    "3,2024-05-01T09:40:00Z,ann,12\n4,2024-05-01T10:05:00Z,bob,8\n4,2024-05-01T10:05:00Z,bob,8\n",
    "5,2024-05-01T11:30:00Z,ann,1\n",
]

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
    folder = Path(name)
    (folder / "in").mkdir()
    for number, rows in enumerate(FILES):
        path = folder / "in" / f"{number}.csv"
        path.write_text(rows)
        os.utime(path, (number, number))  # Spark reads files in the order of their modification times
    schema = "payment int, at timestamp, card string, euros int"
    payments = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).csv(str(folder / "in"))

    def written(out: DataFrame, to: str) -> DataFrame:
        """The output of a query over all files, as a table."""
        out.writeStream.option("checkpointLocation", str(folder / f"{to}-checkpoint")).format("parquet").option(
            "path", str(folder / to)
        ).trigger(availableNow=True).start().awaitTermination()
        return spark.read.parquet(str(folder / to))

    print("each payment once, as it came:")
    for row in written(payments.transform(once), "once").orderBy("payment").collect():
        print(f"  {row.payment} {row.at:%H:%M} {row.card} {row.euros}")

    print("left out:")
    dropped = bm.dropped(written(payments.transform(once.with_dropped()), "listed"))
    for row in dropped.groupBy("reason", "payment").count().orderBy("payment").collect():
        print(f"  payment {row.payment}: {row['count']} x {row.reason}")

    print("spent per hour:")
    totals = written(payments.transform(once.then(spent)), "spent")
    for row in totals.orderBy("window.start", "card").collect():
        print(f"  {row.window.start:%H:%M} {row.card}: {row.payments} payments, {row.euros} euros")
