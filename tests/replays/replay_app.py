"""Jobs as users write them: the function that makes the stream, and the pipeline."""

import os

from pyspark.sql import functions as F

import beamish as bm
from beamish.accumulations import Count, InnerJoin, Sum
from beamish.triggers import AfterWatermark, Always

FOLDER = "REPLAY_FOLDER"
"""The variable of the environment with the folder of the input."""
PLAYS = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness("10 seconds")).key_by("team")


def events(spark):
    lines = spark.readStream.option("maxFilesPerTrigger", 1).text(f"{os.environ[FOLDER]}/plays")
    parsed = lines.select(
        F.from_json("value", "team string, user string, at string, points int, secret string").alias("play")
    )
    return parsed.select("play.team", "play.user", F.to_timestamp("play.at").alias("ts"), "play.points", "play.secret")


def sessions(gap):
    return (
        PLAYS.window(bm.Sessions(gap))
        .trigger(AfterWatermark(late=Always()))
        .allowed_lateness("2 minutes")
        .accumulating_and_retracting()
        .accumulate(total=Sum("points"), plays=Count())
    )


scores = sessions("1 minute")
upgraded = sessions("30 seconds")
by_total = (
    PLAYS.key_by("user", "team")
    .window(bm.FixedWindows("1 minute"))
    .accumulate(total=Sum("points"))
    .then(bm.Pipeline().key_by("total").accumulate(users=Count()))
)


def both(spark):
    def read(name):
        files = spark.readStream.schema("k string, ts timestamp, v int").option("maxFilesPerTrigger", 1)
        return files.parquet(f"{os.environ[FOLDER]}/{name}")

    return {"payments": read("payments"), "orders": read("orders")}


joined = (
    bm.merge(
        orders=bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("k"),
        payments=bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness("5 seconds")).key_by("k"),
    )
    .window(bm.FixedWindows("1 minute"))
    .trigger(AfterWatermark(early=Always(), late=Always()))
    .allowed_lateness("10 minutes")
    .accumulating()
    .accumulate(pair=InnerJoin("orders", "payments"))
)

views = bm.sql(
    """
    SELECT UPPER(team) AS side, SUM(points) AS total FROM plays WINDOW SESSION (1 MINUTE, GRACE PERIOD 2 MINUTES)
    WHERE user <> 'dan' GROUP BY UPPER(team) HAVING SUM(points) > 3 EMIT CHANGES
    """,
    event_time="ts",
    watermark=bm.BoundedOutOfOrderness("10 seconds"),
)
pairs = bm.sql(
    "SELECT o.k, o.v AS ordered, p.v + 1 AS paid FROM orders o JOIN payments p WITHIN 1 MINUTE ON o.k = p.k WHERE p.v > 6 EMIT CHANGES",
    event_time="ts",
    watermark={"orders": bm.BoundedOutOfOrderness(0), "payments": bm.BoundedOutOfOrderness("5 seconds")},
)
priced = bm.as_of_join(
    orders=bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)),
    payments=bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("k").versions("1 day"),
    on="k",
).accumulating_and_retracting()


def before(spark):
    """The initial rows of the table."""
    return spark.sql("SELECT k, TIMESTAMP '2025-12-31 00:00:00Z' AS ts, v FROM VALUES ('a', 1), ('b', 2) AS t(k, v)")
