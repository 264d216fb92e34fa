"""Event times at the edges, on Spark: the first and the last that Spark has, those of the years 1 and 9999, and none.

A row without an event time of the years 1 to 9999 is dropped, counted and moves no watermark (rules/windows.md#event-time-range).
"""

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import beamish as bm
from beamish.accumulations import Count, Sum
from beamish.durations import LONGEST_US, Duration
from beamish.instants import EARLIEST_US, LATEST_US
from beamish.triggers import Always
from tests.cost import deep_after

LEAST, MOST = -(2**63), 2**63 - 1
OUTSIDE = [LEAST, EARLIEST_US - 1, LATEST_US + 1, MOST]
INSIDE = [EARLIEST_US, EARLIEST_US + 1, -1, 0, LATEST_US - 1, LATEST_US]
TIMES = [*OUTSIDE[:2], *INSIDE, None, *OUTSIDE[2:]]
ROWS = "ts timestamp, k string, x long"
WINDOWS = {
    "fixed": bm.FixedWindows("10 seconds"),
    "fixed, of millennia": bm.FixedWindows(Duration(LONGEST_US), Duration(-LONGEST_US)),
    "sliding": bm.SlidingWindows("30 seconds", "10 seconds"),
    "sliding, of millennia": bm.SlidingWindows(Duration(LONGEST_US), Duration(LONGEST_US // 3)),
    "sessions": bm.Sessions("10 seconds"),
    "sessions, of centuries": bm.Sessions("36525 days"),
    "sessions, of millennia": bm.Sessions(Duration(LONGEST_US)),
    "global": bm.GlobalWindow(),
    "calendar": bm.CalendarWindows(years=100, timezone="Pacific/Kiritimati"),
}
PIPELINE = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("k").accumulate(n=Count(), x=Sum("x"))


def rows(*times_us):
    columns = {"ts": pa.array(times_us, pa.timestamp("us", "UTC")), "k": ["a"] * len(times_us)}
    return pa.table({**columns, "x": pa.array([2**at for at in range(len(times_us))], pa.int64())})


def windows_of(panes):
    """The contents of each window; bounds are microseconds since the epoch."""
    us = {"window": pa.struct([("start", pa.int64()), ("end", pa.int64())]), "n": pa.int64(), "x": pa.int64()}
    taken = panes.filter(pc.equal(pc.struct_field(panes["pane"], "kind"), "PANE")).select(list(us))
    plain = [taken[name].combine_chunks().cast(type_) for name, type_ in us.items()]
    return sorted(
        (window["start"], window["end"], n, x) for window, n, x in zip(*(one.to_pylist() for one in plain), strict=True)
    )


def reasons(panes):
    return [reason for reason in pc.struct_field(panes["dropped"], "reason").to_pylist() if reason]


@pytest.mark.parametrize("window", WINDOWS)
def test_a_batch_has_the_windows_of_sparks_own_aggregation_and_drops_the_others(spark, window):
    df = spark.createDataFrame(rows(*TIMES))
    pipeline = PIPELINE.window(WINDOWS[window])
    ours = df.transform(pipeline.with_dropped()).toArrow()
    assert windows_of(ours) == windows_of(df.transform(pipeline).toArrow())
    assert sorted(reasons(ours)) == ["event_time_out_of_range"] * 4 + ["null_event_time"]
    assert all(start is None or start <= end for start, end, _, _ in windows_of(ours))


@pytest.mark.parametrize(
    ("delay", "ansi"), deep_after(2, [("1500 microseconds", "true"), (Duration(LONGEST_US), "false"), (0, "false")])
)
def test_a_row_beyond_the_years_moves_no_watermark(spark, tmp_path, delay, ansi):
    """Not even with a delay by which 64 bits would be left; and the last moment there is closes what is before it."""
    pipeline = PIPELINE.event_time("ts", bm.BoundedOutOfOrderness(delay)).window(WINDOWS["fixed"]).trigger(Always())
    pipeline = pipeline.discarding().on_time_behavior(bm.OnTimeBehavior.FIRE_IF_NON_EMPTY)
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        out = streamed(spark, tmp_path, pipeline, rows(*OUTSIDE, 0), rows(20_000_000), rows(LATEST_US), rows(0))
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before)
    expired = ["expired"] if delay != Duration(LONGEST_US) else []
    assert reasons(out) == ["event_time_out_of_range"] * 4 + expired
    assert len(windows_of(out)) == 4 - len(expired)


SAMPLE = ("sliding, of millennia", "sessions, of centuries", "global")


@pytest.mark.parametrize(
    "window", [one if one in SAMPLE else pytest.param(one, marks=pytest.mark.deep) for one in WINDOWS]
)
def test_a_stream_has_the_windows_of_a_batch(spark, tmp_path, window):
    pipeline = PIPELINE.window(WINDOWS[window]).trigger(Always()).accumulating_and_retracting()
    out = streamed(spark, tmp_path, pipeline.allowed_lateness(Duration(LONGEST_US)), rows(*TIMES), rows(*OUTSIDE))
    df = spark.createDataFrame(rows(*TIMES))
    assert windows_of(out) == windows_of(df.transform(PIPELINE.window(WINDOWS[window])).toArrow())
    assert sorted(reasons(out)) == ["event_time_out_of_range"] * 8 + ["null_event_time"]


def streamed(spark, folder, pipeline, *batches):
    """The output of a query with these micro-batches."""
    at = str(folder / "in")
    for batch in batches:
        spark.createDataFrame(batch).coalesce(1).write.mode("append").parquet(at)
    rows_of = spark.readStream.schema(ROWS).option("maxFilesPerTrigger", 1).parquet(at)
    out = []
    writer = rows_of.transform(pipeline.with_dropped()).writeStream.foreachBatch(
        lambda panes, _: out.append(panes.toArrow())
    )
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()
    query.awaitTermination()
    return pa.concat_tables(out)
