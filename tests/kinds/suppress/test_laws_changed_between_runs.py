"""Law: between two runs all of a suppress may change but its name (rules/laws.md#law-suppress-restart)."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

import beamish as bm
from beamish.accumulations import Count, Max
from beamish.local import Variation, _Node
from beamish.script import as_step, panes_from_table, script_rows
from beamish.testing import TestStream
from tests.agreement import differences
from tests.declared_options import evolve
from tests.kinds.changes import strategy as changes
from tests.kinds.suppress.strategy import any_buffer, suppresses, until_limit
from tests.own.windows import Absorbed
from tests.strategies import scripts
from tests.strategies.pipelines import pipelines
from tests.twin.ledger import told
from tests.twin.run import twin_of

ADDING_UP = bm.AccumulationMode.DISCARDING
holding = st.sampled_from([mode for mode in bm.AccumulationMode if mode is not ADDING_UP])
SESSIONS = st.builds(bm.Sessions, st.integers(2, 6))


def in_two_runs(pipeline, otherwise, script, first):
    """The output of two runs, the second with another suppress; the first has this many steps."""
    rows = script_rows(pipeline.flow, script.events)
    if not rows.any:
        return []
    tables = iter(rows.tables[None])
    runs = [_Node(one.flow.bind(rows.schemas, shards=1), Variation(round_trip=True)) for one in (pipeline, otherwise)]
    runs[1]._stores = runs[0]._stores
    out = []
    for number, step in enumerate(map(as_step, script.events)):
        run = runs[number >= first]
        table = run.step(step, {None: next(tables)} if step.rows else {})
        out += panes_from_table(table, run._operator.gives)
    return out


def of_twin(pipeline, otherwise, script, first):
    twin, out = twin_of(pipeline.flow), []
    for number, event in enumerate(script.events):
        if number == first:
            twin.change(otherwise.flow.stage.suppress)
        out += told(otherwise.flow if number >= first else pipeline.flow, twin.step(as_step(event)))
    return out


@pytest.mark.of_law("law-suppress-restart")
@given(st.data())
def test_a_second_run_with_another_suppress_continues_with_the_buffer(data):
    kind = data.draw(st.sampled_from(["rows", "rows", "sessions", "changes"]))
    if kind == "changes":
        pipeline = data.draw(changes.changes(until=until_limit("event", "processing")))
        script = data.draw(changes.scripts(pipeline))
        suppress = bm.Suppress(data.draw(until_limit("event", "processing")), buffer=data.draw(any_buffer))
    else:
        plain = data.draw(pipelines(mode=holding) if kind == "rows" else pipelines(mode=holding, window=SESSIONS))
        plain = evolve(plain, retract_merged=None)
        pipeline = plain.then(data.draw(suppresses(plain.flow)))
        suppress = data.draw(suppresses(plain.flow))
        script = data.draw(scripts.scripts(pipeline))
    otherwise = bm.Pipeline(attrs.evolve(pipeline.flow, stage=attrs.evolve(pipeline.flow.stage, suppress=suppress)))
    otherwise.flow.check()
    first = data.draw(st.integers(0, len(script.events)))
    engine, twin = (run(pipeline, otherwise, script, first) for run in (in_two_runs, of_twin))
    found = differences(engine, twin, pipeline)
    assert not found, "\n".join([repr(pipeline), repr(suppress), f"{first} of {script!r}", "- engine, + twin", *found])


def kinds_and_bounds(panes):
    return [(str(pane.kind), pane.window.start.second, pane.window.end.second) for pane in panes]


def with_next_pane(window, trigger):
    source = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).window(window).trigger(trigger)
    return source.accumulating_and_retracting().retract_merged(bm.WITH_NEXT_PANE).allowed_lateness(40)


def test_panes_gathered_before_there_was_a_wait_leave_with_the_merged_pane():
    fires_later = bm.triggers.Repeatedly(bm.triggers.AfterProcessingTime(20))
    sessions = with_next_pane(bm.Sessions(10), fires_later).accumulate(n=Count())
    passes, waits = (sessions.suppress(bm.UntilTimeLimit(wait, clock="processing")) for wait in (0, 5))
    script = (
        TestStream().step([{"ts": 0}], clock=1).step(clock=21).step([{"ts": 5}], clock=22).step(clock=42).step(clock=47)
    )
    came = in_two_runs(passes, waits, script, 3)
    assert kinds_and_bounds(came) == [("PANE", 0, 10), ("RETRACTION", 0, 10), ("PANE", 0, 15)]


def test_retractions_waiting_for_a_pane_are_emitted_at_window_close():
    absorbed = with_next_pane(Absorbed(), bm.triggers.Always()).only_updated_panes().accumulate(most=Max("x"))
    limited, closes = (
        absorbed.suppress(until) for until in (bm.UntilTimeLimit(5, clock="event"), bm.UntilWindowCloses())
    )
    script = TestStream().add([{"ts": 2, "x": 1}]).add([{"ts": 4, "x": 1}]).advance_watermark_to(11)
    script = script.add([{"ts": 10, "x": 1}]).advance_watermark_to(43).advance_watermark_to(44)
    for run in (in_two_runs, of_twin):
        assert kinds_and_bounds(run(limited, closes, script, 4)) == [
            ("PANE", 2, 4),
            ("PANE", 4, 6),
            ("RETRACTION", 4, 6),
        ]
