"""Queries that write what there is, and end."""


def written(df, folder):
    """The output of a query over all available rows."""
    query = (
        df.writeStream.format("parquet")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .option("path", str(folder / "out"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return df.sparkSession.read.parquet(str(folder / "out"))
