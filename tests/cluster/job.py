"""A session on a cluster: ``python job.py '{...}'``, copied to where nothing of the repository is found.

``parts`` are the calls to make, and ``way`` is how beamish gets there: "py-files" and "installed", by spark-submit or the environment;
"addPyFile" and "addArtifact", by this program, from the ``archive``.

With ``go`` the query starts once this file exists; until then there is a file ``ready``.

Rows are files, one a batch. Panes of batch N are written to ``out/<part>/N.json``; a replayed batch replaces its file.
"""

# ruff: noqa: E402 - beamish is there once the archive is added
import json
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

SCHEMA = "ts timestamp, team string, score int"
told = json.loads(sys.argv[1])
folder = Path(told["folder"])
builder = SparkSession.builder.config(map=told["settings"])
spark = (builder.remote(told["remote"]) if told.get("remote") else builder).getOrCreate()
if told["way"] == "addPyFile":
    spark.sparkContext.addPyFile(told["archive"])
if told["way"] == "addArtifact":
    spark.addArtifacts(told["archive"], pyfile=True)
    sys.path.insert(0, told["archive"])  # the client's own

import beamish as bm
from beamish.accumulations import CollectSet, Count, Sum
from beamish.triggers import AfterAny, AfterCount, AfterProcessingTime, Always, Repeatedly

plays = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness("1 hour")).key_by("team")
sessions = (
    plays.window(bm.Sessions("10 seconds"))
    .trigger(Repeatedly(AfterAny(AfterCount(1), AfterProcessingTime("1 hour"))))
    .allowed_lateness("1 hour")
    .accumulating_and_retracting()
    .accumulate(total=Sum("score"), plays=Count())
)
totals = (
    bm.merge(high=plays, low=plays)
    .window(bm.FixedWindows("1 minute"))
    .trigger(Always())
    .allowed_lateness("1 hour")
    .accumulating_and_retracting()
    .accumulate(high=Sum("score").of("high"), low=Sum("score").of("low"))
    .then(
        bm.Pipeline()
        .key_by("high")
        .trigger(Always())
        .allowed_lateness("1 hour")
        .accumulating_and_retracting()
        .accumulate(teams=CollectSet("team"), lows=Sum("low"))
    )
)


def read():
    return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(told["rows"])


def as_json(panes):
    return [row.json for row in panes.select(F.to_json(F.struct("*")).alias("json")).collect()]


def run(name, panes, *, also=None):
    out = folder / "out" / name
    out.mkdir(parents=True, exist_ok=True)

    def write(batch, number):
        batch.persist()
        new = out / f".{number}.{told.get('host')}"
        text = json.dumps([json.loads(row) for row in sorted(as_json(batch))])
        place = out / f"{number}.json"
        if place.exists() and place.read_text() != text:
            raise AssertionError(f"replayed batch {number} differs: {place.read_text()} was {text}")
        new.write_text(text)
        new.replace(place)
        if also:
            also(batch, number)
        batch.unpersist()

    if told.get("go"):
        (folder / "ready").touch()
        while not Path(told["go"]).exists():
            time.sleep(0.05)
    writer = panes.writeStream.foreachBatch(write).option("checkpointLocation", str(folder / "checkpoints" / name))
    writer.trigger(availableNow=True).start().awaitTermination()


def run_sessions():
    run("sessions", sessions.apply(read()))


def run_sessions_into_table():
    """Without a clock: a driver starts four Python processes for it, and Spark waits for each of them for only ten seconds."""
    early = sessions.trigger(Repeatedly(AfterCount(1)))
    run("sessions", early.apply(read()), also=bm.sinks.sql(told["table"], "sessions"))


def run_chain():
    rows = read()
    run("chain", totals.apply(high=rows.where("score > 4"), low=rows.where("score <= 4")))


def refuse_stream():
    try:
        sessions.apply(read())
    except bm.SparkSetupError as why:
        print("REFUSED", why)
    else:
        raise AssertionError("a stream is not refused")


def batch():
    rows = spark.read.schema(SCHEMA).json(told["rows"])
    out = folder / "out" / "batch"
    out.mkdir(parents=True, exist_ok=True)
    (out / "0.json").write_text(json.dumps([json.loads(pane) for pane in as_json(sessions.apply(rows))]))


def inspect():
    for name in ("sessions", "chain"):
        print(bm.inspect(spark, folder / "checkpoints" / name).why(stage=1, key="red")[:300])


def check_upgrade():
    assert bm.check_upgrade(spark, folder / "checkpoints" / "sessions", sessions).ok
    assert bm.check_upgrade(spark, folder / "checkpoints" / "chain", totals).ok
    changed = sessions.window(bm.Sessions("20 seconds"))
    assert not bm.check_upgrade(spark, folder / "checkpoints" / "sessions", changed).ok


def migrate():
    for name, pipeline in (("sessions", sessions), ("chain", totals)):
        place = folder / "checkpoints"
        bm.migrate(spark, place / name, place / f"{name}-5", pipeline, shards=5)


spark.sparkContext.setLogLevel("WARN") if not told.get("remote") else None
for part in told["parts"]:
    globals()[part]()
print("DONE", *told["parts"], flush=True)
