"""Suppressed stages: of any pipeline, merge, chain or tree, one or several of its stages are suppressed."""

from __future__ import annotations

import attrs
from hypothesis import strategies as st

import beamish as bm
from beamish import accumulations as a
from beamish.durations import Duration
from beamish.flow import Flow, Panes
from beamish.stages.suppressed import Suppressed
from beamish.stages.window import WindowStage
from tests.said import Said, said
from tests.strategies.chains import chains
from tests.strategies.flows import flows
from tests.strategies.merges import merges
from tests.strategies.pipelines import pipelines
from tests.strategies.windows import unit
from tests.twin.run import inherited

waits = st.sampled_from([0, 1, 2, 3, 5, 7.5, 20])
spilling = st.builds(bm.Buffer, max_records=st.sampled_from([0, 1, 3]), when_full=st.just(bm.SPILL))
of_records = st.builds(bm.Buffer, max_records=st.sampled_from([0, 1, 1, 2, 3]))
of_bytes = st.builds(bm.Buffer, max_records=st.sampled_from([None, 2]), max_bytes=st.sampled_from([0, 9, 20, 40, 80]))
patient = st.one_of(st.just(bm.Buffer()), st.just(bm.Buffer()), spilling)
"""Nothing comes before its time."""
any_buffer = st.one_of(patient, patient, of_records, of_bytes)
SHUTTING = st.builds(bm.Buffer, max_records=st.sampled_from([0, 1, 2, 3]), when_full=st.just(bm.SHUT_DOWN))


def untils(stage: Said, window: bm.WindowOption) -> st.SearchStrategy[bm.UntilWindowCloses | bm.UntilTimeLimit]:
    """Whatever goes with a stage whose windows these are."""
    own = waits.map(lambda wait: wait * unit(window))
    if stage.discards and any(
        isinstance(one, a.Fold) and one.merge is None for one in stage.accumulations.values()
    ):  # what cannot be added up
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
        buffer = bm.Buffer(max_records=buffer.max_records)  # how many bytes an accumulator has is the engine's matter
    if isinstance(chosen, bm.UntilWindowCloses) and not buffer.strict:
        buffer = bm.Buffer()
    return bm.Suppress(chosen, buffer=buffer)


def behind_us(flow: Flow) -> int:
    """How late what comes out of it is at most, where the watermark alone decides."""
    if not isinstance(flow.stage, Suppressed):
        return 0
    until = flow.stage.suppress.until
    if isinstance(until, bm.UntilWindowCloses):
        return said(flow).allowed_lateness.us
    return until.wait.us if until.clock == "event" else 0


def held(
    draw: st.DrawFn,
    flow: Flow,
    some: st.SearchStrategy[bool],
    buffers: st.SearchStrategy[bm.Buffer],
    until: st.SearchStrategy[bm.UntilWindowCloses | bm.UntilTimeLimit] | None,
) -> Flow:
    """The flow with some of its stages suppressed, and lateness enough above them."""
    inputs = [
        attrs.evolve(one, flow=held(draw, one.flow, some, buffers, None)) if isinstance(one, Panes) else one
        for one in flow.inputs
    ]
    behind = max((behind_us(one.flow) for one in inputs if isinstance(one, Panes)), default=0)
    assert isinstance(flow.stage, WindowStage)
    lateness = max(flow.stage.options.allowed_lateness.us, behind)
    stage = WindowStage(attrs.evolve(flow.stage.options, allowed_lateness=Duration(lateness)))
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
        found = attrs.evolve(found, stage=Suppressed(found.stage, suppress))  # type: ignore[arg-type]
    found.check()
    return bm.Pipeline(found)


some_pipelines = st.one_of(pipelines(), pipelines(), chains())
"""Of one source without a name."""
some_merges = st.one_of(merges(), flows())


def until_limit(*clocks: str, least: float = 0) -> st.SearchStrategy[bm.UntilTimeLimit]:
    """A wait of seconds on one of these clocks."""
    return st.builds(bm.UntilTimeLimit, waits.filter(lambda wait: wait >= least), st.sampled_from(clocks))
