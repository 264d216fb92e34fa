"""The live figures as a table maintained by AutoCDC, if the catalog's format supports MERGE INTO (Delta, Iceberg; Spark 4.3).

To enable it, add ``include: auto_cdc/**`` to the libraries of ``spark-pipeline.yml``.
"""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

spark = SparkSession.active()


@dp.temporary_view
def changes() -> DataFrame:
    """Panes as upserts, by ``bm.changelog(panes, "upsert")``."""
    panes = spark.readStream.table("panes").where("pane.change <> 'UPDATE_BEFORE'")
    return panes.select(
        "team",
        F.col("window.start").alias("window_start"),
        "plays",
        "total",
        F.col("pane.sequence").alias("_sequence"),
        (F.col("pane.change") == "DELETE").alias("_deleted"),
    )


dp.create_streaming_table("live_table")
dp.create_auto_cdc_flow(
    target="live_table",
    source="changes",
    keys=["team", "window_start"],
    sequence_by="_sequence",
    apply_as_deletes="_deleted",
    except_column_list=["_sequence", "_deleted"],
)
