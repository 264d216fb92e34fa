"""Steps of several inputs at once, as a micro-batch has them (rules/time.md#steps-and-clocks)."""

import math

import pytest

import beamish as bm
from beamish.accumulations import Count
from beamish.script import MicroBatch, Step
from beamish.testing import TestStream
from beamish.triggers import AfterWatermark, Always

START = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("k")
COUNTED = (
    bm.merge(a=START, b=START)
    .window(bm.FixedWindows(10))
    .trigger(AfterWatermark(early=Always(), late=Always()))
    .allowed_lateness(60)
    .accumulating()
    .accumulate(n=Count())
)


def row(ts):
    return {"k": 1, "ts": ts}


SCRIPT = (
    TestStream()
    .step({"a": [row(1)], "b": [row(2), row(3)]}, clock=100)
    .step({"a": [row(4)]}, watermark={"a": 20, "b": 5})
    .step({"a": [row(5)], "b": [row(6)]}, watermark={"b": 12})
    .step(watermark={"b": 30})
)


def test_rows_of_several_inputs_in_a_step_share_a_pane():
    assert [pane.values["n"] for pane in COUNTED.run(TestStream().step({"a": [row(1)], "b": [row(2), row(3)]}))] == [3]
    apart = TestStream().add([row(1)], input="a").add([row(2), row(3)], input="b")
    assert [pane.values["n"] for pane in COUNTED.run(apart)] == [1, 3]


def test_each_input_has_its_watermark():
    first, second, third = (len(panes) for _, panes in SCRIPT.trace(COUNTED)[:3])
    assert (first, second) == (1, 1)
    assert third == 2  # the end of the window, and the late rows


def test_a_script_shows_what_a_step_has():
    assert SCRIPT.events[1] == MicroBatch((Step((row(4),), "a", 20_000_000), Step((), "b", 5_000_000)))
    assert "b:, watermark: 1970-01-01 00:00:05" in SCRIPT.trace(COUNTED)._repr_html_()


def test_a_watermark_of_an_input_does_not_go_back():
    with pytest.raises(bm.ScriptError, match="the watermark would go back from 20"):
        SCRIPT.step(watermark={"a": 19})
    assert SCRIPT.step(watermark=math.inf).events[-1] == Step(watermark_us=2**63 - 1)


def test_a_picture_has_the_rows_of_both_inputs():
    (panel,) = bm.plot.timeline(COUNTED, SCRIPT).picture.panels
    assert len(panel.points) == 6
