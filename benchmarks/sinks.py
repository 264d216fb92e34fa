"""Rows per second of bm.sinks.sql into PostgreSQL and SQLite, compared with hand-written sinks.

    python benchmarks/sinks.py postgresql://... [--rows 200000] [--rounds 3] [--jars FOLDER]

All programs take the same panes, cached in Spark: a batch of new rows, then one that changes them all. In turns, round after
round, each into a table of its own:

- beamish: ``bm.sinks.sql``; each row only where it is newer, in one transaction;
- executemany: ``foreachPartition`` with INSERT ... ON CONFLICT DO UPDATE by psycopg or sqlite3, a partition a transaction;
- JDBC append: Spark's JDBC writer, which appends rows and changes none (``--jars``: where the drivers' jars are).

Results go to build/bench/sinks.json.
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Any

import psycopg
from one_run import session
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

import beamish as bm

OUT = Path("build/bench/sinks.json")
COLUMNS = ("k", "window_start", "window_end", "n", "s", "_sequence")
Program = Callable[[DataFrame, int], None]


def panes(spark: SparkSession, rows: int, batch: int) -> DataFrame:
    """A batch of panes: each key's one window, inserted by batch 0, changed by batch 1."""
    start = F.timestamp_seconds(F.lit(1_700_000_040))
    change, kind = F.lit("UPDATE_AFTER" if batch else "INSERT").alias("change"), F.lit("PANE").alias("kind")
    made = spark.range(0, rows, 1, 2).select(
        F.concat(F.lit("key"), "id").alias("k"),
        F.struct(start.alias("start"), F.timestamp_seconds(F.lit(1_700_000_100)).alias("end")).alias("window"),
        (F.col("id") % 7).alias("n"),
        (F.col("id") * 3 + batch).alias("s"),
        F.struct(kind, change, (F.col("id") * 2 + batch).alias("sequence")).alias("pane"),
        start.alias("timestamp"),
    )
    made = made.cache()
    made.count()
    return made


def flat(batch: DataFrame) -> DataFrame:
    """The columns of the table."""
    return batch.selectExpr(
        "k", "window.start AS window_start", "window.end AS window_end", "n", "s", "pane.sequence AS _sequence"
    )


def by_psycopg(uri: str, table: str) -> Program:
    """A hand-written sink for PostgreSQL."""
    with psycopg.connect(uri) as connection:
        connection.execute(
            f"CREATE TABLE {table} (k text, window_start timestamptz, window_end timestamptz, n bigint, s bigint, _sequence bigint,"
            " PRIMARY KEY (k, window_start, window_end))"
        )
    upsert = (
        f"INSERT INTO {table} VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT (k, window_start, window_end) DO UPDATE SET"
        " n = excluded.n, s = excluded.s, _sequence = excluded._sequence"
    )

    def put(rows: Iterable[Row]) -> None:
        with psycopg.connect(uri) as connection, connection.cursor() as cursor:
            cursor.executemany(upsert, rows)

    return lambda batch, _: flat(batch).foreachPartition(put)


def by_sqlite3(path: str, table: str, key: str = ", PRIMARY KEY (k, window_start, window_end)") -> Program:
    """A hand-written sink for SQLite, which has one writer at a time."""
    with closing(sqlite3.connect(path)) as database:
        database.execute(
            f"CREATE TABLE {table} (k TEXT, window_start TEXT, window_end TEXT, n INTEGER, s INTEGER, _sequence INTEGER{key})"
        )
    upsert = (
        f"INSERT INTO {table} VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (k, window_start, window_end) DO UPDATE SET"
        " n = excluded.n, s = excluded.s, _sequence = excluded._sequence"
    )

    def put(rows: Iterable[Row]) -> None:
        with closing(sqlite3.connect(path)) as database, database:
            database.executemany(upsert, ((row[0], str(row[1]), str(row[2]), *row[3:]) for row in rows))

    return lambda batch, _: flat(batch).coalesce(1).foreachPartition(put)


def by_jdbc(url: str, table: str, driver: str) -> Program:
    """Spark's JDBC writer."""
    properties = {"driver": driver, "batchsize": "10000"}
    return lambda batch, _: flat(batch).write.jdbc(url, table, mode="append", properties=properties)


def programs(uri: str, folder: str, number: int, *, jars: bool) -> dict[str, Program]:
    """Each into a table, or a file, of its own."""
    host = uri.rpartition("@")[2]
    user = uri.partition("//")[2].partition("@")[0]
    files = {name: f"{folder}/{name}{number}.db" for name in ("beamish", "executemany", "jdbc")}
    found: dict[str, Program] = {
        "PostgreSQL beamish": bm.sinks.sql(uri, f"beamish{number}"),
        "PostgreSQL executemany": by_psycopg(uri, f"executemany{number}"),
        "SQLite beamish": bm.sinks.sql(f"sqlite:///{files['beamish']}", "t"),
        "SQLite executemany": by_sqlite3(files["executemany"], "t"),
    }
    if jars:
        found["PostgreSQL JDBC append"] = by_jdbc(
            f"jdbc:postgresql://{host}?user={user}", f"jdbc{number}", "org.postgresql.Driver"
        )
        by_sqlite3(files["jdbc"], "t", key="")  # the table
        append = by_jdbc(f"jdbc:sqlite:{files['jdbc']}", "t", "org.sqlite.JDBC")
        found["SQLite JDBC append"] = lambda batch, number: append(batch.coalesce(1), number)
    return found


def main() -> None:
    """Run, and print rows a second: the median of the rounds."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("uri")
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jars")
    arguments = parser.parse_args()
    if arguments.jars:
        jars = ",".join(str(path.resolve()) for path in Path(arguments.jars).glob("*.jar"))
        os.environ["PYSPARK_SUBMIT_ARGS"] = f"--jars {jars} pyspark-shell"
    spark = session("local[2]")
    batches = [panes(spark, arguments.rows, batch) for batch in (0, 1)]
    figures: dict[str, list[list[float]]] = {}
    with tempfile.TemporaryDirectory(prefix="beamish-bench-") as folder:
        for number in range(arguments.rounds + 1):
            for name, program in programs(arguments.uri, folder, number, jars=bool(arguments.jars)).items():
                speeds = [_timed(program, batch, batch_id) for batch_id, batch in enumerate(batches)]
                if number:  # the first round warms up
                    figures.setdefault(name, []).append([arguments.rows / seconds for seconds in speeds])
    result: dict[str, Any] = {
        name: {"new": median(one[0] for one in rounds), "changed": median(one[1] for one in rounds), "rounds": rounds}
        for name, rounds in figures.items()
    }
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(json.dumps(result, indent=1))
    print(f"{arguments.rows:,} rows, median of {arguments.rounds} rounds, rows a second")
    for name, figure in result.items():
        print(f"{name:24} new {figure['new']:9,.0f}   changed {figure['changed']:9,.0f}")


def _timed(program: Program, batch: DataFrame, number: int) -> float:
    began = time.perf_counter()
    program(batch, number)
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
