"""Plays per team and minute: a streaming table of panes, and a view of the current figures.

In a query function Spark allows no calls, so the schema is declared.
"""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import beamish as bm
from beamish.accumulations import Count, Sum
from beamish.triggers import AfterWatermark, Always

spark = SparkSession.active()
bm.register(spark)  # once, outside of query functions
FOLDER = str(spark.conf.get("plays.folder"))
SCHEMA = "ts timestamp, team string, score int"

PLAYS = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness("1 minute"))
    .key_by("team")
    .window(bm.FixedWindows("1 minute"))
    .trigger(AfterWatermark(early=Always()))
    .accumulating_and_retracting()
    .accumulate(plays=Count(), total=Sum("score"))
)


@dp.table
def panes() -> DataFrame:
    """Every pane and retraction."""
    plays = spark.readStream.schema(SCHEMA).json(FOLDER)
    return PLAYS.apply(plays, schema=SCHEMA, shards=2, streaming=True)


@dp.materialized_view
def live() -> DataFrame:
    """The live figures: the last upsert of each team and minute, if it is not a deletion."""
    last = F.max_by(F.struct("plays", "total", "pane.change"), "pane.sequence").alias("last")
    newest = spark.read.table("panes").where("pane.change <> 'UPDATE_BEFORE'").groupBy("team", "window").agg(last)
    return newest.where("last.change <> 'DELETE'").select("team", "window", "last.plays", "last.total")
