"""Streams of Delta tables, read again by their offsets: ``python -m tests.servers.replayed_delta '{"settings": ...}'``.

Each case fills a table and streams it, in turns, and compares the rows that each batch had with those that a replay reads.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F

import beamish as bm
from beamish.accumulations import Count, Sum
from beamish.spark.replay.log import past_query
from beamish.spark.replay.sources import PastInputs, made_by, past_sources
from tests.servers.lake import session

COLUMNS = "id INT, day STRING, v STRUCT<a: INT, b: STRING>"
EACH = {"maxFilesPerTrigger": "1"}
Statements = Sequence[str]
"""Statements of SQL; of a stream: no statement, but a run."""
RUN = "run"


def values(*ids: int, day: str = "'mon'") -> str:
    rows = ", ".join(f"({id_}, {day}, named_struct('a', {id_}, 'b', 'x{id_}'))" for id_ in ids)
    return f"INSERT INTO {{table}} SELECT /*+ REPARTITION({len(ids)}, id) */ * FROM VALUES {rows} AS t(id, day, v)"


MANY = "INSERT INTO {table} SELECT CAST(id AS INT), 'tue', named_struct('a', CAST(id AS INT), 'b', 'y') FROM range(10, 9000, 1, 1)"
"""Many rows in one file."""
CASES: Mapping[str, tuple[str, Mapping[str, str], Statements]] = {
    "several files of a commit, partitions, compaction": (
        "PARTITIONED BY (day)",
        EACH,
        [
            values(1, 2, 3),
            RUN,
            values(4, day="NULL"),
            values(5, 6, day="'a b%/{{c}}'"),
            "OPTIMIZE {table}",
            values(7),
            RUN,
        ],
    ),
    "a snapshot with deleted rows and renamed columns": (
        "TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'delta.enableDeletionVectors' = 'true', 'delta.checkpointInterval' = '3')",
        {"maxFilesPerTrigger": "2"},
        [
            values(1),
            MANY,
            values(2, 3),
            "ALTER TABLE {table} RENAME COLUMN day TO weekday",
            "ALTER TABLE {table} RENAME COLUMN v.a TO c",
            "DELETE FROM {table} WHERE id % 3 = 0 AND weekday = 'tue'",
            "DELETE FROM {table} WHERE id = 20",
            RUN,
            values(5),
            values(6, 7),
            RUN,
        ],
    ),
    "rewritten rows are taken": (
        "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
        {"startingVersion": "2", "ignoreChanges": "true"},
        [
            values(1),
            values(2, 3),
            RUN,
            MANY,
            "UPDATE {table} SET day = 'wed' WHERE id < 12",
            "DELETE FROM {table} WHERE id IN (3, 20)",
            RUN,
        ],
    ),
    "rewritten rows are skipped": (
        "",
        {"skipChangeCommits": "true"},
        [values(1, 2), RUN, values(3), "UPDATE {table} SET day = 'tue' WHERE id < 3", values(4), RUN],
    ),
    "columns are added and widened": (
        "TBLPROPERTIES ('delta.enableTypeWidening' = 'true', 'delta.checkpointPolicy' = 'v2', 'delta.checkpointInterval' = '2')",
        {},
        [
            values(1),
            values(2),
            RUN,
            "ALTER TABLE {table} ADD COLUMNS (w INT)",
            "INSERT INTO {table} SELECT 3, 'x', NULL, 5",
            RUN,
        ],
    ),
    "the change data feed": (
        "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')",
        {"readChangeFeed": "true"} | EACH,
        [
            values(1, 2),
            values(3, 4),
            RUN,
            values(5, 6),
            "UPDATE {table} SET day = 'tue' WHERE id = 1",
            "DELETE FROM {table} WHERE id = 2",
            "INSERT OVERWRITE {table} SELECT * FROM {table} WHERE id < 5",
            RUN,
        ],
    ),
    "the change data feed from a version on": (
        "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true', 'delta.enableDeletionVectors' = 'true')",
        {"readChangeFeed": "true", "startingVersion": "1"},
        [values(1, 2), RUN, MANY, "DELETE FROM {table} WHERE id IN (2, 20)", values(3), RUN],
    ),
}


def stream(table: str, options: Mapping[str, str]) -> Callable[[Any], Any]:
    """The function that makes the stream of a job."""
    return lambda spark: spark.readStream.options(**options).table(table)


def run_stream(rows: Any, folder: Path) -> None:
    """Run over what is there; the rows of each batch are stored."""

    def write(batch: Any, number: int) -> None:
        batch.write.mode("overwrite").json(f"{folder}/rows/{number}")

    query = rows.writeStream.foreachBatch(write).option("checkpointLocation", f"{folder}/checkpoint")
    query.trigger(availableNow=True).start().awaitTermination()


def texts(rows: Any) -> list[str]:
    """Rows as JSON, sorted."""
    return sorted(rows.toJSON().collect())


def past(spark: Any, folder: Path, job: Callable[[Any], Any]) -> tuple[Any, PastInputs]:
    query = past_query(spark, f"{folder}/checkpoint")
    return query, PastInputs.of(spark, past_sources(spark, f"{folder}/checkpoint", query), made_by(job, [None]), query)


def check(spark: Any, folder: Path, name: str) -> None:
    """A case: each batch again has the rows that it had."""
    clauses, options, statements = CASES[name]
    table = f"plays_{list(CASES).index(name)}"
    spark.sql(f"CREATE TABLE {table} ({COLUMNS}) USING delta {clauses}")
    job = stream(table, options)
    for statement in statements:
        if statement == RUN:
            run_stream(job(spark), folder)
        else:
            spark.sql(statement.format(table=table))
    query, inputs = past(spark, folder, job)
    assert inputs.lost(query.batches) == 0, name
    assert len(query.batches) > 1, name
    for batch in query.batches:
        then = sorted(row["value"] for row in spark.read.text(f"{folder}/rows/{batch.number}").collect())
        assert texts(inputs.frames(batch)[None]) == then, (name, batch, then)


scores = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness(0))
    .key_by("team")
    .window(bm.FixedWindows(60))
    .accumulate(total=Sum("points"), n=Count())
)
PLAYS = [
    "('red', 0, 1), ('blue', 5, 2)",
    "('red', 30, 4)",
    "('red', 90, 8)",
    "('red', 10, 16)",
    "('red', 300, 32), ('blue', 300, 1)",
]


def replay(spark: Any, folder: Path) -> None:
    """A pipeline over a table, replayed; then after its commits, its files and the table are gone."""
    place, checkpoint = f"{folder}/plays", f"{folder}/checkpoint"
    spark.sql(f"CREATE TABLE delta.`{place}` (team STRING, second LONG, points INT) USING delta")

    def events(given: Any) -> Any:
        rows = given.readStream.format("delta").option("maxFilesPerTrigger", 1).load(place)
        return rows.select("team", F.timestamp_seconds("second").alias("ts"), "points")

    def write(batch: Any, number: int) -> None:
        batch.write.mode("overwrite").parquet(f"{folder}/panes/batch={number}")

    for rows in PLAYS:
        spark.sql(f"INSERT INTO delta.`{place}` SELECT /*+ COALESCE(1) */ * FROM VALUES {rows}")
        query = scores.apply(events(spark)).writeStream.foreachBatch(write).option("checkpointLocation", checkpoint)
        query.trigger(availableNow=True).start().awaitTermination()
    panes = spark.read.parquet(f"{folder}/panes").drop("batch")
    found = bm.replay(spark, checkpoint, scores, key="red", input=events, panes=panes)
    assert found.differs_in is None, found
    assert [pane.values.get("total") for pane in found.panes] == [5, None, 8], found.panes  # the second was too late
    names: dict[str, Any] = {}
    exec(compile(found.test("tests.servers.replayed_delta:scores"), "test_red.py", "exec"), names)
    names["test_replay_of_team_red"]()

    with pytest.raises(bm.OptionError, match="give the function that makes the query's stream"):
        bm.replay(spark, checkpoint, scores, key="red")
    log = sorted(Path(place, "_delta_log").glob("0*.json"))
    (file,) = [Path(place, one["add"]["path"]) for one in map(json.loads, log[3].open()) if "add" in one]
    spark.sql(f"ALTER TABLE delta.`{place}` SET TBLPROPERTIES ('delta.checkpointInterval' = '1')")
    spark.sql(f"INSERT INTO delta.`{place}` VALUES ('red', 400, 0)")
    for gone in (log[:3], [file]):
        for path in gone:
            path.unlink()
            path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
        later = bm.replay(spark, checkpoint, scores, input=events, panes=panes)
        assert later.batches[0] > 0, later
        assert "no longer has all rows of the batches before" in later.notes[1], later
    shutil.rmtree(place)
    spark.sql(f"CREATE TABLE delta.`{place}` (team STRING, second LONG, points INT) USING delta")
    with pytest.raises(bm.OptionError, match=r"its sources are the Delta table with the id .* is created again"):
        bm.replay(spark, checkpoint, scores, input=events)


if __name__ == "__main__":
    told = json.loads(sys.argv[1])
    spark = session(told["settings"])
    only = told.get("only")
    for number, name in enumerate(CASES):
        if only is None or only == name:
            check(spark, Path(told["folder"], str(number)), name)
    if only is None or only == "replay":
        replay(spark, Path(told["folder"], "replay"))
    print("done")
