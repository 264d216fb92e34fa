"""Laws of suppress and changes: the engine is the twin; held updates come to what those of the stage come to.

See rules/laws.md#law-suppress-identity and those after it.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import beamish as bm
from beamish.accumulations import Collect, Count, Sum
from beamish.local import Variation, run
from tests.agreement import differences
from tests.cost import cost
from tests.laws.test_twin import Absorbed
from tests.strategies import changes, merges, scripts
from tests.strategies.flows import flows, tree_scripts
from tests.strategies.pipelines import pipelines
from tests.strategies.suppress import (
    SHUTTING,
    any_buffer,
    busy,
    busy_scripts,
    patient,
    some_merges,
    some_pipelines,
    suppressed,
)
from tests.strategies.triggers import usual_triggers, waiting_triggers
from tests.twin import run as run_twin

some_buffers = st.one_of(any_buffer, any_buffer, SHUTTING)
FULL = "the buffer is full"


def outcome(panes_of):
    """The panes, or that the buffer is full."""
    try:
        return panes_of()
    except bm.BufferFullError:
        return FULL


def are_same(one, other, pipeline, *words):
    said = "\n".join(map(str, [repr(pipeline), *words]))
    if FULL in (one, other):
        assert one == other, said
        return
    found = differences(one, other, pipeline)
    assert not found, "\n".join([said, *found])


def agree(pipeline, script):
    engine = outcome(lambda: pipeline.run(script))
    twin = outcome(lambda: run_twin(pipeline, script.events))
    are_same(engine, twin, pipeline, repr(script), "- engine, + twin")


@pytest.mark.of_law("law-twin")
@given(st.data())
def test_engine_and_twin_give_the_same_panes_of_suppressed_stages(data):
    pipeline = data.draw(suppressed(some_pipelines, buffers=some_buffers))
    agree(pipeline, data.draw(scripts.scripts(pipeline)))


sessions = pipelines(
    window=st.one_of(
        st.builds(bm.Sessions, st.integers(2, 6)),
        st.builds(bm.Sessions, st.integers(2, 6)),
        st.sampled_from([bm.FixedWindows(5), bm.SlidingWindows(6, 3), Absorbed()]),
    ),
    watermark=st.just(bm.BoundedOutOfOrderness(0)),
    trigger=st.one_of(waiting_triggers, usual_triggers),
    lateness=st.sampled_from([0, 5, 40]),
    keys=st.just(()),
    accumulation=st.sampled_from([Count(), Sum("score"), Collect("score")]),
)


@pytest.mark.of_law("law-twin")
@cost(2)
@given(st.data())
def test_engine_and_twin_give_the_same_panes_of_suppressed_sessions(data):
    """Long scripts of one key: sessions that merge while they are held, and other windows."""
    agree(data.draw(suppressed(sessions, buffers=some_buffers)), data.draw(scripts.dense_scripts))


@pytest.mark.of_law("law-twin")
@given(st.data())
def test_engine_and_twin_give_the_same_panes_of_suppressed_stages_that_fire_again_and_again(data):
    """Waits that end while windows merge, are late and are taken back, several times in a step."""
    agree(data.draw(busy(some_buffers)), data.draw(busy_scripts))


@pytest.mark.of_law("law-twin")
@given(st.data())
def test_engine_and_twin_give_the_same_panes_of_suppressed_merges_and_trees(data):
    pipeline = data.draw(suppressed(some_merges, root=data.draw(st.booleans()), buffers=some_buffers))
    agree(pipeline, data.draw(st.one_of(merges.scripts(pipeline), tree_scripts(pipeline))))


@pytest.mark.of_law("law-twin")
@given(st.data())
def test_engine_and_twin_give_the_same_rows_of_changes(data):
    pipeline = data.draw(changes.changes(buffers=some_buffers))
    agree(pipeline, data.draw(changes.scripts(pipeline)))


@pytest.mark.of_law("law-suppress-identity")
@cost(2)
@given(st.data())
def test_identity_a_zero_wait_changes_nothing(data):
    plain = data.draw(st.one_of(pipelines(), merges.merges(), flows()))
    script = data.draw(script_of(plain))
    clock = data.draw(st.sampled_from(["event", "processing"]))
    through = plain.suppress(bm.UntilTimeLimit(0, clock=clock), buffer=data.draw(any_buffer))
    are_same(plain.run(script), through.run(script), plain, repr(script))


def script_of(pipeline):
    return merges.scripts(pipeline) if len(pipeline.flow.sources) > 1 else scripts.scripts(pipeline)


def drawn(data, buffers):
    """A pipeline with something suppressed in it, or of changes, and a script."""
    kind = data.draw(st.sampled_from(["rows", "rows", "sessions", "merge", "changes"]))
    if kind == "changes":
        pipeline = data.draw(changes.changes(buffers=buffers))
        return pipeline, data.draw(changes.scripts(pipeline))
    if kind == "sessions":
        return data.draw(suppressed(sessions, buffers=buffers)), data.draw(scripts.dense_scripts)
    pipeline = data.draw(suppressed(some_pipelines if kind == "rows" else some_merges, buffers=buffers))
    return pipeline, data.draw(script_of(pipeline))


@pytest.mark.of_law("law-suppress-state")
@given(st.data())
def test_packing_and_stored_bytes_change_nothing_in_what_is_held(data):
    pipeline, script = drawn(data, some_buffers)
    how = Variation(packs=data.draw(st.integers(1, 3)), round_trip=True)
    one, other = outcome(lambda: pipeline.run(script)), outcome(lambda: run(pipeline.flow, script.events, how))
    are_same(one, other, pipeline, repr(script))


@pytest.mark.of_law("law-suppress-state")
@given(st.data())
def test_without_limits_the_number_of_shards_changes_nothing_in_what_is_held(data):
    pipeline, script = drawn(data, patient)
    how = Variation(shards=data.draw(st.integers(2, 4)), packs=2, round_trip=data.draw(st.booleans()))
    are_same(pipeline.run(script), run(pipeline.flow, script.events, how), pipeline, repr(script))


UNTIL = [bm.UntilWindowCloses(), bm.UntilTimeLimit(2, clock="event"), bm.UntilTimeLimit(3, clock="processing")]


@pytest.mark.of_law("law-suppress-state")
@pytest.mark.parametrize("until", UNTIL, ids=lambda until: until.describe())
@given(data=st.data())
def test_spill_with_any_limits_is_as_without_limits(until, data):
    plain = data.draw(st.one_of(pipelines(accumulation=st.just(Count())), sessions))
    if until == UNTIL[1] and isinstance(plain.flow.stage.options.window, bm.GlobalWindow):
        until = UNTIL[2]
    script = data.draw(scripts.scripts(plain))
    small = bm.Buffer(
        max_records=data.draw(st.integers(0, 2)),
        max_bytes=data.draw(st.sampled_from([None, 0, 30])),
        when_full=bm.SPILL,
    )
    held, spilled = plain.suppress(until), plain.suppress(until, buffer=small)
    are_same(held.run(script), run(spilled.flow, script.events, Variation(round_trip=True)), plain, repr(script))


@pytest.mark.of_law("law-suppress-limits")
@pytest.mark.parametrize("until", UNTIL, ids=lambda until: until.describe())
@given(data=st.data())
def test_shut_down_gives_what_spill_gives_or_an_error(until, data):
    plain = data.draw(sessions)
    script = data.draw(scripts.scripts(plain))
    limited = plain.suppress(until, buffer=data.draw(SHUTTING))
    came = outcome(lambda: limited.run(script))
    if came != FULL:
        are_same(came, plain.suppress(until).run(script), plain, repr(script))
