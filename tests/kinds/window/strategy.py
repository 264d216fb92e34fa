"""Stages of windows anchored at rows: alone, over windows, under windows, suppressed; and scripts whose rows are late.

Other windows are drawn in tests/strategies.
"""

from __future__ import annotations

import random

from hypothesis import strategies as st

import beamish as bm
from beamish import accumulations as a
from beamish.testing import TestStream
from beamish.triggers import AfterCount, AfterWatermark, Always, Default, Repeatedly, Trigger
from tests.strategies.accumulations import accumulations, fold_in_order
from tests.strategies.pipelines import closing_behaviors, combiners, key_columns, modes, on_time_behaviors
from tests.strategies.scripts import random_row
from tests.strategies.triggers import triggers

DISCARDING = bm.AccumulationMode.DISCARDING
differences = st.sampled_from([0, 0.000001, 1, 2, 2, 3, 5])
anchored_windows = st.builds(bm.AnchoredWindows, differences)
latenesses = st.sampled_from([0, 0, 1, 3, 7, 1000])
policies = st.sampled_from([bm.BoundedOutOfOrderness(0)] * 3 + [bm.BoundedOutOfOrderness(0, idle_timeout=4)])
usual_triggers = st.sampled_from(
    [
        Default(),
        AfterWatermark(late=AfterCount(1)),
        AfterWatermark(early=AfterCount(1), late=AfterCount(1)),
        AfterWatermark(early=AfterCount(2), late=Always()),
        Repeatedly(AfterCount(2)),
    ]
)
usual = st.sampled_from([a.Count(), a.Sum("score"), a.Max("score"), a.Last("score"), a.Collect("score"), a.Sum("part")])


def with_windows(
    draw: st.DrawFn,
    before: bm.Pipeline,
    accumulation: st.SearchStrategy[a.Accumulation],
    trigger: st.SearchStrategy[Trigger],
) -> bm.Pipeline:
    """The options of anchored windows added to a pipeline."""
    mode = draw(modes)
    pipeline = (
        before.window(draw(anchored_windows))
        .trigger(draw(trigger), allow_data_loss=True)
        .allowed_lateness(draw(latenesses))
        .accumulation_mode(mode)
        .timestamp_combiner(draw(combiners))
        .on_time_behavior(draw(on_time_behaviors))
        .closing_behavior(draw(closing_behaviors))
        .accumulate(**{f"v{i}": one for i, one in enumerate(draw(st.lists(accumulation, min_size=1, max_size=2)))})
    )
    estimates = any(
        isinstance(one, a.ApproxCountDistinct) for one in pipeline.flow.stage.options.accumulations.values()
    )
    only_updated = mode is not DISCARDING and not estimates and draw(st.booleans())
    return pipeline.only_updated_panes() if only_updated else pipeline


@st.composite
def anchored(
    draw: st.DrawFn,
    accumulation: st.SearchStrategy[a.Accumulation] = st.one_of(usual, accumulations, fold_in_order),  # noqa: B008
    trigger: st.SearchStrategy[Trigger] = st.one_of(usual_triggers, triggers),  # noqa: B008
    keys: st.SearchStrategy[tuple[str, ...]] = key_columns,
) -> bm.Pipeline:
    """A stage over rows."""
    source = bm.Pipeline().event_time("ts", draw(policies)).key_by(*draw(keys))
    pipeline = with_windows(draw, source, accumulation, trigger)
    pipeline = pipeline.with_dropped() if draw(st.booleans()) else pipeline
    pipeline.flow.check()
    return pipeline


@st.composite
def over_panes(draw: st.DrawFn) -> bm.Pipeline:
    """A stage over the panes of windows, some of them late."""
    first = (
        bm.Pipeline()
        .event_time("ts", bm.BoundedOutOfOrderness(0))
        .key_by("team", "part")
        .window(draw(st.sampled_from([bm.FixedWindows(2), bm.Sessions(2), bm.AnchoredWindows(1)])))
        .allowed_lateness(draw(st.sampled_from([0, 5])))
        .accumulation_mode(draw(st.sampled_from([bm.AccumulationMode.ACCUMULATING, DISCARDING])))
        .accumulate(score=a.Sum("score"))
    )
    keys = draw(st.sampled_from([(), ("team",)]))
    pipeline = first.then(with_windows(draw, bm.Pipeline().key_by(*keys), st.just(a.Sum("score")), usual_triggers))
    pipeline.flow.check()
    return pipeline


@st.composite
def under_stages(draw: st.DrawFn) -> bm.Pipeline:
    """A stage under one that inherits its windows, or has its own; or suppressed."""
    source = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("team")
    first = with_windows(draw, source, st.just(a.Count()), usual_triggers)
    kind = draw(st.sampled_from(["inherits", "global", "suppress"]))
    if kind == "suppress":
        pipeline = first.suppress(draw(st.sampled_from([bm.UntilWindowCloses(), bm.UntilTimeLimit(2, clock="event")])))
    else:
        later = bm.Pipeline().key_by()
        later = later if kind == "inherits" else later.window(bm.GlobalWindow())
        retracts = first.flow.gives.retracts
        mode = bm.AccumulationMode.ACCUMULATING if retracts else draw(modes)
        pipeline = first.then(
            later.trigger(Repeatedly(AfterCount(1)))
            .allowed_lateness(1000)
            .accumulation_mode(mode)
            .accumulate(n=a.Sum("v0"))
        )
    pipeline.flow.check()
    return pipeline


OFFSETS = [0, 0, 0, 0, 0.5, 0.000001, -0.000001]


def script_of(number: int, ends: bool | None = None) -> TestStream:
    """Rows around the watermark, some of them late; ties, jumps, neighbours, whole steps."""
    chance = random.Random(number)
    script, clock = TestStream(), 0
    now: float = chance.choice([0, 0, 5, -10])
    spread = chance.choice([2, 4, 8])
    script = script.add([random_row(chance, now, OFFSETS)])
    for _ in range(chance.choice([4, 8, 16, 24])):
        kind = chance.choice("rrrrwwwcss")
        times = [now + chance.randint(-spread, spread // 2 + 1) for _ in range(chance.choice([1, 1, 2, 3, 6]))]
        bundle = [random_row(chance, time, OFFSETS) for time in times]
        if kind in "ws":
            now += chance.choice([0.5, 1, 1, 1, 2, 3, 5, 20])
        clock += chance.choice([1, 2]) if kind in "cs" else 0
        match kind:
            case "r":
                script = script.add(bundle)
            case "w":
                script = script.advance_watermark_to(now)
            case "c":
                script = script.advance_processing_time_to(clock)
            case _:
                script = script.step(bundle, watermark=now, clock=chance.choice([None, clock]))
    ends = chance.random() < 0.5 if ends is None else ends
    return script.advance_watermark_to_infinity() if ends else script


def scripts(_pipeline: bm.Pipeline) -> st.SearchStrategy[TestStream]:
    """Scripts for a pipeline."""
    return st.integers(0, 2**40).map(script_of)


CASES = {
    "anchored windows": (anchored(), scripts),
    "anchored windows, usual": (anchored(usual, usual_triggers), scripts),
    "anchored windows over panes": (over_panes(), scripts),
    "anchored windows under other stages": (under_stages(), scripts),
}
FLOWS = [anchored(keys=st.sampled_from([(), ("team",)])), under_stages()]
