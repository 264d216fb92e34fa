"""Rows that come again, on Spark (rules/output.md#duplicates)."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

import beamish as bm
from beamish.accumulations import Collect, Count
from beamish.testing import TestStream
from beamish.triggers import Always
from tests.agreement import differences
from tests.cost import deep_after
from tests.spark.writing import written

START = datetime(2024, 5, 1, tzinfo=UTC)
COLUMNS = {"id": pa.int64(), "at": pa.timestamp("us", tz="UTC"), "what": pa.string()}
AT = bm.Pipeline().event_time("at", bm.BoundedOutOfOrderness(0))
ONCE = AT.deduplicate("id", within="1 minute")


def rows(*of):
    return [
        {"id": id_, "at": None if at is None else START + timedelta(seconds=at), "what": what} for id_, at, what in of
    ]


FILES = [
    rows((1, 0, "a"), (2, 3, "b"), (1, 2, "again"), (None, 4, "c")),
    rows((2, 5, "again"), (None, 6, "again"), (3, None, "no time"), (4, 62, "d")),
    rows((1, 1, "too old"), (2, 3, "still known"), (1, 70, "e")),
]
CAME = {"a", "b", "c", "d", "e"}
DROPPED = {
    ("duplicate", "again", 1),
    ("duplicate", "again", 2),
    ("duplicate", "again", None),
    ("duplicate", "still known", 2),
    ("null_event_time", "no time", 3),
    ("out_of_retention", "too old", 1),
}


@pytest.fixture
def events(files):
    made = files(**COLUMNS)
    for batch in FILES:
        made.add(*batch)
    return made


def test_rows_are_emitted_unchanged_and_once_also_after_a_restart(events, tmp_path):
    stream = events.stream()
    out = stream.transform(ONCE)
    assert out.schema["id"] == stream.schema["id"]
    assert out.columns == stream.columns
    assert {row.what for row in written(out, tmp_path).collect()} == CAME
    events.add(*rows((1, 75, "again"), (4, 75, "again"), (5, 75, "f")))
    again = written(events.stream().transform(ONCE), tmp_path)
    assert sorted(row.what for row in again.collect()) == sorted(CAME | {"f"})


def test_dropped_rows_come_beside_them_with_their_reason(events, tmp_path):
    out = events.stream().transform(ONCE.with_dropped())
    assert out.columns == ["id", "at", "what", "dropped"]
    table = written(out, tmp_path)
    assert {row.what for row in bm.panes(table).collect()} == CAME
    dropped = bm.dropped(table)
    assert dropped.columns == ["reason", "late_by", "id", "at", "what"]
    assert {(row.reason, row.what, row.id) for row in dropped.collect()} == DROPPED
    assert {row.late_by for row in dropped.where("what = 'too old'").collect()} == {61_000_000}


def test_a_batch_gives_the_first_of_each(spark, events):
    out = spark.read.parquet(str(events.folder)).transform(ONCE)
    assert {(row.id, row.what) for row in out.collect()} == {(1, "a"), (2, "b"), (None, "c"), (4, "d")}


def test_windows_of_a_batch_take_each_once(spark, events):
    pipeline = AT.window(bm.FixedWindows("1 minute")).deduplicate("id").accumulate(n=Count())
    rows = spark.read.parquet(str(events.folder))
    assert {(row.window.start.minute, row.n) for row in rows.transform(pipeline).collect()} == {(0, 3), (1, 2)}
    assert "deduplication runs in the engine" in " ".join(pipeline.explain(rows).split())


def test_sparks_own_windows_take_them(events, tmp_path):
    out = events.add(*rows((9, 500, "end"))).stream().transform(ONCE)
    counts = out.groupBy(F.window("at", "1 minute")).count()
    found = {(row.window.start.minute, row["count"]) for row in written(counts, tmp_path).collect()}
    assert found == {(0, 3), (1, 2)}


def test_a_stage_after_it_counts_them_by_another_key(events, tmp_path):
    second = bm.Pipeline().key_by("what").window(bm.FixedWindows("1 hour")).accumulate(n=Count())
    events.add(*rows((7, 10_000, "end")))
    counts = written(events.stream().transform(ONCE.then(second)), tmp_path)
    assert {(row.what, row.n) for row in counts.collect()} == {(what, 1) for what in CAME}


SCRIPT = (
    TestStream()
    .add([{"ts": 1, "k": "a", "id": 1}, {"ts": 12, "k": "a", "id": 1}, {"ts": 3, "k": "b", "id": 1}])
    .add([{"ts": 2, "k": "a", "id": 1}, {"ts": 4, "k": "a", "id": 2}, {"ts": 8, "k": "a", "id": None}])
    .advance_watermark_to(10)
    .add([{"ts": 9, "k": "a", "id": None}, {"ts": 13, "k": "a", "id": 2}])
    .advance_watermark_to(40)
    .add([{"ts": 5, "k": "a", "id": 1}, {"ts": 41, "k": "a", "id": 1}])
)
KEYED = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("k")
WINDOWED = KEYED.trigger(Always()).allowed_lateness(100).accumulate(n=Count(), ids=Collect("id")).with_dropped()


@pytest.mark.parametrize(
    "pipeline",
    deep_after(
        1,
        [
            WINDOWED.window(bm.Sessions(5)).deduplicate("id").accumulating_and_retracting(),
            WINDOWED.window({"short": bm.FixedWindows(10), "long": bm.SlidingWindows(20, 10)})
            .deduplicate("id", within=25)
            .accumulating(),
            KEYED.deduplicate("id", within=25).with_dropped(),
        ],
    ),
    ids=["sessions", "windowings", "rows"],
)
def test_a_script_gives_the_same_on_spark_with_a_stop_in_the_middle(spark, pipeline):
    given = SCRIPT.on_spark(spark, pipeline, restart_after=(2,), shards=2, partitions=1)
    found = differences(pipeline.run(SCRIPT), given, pipeline)
    assert not found, "\n".join(found)


def test_what_is_counted_adds_up(events, tmp_path):
    query = (
        bm.observe(events.stream().transform(ONCE))
        .writeStream.format("noop")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    counts = [batch.observedMetrics["beamish"].asDict() for batch in query.recentProgress]
    names = ("rows", "dropped_duplicate", "dropped_out_of_retention", "dropped_no_event_time")
    assert [sum(count[name] for count in counts) for name in names] == [len(CAME), 4, 1, 1]
