"""Stages of rolling spans: alone, over windows, over several inputs, under windows; and scripts whose rows are late."""

from __future__ import annotations

import random
from typing import Any

import attrs
from hypothesis import strategies as st

import beamish as bm
from beamish import accumulations as a
from beamish.testing import TestStream
from beamish.triggers import AfterCount, AfterWatermark, Always, Default
from tests.kinds.refine.strategy import TAKEN
from tests.strategies import changelogs
from tests.strategies.accumulations import accumulations
from tests.strategies.merges import wait_for
from tests.strategies.pipelines import key_columns, retracting
from tests.strategies.scripts import random_row

ACCUMULATING = bm.AccumulationMode.ACCUMULATING
usual = st.sampled_from([a.Count(), a.Sum("score"), a.Max("score"), a.Mean("score"), a.Count("name"), a.Last("score")])
merging = accumulations.filter(lambda one: not isinstance(one, a.ApproxCountDistinct))
"""An estimate may differ where nothing does."""
latenesses = st.sampled_from([0, 0, 1, 3, 7, 20, 1000])
modes = st.sampled_from([None, ACCUMULATING, retracting, retracting])
policies = st.sampled_from([bm.BoundedOutOfOrderness(0)] * 3 + [bm.BoundedOutOfOrderness(0, idle_timeout=4)])


@st.composite
def options(draw: st.DrawFn, mode: bm.AccumulationMode | None) -> bm.Rolling:
    """Any option that a mode allows."""
    step = draw(st.sampled_from([1, 1, 2, 3]))
    length = st.integers(1, 6).map(lambda steps: steps * step)
    offset = st.sampled_from([0, 0, 0, 1, 4]).map(lambda steps: steps * step)
    span = st.builds(lambda length, offset: bm.Span(length, offset=offset) if offset else length, length, offset)
    lifetime = st.builds(lambda offset: bm.Lifetime(offset=offset), offset)
    spans: list[Any] = draw(st.lists(st.one_of(span, span, span, lifetime), min_size=1, max_size=3))
    keep = draw(st.sampled_from(["current", "history"]))
    can_remove = mode is retracting and keep == "current"
    empty = draw(st.sampled_from(["emit", "remove"])) if can_remove else "emit"
    offset_of_boundaries = draw(st.sampled_from([0, 0, 0.5, 1]))
    named: Any = {"abc"[i]: one for i, one in enumerate(spans)}
    return bm.Rolling(named, step=step, keep=keep, empty=empty, offset=offset_of_boundaries)


def with_spans(draw: st.DrawFn, before: bm.Pipeline, accumulation: st.SearchStrategy[a.Accumulation]) -> bm.Pipeline:
    """The options of rolling spans added to a pipeline."""
    mode, lateness = draw(modes), draw(latenesses)
    accumulations = {f"v{i}": one for i, one in enumerate(draw(st.lists(accumulation, min_size=1, max_size=2)))}
    window = draw(options(mode))
    if draw(st.integers(0, 3)) == 0:  # the first span has all, so that each is in one
        own = st.sampled_from([None, *accumulations]).map(lambda name: name and [name])
        (first, whole), *others = window.spans.items()
        spans: Any = {name: attrs.evolve(one, only=draw(own)) for name, one in others}
        window = attrs.evolve(window, spans={first: whole, **spans})
    early = st.sampled_from([None, AfterCount(1), Always()])
    parts = st.builds(AfterWatermark, early, late=st.sampled_from([AfterCount(1), Always()]))
    pipeline = (
        before.window(window)
        .trigger(draw(st.one_of(st.just(Default()), parts)))
        .allowed_lateness(lateness)
        .accumulate(**accumulations)
    )
    if window.has_lifetime and draw(st.booleans()):
        steps = -(-window.reach_us // window.step.us)
        steps = draw(st.integers(max(1, steps), steps + 12))
        pipeline = pipeline.forget_after(bm.durations.Duration(steps * window.step.us))
    return pipeline if mode is None else pipeline.accumulation_mode(mode)


anything = st.one_of(usual, merging)


@st.composite
def rolling(
    draw: st.DrawFn,
    accumulation: st.SearchStrategy[a.Accumulation] = anything,
    keys: st.SearchStrategy[tuple[str, ...]] = key_columns,
) -> bm.Pipeline:
    """A stage over rows."""
    source = bm.Pipeline().event_time("ts", draw(policies)).key_by(*draw(keys))
    pipeline = with_spans(draw, source, accumulation)
    pipeline = pipeline.with_dropped() if draw(st.booleans()) else pipeline
    condition = draw(st.none() | st.none() | st.sampled_from(TAKEN))
    pipeline = pipeline if condition is None else pipeline.where(condition[0])
    pipeline.flow.check()
    return pipeline


@st.composite
def over_panes(draw: st.DrawFn) -> bm.Pipeline:
    """A stage over the panes of windows, some of them late, or retracted."""
    mode = draw(st.sampled_from([ACCUMULATING, bm.AccumulationMode.DISCARDING, retracting, retracting]))
    early = [Default(), Always(), AfterWatermark(early=Always(), late=Always())]
    own = [a.Sum("score"), a.Count(), a.Max("score"), a.Mean("score"), a.TopN(2, "score")]
    corrects = mode is retracting  # else a stage warns that it counts firings
    first = (
        bm.Pipeline()
        .event_time("ts", bm.BoundedOutOfOrderness(0))
        .key_by("team", "part")
        .window(draw(st.sampled_from([bm.FixedWindows(2), bm.Sessions(2)])))
        .trigger(draw(st.sampled_from(early if corrects else early[:1])))
        .allowed_lateness(draw(st.sampled_from([0, 5])))
        .accumulation_mode(mode)
        .accumulate(score=a.Sum("score"))
    )
    later = with_spans(
        draw,
        bm.Pipeline().key_by(*draw(st.sampled_from([(), ("team",)]))),
        st.sampled_from(own if corrects else own[:1]),
    )
    pipeline = first.then(later)
    pipeline.flow.check()
    return pipeline


@st.composite
def over_changelog(draw: st.DrawFn) -> bm.Pipeline:
    """A stage over a changelog."""
    some = {**changelogs.SUMS, **changelogs.KEEPERS}
    source = bm.Pipeline().from_changelog(draw(st.sampled_from(changelogs.FORMATS_)))
    source = source.event_time("ts", bm.BoundedOutOfOrderness(0)).key_by(*draw(st.sampled_from([(), ("team",)])))
    chosen = draw(st.lists(st.sampled_from(sorted(some)), min_size=1, max_size=3, unique=True))
    pipeline = with_spans(draw, source, st.just(a.Count())).accumulate(
        v0=a.Count(), v1=a.Count(), **{name: some[name] for name in chosen}
    )
    pipeline = pipeline.with_dropped() if draw(st.booleans()) else pipeline
    pipeline.flow.check()
    return pipeline


def fed(pipeline: bm.Pipeline) -> st.SearchStrategy[TestStream]:
    """Changes of a table; removals of missing rows only where they are found."""
    feeds = changelogs.feeds(strays=changelogs.keeps(pipeline))
    return feeds.flatmap(lambda feed: changelogs.scripts(pipeline, feed))


@st.composite
def under_windows(draw: st.DrawFn) -> bm.Pipeline:
    """A stage of windows, or a table, over rolling spans."""
    first = with_spans(
        draw, bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("team"), st.just(a.Count())
    )
    later = bm.Pipeline().key_by("team")
    if draw(st.booleans()):
        pipeline = first.then(later.versions(draw(st.sampled_from([5, 1000])), values=["v0_a"]))
    else:
        counts = later.window(bm.GlobalWindow()).trigger(Always()).accumulating().accumulate(n=a.Sum("v0_a"))
        pipeline = first.then(counts)
    pipeline.flow.check()
    return pipeline


@st.composite
def over_inputs(draw: st.DrawFn) -> bm.Pipeline:
    """A stage over two inputs."""
    source = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("team")
    pipeline = with_spans(
        draw,
        bm.merge(left=source, right=source, wait_for=draw(wait_for)),
        st.sampled_from([a.Count(), a.Sum("score").of("left"), a.Max("score").of("right")]),
    )
    pipeline = pipeline.with_dropped() if draw(st.booleans()) else pipeline
    pipeline.flow.check()
    return pipeline


OFFSETS = [0, 0, 0, 0.25, 0.999999]


def script_of(number: int, inputs: tuple[str | None, ...], ends: bool | None = None) -> TestStream:
    """Rows around the watermark, some of them late, some far ahead; ties, jumps, whole steps."""
    chance = random.Random(number)
    script, clock = TestStream(), 0
    nows: dict[str | None, float] = dict.fromkeys(inputs, chance.choice([0, 0, 5, -10]))
    spread = chance.choice([2, 4, 8, 20])
    for name in inputs:  # without a row its columns are unknown
        script = script.add([random_row(chance, nows[name], OFFSETS)], input=name)
    for _ in range(chance.choice([4, 8, 16, 24])):
        name, kind = chance.choice(inputs), chance.choice("rrrrwwwcss")
        now = nows[name]
        bundle = [
            random_row(chance, now + chance.randint(-spread, spread // 2 + 1), OFFSETS)
            for _ in range(chance.choice([1, 1, 2, 3]))
        ]
        if kind in "ws":
            nows[name] = now + chance.choice([0.5, 1, 1, 1, 2, 3, 5, 20])
        clock += chance.choice([1, 2]) if kind in "cs" else 0
        match kind:
            case "r":
                script = script.add(bundle, input=name)
            case "w":
                script = script.advance_watermark_to(nows[name], input=name)
            case "c":
                script = script.advance_processing_time_to(clock)
            case _:
                script = script.step(bundle, watermark=nows[name], clock=chance.choice([None, clock]), input=name)
    if chance.random() < 0.5 if ends is None else ends:
        script = script.advance_watermark_to_infinity()
    return script


def scripts(pipeline: bm.Pipeline) -> st.SearchStrategy[TestStream]:
    """Scripts for a pipeline."""
    inputs = tuple(source.name for source in pipeline.flow.sources)
    return st.integers(0, 2**40).map(lambda number: script_of(number, inputs))


CASES = {
    "rolling spans": (rolling(), scripts),
    "rolling spans, usual values": (rolling(usual), scripts),
    "rolling spans over panes": (over_panes(), scripts),
    "rolling spans under other stages": (under_windows(), scripts),
    "rolling spans over a changelog": (over_changelog(), fed),
    "rolling spans over several inputs": (over_inputs(), scripts),
}
FLOWS = [rolling(keys=st.sampled_from([(), ("team",)])), under_windows()]
