"""The picture of panes that a query wrote, as tables of any kind."""

from datetime import UTC, datetime, timedelta

import pandas as pd
import pyarrow as pa
import pytest

import beamish as bm
from beamish.errors import ColumnError, OptionError
from beamish.local import trace_stages
from beamish.plot import timeline
from tests.plot.drawn import boxes_in, clock_times
from tests.plot.scenes import CLOCK, SCORES, STEPS
from tests.seconds import S

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def timed(row):
    return {**row, "ts": EPOCH + timedelta(seconds=row["ts"])}


def stored(script, **more):
    """The rows of output of a run as a table, as Spark's columns are, with when they came."""
    pipeline = SCORES.with_dropped()
    panes = [pane for _, panes in script.trace(pipeline) for pane in panes]
    times = [
        EPOCH + timedelta(microseconds=time)
        for (_, panes), time in zip(script.trace(pipeline), clock_times(script.events), strict=True)
        for _ in panes
    ]
    info = ("kind", "timing", "index", "on_time_index", "is_first", "is_last", "change", "sequence", "watermark")
    return pa.table(
        {
            "team": [pane.key["team"] for pane in panes],
            "window": [{"start": pane.start, "end": pane.end} for pane in panes],
            "total": [pane.values.get("total") for pane in panes],  # noqa: PD011 - a pane's
            "plays": [pane.values.get("plays") for pane in panes],  # noqa: PD011
            "pane": [{name: getattr(pane, name) for name in info} for pane in panes],
            "timestamp": [pane.timestamp for pane in panes],
            "dropped": [
                {"reason": str(pane.reason), "late_by": pane.late_by_us, "row": timed(pane.values)}
                if pane.kind is bm.PaneKind.DROPPED
                else None
                for pane in panes
            ],
            **({"came": times} if more.get("came", True) else {}),
        }
    )


def rows(script):
    return [
        {**timed(row), "came": EPOCH + timedelta(microseconds=time)}
        for event, time in zip(script.events, clock_times(script.events), strict=True)
        for row in event.rows
    ]


@pytest.mark.parametrize("kind", [lambda table: table, lambda table: table.to_pandas(types_mapper=pd.ArrowDtype)])
def test_stored_panes_with_their_rows_make_the_picture_of_the_run(kind):
    ours = timeline(kind(stored(CLOCK)), rows=rows(CLOCK), event_time="ts", processing_time="came").picture
    of_run = timeline(SCORES, CLOCK).picture
    assert boxes_in(ours) == boxes_in(of_run)
    for panel, same in zip(ours.panels, of_run.panels, strict=True):
        assert [(point.event_us, point.time, point.label, point.dropped, point.late) for point in panel.points] == [
            (point.event_us, point.time, point.label, point.dropped, point.late) for point in same.points
        ]
        assert panel.boxes == same.boxes


def test_the_watermark_is_read_from_panes():
    (red,) = timeline(stored(CLOCK), processing_time="came", key="red").picture.panels
    assert red.watermarks[0].steps == ((130 * S, 120 * S), (190 * S, 900 * S))


def test_without_their_times_panes_are_numbered_in_their_order():
    picture = timeline(stored(CLOCK, came=False), key="red").picture
    assert not picture.by_clock
    assert [(box.since, box.time, box.retracted_at) for box in picture.panels[0].boxes] == [
        (0, 1, 2), (1, 2, 3), (2, 3, None)
    ]  # fmt: skip


def test_a_list_of_panes_is_plotted_too():
    picture = timeline(SCORES.run(STEPS), key={"team": "red"}).picture
    assert [(box.since, box.time, box.label) for box in picture.panels[0].boxes] == [
        (0, 1, "total 8\nplays 2"), (1, 2, "total 8\nplays 2"), (2, 3, "total 9\nplays 3")
    ]  # fmt: skip


def test_dropped_rows_are_shown_without_the_others():
    picture = timeline(stored(CLOCK), event_time="ts", processing_time="came", label="score", key="red").picture
    assert [(point.label, point.dropped) for point in picture.panels[0].points] == [("7", bm.DropReason.EXPIRED)]


@pytest.mark.parametrize(
    ("error", "call", "words"),
    [
        (OptionError, lambda: timeline(stored(CLOCK), rows=[]), ["current_timestamp()", "or leave rows= out"]),
        (ColumnError, lambda: timeline(stored(CLOCK), processing_time="cam"), ["'cam'", "'came'"]),
        (ColumnError, lambda: timeline(pa.table({"a": [1]})), ["no column 'window'", "give panes"]),
        (
            ColumnError,
            lambda: timeline(stored(CLOCK), rows=[{"ts": EPOCH}], event_time="ts", processing_time="came"),
            ["no column 'came'", "['ts']"],
        ),
        (OptionError, lambda: timeline({"a": 1}), ["a dict", "timeline(panes)"]),
        (OptionError, lambda: timeline([]), ["nothing to show"]),
    ],
)
def test_rows_that_are_not_panes_are_rejected(error, call, words):
    with pytest.raises(error) as caught:
        call()
    for word in words:
        assert word in str(caught.value)


def test_a_run_reports_each_stage():
    (_, first), *_, (_, last) = trace_stages(SCORES.flow, CLOCK.events)
    assert [(step.watermark_us, step.inputs_us) for step in (*first, *last)] == [(None, (None,)), (900 * S, (900 * S,))]
    assert [pane.values["total"] for pane in first[0].panes] == [8]  # noqa: PD011


def naive(type_):
    """A type with times as Spark's Parquet has them: without a zone, in nanoseconds."""
    if pa.types.is_timestamp(type_):
        return pa.timestamp("ns")
    if pa.types.is_struct(type_):
        return pa.struct([pa.field(field.name, naive(field.type)) for field in type_])
    return type_


def without_zone(table):
    return table.cast(pa.schema([pa.field(field.name, naive(field.type)) for field in table.schema]))


def test_times_without_a_zone_are_utc(tmp_path):
    from pyarrow import parquet

    table = stored(CLOCK)
    parquet.write_table(without_zone(table), tmp_path / "panes.parquet")
    read = parquet.read_table(tmp_path / "panes.parquet")
    assert read.schema.field("timestamp").type.tz is None
    expected = timeline(table, processing_time="came").picture
    assert timeline(read, processing_time="came").picture == expected
    by_pandas = read.to_pandas(types_mapper=pd.ArrowDtype)
    assert timeline(by_pandas, processing_time="came").picture == expected


def test_an_added_time_column_is_not_a_value():
    table = stored(CLOCK)
    assert table.column_names[-1] == "came"
    with pytest.warns(UserWarning, match="processing_time='came'") as caught:
        picture = timeline(table).picture
    assert caught[0].filename == __file__
    assert picture == timeline(table.drop_columns(["came"])).picture
    assert any(box.retracted_at for panel in picture.panels for box in panel.boxes)
