"""Suppressed stages: of any pipeline, merge, chain or tree, one or several of its stages are suppressed."""

from __future__ import annotations

import random

import attrs
from hypothesis import strategies as st

import beamish as bm
from beamish import accumulations as a
from beamish import triggers as t
from beamish.durations import Duration
from beamish.flow import Flow, Panes
from beamish.kinds.suppress.stage import Suppressed
from beamish.kinds.window.stage import WindowStage
from beamish.testing import TestStream
from tests.declared_options import StageOptions, said
from tests.own.windows import Absorbed, OfABlock
from tests.strategies.chains import chains
from tests.strategies.flows import flows
from tests.strategies.merges import merges
from tests.strategies.pipelines import pipelines, retracting
from tests.strategies.triggers import usual_triggers, waiting_triggers
from tests.strategies.windows import unit
from tests.twin.run import inherited

waits = st.sampled_from([0, 1, 2, 3, 5, 7.5, 20])
spilling = st.builds(bm.Buffer, max_records=st.sampled_from([0, 1, 3]), when_full=st.just(bm.SPILL))
of_records = st.builds(bm.Buffer, max_records=st.sampled_from([0, 1, 1, 2, 3]))
of_bytes = st.builds(bm.Buffer, max_records=st.sampled_from([None, 2]), max_bytes=st.sampled_from([0, 9, 20, 40, 80]))
patient = st.one_of(st.just(bm.Buffer()), st.just(bm.Buffer()), spilling)
"""No early emission."""
any_buffer = st.one_of(patient, patient, of_records, of_bytes)
SHUTTING = st.builds(bm.Buffer, max_records=st.sampled_from([0, 1, 2, 3]), when_full=st.just(bm.SHUT_DOWN))
some_buffers = st.one_of(any_buffer, any_buffer, SHUTTING)


def untils(stage: StageOptions, window: bm.WindowOption) -> st.SearchStrategy[bm.UntilWindowCloses | bm.UntilTimeLimit]:
    """Anything compatible with a stage that has these windows."""
    own = waits.map(lambda wait: wait * unit(window))
    if stage.discards and any(
        isinstance(one, a.Fold) and one.merge is None for one in stage.accumulations.values()
    ):  # not summable
        return st.builds(bm.UntilTimeLimit, st.just(0), st.sampled_from(["event", "processing"]))
    timeless = stage.combiner is bm.TimestampCombiner.END_OF_WINDOW and has_all_of_time(window)
    clocks = st.sampled_from(["processing"] if timeless else ["event", "processing"])
    return st.one_of(st.just(bm.UntilWindowCloses()), st.builds(bm.UntilTimeLimit, own, clocks))


def has_all_of_time(window: bm.WindowOption) -> bool:
    several = window.options.values() if isinstance(window, bm.Windowings) else [window]
    return any(isinstance(one, bm.GlobalWindow) for one in several)


@st.composite
def suppresses(
    draw: st.DrawFn,
    flow: Flow,
    *,
    buffers: st.SearchStrategy[bm.Buffer] = any_buffer,
    until: st.SearchStrategy[bm.UntilWindowCloses | bm.UntilTimeLimit] | None = None,
) -> bm.Suppress:
    """A suppress for a stage of windows."""
    stage = said(flow)
    chosen = draw(untils(stage, stage.window or inherited(flow)) if until is None else until)
    buffer = draw(buffers)
    if buffer.max_bytes is not None and stage.discards:
        buffer = bm.Buffer(max_records=buffer.max_records)  # the byte size of an accumulator depends on the engine
    if isinstance(chosen, bm.UntilWindowCloses) and not buffer.strict:
        buffer = bm.Buffer()
    return bm.Suppress(chosen, buffer=buffer)


def held(
    draw: st.DrawFn,
    flow: Flow,
    some: st.SearchStrategy[bool],
    buffers: st.SearchStrategy[bm.Buffer],
    until: st.SearchStrategy[bm.UntilWindowCloses | bm.UntilTimeLimit] | None,
) -> Flow:
    """The flow with some stages suppressed, and sufficient lateness above them."""
    inputs = [
        attrs.evolve(one, flow=held(draw, one.flow, some, buffers, None)) if isinstance(one, Panes) else one
        for one in flow.inputs
    ]
    behind = max((one.flow.gives.behind_us for one in inputs if isinstance(one, Panes)), default=0)
    assert isinstance(flow.stage, WindowStage)
    lateness = max(flow.stage.options.allowed_lateness.us, behind)
    stage = flow.stage.declaring("held", allowed_lateness=Duration(lateness))
    plain = Flow(stage, tuple(inputs))
    if not draw(some):
        return plain
    return Flow(Suppressed(stage, draw(suppresses(plain, buffers=buffers, until=until))), tuple(inputs))


@st.composite
def suppressed(
    draw: st.DrawFn,
    pipeline: st.SearchStrategy[bm.Pipeline],
    *,
    root: bool = True,
    buffers: st.SearchStrategy[bm.Buffer] = any_buffer,
    until: st.SearchStrategy[bm.UntilWindowCloses | bm.UntilTimeLimit] | None = None,
) -> bm.Pipeline:
    """A pipeline of which some stages are suppressed, the last one too if ``root``.

    Args:
        buffers: of all its suppresses.
        until: of its last stage.
    """
    flow = draw(pipeline).flow
    found = held(draw, flow, st.booleans(), buffers, until)
    if root and not isinstance(found.stage, Suppressed):
        suppress = draw(suppresses(found, buffers=buffers, until=until))
        found = attrs.evolve(found, stage=Suppressed(found.stage, suppress))
    found.check()
    return bm.Pipeline(found)


def busy_script(number: int) -> TestStream:
    """A long script of one key, of whole steps, most with watermark, clock and rows, many of them late.

    Not to be shrunk, but dense.
    """
    chance = random.Random(number)
    script, now, clock = TestStream(), 0, 0
    for _ in range(30):
        now += chance.choice([0, 1, 1, 2, 3, 7])
        clock += chance.choice([0, 1, 1, 2, 4])
        times = [float(now + chance.randint(-6, 8)) for _ in range(chance.choice([0, 0, 1, 1, 2]))]
        rows = [{"ts": ts, "score": chance.choice([None, 0, 1, 2, 3])} for ts in times]
        script = script.step(rows, watermark=chance.choice([None, now, now]), clock=chance.choice([None, clock, clock]))
    return script if chance.random() < 0.5 else script.advance_watermark_to_infinity()


busy_scripts = st.integers(0, 2**40).map(busy_script)


short_waits = st.builds(
    bm.UntilTimeLimit, st.sampled_from([0.5, 1, 2, 4]), st.sampled_from(["event", "event", "processing"])
)
busy_triggers = st.sampled_from(
    [
        t.Repeatedly(t.AfterCount(2)),
        t.Repeatedly(t.AfterCount(3)),
        t.Repeatedly(t.AfterProcessingTime(2)),
        t.Repeatedly(t.AfterProcessingTime(6)),
        t.AfterWatermark(t.Always(), t.AfterCount(2)),
        t.AfterWatermark(t.AfterProcessingTime(3), t.Always()),
    ]
)


@st.composite
def busy(draw: st.DrawFn, buffers: st.SearchStrategy[bm.Buffer] = any_buffer) -> bm.Pipeline:
    """Windows of one key that fire repeatedly, late too, and short waits; most are retracting sessions."""
    retracts = draw(st.sampled_from([True, True, False]))
    window = draw(
        st.one_of(st.builds(bm.Sessions, st.integers(2, 6)), st.sampled_from([bm.FixedWindows(5), OfABlock()]))
    )
    plain = (
        bm.Pipeline()
        .event_time("ts", bm.BoundedOutOfOrderness(0))
        .window(window)
        .trigger(draw(busy_triggers))
        .allowed_lateness(draw(st.sampled_from([10, 1000])))
        .accumulation_mode(retracting if retracts else draw(st.sampled_from(bm.AccumulationMode)))
        .timestamp_combiner(draw(st.sampled_from(bm.TimestampCombiner)))
        .accumulate(n=a.Count(), total=a.Sum("score"))
    )
    if retracts and window.merging:
        plain = plain.retract_merged(draw(st.sampled_from([bm.WITH_NEXT_PANE, bm.WITH_NEXT_PANE, bm.AT_MERGE])))
    return plain.then(draw(suppresses(plain.flow, buffers=buffers, until=short_waits)))


sessions_of_one_key = pipelines(
    window=st.one_of(
        st.builds(bm.Sessions, st.integers(2, 6)),
        st.builds(bm.Sessions, st.integers(2, 6)),
        st.sampled_from([bm.FixedWindows(5), bm.SlidingWindows(6, 3), Absorbed()]),
    ),
    watermark=st.just(bm.BoundedOutOfOrderness(0)),
    trigger=st.one_of(waiting_triggers, usual_triggers),
    lateness=st.sampled_from([0, 5, 40]),
    keys=st.just(()),
    accumulation=st.sampled_from([a.Count(), a.Sum("score"), a.Collect("score")]),
)
"""Mostly sessions, whose buffers merge."""
some_pipelines = st.one_of(pipelines(), pipelines(), chains())
"""For one source without a name."""
some_merges = st.one_of(merges(), flows())


def until_limit(*clocks: str, least: float = 0) -> st.SearchStrategy[bm.UntilTimeLimit]:
    """A wait of seconds on one of these clocks."""
    return st.builds(bm.UntilTimeLimit, waits.filter(lambda wait: wait >= least), st.sampled_from(clocks))
