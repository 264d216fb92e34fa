"""Delta and Iceberg: a PySpark that they know, their jars, and the query that test_merge.py kills.

Their releases follow Spark's months behind, so they have an environment of their own, with an older PySpark.
"""

import json
import os
import shutil
import subprocess
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException

import beamish as bm
from beamish.spark import merging
from tests.servers import query

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "lake"
PYSPARK = "4.1.1"
PACKAGES = {
    "delta": "io.delta:delta-spark_4.1_2.13:4.3.1",
    "iceberg": "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.11.0",
}


def confs(format_: str, warehouse: str) -> dict[str, str]:
    """The session settings for tables of a format."""
    if format_ == "delta":
        return {
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            "spark.sql.warehouse.dir": warehouse,
            "spark.databricks.delta.snapshotPartitions": "2",
        }
    return {
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": warehouse,
    }


def table(format_, warehouse):
    return f"delta.`{warehouse}/sessions`" if format_ == "delta" else "lake.stats.sessions"


@cache
def python():
    """The Python of the environment; the test is skipped where it cannot be made."""
    made = FOLDER / "venv"
    ready = made / "ready"
    if not ready.exists():
        needs = [
            f"pyspark=={PYSPARK}",
            "attrs>=24.1",
            "pytest",
            "numpy<2.5",
            "pandas>=2.2,<3",
            "protobuf",
            "pyarrow>=18,<24",
        ]
        commands = [
            [sys.executable, "-m", "venv", "--clear", str(made)],
            [str(made / "bin" / "python"), "-m", "pip", "install", "--quiet", *needs],
        ]
        for command in commands:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                pytest.skip(f"no environment with pyspark {PYSPARK}: {done.stderr[-300:]}")
        ready.touch()
    return str(made / "bin" / "python")


def packages(format_: str) -> dict[str, str]:
    """The confs that have Spark fetch the jars."""
    return {"spark.jars.packages": PACKAGES[format_], "spark.jars.ivy": str(FOLDER / "ivy")}


@cache
def check_packages(format_):
    """Fetch the jars; the test is skipped where they cannot be, and fails where Spark does not start with them."""
    code = "import json, sys; from tests.servers.lake import session; session(json.loads(sys.argv[1])).range(1).count()"
    done = subprocess.run(
        [python(), "-c", code, json.dumps(packages(format_))], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        not_started(PACKAGES[format_], done.stderr)


def not_started(package, said):
    """A session that was to fetch a package did not start, and said why: skip the test where it cannot be fetched, else fail it."""
    for why in ("unresolved dependency", "download failed"):
        if why in said:
            pytest.skip(f"{package} cannot be fetched: {why}")
    pytest.fail(f"Spark did not start with {package}: {said[-1000:]}")


def session(settings):
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.pop("SPARK_HOME", None)
    confs = " ".join(f"--conf {name}={value}" for name, value in settings.items())
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"{confs} pyspark-shell"
    from tests.conftest import start_spark

    return start_spark()


def drop_and_restore(told, spark):
    """Drop the table while its query is stopped, fill it from all panes, continue; then restore the checkpoint to an earlier batch."""
    sink, panes = bm.sinks.merge(told["table"], create=told["format"]), f"{told['halted']}-panes"

    def write(batch, number):
        batch.persist()
        batch.write.mode("overwrite").parquet(f"{panes}/batch={number}")
        sink(batch, number)
        batch.unpersist()

    def run(*files):
        for name in files:
            shutil.copy(f"{told['rows']}/{name}", f"{told['rows']}-now/{name}")
        rows = spark.readStream.schema(query.SCHEMA).option("maxFilesPerTrigger", 1).json(f"{told['rows']}-now")
        writer = (
            query.SESSIONS.apply(rows).writeStream.foreachBatch(write).option("checkpointLocation", told["checkpoint"])
        )
        running = writer.trigger(availableNow=True).start()
        with suppress(StreamingQueryException):
            running.awaitTermination()
        error = running.exception()
        return str(bm.errors.of(error) or error)

    Path(f"{told['rows']}-now").mkdir()
    first, second, third, last = sorted(path.name for path in Path(told["rows"]).iterdir())
    said = [run(first, second)]
    if told["format"] == "delta":  # which does not drop a table that is named by its path
        shutil.rmtree(told["table"].split("`")[1])
    else:
        spark.sql(f"DROP TABLE {told['table']}")
    said.append(run(third))
    sink.rebuild(spark.read.parquet(panes).drop("batch"), checkpoint=told["checkpoint"])
    said.append(run())
    kept = [list(row) for row in shown(spark, told["table"])]
    for log in ("offsets", "commits"):
        newest = max(Path(told["checkpoint"], log).glob("[0-9]*"), key=lambda path: int(path.name))
        newest.unlink()
        newest.with_name(f".{newest.name}.crc").unlink()
    return [*said, run(last), kept]


PANE = {"kind": "PANE", "watermark": None}
TYPES = "team string, total int, window struct<start:timestamp,end:timestamp>, pane struct<change:string,kind:string,sequence:bigint,watermark:timestamp>, timestamp timestamp"


def panes(spark, *rows):
    """Panes of a global window: team, total, sequence; total None: deleted."""
    made = [
        {
            "team": team,
            "total": total,
            "window": {"start": None, "end": None},
            "pane": PANE | {"change": "DELETE" if total is None else "INSERT", "sequence": sequence},
            "timestamp": None,
        }
        for team, total, sequence in rows
    ]
    return spark.createDataFrame(made, TYPES)


def undone(told, spark):
    """The sink's messages after others changed the table, per mishap, with the table's rows; each has a new table of two batches."""
    merging._HISTORY = OFTEN - 2
    found = {"replayed": replayed(told, spark)}
    for number, (name, statements) in enumerate(OTHERS[told["format"]].items()):
        table, sink = _new_table(told, f"t{number}")
        sink(panes(spark, ("red", 1, 1), ("blue", 1, 2)), 0)
        first = _snapshot(spark, table)
        sink(panes(spark, ("red", 2, 3)), 1)
        for statement in statements:
            spark.sql(statement.format(table=table, first=first, name=table.partition(".")[2]))
        said = [_said(sink, panes(spark, ("green", 1, 4)), 2)]
        if "ALTER TABLE" in said[0]:
            spark.sql(said[0].rpartition("as it is: ")[2])
            said.append(_said(sink, panes(spark, ("green", 1, 4)), 2))
        found[name] = [said, _totals(spark, table)]
    return found


def replayed(told, spark):
    """The same for batches that change nothing, and for replays with other values and other rows."""
    table, sink = _new_table(told, "replayed")
    sink(panes(spark, ("red", 1, 1), ("blue", 1, 2)), 0)
    sink(panes(spark), 1)
    sink(panes(spark, ("white", None, 3)), 2)  # which was never there
    sink(panes(spark, ("red", 2, 4), ("blue", 2, 5)), 3)
    said = [_said(sink, panes(spark, *rows), 3) for rows in ([("blue", 4, 4), ("red", 3, 5)], [("red", 3, 5)])]
    return [said, _totals(spark, table)]


def _new_table(told, name):
    table = f"spark_catalog.default.{name}" if told["format"] == "delta" else f"lake.stats.{name}"
    return table, bm.sinks.merge(table, create=told["format"], keys=["team"])


def _totals(spark, table):
    return sorted([row.team, row.total] for row in spark.table(table).collect())


def _snapshot(spark, table):
    return spark.table(f"{table}.snapshots").first().snapshot_id if table.startswith("lake") else 1


def _said(sink, batch, number):
    try:
        sink(batch, number)
    except bm.SinkError as error:
        return str(error)
    return ""


OFTEN = 5
BOTH = {
    "another column": ["ALTER TABLE {table} ADD COLUMN note STRING", "UPDATE {table} SET note = 'x'"],
    "deleted": ["DELETE FROM {table} WHERE team = 'red'"],
    "overwritten": ["INSERT OVERWRITE {table} SELECT * FROM {table} WHERE team = 'red'"],
}
REWRITE = "CALL lake.system.rewrite_data_files(table => '{name}', options => map('rewrite-all', 'true'))"
OTHERS = {
    "delta": BOTH
    | {
        "compacted": ["OPTIMIZE {table}"],
        "deleted, then compacted often": [
            "DELETE FROM {table} WHERE team = 'red'",
            *["ALTER TABLE {table} SET TBLPROPERTIES ('compacted' = 'yes')"] * OFTEN,
        ],
        "restored": ["RESTORE TABLE {table} TO VERSION AS OF 1", "OPTIMIZE {table}"],
        "replaced": ["CREATE OR REPLACE TABLE {table} (team STRING, total INT, _sequence BIGINT) USING delta"],
    },
    "iceberg": BOTH
    | {
        "compacted": [REWRITE],
        "compacted often": [REWRITE] * OFTEN,
        "deleted, then compacted often": ["DELETE FROM {table} WHERE team = 'red'", *[REWRITE] * OFTEN],
        "restored": ["CALL lake.system.rollback_to_snapshot('{name}', {first})"],
        "replaced": ["CREATE OR REPLACE TABLE {table} (team STRING, total INT, _sequence BIGINT) USING iceberg"],
    },
}


def shown(spark, table):
    return spark.sql(
        f"SELECT team, unix_seconds(window_start), unix_seconds(window_end), total, plays FROM {table}"
    ).collect()


if __name__ == "__main__":
    told = json.loads(sys.argv[1])
    spark = session(told["settings"])
    if told.get("show"):
        print(json.dumps([list(row) for row in shown(spark, told["table"])]))
    elif told.get("undo"):
        print(json.dumps(undone(told, spark)))
    elif told.get("drop"):
        print(json.dumps(drop_and_restore(told, spark)))
    else:
        query.run(told, bm.sinks.merge(told["table"], create=told["format"]))
