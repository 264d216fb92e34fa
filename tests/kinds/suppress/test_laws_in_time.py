"""Laws of suppress: what is held leaves when it is due, and there is never more of it than may be.

See rules/laws.md#law-suppress-in-time, #law-suppress-limits. The due step is found here from what the plain stage gives.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import beamish as bm
from beamish import PaneKind
from beamish.instants import END_OF_TIME_US, instant_us
from beamish.script import as_step
from tests.declared_options import said
from tests.kinds.suppress.strategy import of_bytes, of_records, patient, until_limit
from tests.kinds.suppress.twin_held import width
from tests.laws.batches import key_name
from tests.strategies.accumulations import exact
from tests.strategies.pipelines import pipelines
from tests.strategies.scripts import scripts
from tests.strategies.windows import fixed_windows, sliding_windows

plain_stages = pipelines(
    window=st.one_of(fixed_windows, sliding_windows),
    watermark=st.just(bm.BoundedOutOfOrderness(0)),
    accumulation=exact,
    with_dropped=st.just(False),  # noqa: FBT003
)
limits = until_limit("event", "processing", least=1)
untils = st.one_of(st.just(bm.UntilWindowCloses()), limits)


def clocks(script):
    """The watermark and the clock that each step ends with."""
    watermark, clock = -float("inf"), 0
    for step in map(as_step, script.events):
        watermark = watermark if step.watermark_us is None else step.watermark_us
        clock = clock if step.clock_us is None else step.clock_us
        yield watermark, clock


def panes_of_steps(pipeline, script):
    """The panes of each step, each with its slot."""
    for _, panes in script.trace(pipeline):
        yield [((key_name(pipeline, pane.key), pane.window), pane) for pane in panes if pane.kind is PaneKind.PANE]


def is_due(pipeline, until, since, pane, now):
    watermark, clock = now
    if watermark == END_OF_TIME_US:
        return True
    if isinstance(until, bm.UntilTimeLimit):
        return since + until.wait.us <= (watermark if until.clock == "event" else clock)
    return pane.is_last or watermark >= instant_us("end", pane.window.end) + said(pipeline).allowed_lateness.us


@pytest.mark.of_law("law-suppress-in-time")
@given(st.data())
def test_every_slot_is_emitted_exactly_in_its_due_step(data):
    plain, until = data.draw(plain_stages), data.draw(untils)
    script = data.draw(scripts(plain))
    held = plain.suppress(until, buffer=data.draw(patient))
    sinces, newest = {}, {}
    steps = zip(panes_of_steps(plain, script), panes_of_steps(held, script), clocks(script), strict=True)
    for number, (given_, came, now) in enumerate(steps):
        for slot, pane in given_:
            by_clock = isinstance(until, bm.UntilTimeLimit) and until.clock == "processing"
            sinces.setdefault(slot, now[1] if by_clock else instant_us("timestamp", pane.timestamp))
            newest[slot] = pane
        due = {slot: pane.index for slot, pane in newest.items() if is_due(plain, until, sinces[slot], pane, now)}
        assert {slot: pane.index for slot, pane in came} == due, f"{held!r}\n{script!r}\nstep {number}"
        for slot in due:
            del newest[slot], sinces[slot]


@pytest.mark.of_law("law-suppress-limits")
@given(st.data())
def test_limits_hold_after_each_step(data):
    plain, buffer = data.draw(plain_stages), data.draw(st.one_of(of_records, of_bytes))
    script = data.draw(scripts(plain))
    if said(plain).retracts or said(plain).discards:  # retractions and accumulators count too
        buffer = bm.Buffer(max_records=2 if buffer.max_records is None else buffer.max_records)
    held = plain.suppress(data.draw(limits), buffer=buffer)
    newest = {}
    for given_, came in zip(panes_of_steps(plain, script), panes_of_steps(held, script), strict=True):
        newest |= dict(given_)
        for slot, pane in came:
            assert newest.pop(slot).index == pane.index
        words = f"{held!r}\n{script!r}\n{newest}"
        assert buffer.max_records is None or len(newest) <= buffer.max_records, words
        bytes_held = sum(width(dict(pane.key)) + width(dict(pane.values)) for pane in newest.values())
        assert buffer.max_bytes is None or bytes_held <= buffer.max_bytes, words
