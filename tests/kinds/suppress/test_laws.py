"""Laws of suppress: held updates come to what those of the stage come to.

See rules/laws.md#law-suppress-identity and those after it.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import beamish as bm
from beamish.accumulations import Count
from beamish.local import Variation, run
from beamish.testing import TestStream
from tests.agreement import FULL, check_same, outcome
from tests.cost import cost
from tests.kinds.suppress.strategy import SHUTTING, any_buffer, sessions_of_one_key
from tests.lines import line
from tests.strategies import merges, scripts
from tests.strategies.flows import flows
from tests.strategies.pipelines import pipelines


@pytest.mark.of_law("law-suppress-identity")
@cost(2)
@given(st.data())
def test_identity_a_zero_wait_changes_nothing(data):
    plain = data.draw(st.one_of(pipelines(), merges.merges(), flows()))
    script = data.draw(script_of(plain))
    clock = data.draw(st.sampled_from(["event", "processing"]))
    through = plain.suppress(bm.UntilTimeLimit(0, clock=clock), buffer=data.draw(any_buffer))
    expected, given = ([(line(pane), pane.sequence) for pane in one.run(script)] for one in (plain, through))
    assert given == expected, "\n".join([repr(plain), repr(script)])


@pytest.mark.of_law("law-suppress-identity")
@pytest.mark.parametrize("mode", bm.AccumulationMode)
def test_identity_keeps_the_place_of_dropped_rows(mode):
    plain = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("user").window(bm.FixedWindows(10))
    plain = plain.accumulation_mode(mode).accumulate(n=Count()).with_dropped()
    script = TestStream().add([{"ts": 1, "user": "a"}, {"ts": 11, "user": "a"}])
    script = script.step([{"ts": 3, "user": "a"}, {"ts": 12, "user": "a"}], watermark=10)
    script = script.step([{"ts": 13, "user": "a"}, {"ts": 23, "user": "a"}], watermark=20)
    kinds = ["PANE", "DROPPED", "PANE", "DROPPED"]
    for until in (bm.UntilTimeLimit(0, clock="event"), bm.UntilTimeLimit(0, clock="processing")):
        for pipeline in (plain, plain.suppress(until)):
            panes = pipeline.run(script)
            assert [(str(pane.kind), pane.values.get("n")) for pane in panes] == list(
                zip(kinds, [1, None, 2, None], strict=True)
            )


def script_of(pipeline):
    return merges.scripts(pipeline) if len(pipeline.flow.sources) > 1 else scripts.scripts(pipeline)


UNTIL = [bm.UntilWindowCloses(), bm.UntilTimeLimit(2, clock="event"), bm.UntilTimeLimit(3, clock="processing")]


@pytest.mark.of_law("law-suppress-state")
@pytest.mark.parametrize("until", UNTIL, ids=lambda until: until.describe())
@given(data=st.data())
def test_spill_with_any_limits_is_as_without_limits(until, data):
    plain = data.draw(st.one_of(pipelines(accumulation=st.just(Count())), sessions_of_one_key))
    if until == UNTIL[1] and isinstance(plain.flow.stage.options.window, bm.GlobalWindow):
        until = UNTIL[2]
    script = data.draw(scripts.scripts(plain))
    small = bm.Buffer(
        max_records=data.draw(st.integers(0, 2)),
        max_bytes=data.draw(st.sampled_from([None, 0, 30])),
        when_full=bm.SPILL,
    )
    held, spilled = plain.suppress(until), plain.suppress(until, buffer=small)
    check_same(held.run(script), run(spilled.flow, script.events, Variation(round_trip=True)), plain, repr(script))


@pytest.mark.of_law("law-suppress-limits")
@pytest.mark.parametrize("until", UNTIL, ids=lambda until: until.describe())
@given(data=st.data())
def test_shut_down_gives_the_output_of_spill_or_an_error(until, data):
    plain = data.draw(sessions_of_one_key)
    script = data.draw(scripts.scripts(plain))
    limited = plain.suppress(until, buffer=data.draw(SHUTTING))
    came = outcome(lambda: limited.run(script))
    if came != FULL:
        check_same(came, plain.suppress(until).run(script), plain, repr(script))
