"""A checkpoint of a query on Spark and a changed pipeline (docs/upgrading.md)."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException

import beamish as bm
from beamish import triggers as t
from beamish.accumulations import Count, Sum
from beamish.spark.checkpoint.entries import entries_of, stores_of
from beamish.spark.operator.notes import NOTE
from tests.cost import deep_after

pytestmark = pytest.mark.usefixtures("several_partitions")

COLUMNS = {"ts": pa.timestamp("us", tz="UTC"), "team": pa.string(), "score": pa.int64()}
BARE = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness(0))
    .key_by("team")
    .window(bm.FixedWindows(10))
    .allowed_lateness(5)
    .accumulating()
)
PIPELINE = BARE.accumulate(count=Count(), total=Sum("score"))
SECOND = bm.Pipeline().key_by("team").window(bm.FixedWindows(20)).accumulate(count=Sum("count"))


def row(seconds, team, score):
    return {"ts": datetime.fromtimestamp(seconds, UTC), "team": team, "score": score}


def test_compatibility_is_reported_before_an_offset_is_written(spark, files, run_query, tmp_path):
    input_ = files(**COLUMNS).add(row(1, "red", 5), row(2, "blue", 6)).add(row(13, "red", 7))
    run_query(PIPELINE, input_.stream(), shards=2)
    checkpoint = tmp_path / "checkpoint"

    def check(pipeline, *given, **said):
        return bm.check_upgrade(spark, checkpoint, pipeline, *given, **said)

    same = check(PIPELINE)
    assert same.ok
    assert same.changes == []
    eager = PIPELINE.trigger(t.AfterWatermark(early=t.AfterCount(1), late=t.AfterCount(1)))
    changed = check(eager.accumulate(most=bm.accumulations.Max("score")))
    assert changed.ok
    assert [one.what for one in changed.changes] == ["accumulation most", "panes"]
    assert "starts in its initial state in every open window" in str(changed)
    assert "continues" in changed._repr_html_()
    found = check(PIPELINE.window(bm.FixedWindows(20)).trigger(t.Repeatedly(t.AfterProcessingTime("1 minute"))))
    assert [one.what for one in found.refused] == ["clock", "window"], found
    with pytest.raises(bm.StateError, match="is refused"):
        found.or_raise()
    assert [one.what for one in check(PIPELINE.discarding().then(SECOND)).refused] == ["stages"]
    stream = input_.stream()
    written = sorted(path.name for path in Path(checkpoint, "offsets").iterdir())
    with pytest.raises(bm.StateError, match=r"refused: shards\n    then  2\n    now   3"):
        PIPELINE.apply(stream, shards=3, checkpoint=checkpoint)
    PIPELINE.apply(stream, shards=3, checkpoint=tmp_path / "a new one")
    assert sorted(path.name for path in Path(checkpoint, "offsets").iterdir()) == written
    input_.add(row(14, "red", 8))
    (pane,) = [pane for batch in run_query(eager, input_.stream(), shards=2) for pane in batch]
    assert (pane.key["team"], str(pane.timing), pane.values) == ("red", "EARLY", {"count": 2, "total": 15})
    with pytest.raises(bm.OptionError, match="pass the streams"):
        check(PIPELINE.accumulate(other=Sum("other")))

    waiting = BARE.accumulate(count=Count()).trigger(
        t.AfterWatermark(early=t.AfterProcessingTime("1 hour"), late=t.AfterCount(1))
    )
    assert [one.what for one in check(waiting, input_.stream(), shards=3).refused] == [
        "clock",
        "shards",
        "accumulation total",
    ]
    again = tmp_path / "again"
    bm.migrate(spark, checkpoint, again, waiting, shards=3)
    stored = entries_of(spark, str(again), None, 0).collect()
    notes = [json.loads(store[NOTE]) for store in stores_of(stored).values()]
    assert len(notes) == 3
    assert all(note["word"] and note["sums"] for note in notes)
    input_.add(row(15, "red", 1), row(40, "blue", 2))
    panes = []

    def take(batch, number):
        panes.extend((number, one.team, one["count"], one.pane.sequence) for one in batch.collect())

    stream = waiting.apply(input_.stream(), shards=3, checkpoint=again)
    stream.writeStream.foreachBatch(take).option("checkpointLocation", str(again)).trigger(
        availableNow=True
    ).start().awaitTermination()
    last = max(int(name) for name in written if name.isdigit())
    assert [(team, count) for _, team, count, _ in panes] == [("red", 3)]
    assert all(number > last + 1 and sequence > 1 for number, *_, sequence in panes)
    with pytest.raises(bm.OptionError, match="exists already"):
        bm.migrate(spark, checkpoint, again, waiting, shards=3)
    (tmp_path / "again.unfinished").mkdir()
    with pytest.raises(
        bm.OptionError, match=r"was interrupted: delete .*again and .*again\.unfinished, and migrate again"
    ):
        bm.migrate(spark, checkpoint, again, waiting, shards=3)
    with pytest.raises(bm.StateError, match="migrate: the checkpoint was written with window"):
        bm.migrate(spark, checkpoint, tmp_path / "none", PIPELINE.window(bm.FixedWindows(20)))
    assert not (tmp_path / "none").exists()


def came(pipeline, input_, checkpoint, shards, *columns):
    """The sorted output of a run over all available rows."""
    out = []
    panes = pipeline.apply(input_.stream(), shards=shards, checkpoint=checkpoint)
    writer = panes.writeStream.foreachBatch(lambda batch, _: out.extend(batch.select(*columns).collect()))
    writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start().awaitTermination()
    return sorted(map(tuple, out))


def test_a_moved_checkpoint_is_migrated(spark, files, run_query, tmp_path):
    input_ = files(**COLUMNS).add(row(1, "red", 5), row(2, "blue", 6))
    run_query(PIPELINE, input_.stream(), shards=2)
    moved, there = (tmp_path / "checkpoint").rename(tmp_path / "moved"), tmp_path / "there"
    for read in (bm.inspect, lambda *given: bm.check_upgrade(*given, PIPELINE)):
        with pytest.raises(bm.StateError, match=r"moved or copied.*bm\.migrate\("):
            read(spark, moved)
    said = bm.migrate(spark, f"file://{moved}", f"file:{tmp_path}/again", PIPELINE, location=f"file:{there}")
    assert said == f"continue with .apply(df, shards=2) and checkpointLocation file:{there}"
    (tmp_path / "again").rename(there)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["input", "moved", "there"]
    input_.add(row(3, "red", 1)).add(row(40, "blue", 2))
    assert came(PIPELINE, input_, there, 2, "team", "count") == [("blue", 1), ("red", 2)]


@pytest.mark.parametrize("missing", deep_after(1, ["state", "commits state"]))
def test_spark_does_not_start_from_a_part_of_a_migrated_checkpoint(spark, files, run_query, tmp_path, missing):
    """The files that ``bm.migrate`` leaves if it is killed while it renames on an object store."""
    input_ = files(**COLUMNS).add(row(1, "red", 5), row(2, "blue", 6))
    run_query(PIPELINE, input_.stream(), shards=2)
    new = tmp_path / "new"
    bm.migrate(spark, tmp_path / "checkpoint", new, PIPELINE, input_.stream(), shards=2)
    input_.add(row(40, "blue", 2))
    for name in missing.split():
        shutil.rmtree(new / name)
    writer = PIPELINE.apply(input_.stream(), shards=2).writeStream.format("noop")
    query = writer.option("checkpointLocation", str(new)).trigger(availableNow=True).start()
    with pytest.raises(StreamingQueryException):
        query.awaitTermination()


@pytest.mark.deep
def test_a_stage_that_is_not_keyed_has_one_shard_however_many_there_are(spark, files, run_query, tmp_path):
    pipeline = PIPELINE.discarding().then(bm.Pipeline().accumulate(count=Sum("count")))
    input_ = files(**COLUMNS).add(row(1, "red", 5), row(2, "blue", 6)).add(row(13, "red", 7))
    run_query(pipeline, input_.stream(), shards=2)
    checkpoint, again = tmp_path / "checkpoint", tmp_path / "again"
    for given in ((), (input_.stream(),)):
        upgrade = bm.check_upgrade(spark, checkpoint, pipeline, *given, shards=2)
        assert upgrade.changes == []
    assert bm.check_upgrade(spark, checkpoint, pipeline).changes == []
    with pytest.raises(bm.StateError, match=r"refused: shards\n    then  2\n    now   3"):
        pipeline.apply(input_.stream(), shards=3, checkpoint=checkpoint)
    bm.migrate(spark, checkpoint, again, pipeline, shards=3)
    input_.add(row(14, "blue", 8), row(30, "red", 1))
    assert came(pipeline, input_, again, 3, "count") == came(pipeline, input_, checkpoint, 2, "count") == [(2,)]


def test_spark_keeps_its_partitions_and_trigger_and_sink_may_be_others(spark, tmp_path, files, run_query):
    input_ = files(**COLUMNS).add(row(1, "red", 5), row(2, "blue", 6), row(3, "green", 7))
    assert not any(run_query(PIPELINE, input_.stream(), shards=3))
    input_.add(row(4, "red", 1), row(12, "red", 1))
    name, out = "spark.sql.shuffle.partitions", str(tmp_path / "out")
    before = spark.conf.get(name)
    spark.conf.set(name, 5)
    try:
        with pytest.raises(bm.StateError, match=r"refused: shards\n    then  3\n    now   5"):
            PIPELINE.apply(input_.stream(), checkpoint=tmp_path / "checkpoint")
        panes = PIPELINE.apply(input_.stream(), shards=3, checkpoint=tmp_path / "checkpoint")
        writer = panes.select("team", "count", "total").writeStream.format("parquet").option("path", out)
        query = (
            writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(processingTime="0 seconds")
            .start()
        )
        try:
            query.processAllAvailable()
            operators = [operator for progress in query.recentProgress for operator in progress["stateOperators"]]
        finally:
            query.stop()
    finally:
        spark.conf.set(name, before)
    assert {operator["numShufflePartitions"] for operator in operators} == {int(before)}
    came = pa.concat_tables(map(pq.read_table, Path(out).glob("*.parquet"))).to_pylist()
    assert sorted(tuple(one.values()) for one in came) == [("blue", 1, 6), ("green", 1, 7), ("red", 2, 6)]
    with pytest.raises(Exception, match="_spark_metadata/0 doesn't exist"):
        spark.read.parquet(out)


def test_a_changed_pipeline_reaches_shards_without_rows_too(spark, files, run_query, tmp_path):
    """Their timers are those of the pipeline before; so the first batch with rows calls them all."""
    teams = [f"team{i}" for i in range(8)]
    input_ = files(**COLUMNS).add(*(row(1, team, 1) for team in teams)).add(row(40, "new", 1))
    before = BARE.allowed_lateness(100).accumulate(count=Count()).trigger(t.Never())
    assert not any(run_query(before, input_.stream(), shards=4))
    after = before.allowed_lateness(25).accumulate(total=Sum("score"))
    input_.add(row(41, "new", 1))
    panes = [pane for batch in run_query(after, input_.stream(), shards=4) for pane in batch]
    assert sorted(pane.key["team"] for pane in panes) == teams
    found = bm.inspect(spark, tmp_path / "checkpoint")
    assert [one["values"].asDict() for one in found.windows().collect()] == [{"count": 2, "total": 1}]


@pytest.mark.deep
@pytest.mark.parametrize(
    "windows", [bm.Pipeline(), bm.Pipeline().window(bm.FixedWindows(10)).accumulate(score=Count())]
)
def test_stored_ids_are_rescaled(spark, tmp_path, files, windows):
    """Rows that arrived before are deduplicated, with and without windows."""
    input_ = files(ts=pa.timestamp("us", "UTC"), team=pa.string(), score=pa.int64())
    once = windows.event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("team").deduplicate("score", within=100)
    first = [row(15, team, score) for team in ("red", "blue", "green", "white") for score in (1, 2)]
    input_.add(*first)
    begun = came(once, input_, tmp_path / "first", 2, "team", "score")
    bm.migrate(spark, tmp_path / "first", tmp_path / "again", once, input_.stream(), shards=5)
    input_.add(*first, row(16, "red", 3))
    input_.add(row(300, "last", 1))
    rest = came(once, input_, tmp_path / "again", 5, "team", "score")
    if windows == bm.Pipeline():
        assert begun == sorted((team, score) for team in ("red", "blue", "green", "white") for score in (1, 2))
        assert rest == [("last", 1), ("red", 3)]
    else:
        assert (begun, rest) == ([], [("blue", 2), ("green", 2), ("red", 3), ("white", 2)])


@pytest.mark.deep
def test_row_numbers_continue_after_rescaling(spark, tmp_path, files):
    input_ = files(ts=pa.timestamp("us", "UTC"), team=pa.string(), score=pa.int64())
    threes = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("team").window(bm.CountWindows(3))
    threes = threes.retain(windows=2).accumulate(total=Sum("score"))
    input_.add(*(row(15, team, score) for team in ("red", "blue", "green", "white") for score in (1, 2)))
    assert came(threes, input_, tmp_path / "first", 2, "team", "total") == []
    bm.migrate(spark, tmp_path / "first", tmp_path / "again", threes, input_.stream(), shards=5)
    input_.add(row(16, "red", 10), row(17, "white", 20), row(18, "white", 30))
    assert came(threes, input_, tmp_path / "again", 5, "team", "total") == [("red", 13), ("white", 23)]


def in_both(spark, tmp_path, pipeline, input_, later, *, value):
    """The output of two shards, and of five that continue with another row, until nothing is held."""
    out = came(pipeline, input_, tmp_path / "first", 2, "team", value)
    bm.migrate(spark, tmp_path / "first", tmp_path / "again", pipeline, input_.stream(), shards=5)
    input_.add(later)
    input_.add(row(300, "last", 1))
    return out + came(pipeline, input_, tmp_path / "again", 5, "team", value)


@pytest.mark.deep
def test_a_suppress_buffer_is_rescaled(spark, tmp_path, files):
    """Each key's net change leaves when it is due, as if nothing had been carried over."""
    input_ = files(ts=pa.timestamp("us", "UTC"), team=pa.string(), score=pa.int64())
    held = PIPELINE.window(bm.FixedWindows(10)).trigger(bm.triggers.Always()).accumulating().accumulate(count=Count())
    held = held.allowed_lateness(100).suppress(bm.UntilWindowCloses())
    input_.add(*(row(15, team, 1) for team in ("red", "blue", "green", "white")), row(16, "red", 1))
    out = in_both(spark, tmp_path, held, input_, row(17, "blue", 1), value="count")
    assert sorted(out) == [("blue", 2), ("green", 1), ("red", 2), ("white", 1)]


@pytest.mark.deep
def test_buffered_changes_are_rescaled(spark, tmp_path, files):
    input_ = files(ts=pa.timestamp("us", "UTC"), team=pa.string(), score=pa.int64())
    latest = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("team")
    latest = latest.changes().suppress(bm.UntilTimeLimit(60, clock="event"))
    input_.add(*(row(15, team, score) for team in ("red", "blue", "green", "white") for score in (1, 2)))
    out = in_both(spark, tmp_path, latest, input_, row(16, "red", 3), value="score")
    assert sorted(out) == [("blue", 2), ("green", 2), ("red", 3), ("white", 2)]


@pytest.mark.deep
def test_an_as_of_join_is_rescaled(spark, tmp_path, files):
    """The table, rows that wait until the watermark has passed them, and emitted rows that are corrected."""
    orders = files(ts=pa.timestamp("us", "UTC"), team=pa.string(), score=pa.int64())
    rates = type(orders)(
        spark, tmp_path / "rates", pa.schema({"at": pa.timestamp("us", "UTC"), "team": pa.string(), "rate": pa.int64()})
    )
    rows = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0))
    table = bm.Pipeline().event_time("at", bm.BoundedOutOfOrderness(0)).key_by("team")
    table = table.versions("1 hour", allowed_lateness="1 hour")
    joined = bm.as_of_join(orders=rows, rates=table, on="team").accumulating_and_retracting()
    teams = ("red", "blue", "green", "white")
    checkpoint, shards = tmp_path / "first", 2

    def run():
        out = []
        streams = {"orders": orders.stream(), "rates": rates.stream()}
        panes = joined.apply(**streams, shards=shards, checkpoint=checkpoint)
        writer = panes.writeStream.foreachBatch(lambda batch, _: out.extend(batch.collect()))
        writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start().awaitTermination()
        return sorted((one.team, one.score, one.rates.rate, one.pane.kind) for one in out)

    def rate(seconds, team, rate):
        return {"at": datetime.fromtimestamp(seconds, UTC), "team": team, "rate": rate}

    rates.add(*(rate(10, team, 1) for team in teams), rate(50, "red", 2))
    orders.add(*(row(20, team, 20) for team in teams), row(50, "red", 50))
    assert run() == sorted((team, 20, 1, "PANE") for team in teams)
    bm.migrate(spark, checkpoint, tmp_path / "again", joined, orders=orders.stream(), rates=rates.stream(), shards=5)
    checkpoint, shards = tmp_path / "again", 5
    rates.add(rate(15, "blue", 7), rate(300, "last", 1))
    orders.add(row(300, "last", 1))
    assert run() == [("blue", 20, 1, "RETRACTION"), ("blue", 20, 7, "PANE"), ("red", 50, 2, "PANE")]


WAITS = t.AfterWatermark(early=t.AfterProcessingTime("1 hour"), late=t.AfterCount(1))


@pytest.mark.deep
@pytest.mark.parametrize(
    "needs_clock",
    [
        lambda stage: stage.trigger(WAITS),
        lambda stage: stage.event_time("ts", bm.BoundedOutOfOrderness(0, idle_timeout="1 hour")),
    ],
    ids=["a trigger", "idle_timeout"],
)
def test_the_clock_is_added_to_and_removed_from_a_chain(spark, tmp_path, files, needs_clock):
    """Its first stage waits for the clock, then no longer; its second never does."""
    input_ = files(ts=pa.timestamp("us", "UTC"), team=pa.string(), score=pa.int64())
    first = BARE.discarding().accumulate(count=Count())
    folders = [tmp_path / name for name in ("never", "needs-it", "no-longer")]
    out = []
    for number, stage in enumerate((first, needs_clock(first), first)):
        chain = stage.then(SECOND)
        if number:
            bm.migrate(spark, folders[number - 1], folders[number], chain, input_.stream(), shards=2 + number)
        input_.add(row(1 + number, "red", 1), row(11 + 20 * number, "red", 1))
        out += came(chain, input_, folders[number], 2 + number, "team", "count")
    input_.add(row(100, "last", 1))
    out += came(first.then(SECOND), input_, folders[2], 4, "team", "count")
    assert out == [("red", 3), ("red", 1), ("red", 1)]
