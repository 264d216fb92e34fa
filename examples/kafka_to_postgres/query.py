"""Visits per user from a Kafka topic of clicks, in a PostgreSQL table and a Kafka topic of upserts, by one query.

Clicks are JSON. A visit is a session of 30 minutes; it is emitted with each click, and corrected by retractions. Clicks that are
too late or malformed are stored in a table of their own, and metrics in a file. docs/kafka-to-table.md explains the parts;
``make kafka-demo`` runs it all on this machine.

    spark-submit --driver-memory 2g --packages org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0 query.py \
        --broker localhost:9092 --database postgresql://ann@localhost/shop --checkpoint /checkpoints/visits \
        --metrics /metrics/visits.prom
"""

import argparse

import adbc_driver_postgresql.dbapi as postgresql
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import beamish as bm
from beamish.accumulations import Count, Sum
from beamish.triggers import AfterWatermark, Always

CLICK = "user string, ts timestamp, spent long"
DROPPED = """
    batch int, reason text, late_by bigint, partition int, "offset" bigint,
    "user" text, ts timestamptz, spent bigint
"""

visits = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness("10 minutes"))
    .key_by("user")
    .window(bm.Sessions("30 minutes"))
    .trigger(AfterWatermark(early=Always(), late=Always()))
    .allowed_lateness("1 hour")
    .accumulating_and_retracting()
    .with_dropped()
    .accumulate(clicks=Count(), spent=Sum("spent"))
)


def read_clicks(spark: SparkSession, broker: str, options: dict[str, str]) -> DataFrame:
    """The clicks of the topic; a malformed one has no event time."""
    click = F.from_json(F.col("value").cast("string"), CLICK)
    records = (
        spark.readStream.format("kafka")
        .options(subscribe="clicks", startingOffsets="earliest", **options)
        .option("kafka.bootstrap.servers", broker)
        .load()
    )
    clicks = records.select("partition", "offset", click.alias("click"))
    return clicks.select("partition", "offset", "click.*")


def write_dropped(database: str, batch: DataFrame, number: int) -> None:
    """Store the dropped clicks of a batch; a replayed batch replaces its own rows."""
    columns = ["reason", "late_by", "partition", "offset", "user", "ts", "spent"]
    rows = bm.dropped(batch).select(F.lit(number).alias("batch"), *columns).toArrow()
    with postgresql.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE IF NOT EXISTS dropped_clicks ({DROPPED})")
        cursor.execute("DELETE FROM dropped_clicks WHERE batch = $1", (number,))
        cursor.adbc_ingest("dropped_clicks", rows, mode="append")
        connection.commit()


def main() -> None:
    """Run the query."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    for name in ("broker", "database", "checkpoint", "metrics"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE", help="of Spark's Kafka source")
    parser.add_argument("--available-now", action="store_true", help="end when the rows of now are processed")
    said = parser.parse_args()
    options = dict(option.split("=", 1) for option in said.option)

    spark = (
        SparkSession.builder.config(
            "spark.sql.streaming.stateStore.providerClass",
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
        )
        .config("spark.sql.shuffle.partitions", 2)
        .getOrCreate()
    )
    spark.streams.addListener(bm.Listener(path=said.metrics))

    table = bm.sinks.sql(said.database, "visits")
    topic = bm.sinks.kafka(said.broker, "visits")

    def write(batch: DataFrame, number: int) -> None:
        batch.persist()
        table(batch, number)
        topic(batch, number)
        write_dropped(said.database, batch, number)
        batch.unpersist()

    panes = read_clicks(spark, said.broker, options).transform(visits)
    writer = bm.observe(panes).writeStream.queryName("visits").foreachBatch(write)
    if said.available_now:
        writer = writer.trigger(availableNow=True)
    writer.option("checkpointLocation", said.checkpoint).start().awaitTermination()
    spark.stop()  # the listener gets its last events


if __name__ == "__main__":
    main()
