"""Features of card payments: how many and how much in the last 1, 12 and 24 hours, the same for serving and for training.

A payment is scored at once, by the features that its card had then: the serving table has one row per card, which changes only when the
card's features do. Whether it was fraud is known a day later. The training table joins each label with the features as of the payment's
time, by the history of the same features, late payments included.

At the end the program computes the training table again, from all rows at once. It exits with 1 if it differs from the streamed one.

    python examples/card_features.py [--table sqlite:///features.db]

With ``--table``, a URL of SQLite, DuckDB or PostgreSQL, Spark keeps the serving table there.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import beamish as bm
from beamish import Pane, PaneKind
from beamish.accumulations import Count, Max, Sum
from beamish.testing import TestStream

MINUTE, HOUR, DAY = 60, 60 * 60, 24 * 60 * 60
SPANS = {"1h": "1 hour", "12h": "12 hours", "24h": "24 hours"}
PAYMENTS = bm.Pipeline().event_time("paid", bm.BoundedOutOfOrderness("5 minutes")).key_by("card")
FEATURES = (
    PAYMENTS.window(bm.Rolling(SPANS, step="10 minutes"))
    .allowed_lateness("1 hour")
    .accumulate(n=Count(), spent=Sum("euros"), most=Max("euros"))
)
"""For serving: one row per card."""
HISTORY = (
    FEATURES.window(bm.Rolling(SPANS, step="10 minutes", keep="history"))
    .accumulating_and_retracting()
    .then(bm.Pipeline().key_by("card").versions("3 days", values=["n_1h", "n_24h", "spent_24h", "most_24h"]))
)
"""For training: what was valid when."""
LABELS = bm.Pipeline().event_time("paid", bm.BoundedOutOfOrderness("1 day"))
TRAINING = bm.as_of_join(
    labels=LABELS, features=HISTORY, on="card", how="left", wait_for=bm.LEFT_INPUT
).accumulating_and_retracting()


def main() -> int:
    """Serve, train, compare; 0 if the training table of the stream is that of a batch."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--table", help="the URL of a database for the serving table")
    url = parser.parse_args().table
    payments = some_payments(random.Random(1))  # noqa: S311 - made up
    if url:
        keep_table(payments, url)
        return 0
    serve(payments)
    labels = [
        {"paid": row["paid"], "card": row["card"], "fraud": row["euros"] > 900, "known": row["paid"] + DAY}
        for row in payments[::7]
    ]
    streamed = train(payments, labels, batches=12)
    for row in streamed[-3:]:
        print(*row)
    at_once = train(payments, labels, batches=1)
    print(f"{len(streamed)} labels with features, {'as' if streamed == at_once else 'NOT as'} in a batch")
    return 0 if streamed == at_once else 1


def some_payments(chance: random.Random) -> list[dict[str, Any]]:
    """Payments of three cards over two days, with their times of arrival: most at once, some up to 50 minutes late."""
    rows = []
    for _ in range(300):
        paid, late = chance.randrange(2 * DAY), chance.choice([0, 0, 0, 50 * MINUTE])
        rows.append(
            {"paid": paid, "card": chance.choice("abc"), "euros": chance.choice([5, 20, 80, 950]), "at": paid + late}
        )
    return sorted(rows, key=lambda row: row["at"])


def serve(payments: list[dict[str, Any]]) -> None:
    """The serving table as it changes during the first three hours of card a."""
    script = TestStream()
    for row in payments:
        if row["card"] == "a" and row["at"] < 3 * HOUR:
            script = script.add([row]).advance_watermark_to(max(0, row["at"] - 5 * MINUTE))
    for pane in FEATURES.run(script):
        values = pane.values
        print(
            f"{values['time']:%H:%M} {pane.timing:7} n_1h={values['n_1h']} n_24h={values['n_24h']} spent_24h={values['spent_24h']}"
        )


def keep_table(payments: list[dict[str, Any]], url: str) -> None:
    """Keep the serving table ``features`` in a database, by a query over four files of payments."""
    from pyspark.sql import SparkSession

    provider = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    builder = SparkSession.builder.master("local[2]").config("spark.sql.shuffle.partitions", 2)
    spark = builder.config("spark.sql.streaming.stateStore.providerClass", provider).getOrCreate()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "in").mkdir()
        size = -(-len(payments) // 4)
        for number in range(4):
            rows = payments[number * size :][:size]
            texts = [row | {"paid": datetime.fromtimestamp(row["paid"], UTC).isoformat()} for row in rows]
            path = folder / "in" / f"{number}.json"
            path.write_text("\n".join(map(json.dumps, texts)))
            os.utime(path, (number, number))  # Spark reads files in the order of their modification times
        schema = "paid timestamp, card string, euros int"
        stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).json(str(folder / "in"))
        query = (
            FEATURES.apply(stream)
            .writeStream.foreachBatch(bm.sinks.sql(url, "features"))
            .option("checkpointLocation", str(folder / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    print("the serving table is features")


def train(payments: list[dict[str, Any]], labels: list[dict[str, Any]], batches: int) -> list[tuple[Any, ...]]:
    """The live rows of the training table, from this many batches of both inputs."""
    script, end = TestStream(), 3 * DAY + HOUR
    for number in range(batches):
        since, until = end * number // batches, end * (number + 1) // batches
        for name, rows, arrival in (("features", payments, "at"), ("labels", labels, "known")):
            came = [row for row in rows if since <= row[arrival] < until]
            script = script.add(came, input=name) if came else script
        script = script.advance_watermark_to(until - 5 * MINUTE, input="features")
        script = script.advance_watermark_to(until - DAY - 5 * MINUTE, input="labels")
    live: dict[Any, Pane] = {}
    for pane in TRAINING.run(script.advance_watermark_to_infinity()):
        at = pane.timestamp, pane.key["card"], pane.index
        if pane.kind is PaneKind.PANE:
            live[at] = pane
        else:
            del live[at]
    joined = [(f"{at:%d %H:%M}", card, pane.values["fraud"], shown(pane)) for (at, card, _), pane in live.items()]
    return sorted(joined, key=repr)


def shown(pane: Pane) -> str:
    """The features that a label was joined with."""
    features = pane.values["features"]
    return (
        "no features"
        if features is None
        else " ".join(f"{name}={features[name]}" for name in ("n_1h", "n_24h", "most_24h"))
    )


if __name__ == "__main__" and main():
    sys.exit(1)
