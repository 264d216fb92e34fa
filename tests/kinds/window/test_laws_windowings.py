"""Law: several windowings in one pass give the panes of a pipeline for each, under its name."""

from __future__ import annotations

import pytest

import beamish as bm
from beamish.accumulations import Collect, Count, Sum
from beamish.testing import TestStream
from beamish.triggers import AfterWatermark, Always
from tests.declared_options import said
from tests.public_names import public_names


def visits():
    return (
        bm.Pipeline()
        .event_time("ts", bm.BoundedOutOfOrderness(0))
        .key_by("user")
        .window({"minute": bm.FixedWindows(60), "visit": bm.Sessions(100)})
        .accumulate(n=Count())
    )


ROWS = [{"ts": 10, "user": "a", "x": 1}, {"ts": 70, "user": "a", "x": 2}]


def test_the_windowing_is_a_part_of_the_key():
    panes = visits().run(TestStream().add(ROWS).advance_watermark_to_infinity())
    found = [(pane.key["windowing"], pane.window.start.timestamp(), pane.values["n"]) for pane in panes]
    assert found == [("minute", 0, 1), ("minute", 60, 1), ("visit", 10, 2)]


def test_a_later_stage_distinguishes_windowings():
    totals = bm.Pipeline().key_by("windowing").accumulate(users=Count(), n=Sum("n"))
    panes = visits().then(totals).run(TestStream().add(ROWS).advance_watermark_to_infinity())
    assert [(pane.key, pane.values) for pane in panes] == [
        ({"windowing": "minute"}, {"users": 1, "n": 1}),
        ({"windowing": "minute"}, {"users": 1, "n": 1}),
        ({"windowing": "visit"}, {"users": 1, "n": 2}),
    ]
    with pytest.raises(bm.PipelineError, match=r"key_by\('windowing'"):
        visits().then(bm.Pipeline().accumulate(n=Sum("n"))).run(TestStream().add(ROWS))


def test_a_later_stage_may_window_in_several_ways():
    minutes = (
        bm.Pipeline()
        .event_time("ts", bm.BoundedOutOfOrderness(0))
        .key_by("user")
        .window(bm.FixedWindows(60))
        .trigger(AfterWatermark(early=Always()))
        .accumulating_and_retracting()
        .accumulate(n=Count())
    )
    later = bm.Pipeline().window({"hour": bm.FixedWindows(3600), "all": bm.GlobalWindow()}).accumulate(n=Sum("n"))
    panes = minutes.then(later).run(TestStream().add(ROWS).advance_watermark_to_infinity())
    assert [(pane.key["windowing"], pane.values["n"]) for pane in panes] == [("hour", 2), ("all", 2)]


def test_a_merge_may_be_windowed_in_several_ways():
    orders = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("user")
    merged = (
        bm.merge(left=orders, right=orders)
        .window({"minute": bm.FixedWindows(60), "visit": bm.Sessions(100)})
        .accumulate(left=Collect("x").of("left"), right=Count().of("right"))
    )
    script = (
        TestStream()
        .add(ROWS, input="left")
        .add(ROWS[:1], input="right")
        .advance_watermark_to_infinity(input="left")
        .advance_watermark_to_infinity(input="right")
    )
    found = [(pane.key["windowing"], pane.values["left"], pane.values["right"]) for pane in merged.run(script)]
    assert found == [("minute", [1], 1), ("minute", [2], 0), ("visit", [1, 2], 1)]


@pytest.mark.parametrize(
    ("window", "words"),
    [
        ({}, "window options by name"),
        ({1: bm.FixedWindows(60)}, "must be text"),
        ({"minute": 60}, "must be a WindowOption"),
        ({"a": bm.Windowings({"b": bm.FixedWindows(60)})}, "must be a WindowOption"),
    ],
)
def test_invalid_windowing_options_are_rejected(window, words):
    with pytest.raises(bm.OptionError, match=words):
        bm.Pipeline().window(window)


def test_the_name_of_the_column_is_taken():
    pipeline = visits().key_by("windowing")
    with pytest.raises(bm.PipelineError, match="'windowing'"):
        pipeline.explain()


def test_explain_names_each():
    text = visits().explain()
    assert "minute: fixed, 1 minute long" in text
    assert "visit: sessions" in " ".join(text.split())


def test_windowings_survive_repr():
    several = said(visits()).window
    assert eval(repr(several), public_names(bm)) == several
    assert hash(several) == hash(eval(repr(several), public_names(bm)))
