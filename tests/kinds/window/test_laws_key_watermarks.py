"""Laws of a watermark per key (rules/laws.md#law-watermark-per-key)."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

import beamish as bm
from beamish.accumulations import Count
from beamish.durations import duration
from beamish.instants import END_OF_TIME_US
from beamish.kinds.window.plan.options import KeyWatermark
from beamish.script import WatermarkTo, as_step
from beamish.testing import TestStream
from tests.agreement import differences
from tests.cost import cost
from tests.declared_options import evolve, said
from tests.kinds.window.strategy_of_key_watermarks import keyed
from tests.seconds import S
from tests.strategies.scripts import scripts

EVER, NOTHING = duration("span", 10**9), duration("span", 0)
patient = st.just(bm.BoundedOutOfOrderness(0))


def of(pipeline, delay, at_most):
    return evolve(pipeline, key_watermark=KeyWatermark(delay, at_most))


unlisted = keyed(watermark=patient).map(lambda pipeline: evolve(pipeline, with_dropped=False))
"""Before there is a watermark a dropped row has no lateness; with the greatest spans there is one at once."""


def plain(pipeline):
    return evolve(pipeline, key_watermark=None)


def moved(script, watermark):
    """The script with other watermarks before the end of time, each given the number of its step and that of the script."""
    steps = [as_step(event) for event in script.events]
    ends = [step.watermark_us == END_OF_TIME_US for step in steps]
    watermarks = [
        step.watermark_us if end else watermark(i, step) for i, (step, end) in enumerate(zip(steps, ends, strict=True))
    ]
    return TestStream(tuple(attrs.evolve(step, watermark_us=us) for step, us in zip(steps, watermarks, strict=True)))


def latest_before(script):
    """The greatest event time of the rows before each step; None: no row."""
    latest, before = None, []
    for step in map(as_step, script.events):
        before.append(latest)
        times = [round(row["ts"] * S) for row in step.rows if row["ts"] is not None]
        latest = max([*times, *([] if latest is None else [latest])], default=None)
    return before


def following(script, delay):
    """The script whose watermark follows its rows, a step later."""
    before = latest_before(script)
    return moved(script, lambda i, _: None if before[i] is None else before[i] - delay.us)


def standing(script):
    """The script whose watermark is there as soon, and stands still, far behind all rows."""
    before = latest_before(script)
    return moved(script, lambda i, _: None if before[i] is None else -EVER.us)


def same(given_, expected, pipeline, script):
    found = differences(expected, given_, pipeline)
    assert not found, "\n".join([repr(pipeline), repr(script), *found])


@pytest.mark.of_law("law-watermark-per-key")
@cost(2)
@given(st.data())
def test_with_one_key_it_is_a_watermark_of_that_delay(data):
    pipeline = evolve(data.draw(keyed(watermark=patient, once=False)), keys=("one",))  # ids expire by the bound
    script = data.draw(scripts(pipeline))
    script = TestStream(
        tuple(
            attrs.evolve(step, rows=tuple({**row, "one": 1} for row in step.rows))
            for step in map(as_step, script.events)
        )
    )
    delay = said(pipeline).key_watermark.delay
    alone = of(pipeline, delay, EVER)
    same(alone.run(standing(script)), plain(pipeline).run(following(script, delay)), alone, script)


@pytest.mark.of_law("law-watermark-per-key")
@cost(2)
@given(st.data())
def test_without_a_lag_and_with_a_greater_delay_it_is_the_stages_watermark(data):
    pipeline = data.draw(keyed(watermark=patient))
    delay = said(pipeline).key_watermark.delay
    script = following(data.draw(scripts(pipeline)), delay)
    slower = data.draw(st.sampled_from([delay, EVER]))
    bounded = of(pipeline, slower, NOTHING)
    same(bounded.run(script), plain(pipeline).run(script), bounded, script)


@pytest.mark.of_law("law-watermark-per-key")
@cost(2)
@given(st.data())
def test_with_the_greatest_delay_it_is_the_stages_watermark_less_the_lag(data):
    pipeline = data.draw(unlisted)
    script, at_most = data.draw(scripts(pipeline)), said(pipeline).key_watermark.at_most
    behind = moved(script, lambda _, step: None if step.watermark_us is None else step.watermark_us - at_most.us)
    slow = of(pipeline, EVER, at_most)
    same(slow.run(script), plain(pipeline).run(behind), slow, script)


@pytest.mark.of_law("law-watermark-per-key")
@cost(2)
@given(st.data())
def test_within_the_lag_rows_of_other_keys_and_the_watermark_change_nothing(data):
    pipeline = of(evolve(data.draw(unlisted), keys=("team",)), duration("delay", 1), EVER)
    script = data.draw(scripts(pipeline))
    script = attrs.evolve(script, events=(WatermarkTo(-EVER.us), *script.events))
    reds = moved(script, lambda i, _: -EVER.us if i == 0 else None)
    reds = TestStream(
        tuple(
            attrs.evolve(step, rows=tuple(row for row in step.rows if row["team"] == "red"))
            for step in map(as_step, reds.events)
        )
    )
    of_red = [pane for pane in pipeline.run(script) if pane.key["team"] == "red"]
    same(pipeline.run(reds), of_red, pipeline, script)


def test_the_laws_detect_violations():
    pipeline = (
        bm.Pipeline()
        .event_time("ts", bm.BoundedOutOfOrderness(0))
        .key_by("team")
        .window(bm.FixedWindows(10))
        .accumulate(n=Count())
    )
    script = TestStream().add([{"ts": 1, "team": "a"}, {"ts": 31, "team": "b"}]).advance_watermark_to(31)
    script = script.add([{"ts": 2, "team": "a"}, {"ts": 42, "team": "b"}]).add([])
    given_ = of(pipeline, NOTHING, EVER).run(script)
    for other in (script, following(script, NOTHING), moved(script, lambda *_: None)):
        assert differences(pipeline.run(other), given_, pipeline)
