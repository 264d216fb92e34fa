"""The laws at the head of triggers/trigger.py, over drawn triggers in any nesting and what has happened to their windows."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from beamish.engine.windowing.trigger_tree import TriggerMerge, TriggerNow, TriggerState, new_columns, trigger_columns
from beamish.triggers import (
    AfterAll,
    AfterAny,
    AfterCount,
    AfterProcessingTime,
    Always,
    Default,
    Repeatedly,
)
from tests.strategies import EveryOtherBundle, S, leaves, nested_triggers

WINDOWS = 5
ENDS_US = np.arange(1, WINDOWS + 1) * 2 * S
some_windows = st.lists(st.integers(0, WINDOWS - 1), unique=True).map(lambda at: np.array(sorted(at), dtype=np.intp))
seconds = st.integers(0, 3).map(lambda n: n * S)
steps = st.lists(st.tuples(seconds, seconds, some_windows), max_size=6)


def windows(trigger):
    """The columns of a trigger in windows that are new."""
    declared = dict(trigger_columns(trigger)) | {"start_us": ("int64", 0), "asks_at_end": ("bool", False)}
    return new_columns(declared, WINDOWS) | {"end_us": ENDS_US}


def ask(trigger, columns, at, now):
    """Fires the windows that are ready; gives them."""
    state = TriggerState(trigger, columns)
    at = at[~state.finished[at]]
    fired = at[trigger.should_fire_columns(state, at, now)]
    trigger.on_fire_columns(state, fired, now)
    return fired


def lived(trigger, steps, *, merging=True):
    """The columns of a trigger after some steps, each so far on the watermark and the clock, and rows for some windows."""
    columns, watermark_us, clock_us = windows(trigger), 0, 0
    now = TriggerNow(columns, watermark_us, clock_us, merging)
    for watermark, clock, at in steps:
        watermark_us, clock_us = watermark_us + watermark, clock_us + clock
        now = TriggerNow(columns, watermark_us, clock_us, merging)
        state = TriggerState(trigger, columns)
        open_ = at[~state.finished[at]]
        trigger.on_rows_columns(state, open_, np.arange(len(open_)) + 1, now)
        ask(trigger, columns, open_, now)
    return columns, now


def copied(columns):
    return {name: column.copy() for name, column in columns.items()}


def content(columns, at=slice(None)):
    return {name: column[at].tolist() for name, column in columns.items()}


@given(nested_triggers(), steps, st.booleans())
def test_should_fire_changes_nothing_and_depends_on_each_window_alone(trigger, steps, merging):
    columns, now = lived(trigger, steps, merging=merging)
    before, at_end = copied(columns), now.at_end.copy()
    state, at = TriggerState(trigger, columns), np.arange(WINDOWS)
    answers = trigger.should_fire_columns(state, at, now).tolist()
    assert content(columns) == content(before)
    assert now.at_end.tolist() == at_end.tolist()
    assert trigger.should_fire_columns(state, at[::-1], now).tolist() == answers[::-1]
    assert [trigger.should_fire_columns(state, at[i : i + 1], now).tolist() for i in at] == [
        [answer] for answer in answers
    ]


# Their docs say of no others that they keep nothing of what was before the firing.
forgetful_leaves = st.one_of(
    st.builds(AfterCount, st.integers(1, 3)),
    st.builds(AfterProcessingTime, st.integers(0, 3)),
    st.just(Always()),
    st.just(Default()),
    st.just(EveryOtherBundle()),
)
forgetful = st.recursive(
    forgetful_leaves,
    lambda inner: st.one_of(
        st.builds(Repeatedly, inner),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: AfterAny(*parts)),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: AfterAll(*parts)),
    ),
    max_leaves=4,
)


@given(forgetful, steps)
def test_after_on_fire_a_trigger_is_finished_or_waits_as_if_it_had_just_begun(trigger, steps):
    columns, now = lived(trigger, steps)
    fired = ask(trigger, columns, np.arange(WINDOWS), now)
    waits = fired[~columns["trigger/finished"][fired]]
    new = windows(trigger)
    trigger_names = [name for name, _ in trigger_columns(trigger)]
    assert {name: _created(columns[name][waits]) for name in trigger_names} == {
        name: _created(new[name][waits]) for name in trigger_names
    }


def _created(column):
    """A user's state that was never touched is as create() gives it."""
    return [(0,) if cell is None else cell for cell in column.tolist()]


@given(st.one_of(leaves, nested_triggers()), steps, st.permutations(range(WINDOWS - 2)))
def test_on_merge_does_not_depend_on_the_order_of_its_parts(trigger, steps, order):
    columns, _ = lived(trigger, [(watermark, clock, at[at < WINDOWS - 2]) for watermark, clock, at in steps])
    results = []
    for part in (list(range(WINDOWS - 2)), order):
        merged = copied(columns)
        now = TriggerNow(merged, 3 * S, 3 * S, merging=True)
        into = np.array([WINDOWS - 1], dtype=np.intp)
        m = TriggerMerge(np.array(part, dtype=np.intp), np.zeros(len(part), dtype=np.intp), into)
        trigger.on_merge_columns(TriggerState(trigger, merged), m, now)
        results.append(content(merged, into))
    assert results[0] == results[1]


def _is_built_in(trigger):
    return trigger.columns.keys() != {"state"} and all(map(_is_built_in, trigger.parts))


@given(nested_triggers().filter(_is_built_in), st.integers(0, 12).map(lambda n: n * S))
def test_on_merge_of_no_parts_gives_a_new_state(trigger, watermark_us):
    """A user's trigger is not asked: its ``on_merge`` takes at least one state."""
    columns = windows(trigger)
    now = TriggerNow(columns, watermark_us, 3 * S, merging=True)
    none, into = np.empty(0, dtype=np.intp), np.array([WINDOWS - 1], dtype=np.intp)
    trigger.on_merge_columns(TriggerState(trigger, columns), TriggerMerge(none, none, into), now)
    assert content(columns) == content(windows(trigger))
