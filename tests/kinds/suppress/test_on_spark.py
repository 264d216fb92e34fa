"""Suppress as real micro-batches: what the twin and the engine say, with restarts while something is held."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest

import beamish as bm
from beamish.accumulations import Count, LeftOuterJoin, Sum
from beamish.testing import TestStream
from beamish.triggers import AfterCount, AfterWatermark, Always
from tests.cost import deep_after

SOURCE = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("k")
TOTALS = SOURCE.window(bm.FixedWindows(10)).trigger(Always()).allowed_lateness(20).accumulate(total=Sum("v"))


def row(k, v, ts):
    return {"k": k, "v": v, "ts": ts}


NOON = 1_700_000_000
SCRIPT = (
    TestStream()
    .step([row("a", 5, 1), row("b", 1, 12), row(None, 3, 4)], clock=NOON)
    .step([row("a", 2, 2), row("b", 2, 3)], watermark=4, clock=NOON + 4)
    .step([row("a", 7, 3), row("c", 1, 25)], watermark=15, clock=NOON + 10)
    .step([row("c", 4, 26)], watermark=31, clock=NOON + 12)
    .step(watermark=60, clock=NOON + 22)
)


def check(spark, by_key, pipeline, script, **options):
    on_spark = script.trace_on_spark(spark, pipeline, partitions=1, **options)
    for (event, panes), (_, expected) in zip(on_spark, script.trace(pipeline), strict=True):
        assert by_key(panes) == by_key(expected), event
    return [pane for _, panes in on_spark for pane in panes]


@pytest.mark.parametrize(
    "pipeline",
    deep_after(
        2,
        {
            "event": TOTALS.accumulating_and_retracting().suppress(bm.UntilTimeLimit(5, clock="event")),
            "closes, then by the key": TOTALS.accumulating()
            .suppress(bm.UntilWindowCloses())
            .then(
                bm.Pipeline()
                .key_by("k")
                .window(bm.FixedWindows(60))
                .allowed_lateness(20)
                .accumulating()
                .accumulate(totals=Sum("total"))
            ),
            "early": TOTALS.discarding().suppress(
                bm.UntilTimeLimit(15, clock="processing"), buffer=bm.Buffer(max_records=1)
            ),
        }.values(),
    ),
    ids=["event", "chain", "early"],
)
def test_a_suppressed_stage_restarts_on_spark_while_something_is_held(spark, by_key, pipeline):
    early = "max_records" in repr(pipeline)
    check(spark, by_key, pipeline, SCRIPT, shards=1 if early else 2, restart_after=(1,))


def test_a_merge_that_joins_is_suppressed_until_its_windows_close(spark, by_key):
    joined = (
        bm.merge(orders=SOURCE, clicks=SOURCE)
        .window(bm.Sessions(10))
        .trigger(Always())
        .accumulating_and_retracting()
        .accumulate(pair=LeftOuterJoin("orders", "clicks"))
        .suppress(bm.UntilWindowCloses())
    )
    script = (
        TestStream()
        .add([row("a", 1, 1), row("a", 2, 15), row("b", 1, 2)], input="orders")
        .add([row("a", 9, 8)], input="clicks")
        .advance_watermark_to(40)
    )
    panes = check(spark, by_key, joined, script, shards=2, restart_after=(0,))
    assert [(pane.key["k"], pane.kind) for pane in sorted(panes, key=lambda pane: pane.key["k"])] == [
        ("a", bm.PaneKind.PANE),
        ("a", bm.PaneKind.PANE),
        ("b", bm.PaneKind.PANE),
    ]


@pytest.fixture
def panes_of(run_query):
    """The panes of what there is to read."""
    return lambda pipeline, rows: [pane for batch in run_query(pipeline, rows.stream(), shards=1) for pane in batch]


@pytest.fixture
def rows(files):
    import pyarrow as pa

    return files(k=pa.string(), v=pa.int64(), ts=pa.timestamp("us", "UTC"))


def naive(seconds):
    """As Spark gives times to Python, in the session's time zone, which is UTC."""
    return at(seconds).replace(tzinfo=None)


def at(seconds):
    return datetime.fromtimestamp(seconds, UTC)


def test_a_full_buffer_stops_the_query_and_a_larger_one_continues_from_the_checkpoint(rows, panes_of):
    def pipeline(most):
        return SOURCE.changes().suppress(
            bm.UntilTimeLimit(10, clock="event"), buffer=bm.Buffer(max_records=most, when_full=bm.SHUT_DOWN)
        )

    rows.add(row("a", 1, at(1)))
    assert panes_of(pipeline(1), rows) == []
    rows.add(row("b", 2, at(2)), row("c", 3, at(3)))
    with pytest.raises(Exception, match="shard 0 would hold 3 updates of 51 bytes, the limit is 1 updates"):
        panes_of(pipeline(1), rows)
    rows.add(row("d", 4, at(20)))
    rows.add(row("d", 4, at(20)))
    panes = panes_of(pipeline(4), rows)
    assert [(pane.key["k"], pane.values["v"]) for pane in panes] == [("a", 1), ("b", 2), ("c", 3)]


@pytest.mark.deep
def test_a_non_empty_suppress_cannot_be_removed(spark, tmp_path, rows, panes_of):
    totals = SOURCE.window(bm.FixedWindows(10)).trigger(AfterWatermark(early=AfterCount(1))).accumulating()
    totals = totals.accumulate(n=Count())
    rows.add(row("a", 1, at(1)))
    assert [pane.values["n"] for pane in panes_of(totals, rows)] == [1]
    rows.add(row("a", 1, at(2)))
    held = totals.suppress(bm.UntilTimeLimit("1 hour", clock="event"), name="hourly")
    assert panes_of(held, rows) == []
    held_rows = held.state(spark, tmp_path / "checkpoint").held().collect()
    assert [(r.suppress, r.k, r.n, r.kind, r.since, r.due) for r in held_rows] == [
        ("hourly", "a", 2, "PANE", naive(9.999999), naive(3609.999999))
    ]
    rows.add(row("a", 1, at(3)))
    with pytest.raises(Exception, match="suppress 'hourly' holds 1 updates in this shard, the pipeline has none"):
        panes_of(totals, rows)
    with pytest.raises(Exception, match="the pipeline has one called 'daily'"):
        panes_of(totals.suppress(bm.UntilTimeLimit(5, clock="event"), name="daily"), rows)
    passes = totals.suppress(bm.UntilTimeLimit(0, clock="event"), name="hourly")
    assert [pane.values["n"] for pane in panes_of(passes, rows)] == [2, 3]
    rows.add(row("a", 1, at(4)))
    assert [pane.values["n"] for pane in panes_of(totals, rows)] == [4]


def test_a_batch_gives_final_panes_of_a_suppress_and_the_newest_rows_of_changes(spark, by_key):
    df = spark.createDataFrame([("a", 1, at(1)), ("a", 5, at(3)), ("b", 2, at(2))], "k string, v bigint, ts timestamp")
    totals = TOTALS.accumulating()
    suppressed = totals.suppress(bm.UntilTimeLimit(5, clock="processing")).apply(df).collect()
    assert sorted(suppressed) == sorted(totals.apply(df).collect())
    newest = SOURCE.changes().suppress(bm.UntilTimeLimit(0, clock="event")).apply(df).orderBy("k").collect()
    assert [(r.k, r.v, r.pane.kind, r.timestamp.second) for r in newest] == [("a", 5, "PANE", 3), ("b", 2, "PANE", 2)]


def test_several_windowings_are_suppressed_together(spark, by_key):
    both = (
        SOURCE.window({"short": bm.FixedWindows(10), "long": bm.FixedWindows(20)})
        .trigger(Always())
        .discarding()
        .accumulate(total=Sum("v"))
        .suppress(bm.UntilWindowCloses())
    )
    panes = check(spark, by_key, both, SCRIPT, shards=2, restart_after=(1,))
    assert ("long", 14) in {(pane.key["windowing"], pane.values["total"]) for pane in panes}


def test_slots_waiting_for_the_clock_are_emitted_under_available_now(files, run_query):
    """In the second run no row comes; the wait has become so short that its time has come (rules/suppress.md#suppress-restart)."""
    scores = files(ts=pa.timestamp("us", "UTC"), k=pa.string(), v=pa.int64())
    scores.add({"ts": datetime(2024, 1, 1, tzinfo=UTC), "k": "a", "v": 5})

    def run(wait):
        batches = run_query(
            TOTALS.accumulating().suppress(bm.UntilTimeLimit(wait, clock="processing")), scores.stream()
        )
        return [pane.values["total"] for panes in batches for pane in panes]

    assert run("1 day") == []
    assert run("1 millisecond") == [5]
