"""The queries with Spark's own operators, in append mode, q11-early and q12 in update mode: ``QUERIES[name](inputs)`` is a streaming DataFrame.

``REFUSED`` are those that Spark refuses, each as one would write it first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

DELAY = "4 seconds"


@attrs.frozen
class Inputs:
    """The inputs of a query."""

    persons: DataFrame
    auctions: DataFrame
    bids: DataFrame


def _timed(rows: DataFrame) -> DataFrame:
    return rows.withWatermark("dateTime", DELAY)


def _windowed(rows: DataFrame) -> DataFrame:
    return _timed(rows).withColumn("window", F.window("dateTime", "10 seconds"))


def q5(of: Inputs) -> DataFrame:
    """The auctions with the most bids: all counts of a window as one list."""
    counts = _timed(of.bids).groupBy(F.window("dateTime", "10 seconds", "2 seconds"), "auction").count()
    listed = counts.groupBy("window").agg(
        F.max("count").alias("most"), F.collect_list(F.struct("auction", "count")).alias("all")
    )
    return listed.select("window", F.explode(F.expr("filter(all, one -> one.count = most)")).alias("one")).select(
        "window", "one.auction", "one.count"
    )


def q7(of: Inputs) -> DataFrame:
    """The highest bids: a join of the bids with the highest price of their window."""
    highest = _windowed(of.bids).groupBy("window").agg(F.max("price").alias("highest"))
    # Spark takes one event-time column, and a sum has no watermark.
    bids = _windowed(of.bids).withColumn("dateTime", F.expr("dateTime + interval 0 seconds"))
    return bids.join(highest.withColumnRenamed("window", "of"), F.expr("window = of and price = highest"), "inner")


def q8(of: Inputs) -> DataFrame:
    """New people who open an auction: a join on the window."""
    opened = _windowed(of.auctions).groupBy("window", "seller").count().withColumnRenamed("window", "of")
    people = _windowed(of.persons).groupBy("window", "id").agg(F.first("name").alias("name"))
    return people.join(opened, F.expr("window = of and id = seller"), "inner")


def q11(of: Inputs) -> DataFrame:
    """The number of bids of each user in each session of activity."""
    return _timed(of.bids).groupBy(F.session_window("dateTime", "10 seconds").alias("window"), "bidder").count()


def q12(of: Inputs) -> DataFrame:
    """The number of bids of each user in 10 seconds of the clock."""
    arrived = of.bids.withWatermark("p_time", "0 seconds")
    return arrived.groupBy(F.window("p_time", "10 seconds"), "bidder").count()


def _in_time(of: Inputs) -> DataFrame:
    """Each auction with each of its bids while it is open."""
    first = _timed(of.auctions).withColumnRenamed("dateTime", "opened")
    second = _timed(of.bids).withColumnRenamed("dateTime", "at")
    return first.join(second, F.expr("id = auction and at between opened and expires"), "inner")


def q4(of: Inputs) -> DataFrame:
    """The mean of the winning bids of each category."""
    winning = _in_time(of).groupBy("id", "category").agg(F.max("price").alias("final"))
    return winning.groupBy("category").agg(F.avg("final"))


def q9(of: Inputs) -> DataFrame:
    """The winning bid of each auction."""
    return _in_time(of).groupBy("id").agg(F.max_by(F.struct("price", "bidder", "at"), "price"))


def q6(of: Inputs) -> DataFrame:
    """The mean of a seller's last eleven winning bids at each of them."""
    winning = (
        _in_time(of).groupBy("id", "seller").agg(F.max("price").alias("final"), F.max_by("at", "price").alias("at"))
    )
    return winning.withColumn(
        "mean", F.avg("final").over(Window.partitionBy("seller").orderBy("at").rowsBetween(-10, 0))
    )


def _ranked(rows: DataFrame, keys: list[str], by: str, n: int) -> DataFrame:
    number = F.row_number().over(Window.partitionBy(*keys).orderBy(F.desc(by)))
    return rows.withColumn("n", number).where(F.col("n") <= n)


def q18(of: Inputs) -> DataFrame:
    """The last bid of each user on each auction."""
    return _ranked(_timed(of.bids), ["bidder", "auction"], "dateTime", 1)


def q19(of: Inputs) -> DataFrame:
    """The ten highest bids of each auction."""
    return _ranked(_timed(of.bids), ["auction"], "price", 10)


Query = Callable[[Inputs], DataFrame]
QUERIES: Mapping[str, Query] = {"q5": q5, "q7": q7, "q8": q8, "q11": q11, "q12": q12}
UPDATES = ("q11-early", "q12")
"""In update mode."""
REFUSALS = ("STREAMING_OUTPUT_MODE.UNSUPPORTED_OPERATION", "NON_TIME_WINDOW_NOT_SUPPORTED_IN_STREAMING")
"""Spark's conditions for them; another error is a fault of the query."""
REFUSED: Mapping[str, Query] = {"q4": q4, "q6": q6, "q9": q9, "q11-early": q11, "q18": q18, "q19": q19}
