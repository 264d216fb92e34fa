"""Law: a run that goes on from another pipeline's checkpoint does what semantics.md#restart says of each change (#law-changed-between-runs)."""

from __future__ import annotations

from itertools import chain

import attrs
from hypothesis import assume, given
from hypothesis import strategies as st

import beamish as bm
from beamish.accumulations import Collect, Count, Last, Max, Sum
from beamish.flow import Panes
from beamish.script.events import as_step
from beamish.script.tables import script_rows
from beamish.stages.suppressed import Suppressed
from tests.agreement import differences
from tests.laws.dear import dear
from tests.laws.test_windows_of_rows import counted
from tests.said import said
from tests.strategies import merges
from tests.strategies.chains import LATER, chains
from tests.strategies.changed import changed, checked
from tests.strategies.pipelines import pipelines, retracting
from tests.strategies.scripts import dense_scripts, scripts
from tests.strategies.suppress import suppresses
from tests.strategies.triggers import waiting_triggers
from tests.strategies.windows import windows
from tests.twin.ledger import told
from tests.twin.run import twin_of
from tests.upgrades.carried import in_two_runs

of_scores = st.sampled_from([Count(), Sum("score"), Max("score"), Collect("score"), Last("score")])


def change(twin, then, now):
    """Each stage that is another goes on with what is said now."""
    if isinstance(then.stage, Suppressed):
        twin.change_stage(now)
        return
    if then.stage != now.stage:
        twin.change(now)
    for name, one, other in zip(twin.names, then.inputs, now.inputs, strict=True):
        if isinstance(one, Panes):
            change(twin.before[name], one.flow, other.flow)


def of_twin(then, now, script, first):
    twin, out = twin_of(then.flow.completed), []
    for number, event in enumerate(script.events):
        if number == first:
            change(twin, then.flow.completed, now.flow.completed)
        out += told(now.flow if number >= first else then.flow, twin.step(as_step(event)))
    return out


def agree(then, now, script, first):
    if script_rows(then.flow, script.events).any:
        engine = [*chain(*in_two_runs(then, now, script, first))]
        found = differences(engine, of_twin(then, now, script, first), now)
        lines = [repr(then), repr(now), f"{first} of {script!r}", "- engine, + twin"]
        assert not found, "\n".join([*lines, *found])


def goes_on(data, then, script, **ways):
    agree(then, data.draw(changed(then, **ways)), script, data.draw(st.integers(1, len(script.events))))


@given(st.data())
def test_another_pipeline_goes_on(data):
    then = data.draw(pipelines(asks=data.draw(st.integers(0, 3)) == 3))
    goes_on(data, then, data.draw(scripts(then)), ids=st.sampled_from([("score",), ("name", "score")]))


def goes_on_in_a_long_script(data, **what):
    """Of one key, in which windows wait for something as the run ends."""
    then = data.draw(
        pipelines(
            watermark=st.just(bm.BoundedOutOfOrderness(0)),
            keys=st.just(()),
            trigger=waiting_triggers,
            lateness=st.sampled_from([0, 5, 40]),
            accumulation=of_scores,
            **what,
        )
    )
    ways = {"trigger": waiting_triggers, "accumulation": of_scores, "ids": st.just(("score",))}
    goes_on(data, then, data.draw(dense_scripts), **ways)


@dear
@given(st.data())
def test_another_pipeline_goes_on_in_long_scripts(data):
    goes_on_in_a_long_script(data, window=windows.filter(lambda option: not isinstance(option, bm.CalendarWindows)))


@dear
@given(st.data())
def test_another_pipeline_goes_on_with_sessions(data):
    goes_on_in_a_long_script(data, window=st.builds(bm.Sessions, st.integers(2, 6)), mode=st.just(retracting))


@dear
@given(st.data())
def test_another_pipeline_goes_on_with_windows_of_rows(data):
    then = data.draw(counted())
    goes_on(data, then, data.draw(scripts(then)), ids=st.just(("score",)))


@dear
@given(st.data())
def test_another_pipeline_goes_on_over_panes(data):
    """The last of two stages says other things, or the first one does."""
    then = data.draw(chains())
    script = data.draw(scripts(then))
    if data.draw(st.booleans()):
        now = data.draw(changed(then, accumulation=LATER))
    else:
        (panes,) = then.flow.inputs
        first = data.draw(changed(bm.Pipeline(panes.flow)).filter(lambda one: not said(one).with_dropped))
        now = bm.Pipeline(attrs.evolve(then.flow, inputs=(attrs.evolve(panes, flow=first.flow),)))
        assume(checked(now))
    agree(then, now, script, data.draw(st.integers(1, len(script.events))))


@dear
@given(st.data())
def test_another_pipeline_goes_on_with_a_merge(data):
    then = data.draw(merges.merges())
    goes_on(data, then, data.draw(merges.scripts(then)))


@dear
@given(st.data())
def test_another_pipeline_goes_on_under_a_suppress(data):
    """With what is held of the one before. (Buffers are per shard, so there are none.)"""
    plain = data.draw(pipelines())
    then = plain.then(data.draw(suppresses(plain.flow, buffers=st.just(bm.Buffer()))))
    goes_on(data, then, data.draw(scripts(then)))
