"""A batch DataFrame gives the final panes (rules/running.md#batch)."""

from datetime import UTC, datetime

import pyarrow.compute as pc
import pytest
from pyspark.sql import functions as F

import beamish as bm
from beamish.accumulations import Collect, Count, Sum
from beamish.script import panes_from_table
from beamish.spark import bind
from beamish.testing import TestStream
from beamish.triggers import AfterProcessingTime, Repeatedly

ROWS = [
    {"ts": datetime(2024, 3, 1, 0, 0, second, tzinfo=UTC), "team": team, "score": score}
    for second, team, score in [(1, "red", 1), (4, "red", 2), (9, None, 3), (11, "red", 4), (30, "blue", None)]
]
NO_TIME = {"ts": None, "team": "red", "score": 9}
PIPELINE = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness(0))
    .key_by("team")
    .accumulate(plays=Count(), scores=Collect("score"))
)


@pytest.fixture
def plays(spark):
    return spark.createDataFrame(
        [*map(tuple, map(dict.values, [*ROWS, NO_TIME]))], "ts timestamp, team string, score long"
    )


@pytest.mark.parametrize("window", [bm.SlidingWindows(10, 5), bm.Sessions(7), bm.GlobalWindow()], ids=repr)
def test_the_panes_are_those_of_all_rows_and_then_the_end_of_time(plays, by_key, window):
    pipeline = PIPELINE.window(window)
    out = plays.transform(pipeline).toArrow()
    gives = bind(pipeline.flow, plays, {}).operator.gives
    expected = pipeline.run(TestStream().add(ROWS).advance_watermark_to_infinity())
    assert all(pane.timing is bm.PaneTiming.ON_TIME and pane.is_last for pane in expected)
    assert by_key(panes_from_table(out.cast(gives.schema), gives)) == by_key(expected)


@pytest.mark.smoke
def test_triggers_lateness_and_modes_do_not_apply(plays):
    pipeline = (
        PIPELINE.window(bm.FixedWindows(10))
        .trigger(Repeatedly(AfterProcessingTime(1)))
        .allowed_lateness(5)
        .accumulating_and_retracting()
        .only_updated_panes()
        .closing_behavior(bm.ClosingBehavior.FIRE_ALWAYS)
    )
    rows = plays.transform(pipeline).select("team", "window.start", "plays", "pane.*").drop("sequence", "watermark")
    rows = rows.collect()
    assert {tuple(row)[2:] for row in rows} == {(n, "PANE", "ON_TIME", 0, 0, True, True, "INSERT") for n in (1, 2)}
    assert len(rows) == 4


@pytest.mark.parametrize(
    "refine",
    [
        lambda pipeline: pipeline.having(pc.field("plays") > 1),
        lambda pipeline: pipeline.with_columns(twice=pc.field("plays") * 2),
    ],
    ids=["having", "with_columns"],
)
def test_pane_metadata_survives_having_and_added_columns(plays, refine):
    pipeline = PIPELINE.window(bm.FixedWindows(10))
    known = plays.transform(pipeline).schema["pane"].metadata
    assert known["beamish"]["keys"] == ["team"]
    assert plays.transform(refine(pipeline)).schema["pane"].metadata == known


def test_panes_and_dropped_rows_are_split(plays):
    out = plays.transform(PIPELINE.window(bm.FixedWindows(60)).with_dropped())
    panes, dropped = bm.panes(out), bm.dropped(out)
    assert panes.columns == ["team", "window", "plays", "scores", "pane", "timestamp"]
    assert {row["plays"] for row in panes.collect()} == {3, 1}
    assert [row.asDict() for row in dropped.collect()] == [
        {"reason": "null_event_time", "late_by": None, "window": None, **NO_TIME}
    ]


def test_other_dataframes_are_not_split(plays):
    with pytest.raises(bm.ColumnError, match=r"dropped\(df\): there is no column 'dropped'.*\.with_dropped\(\)"):
        bm.dropped(plays.transform(PIPELINE.window(bm.FixedWindows(60))))
    with pytest.raises(bm.ColumnError, match=r"panes\(df\): there is no column 'pane'"):
        bm.panes(plays)


def test_a_dropped_row_with_a_column_of_the_same_name_is_not_split(plays):
    out = plays.withColumn("reason", F.lit(1)).transform(PIPELINE.window(bm.FixedWindows(60)).with_dropped())
    with pytest.raises(bm.ColumnError, match="a column 'reason' of their own"):
        bm.dropped(out)


def test_a_dataframe_without_rows_gives_no_pane(plays):
    pipeline = PIPELINE.key_by().window(bm.FixedWindows(60)).accumulate(total=Sum("score"))
    assert plays.where("score > 100").transform(pipeline).collect() == []
