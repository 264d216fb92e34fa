"""Values show themselves in a notebook, and nothing in them becomes markup."""

import html
import re

import pytest

import beamish as bm
from beamish.accumulations import Count, Max
from beamish.testing import TestStream
from beamish.triggers import AfterCount, AfterValue, AfterWatermark

EVIL = "<script>alert('1')</script>"
PIPELINE = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness(0))
    .key_by(EVIL)
    .window(bm.FixedWindows(60))
    .trigger(AfterWatermark(early=AfterCount(1)), allow_data_loss=True)
    .accumulating_and_retracting()
    .with_dropped()
    .accumulate(**{f"n{EVIL}": Count(), "greatest": Max("name")})
)
SCRIPT = (
    TestStream()
    .add([{"ts": 1, EVIL: EVIL, "name": EVIL}])
    .advance_watermark_to(60)
    .add([{"ts": 2, EVIL: "b", "name": "b"}])
)


@pytest.mark.parametrize(
    ("shown", "words"),
    [
        (PIPELINE, "fixed, 1 minute long"),
        (bm.Pipeline().key_by(EVIL), "Pipeline()"),
        (AfterWatermark(early=AfterCount(1)), "a window fires before its end every row"),
        (AfterValue(EVIL, at_least=1), "is at least 1"),
        (bm.FixedWindows(60), "fixed, 1 minute long"),
        (bm.Windowings({EVIL: bm.FixedWindows(60)}), "1 windowings in one pass"),
        (PIPELINE.run(SCRIPT), "RETRACTION"),
        (SCRIPT.trace(PIPELINE), "watermark: 1970-01-01 00:01:00"),
    ],
)  # fmt: skip
def test_html_representations_are_escaped(shown, words):
    markup = shown._repr_html_()
    assert words in html.unescape(markup)
    assert "<script" not in markup
    assert set(re.findall(r"<(\w+)", markup)) <= {
        "table",
        "caption",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "b",
        "p",
        "code",
    }


def test_panes_and_traces_are_lists():
    panes, trace = PIPELINE.run(SCRIPT), SCRIPT.trace(PIPELINE)
    assert panes == [pane for _, each in trace for pane in each] != []
    assert trace == list(trace)
    assert isinstance(panes, list)
    assert panes._repr_html_().count("<tr>") == len(panes) + 1
