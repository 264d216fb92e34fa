"""Law: between two runs all of a suppress may change but its name (semantics.md#law-suppress-restart)."""

from __future__ import annotations

import attrs
from hypothesis import given
from hypothesis import strategies as st

import beamish as bm
from beamish.local import Variation, _Node
from beamish.script.events import as_step
from beamish.script.panes import panes_from_table
from beamish.script.tables import script_rows
from tests.agreement import differences
from tests.said import evolve
from tests.strategies import changes, scripts
from tests.strategies.pipelines import pipelines
from tests.strategies.suppress import any_buffer, suppresses, until_limit
from tests.twin.run import twin_of

ADDING_UP = bm.AccumulationMode.DISCARDING
holding = st.sampled_from([mode for mode in bm.AccumulationMode if mode is not ADDING_UP])
SESSIONS = st.builds(bm.Sessions, st.integers(2, 6))


def in_two_runs(pipeline, otherwise, script, first):
    """What comes in two runs, the second with another suppress; the first is of so many steps."""
    rows = script_rows(pipeline.flow, script.events)
    if not rows.any:
        return []
    tables = iter(rows.tables[None])
    runs = [_Node(one.flow.bind(rows.schemas, shards=1), Variation(round_trip=True)) for one in (pipeline, otherwise)]
    runs[1]._stores = runs[0]._stores
    out = []
    for number, step in enumerate(map(as_step, script.events)):
        run = runs[number >= first]
        table = run.step(step, next(tables) if step.rows else None)
        out += panes_from_table(table, run._operator.gives)
    return out


def of_twin(pipeline, otherwise, script, first):
    twin, out = twin_of(pipeline.flow), []
    for number, event in enumerate(script.events):
        if number == first:
            twin.change(otherwise.flow.stage.suppress)
        out += twin.step(as_step(event))
    return out


@given(st.data())
def test_a_second_run_with_another_suppress_goes_on_with_what_is_held(data):
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
