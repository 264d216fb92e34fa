"""Law: no pipeline that is accepted drops all rows of a script that are on time (rules/laws.md#law-something-comes)."""

from __future__ import annotations

import random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import beamish as bm
from beamish import PaneKind, PipelineError
from beamish import accumulations as a
from beamish.testing import TestStream
from beamish.triggers import AfterWatermark, Always, Default, Never, Trigger
from tests.cost import cost
from tests.declared_options import said
from tests.strategies.windows import fixed_windows, global_windows, sessions, sliding_windows

without_gaps = sliding_windows.filter(lambda window: window.period <= window.size)
any_windows = st.one_of(fixed_windows, fixed_windows, without_gaps, sessions, global_windows)
triggers: st.SearchStrategy[Trigger] = st.sampled_from(
    [Default(), Never(), Always(), AfterWatermark(early=Always()), AfterWatermark(late=Always())]
)
seconds = st.sampled_from([0, 0, 1, 5, 20])
limits = st.builds(bm.UntilTimeLimit, st.sampled_from([2, 5]), st.just("event"))


def source(name: str) -> bm.Pipeline:
    return bm.Pipeline().event_time(f"{name}_at", bm.BoundedOutOfOrderness(0)).key_by(f"{name}_team")


def windowed(draw: st.DrawFn, pipeline: bm.Pipeline, *, inherits: bool) -> bm.Pipeline:
    """The pipeline in windows, or in those of the panes that it takes.

    How late panes are that have the times of their rows depends on these, but in the global window, which fires as rows come.
    """
    window = draw(st.none() | any_windows if inherits else any_windows)
    mode = draw(st.sampled_from(bm.AccumulationMode))
    combiners = (
        list(bm.TimestampCombiner) if isinstance(window, bm.GlobalWindow) else [bm.TimestampCombiner.END_OF_WINDOW]
    )
    pipeline = pipeline if window is None else pipeline.window(window)
    return (
        pipeline.trigger(draw(triggers), allow_data_loss=True)
        .allowed_lateness(draw(seconds))
        .accumulation_mode(mode)
        .timestamp_combiner(draw(st.sampled_from(combiners)))
    )


def held(draw: st.DrawFn, pipeline: bm.Pipeline) -> bm.Pipeline:
    """The pipeline, some of whose updates are held back."""
    until = draw(st.one_of(st.none(), st.none(), st.just(bm.UntilWindowCloses()), limits))
    return pipeline if until is None else pipeline.suppress(until)


def later(draw: st.DrawFn, before: bm.Pipeline) -> bm.Pipeline:
    """A further stage of any kind over it."""
    keys = draw(st.sampled_from([(), said(before).keys[:1]]))
    by = bm.Pipeline().key_by(*keys)
    kind = draw(st.sampled_from(["windows", "windows", "windows", "versions", "once"]))
    if kind == "versions":
        return before.then(by).versions(draw(st.sampled_from([2, 20])), values=["n"])
    if kind == "once":
        return before.then(by.deduplicate("n", within=draw(st.sampled_from([1, 8, 100]))))
    return held(draw, before.then(windowed(draw, by, inherits=True).accumulate(n=a.Count())))


@st.composite
def pipelines(draw: st.DrawFn) -> bm.Pipeline:
    """Up to four stages over one source, or over two that are merged; such as a stream accepts."""
    first = held(draw, windowed(draw, source("orders"), inherits=False).accumulate(n=a.Count()))
    if draw(st.booleans()):
        other = held(draw, windowed(draw, source("clicks"), inherits=False).accumulate(n=a.Count()))
        sides = {"orders": first, "clicks": draw(st.sampled_from([source("clicks"), other]))}
        first = windowed(draw, bm.merge(**sides), inherits=True).accumulate(n=a.Count())
    for _ in range(draw(st.sampled_from([0, 1, 1, 2]))):
        first = later(draw, first)
    for flow in first.flow.completed.flows:
        flow.stage.check(flow.takes)
        flow.stage.check_stream(flow.takes)
    return first


@st.composite
def accepted(draw: st.DrawFn) -> bm.Pipeline:
    try:
        return draw(pipelines())
    except PipelineError:
        assume(False)  # noqa: FBT003
        raise


def script_of(number: int, pipeline: bm.Pipeline) -> TestStream:
    """Rows at the watermark or after it, a few times, and then the end of time."""
    chance, script, now = random.Random(number), TestStream(), 0
    for _ in range(4):
        for source in pipeline.flow.sources:
            name = source.name or "orders"
            times = [now + chance.choice([0, 1, 2, 3.5]) for _ in range(3)]
            script = script.add(
                [{f"{name}_at": at, f"{name}_team": chance.choice("ab")} for at in times], input=source.name
            )
        now += chance.choice([1, 4, 9])
        script = script.advance_watermark_to(now).advance_processing_time_to(now)
    return script.advance_watermark_to(500).advance_watermark_to_infinity()


@pytest.mark.of_law("law-something-comes")
@cost(2)
@given(accepted(), st.integers(0, 2**20))
def test_accepted_pipelines_emit_something(pipeline, number):
    """At least a pane, or the pipeline is refused before a row comes."""
    panes = pipeline.run(script_of(number, pipeline))
    assert any(pane.kind is PaneKind.PANE for pane in panes), repr(pipeline)


@pytest.mark.of_law("law-something-comes")
@given(st.one_of(fixed_windows, sliding_windows), sliding_windows)
def test_sessions_are_rejected_exactly_if_their_gap_spans_all_window_ends(first, gaps):
    ends_us = [first.offset.us + first.size.us + number * first.period_us for number in range(600)]
    held = any((end_us - 1 - gaps.offset.us) % gaps.period.us < gaps.size.us for end_us in ends_us)
    before = source("orders").window(first).accumulate(n=a.Count())
    try:
        before.then(bm.Pipeline().window(gaps).accumulate(n=a.Count()))
    except PipelineError as error:
        assert not held, error  # noqa: PT017 - it is refused or not
    else:
        assert held
