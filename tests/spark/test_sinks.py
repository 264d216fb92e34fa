"""Sinks and metrics in one streaming query each."""

import json
import sqlite3
import urllib.request
from contextlib import closing, suppress
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as F
from pyspark.sql import types as t

import beamish as bm
from beamish.accumulations import Collect, Count, Sum
from beamish.errors import ColumnError, OptionError, PipelineError, SinkError
from beamish.kernels.codes import normalise
from beamish.sinks.databases import DuckDb
from beamish.spark.checkpoint.stored_query import last_before_migration
from beamish.spark.merging import check_fits
from beamish.triggers import AfterWatermark, Always
from beamish.watching import BatchCounts, Totals
from tests.servers.killing import sessions as sessions_of
from tests.servers.query import SESSIONS
from tests.sinks.identities import KEYS

TIME = pa.timestamp("us", "UTC")


def at(second):
    return datetime.fromtimestamp(second, UTC)


def row(second, team, score=1):
    return {"ts": None if second is None else at(second), "team": team, "score": score}


def start(df, write, checkpoint):
    writer = df.writeStream.foreachBatch(write).option("checkpointLocation", str(checkpoint))
    return writer.trigger(availableNow=True).start()


def ask(path, query):
    with closing(sqlite3.connect(path)) as database:
        return sorted(database.execute(query).fetchall(), key=repr)


def test_a_table_is_correct_after_each_batch_and_owned_by_its_query(files, tmp_path):
    rows = [
        [row(0, "red"), row(15, "red"), row(3, None, 5), row(100, "red")],
        [row(8, "red"), row(4, None, 2)],  # it joins the first two sessions of the reds
        [row(108, "red", 3), row(30, "blue", None)],
    ]
    source = files(ts=TIME, team=pa.string(), score=pa.int32())
    for batch in rows:
        source.add(*batch)
    path = tmp_path / "tables.db"
    sink = bm.sinks.sql(f"sqlite:///{path}", "sessions", fields=["timing"])
    rows_of = "SELECT team, strftime('%s', window_start), strftime('%s', window_end), total, plays FROM sessions"
    seen = []

    def write(batch, number):
        batch.persist()
        for _ in range(2):  # as after a crash
            sink(batch, number)
        batch.unpersist()
        seen.append(
            [(team, int(start), int(end), total or 0, plays) for team, start, end, total, plays in ask(path, rows_of)]
        )

    panes = SESSIONS.apply(source.stream())
    query = start(panes, write, tmp_path / "checkpoint")
    query.awaitTermination()
    plain = [[one | {"ts": one["ts"].timestamp(), "score": one["score"] or 0} for one in batch] for batch in rows]
    assert seen[:3] == [sessions_of(plain[: number + 1]) for number in range(3)]
    assert ask(path, "SELECT DISTINCT pane_timing FROM sessions") == [("EARLY",)]
    last = len(seen) - 1
    ((table, query_id, batch, entry, digest, *contents),) = ask(path, "SELECT * FROM _beamish_sinks")
    assert (table, query_id, batch) == ("sessions", str(query.id), last)
    assert (entry[:8], digest[:5]) == ("offsets ", "rows ")
    assert [tuple(contents)] == ask(path, "SELECT count(*), sum(_sequence) FROM sessions")


def test_an_outdated_or_missing_table_is_rejected_and_rebuilt(files, tmp_path, spark):
    source = files(ts=TIME, team=pa.string(), score=pa.int32())
    path, panes_path, checkpoint = tmp_path / "tables.db", str(tmp_path / "panes"), tmp_path / "checkpoint"
    sink = bm.sinks.sql(f"sqlite:///{path}", "sessions")
    rows = [
        [row(0, "red"), row(15, "red"), row(3, None, 5)],
        [row(8, "red"), row(40, None)],
        [row(30, "blue"), row(100, "red")],
    ]

    def write(batch, number):
        batch.persist()
        batch.write.mode("overwrite").parquet(f"{panes_path}/batch={number}")
        sink(batch, number)
        batch.unpersist()

    def run(*batches):
        for batch in batches:
            source.add(*batch)
        query = start(SESSIONS.apply(source.stream()), write, checkpoint)
        with suppress(StreamingQueryException):
            query.awaitTermination()
        return bm.errors.of(query.exception())

    run(rows[0])
    path.unlink()
    assert "The table or its database was deleted" in str(run(rows[1]))
    sink.rebuild(spark.read.parquet(panes_path).drop("batch"), checkpoint=str(checkpoint))
    assert run(rows[2]) is None
    plain = [one | {"ts": one["ts"].timestamp()} for batch in rows for one in batch]
    rows_of = "SELECT team, strftime('%s', window_start), strftime('%s', window_end), total, plays FROM sessions"
    found = [(team, int(start), int(end), total, plays) for team, start, end, total, plays in ask(path, rows_of)]
    assert found == sessions_of([plain])
    for log in ("offsets", "commits"):  # as a copy of the checkpoint from before the last batch
        last = max((checkpoint / log).glob("[0-9]*"), key=lambda one: int(one.name))
        last.unlink()
        last.with_name(f".{last.name}.crc").unlink()
    assert "with other rows: the checkpoint was restored to an earlier batch" in str(run([row(105, "red")]))
    assert len(ask(path, rows_of)) == len(found)


def test_a_table_continues_after_migrations_and_is_not_resumed_from_a_backup(files, tmp_path, spark):
    source = files(ts=TIME, team=pa.string(), score=pa.int32())
    path, sink = tmp_path / "tables.db", bm.sinks.sql(f"sqlite:///{tmp_path}/tables.db", "sessions")
    checkpoints = [str(tmp_path / f"checkpoint{number}") for number in range(3)]

    def run(checkpoint, shards, *rows):
        source.add(*rows)
        query = start(SESSIONS.apply(source.stream(), shards=shards), sink, checkpoint)
        with suppress(StreamingQueryException):
            query.awaitTermination()
        return bm.errors.of(query.exception())

    assert run(checkpoints[0], 2, row(0, "red"), row(3, None, 5)) is None
    for number in range(2):  # each adds a batch that the sink is not called for
        bm.migrate(spark, checkpoints[number], checkpoints[number + 1], SESSIONS, shards=3 - number)
    backup = path.read_bytes()
    assert run(checkpoints[2], 2, row(8, "red")) is None
    entries = [(int(one.name), one.read_text()) for one in (tmp_path / "checkpoint2/offsets").glob("[0-9]*")]
    noted = [last_before_migration(entry) for _, entry in sorted(entries)]
    assert [last for last in noted if last is not None] == noted[1:3] == [0, 0]
    rows_of = "SELECT team, total, plays FROM sessions"
    assert ask(path, rows_of) == [("red", 2, 2), (None, 5, 1)]
    path.write_bytes(backup)
    assert "are missing: the table was restored from a backup older than the checkpoint" in str(
        run(checkpoints[2], 2, row(100, "red"))
    )
    assert path.read_bytes() == backup


def test_a_kafka_record_has_a_key_of_its_own_for_each_key(spark):
    most = max(map(len, KEYS.values()))
    padded = {
        f"c{number}": pa.array([*keys, *[None] * (most + 1 - len(keys))], type_)
        for number, (type_, keys) in enumerate(KEYS.items())
    }
    pane = {"change": "INSERT", "kind": "PANE", "sequence": 1, "watermark": None}
    empty = {
        "window": [{"start": None, "end": None}] * (most + 1),
        "pane": [pane] * (most + 1),
        "timestamp": [None] * (most + 1),
    }
    types = {"window": pa.struct({"start": TIME, "end": TIME}), "pane": None, "timestamp": TIME}
    others = {name: pa.array(values, types[name]) for name, values in empty.items()}
    panes = spark.createDataFrame(pa.table(padded | others))
    keys = [bm.changelog(panes, "kafka", keys=[name]).select(F.col("key").alias(name)) for name in padded]
    for (name, column), written in zip(padded.items(), keys, strict=True):
        found = {json.loads(row[name])[name] for row in written.collect()}
        assert len(found) == len(pc.unique(normalise(column))), column.type


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        (
            "team STRING COLLATE UTF8_LCASE",
            "key column 'team' is .*UTF8_LCASE.*, in whose collation different texts are equal",
        ),
        ("team CHAR(5)", r"column 'team' is char\(5\), the panes need string"),
        ("price DECIMAL(9,1)", r"column 'price' is decimal\(9,1\), the panes need decimal\(5,2\)"),
        ("n INT", "column 'n' is int, the panes need bigint"),
        ("at DATE", "column 'at' is date, the panes need timestamp"),
        ("price DOUBLE", "column 'price' is double"),
        ("n DECIMAL(19,0)", None),
        ("price DECIMAL(9,3)", None),
    ],
)
def test_a_table_of_sparks_that_would_change_values_is_refused(spark, declared, message):
    wanted = t.StructType.fromDDL("team STRING, n BIGINT, price DECIMAL(5,2), at TIMESTAMP")
    types = {field.name: field.dataType.simpleString() for field in wanted}
    types[declared.partition(" ")[0]] = declared.partition(" ")[2]
    spark.sql("DROP TABLE IF EXISTS narrow")
    spark.sql(f"CREATE TABLE narrow ({', '.join(f'{name} {type_}' for name, type_ in types.items())}) USING parquet")
    there = spark.table("narrow").schema
    if message is None:
        check_fits("narrow", there, wanted, ["team"])
    else:
        with pytest.raises(SinkError, match=message):
            check_fits("narrow", there, wanted, ["team"])
    spark.sql("DROP TABLE narrow")


def test_counts_add_up_in_each_batch_with_and_without_dropped_rows(files, tmp_path, spark):
    source = files(ts=TIME, team=pa.string(), score=pa.int32())
    source.add(row(5, "red"), row(130, "red"), row(None, "red"))
    source.add(row(6, "red"), row(7, "blue"), row(125, "red"), row(131, "blue"))  # 6 and 7 are too late
    source.add(row(400, "red"), row(131, "red"), row(None, None))
    pipeline = (
        bm.Pipeline()
        .event_time("ts", bm.BoundedOutOfOrderness(0))
        .key_by("team")
        .window(bm.FixedWindows(60))
        .trigger(AfterWatermark(early=Always()))
        .accumulating_and_retracting()
        .accumulate(n=Count(), scores=Collect("score"))
    )
    listener = bm.Listener(path=tmp_path / "beamish.prom", port=0)
    spark.streams.addListener(listener)
    counts = {}
    for name, observed in {"plain": pipeline, "listed": pipeline.with_dropped()}.items():
        panes = bm.observe(observed.apply(source.stream(), shards=3))
        batches = []
        query = start(panes, lambda batch, _, to=batches: to.append(batch.toArrow()), tmp_path / name)
        bm.progress(query, every=2)
        query.awaitTermination()
        listener.wait(query)
        for batch, table in zip(query.recentProgress, batches, strict=True):
            check_counts(batch, table)
        counts[name] = [batch.observedMetrics["beamish"].asDict() for batch in query.recentProgress]
    spark.streams.removeListener(listener)
    assert [batch["max_late_by_ms"] for batch in counts["plain"]] == [None, 124_000, None, None]
    assert counts["plain"] == counts["listed"]
    exposed = (tmp_path / "beamish.prom").read_text()
    assert f'beamish_dropped_total{{query="{query.id}",reason="expired"}} 2.0' in exposed
    with urllib.request.urlopen(f"http://127.0.0.1:{listener.port}/metrics") as served:
        assert f'beamish_live_windows{{query="{query.id}"}} 1.0' in served.read().decode()
    listener.close()


def test_gauges_are_right_where_a_batch_calls_some_of_the_shards(files, tmp_path):
    """Six keys with a window each, of which one ends in a batch without rows."""
    source = files(ts=TIME, team=pa.string(), score=pa.int32())
    source.add(row(5, "team 0"), *(row(15, f"team {number}") for number in range(1, 6)))
    pipeline = (
        bm.Pipeline()
        .event_time("ts", bm.BoundedOutOfOrderness(0))
        .key_by("team")
        .window(bm.FixedWindows(10))
        .accumulate(n=Count())
    )
    panes = bm.observe(pipeline.apply(source.stream(), shards=4))
    query = start(panes, lambda batch, _: batch.collect(), tmp_path / "checkpoint")
    query.awaitTermination()
    totals, windows, called = Totals(), [], []
    for batch in query.recentProgress:
        seen = BatchCounts.read(batch, "beamish")
        totals.add(seen)
        windows.append(totals.live_windows)
        called.append(len(seen.shards))
    assert (windows, called) == ([6, 5], [4, 1])
    assert totals.next_due == datetime.fromtimestamp(20, UTC)


def check_counts(batch, table):
    """Input rows are assigned to windows or dropped; the counts of output rows are right."""
    counted = batch.observedMetrics["beamish"].asDict()
    dropped = sum(number or 0 for name, number in counted.items() if name.startswith("dropped_"))
    assert batch.numInputRows == (counted["rows"] or 0) + dropped
    panes = table["pane"].to_pylist()
    for timing in ("EARLY", "ON_TIME", "LATE"):
        of_timing = [pane for pane in panes if (pane["kind"], pane["timing"]) == ("PANE", timing)]
        assert (counted[f"panes_{timing.lower()}"] or 0) == len(of_timing)
    assert (counted["retractions"] or 0) == sum(pane["kind"] == "RETRACTION" for pane in panes)


def test_panes_without_row_state_are_rejected(spark, tmp_path):
    rows = spark.createDataFrame([(at(1), "red", 1)], "ts timestamp, team string, score int")
    made = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("team").accumulate(n=Sum("score"))
    sink = bm.sinks.sql(f"sqlite:///{tmp_path}/tables.db", "totals")
    stream = spark.readStream.format("rate").load().selectExpr("timestamp AS ts", "'red' AS team", "1 AS score")
    early = made.trigger(Always())
    discarding = early.window(bm.FixedWindows(60)).discarding().apply(stream)
    with pytest.raises(PipelineError, match=r"sinks.sql\(..., 'totals'\): the pipeline is discarding"):
        sink(discarding, 0)
    merging = early.window(bm.Sessions(60)).accumulating().apply(stream)
    with pytest.raises(
        PipelineError, match=r"sinks.sql\(..., 'totals'\) of a pipeline that is accumulating, over windows"
    ):
        sink(merging, 0)
    panes = made.window(bm.FixedWindows(60)).apply(rows)
    old = panes.withColumn("pane", panes["pane"].dropFields("sequence"))
    with pytest.raises(ColumnError, match="has no field 'sequence': the panes were written by a version"):
        sink(old, 0)
    with pytest.raises(ColumnError, match="there is no column 'window', so these are not panes"):
        sink(rows, 0)
    taken = panes.withColumnRenamed("n", "_sequence")
    with pytest.raises(ColumnError, match="a column '_sequence' of its own"):
        sink(taken, 0)
    sink(panes, 0)
    assert ask(tmp_path / "tables.db", "SELECT * FROM totals") == [
        ("red", "1970-01-01 00:00:00", "1970-01-01 00:01:00", 1, 0)
    ]


def test_foreach_refuses_a_sink_when_it_is_called(spark):
    writer = spark.readStream.format("rate").load().writeStream
    with pytest.raises(Exception, match=r"SqlSink: foreach gives it rows.*: writeStream\.foreachBatch\(sink\)"):
        writer.foreach(bm.sinks.sql("sqlite:///a.db", "totals"))


def test_a_missing_database_driver_is_named_when_the_sink_is_made(spark, monkeypatch):
    monkeypatch.setattr(DuckDb, "driver", "driver_nowhere")
    with pytest.raises(OptionError, match=r"DuckDB is not installed .*: pip install 'duckdb>=1.4'"):
        bm.sinks.sql("duckdb:///file.db", "totals")
    monkeypatch.setattr("beamish.sinks.options.active_session", lambda: None)  # as where the server has the driver
    assert bm.sinks.sql("duckdb:///file.db", "totals").database.missing_driver()


def test_a_missing_kafka_connector_is_named_when_the_sink_is_made(spark):
    with pytest.raises(bm.SparkSetupError, match=r"no connector 'kafka'(?s:.*)-kafka-0-10_2.13:"):
        bm.sinks.kafka("host:9092", "totals")


def test_a_missing_connector_is_a_sink_error_of_the_batch(files, tmp_path, monkeypatch):
    monkeypatch.setattr("beamish.spark.runtime.session.check_connector", lambda *_: None)
    source = files(ts=TIME, team=pa.string(), score=pa.int32()).add(row(0, "red"))
    for name, sink in (
        ("kafka", bm.sinks.kafka("host:9092", "totals")),
        ("delta", bm.sinks.merge("totals", create="delta")),
    ):
        query = start(SESSIONS.apply(source.stream()), sink, tmp_path / name)
        with pytest.raises(Exception, match="STREAM_FAILED"):
            query.awaitTermination()
        found = bm.errors.of(query.exception())
        assert isinstance(found, bm.SinkError)
        line = str(found).splitlines()[1]
        assert line.startswith('    SparkSession.builder.config("spark.jars.packages", "')
        assert name in line
        assert str(found).endswith("Nothing of the batch was written.")
