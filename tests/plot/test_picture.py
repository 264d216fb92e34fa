"""The elements of a picture of a run: rows, watermarks, panes."""

import math
from collections import Counter
from datetime import UTC, datetime

import attrs
import pytest

import beamish as bm
from beamish.accumulations import Count, Sum
from beamish.errors import OptionError, PipelineError, ScriptError
from beamish.instants import END_OF_TIME_US, instant_us
from beamish.plot import timeline
from beamish.plot.picture import values_label
from beamish.testing import TestStream
from beamish.triggers import AfterCount
from tests.plot.drawn import boxes_in, boxes_of, clock_times
from tests.plot.scenes import (
    CHAIN,
    CHAINED,
    CLOCK,
    FIRST,
    JOIN,
    JOINED,
    MERGING,
    SCORES,
    SESSIONS,
    SOURCE,
    STEPS,
    play,
)
from tests.seconds import S

BOTH = SOURCE.key_by("team").window({"short": bm.FixedWindows(60), "long": bm.FixedWindows(120)}).accumulate(n=Count())


@pytest.mark.parametrize(
    ("pipeline", "script"),
    [(SCORES, CLOCK), (JOIN, JOINED), (SESSIONS, MERGING)],
    ids=["keys", "join", "sessions"],
)
def test_each_pane_is_a_box_where_it_came_and_a_retraction_strikes_it_out(pipeline, script):
    picture = timeline(pipeline, script).picture
    assert boxes_in(picture) == boxes_of(script.trace(pipeline), clock_times(script.events))
    assert picture.by_clock


def test_a_row_is_a_point_with_its_accumulated_value():
    red, blue = timeline(SCORES, CLOCK).picture.panels
    assert (red.name, blue.name) == ("team = red", "team = blue")
    assert [(point.label, point.event_us, point.time) for point in red.points] == [
        ("5", 10 * S, 75 * S), ("3", 70 * S, 75 * S), ("1", 90 * S, 140 * S), ("7", 100 * S, 190 * S)
    ]  # fmt: skip
    assert [point.late for point in red.points] == [False, False, True, False]
    assert [point.dropped for point in red.points] == [None, None, None, bm.DropReason.EXPIRED]
    assert [point.label for point in blue.points] == ["2"]


def test_a_box_goes_up_from_the_pane_before_or_its_first_row():
    red, _ = timeline(SCORES, CLOCK).picture.panels
    assert [(box.since, box.time, box.label, box.timing.value, box.retracted_at) for box in red.boxes] == [
        (75 * S, 75 * S, "total 8\nplays 2", "EARLY", 130 * S),
        (75 * S, 130 * S, "total 8\nplays 2", "ON_TIME", 140 * S),
        (130 * S, 140 * S, "total 9\nplays 3", "LATE", None),
    ]


def test_without_a_clock_steps_are_numbered_and_each_box_has_one():
    picture = timeline(SCORES, STEPS).picture
    red, blue = picture.panels
    assert not picture.by_clock
    assert not picture.ideal
    assert [(box.since, box.time) for box in red.boxes] == [(0, 1), (1, 3), (3, 4)]
    assert [(box.since, box.time) for box in blue.boxes] == [(1, 3)]
    assert [point.time for point in red.points] == [0.5, 0.5, 3.5, 5.5]
    assert red.watermarks[0].steps == ((3, 120 * S), (5, 900 * S))


def test_a_step_with_a_watermark_and_rows_shows_the_watermark_first():
    script = TestStream().step([play(10, "red", 5)]).step([play(20, "red", 5)], watermark=120)
    (panel,) = timeline(SCORES, script).picture.panels
    (_, late), ((moved, _),) = panel.points, panel.watermarks[0].steps
    assert late.late
    assert moved < late.time < 2


def test_a_row_is_late_only_if_it_came_after_the_watermark_also_at_one_clock():
    script = TestStream().add([play(50, "red", 3)]).advance_watermark_to(120).add([play(40, "red", 1)])
    for clock in (True, False):
        (panel,) = timeline(SCORES, script, clock=clock).picture.panels
        assert [(point.label, point.late) for point in panel.points] == [("3", False), ("1", True)]


def test_a_clock_can_be_left_out():
    assert not timeline(SCORES, CLOCK, clock=False).picture.by_clock


def test_rows_before_the_clock_is_set_to_a_date_are_shown_at_that_date():
    noon = datetime(2024, 5, 1, 12, tzinfo=UTC)
    script = TestStream().add([play(noon, "red", 1)]).advance_processing_time_to(noon)
    (panel,) = timeline(SCORES, script).picture.panels
    assert panel.points[0].time == noon.timestamp() * S


def test_a_chain_has_its_last_stage_on_top():
    top, below = timeline(CHAIN, CHAINED).picture.panels
    assert (top.name, below.name) == ("stage 2 of 2", "stage 1 of 2, user = a")
    assert [(point.label, point.is_pane, point.retracts) for point in top.points] == [
        ("5", True, False), ("\N{MINUS SIGN}5", True, True), ("14", True, False)
    ]  # fmt: skip
    assert [point.time for point in top.points] == [80 * S, 95 * S, 95 * S]
    assert [box.label for box in top.boxes] == ["5", "14", "14"]
    assert boxes_in(timeline(FIRST, CHAINED).picture) == boxes_in(
        attrs.evolve(timeline(CHAIN, CHAINED).picture, panels=(below,))
    )


def test_panes_without_windows_are_points_of_their_timestamp():
    filled = SOURCE.key_by("team").fill_gaps(10, by="last", within=10)
    script = TestStream().add([{"ts": 1, "team": "a", "score": 5}]).advance_watermark_to(20)
    (panel,) = timeline(filled, script).picture.panels
    assert [(point.label, point.event_us, point.time, point.is_output) for point in panel.points] == [
        ("5", 1_000_000, 0.5, False),
        ("5", 1_000_000, 1.0, True),
        ("5", 10_000_000, 2.0, True),
    ]
    (panel,) = timeline(SOURCE.deduplicate("score", within=60), script).picture.panels
    assert [point.is_output for point in panel.points] == [False]


def test_an_inner_stage_shows_its_dropped_rows():
    _, below = timeline(CHAIN, CHAINED).picture.panels
    assert [point.label for point in below.points if point.dropped is bm.DropReason.EXPIRED] == ["1"]


def test_inputs_have_watermarks_of_their_own_and_the_last_is_the_least_of_them():
    (panel,) = timeline(JOIN, JOINED).picture.panels
    ads, clicks, merged = panel.watermarks
    assert (ads.name, ads.steps) == ("ads", ((70 * S, 60 * S),))
    assert (clicks.name, clicks.steps) == ("clicks", ((75 * S, 40 * S), (100 * S, 80 * S)))
    assert (merged.name, merged.steps) == (None, ((75 * S, 40 * S), (100 * S, 60 * S)))
    assert [(point.input, point.label) for point in panel.points] == [("ads", "tea"), ("clicks", "top")]
    assert [box.label for box in panel.boxes] == ["ads 5, tea\nclicks 15, top"]


@pytest.mark.parametrize(
    ("pipeline", "script"),
    [(SCORES, CLOCK), (SCORES, STEPS), (CHAIN, CHAINED), (JOIN, JOINED), (SESSIONS, MERGING), (BOTH, CLOCK)],
)
def test_the_open_windows_are_those_of_the_state(pipeline, script):
    """At three moments: those whose end is not reached, and those with rows in no pane yet."""
    seen = 0
    for length in (1, len(script.events) // 2 + 1, len(script.events)):
        so_far = attrs.evolve(script, events=script.events[:length])
        panels = timeline(pipeline, so_far).picture.panels
        for stage in {panel.stage for panel in panels}:
            drawn = Counter(
                (repr(dict(panel.key)), window.start_us, window.end_us, window.label)
                for panel in panels
                for window in panel.open_windows
                if panel.stage == stage
            )
            reached_us = next((panel.watermarks[-1].at(math.inf) for panel in panels if panel.stage == stage), None)
            stored = Counter(
                (repr(dict(one.key)), start_us, end_us, values_label(one.values) if one.new_rows else "")
                for one in pipeline.state(so_far).windows(stage=stage + 1)
                for start_us, end_us in [(instant_us("", one.window.start), instant_us("", one.window.end))]
                if not one.closed and (one.new_rows or reached_us is None or end_us > reached_us)
            )
            assert drawn == stored
            seen += len(stored)
    assert seen


def test_an_open_window_begins_at_its_last_pane_or_its_first_row():
    script = TestStream().step([play(10, "red", 5), play(130, "red", 1)], clock=20).step([play(20, "red", 2)], clock=30)
    (panel,) = timeline(SCORES, script.step(clock=99)).picture.panels
    assert [(one.start_us // S, one.since // S, one.label) for one in panel.open_windows] == [
        (0, 30, ""), (120, 20, "total 1\nplays 1")
    ]  # fmt: skip
    (panel,) = timeline(SCORES, script, clock=False).picture.panels
    assert [one.since for one in panel.open_windows] == [2, 0]


def test_of_the_global_window_that_is_open_all_of_time_is_drawn():
    counts = SOURCE.window(bm.GlobalWindow()).trigger(AfterCount(2), allow_data_loss=True).accumulating()
    counts = counts.accumulate(n=Count())
    picture = timeline(counts, TestStream().add([{"ts": 3}])).picture
    assert [one.label for one in picture.panels[0].open_windows] == ["1"]
    assert picture.event_span == (3 * S, 3 * S)
    closed = timeline(counts, TestStream().add([{"ts": 3}, {"ts": 4}])).picture
    assert closed.panels[0].open_windows == ()


def test_a_watermark_that_follows_the_clock_is_shown_as_it_moves():
    lagging = (
        bm.Pipeline()
        .event_time("ts", bm.ProcessingTimeLag(20))
        .window(bm.FixedWindows(10))
        .accumulate(n=Count())
    )  # fmt: skip
    script = TestStream().step([{"ts": 1}], clock=5).step(clock=31)
    (panel,) = timeline(lagging, script).picture.panels
    assert panel.watermarks[0].steps == ((5 * S, -15 * S), (31 * S, 11 * S))


def test_a_session_that_grows_stands_on_the_panes_that_it_grew_from():
    (panel,) = timeline(SESSIONS, MERGING).picture.panels
    assert [(box.start_us // S, box.end_us // S, box.since // S, box.time // S, box.label) for box in panel.boxes] == [
        (0, 30, 10, 10, "1"),
        (40, 70, 45, 45, "2"),
        (0, 70, 45, 50, "7"),
        (0, 70, 50, 210, "7"),
    ]
    assert [box.retracted_at for box in panel.boxes] == [50 * S, 50 * S, 210 * S, None]


def test_the_global_window_is_all_of_time():
    everything = SOURCE.window(bm.GlobalWindow()).accumulate(n=Count())
    script = TestStream().add([{"ts": 3}, {"ts": 8}]).advance_watermark_to_infinity()
    picture = timeline(everything, script).picture
    (box,) = picture.panels[0].boxes
    assert (box.start_us, box.end_us) == (-END_OF_TIME_US, END_OF_TIME_US)
    assert picture.event_span == (3 * S, 8 * S)


def test_a_row_without_event_time_is_dropped_and_has_none():
    script = TestStream().add([play(1, "red", 1), play(None, "red", 2)])
    (panel,) = timeline(SCORES, script).picture.panels
    assert [(point.event_us, point.dropped) for point in panel.points] == [
        (S, None), (None, bm.DropReason.NULL_EVENT_TIME)
    ]  # fmt: skip


def test_a_row_that_only_some_of_its_windows_drop_is_no_cross():
    sliding = SOURCE.window(bm.SlidingWindows(60, 30)).accumulate(n=Sum("v"))
    script = (
        TestStream().step([{"ts": 40, "v": 3}, {"ts": 10, "v": 4}], watermark=60, clock=70).step(watermark=90, clock=95)
    )
    (panel,) = timeline(sliding, script).picture.panels
    partly, wholly = panel.points
    assert (partly.dropped, partly.kept) == (bm.DropReason.EXPIRED, True)
    assert (wholly.dropped, wholly.kept) == (bm.DropReason.EXPIRED, False)
    assert [(box.start_us // S, box.since // S, box.label) for box in panel.boxes] == [(30, 70, "3")]


def test_each_of_several_windowings_has_a_panel_with_all_rows():
    picture = timeline(BOTH, CLOCK).picture
    assert {tuple(panel.key.values()): (len(panel.points), len(panel.boxes)) for panel in picture.panels} == {
        ("red", "short"): (4, 2), ("red", "long"): (4, 1), ("blue", "short"): (1, 1), ("blue", "long"): (1, 1)
    }  # fmt: skip
    assert boxes_in(picture) == boxes_of(CLOCK.trace(BOTH), clock_times(CLOCK.events))


@pytest.mark.parametrize("key", ["blue", {"team": "blue"}])
def test_one_key_can_be_picked(key):
    (panel,) = timeline(SCORES, CLOCK, key=key).picture.panels
    assert panel.key == {"team": "blue"}


def test_a_picture_knows_its_moments():
    picture = timeline(SESSIONS, MERGING).picture
    assert picture.moments == [10 * S, 45 * S, 50 * S, 210 * S]
    assert picture.time_span == (10 * S, 210 * S)
    assert picture.event_span == (0, 70 * S)


@pytest.mark.parametrize(
    ("error", "call", "words"),
    [
        (OptionError, lambda: timeline(SCORES, CLOCK, key="green"), ["key='green'", "no row and no pane"]),
        (OptionError, lambda: timeline(SCORES, CLOCK, key={"tem": "red"}), ["'tem'", "['team']"]),
        (OptionError, lambda: timeline(SESSIONS, MERGING, key=1), ["the pipeline has no keys", "leave key= out"]),
        (
            OptionError,
            lambda: timeline(SCORES, TestStream().add([play(1, str(i), 1) for i in range(13)])),
            ["13 keys", "at most 12", "key={'team': '0'}"],
        ),
        (OptionError, lambda: timeline(SCORES.key_by("team", "ts"), CLOCK, key=1), ["several", "key={'team': 1}"]),
        (OptionError, lambda: timeline(SCORES, TestStream()), ["no rows and no panes", "nothing to show"]),
        (OptionError, lambda: timeline(SCORES), ["timeline(pipeline, None)", "TestStream()"]),
        (OptionError, lambda: timeline(3, CLOCK), ["timeline(3, script)", "must be a pipeline"]),  # type: ignore[call-overload]
        (OptionError, lambda: timeline(SCORES, CLOCK, rows=[]), ["rows=[]", "the script determines it"]),  # type: ignore[call-overload]
        (ScriptError, lambda: timeline(SCORES, TestStream().add([play("x", "red", 1)])), ["'x'"]),
        (
            PipelineError,
            lambda: timeline(
                SOURCE.window(bm.CountWindows(1)).accumulate(n=Sum("score")), TestStream().add([play(1, "red", 1)])
            ),
            ["count window", "bm.FixedWindows"],
        ),
    ],
)  # fmt: skip
def test_invalid_timelines_are_rejected(error, call, words):
    with pytest.raises(error) as caught:
        call()
    for word in words:
        assert word in str(caught.value)
