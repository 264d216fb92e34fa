"""Late rows judged by the session that they join (rules/windows.md#late-rows-of-sessions)."""

import itertools
from collections import Counter

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

import beamish as bm
from beamish import DropReason
from beamish.accumulations import Collect
from beamish.script import Bundle, as_step
from beamish.testing import TestStream
from tests.cost import cost
from tests.declared_options import evolve, said
from tests.strategies.pipelines import pipelines
from tests.strategies.scripts import dense_scripts

OWN, BY_SESSION = bm.Sessions(10), bm.Sessions(10, late_rows="session")


def pipeline(window=BY_SESSION):
    rows = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("k").window(window)
    return rows.accumulate(rows=Collect("ts", sorted_by="ts")).with_dropped()


def rows(*times, key="a"):
    return [{"ts": time, "k": key} for time in times]


def taken(script, window=BY_SESSION):
    """The rows of each session at the end, and the dropped ones."""
    panes = pipeline(window).run(script.advance_watermark_to_infinity())
    gone = [pane.values["ts"] for pane in panes if pane.reason is DropReason.EXPIRED]
    return [pane.values["rows"] for pane in panes if pane.reason is None], gone


@pytest.mark.parametrize(("window", "sessions", "gone"), [(OWN, [[8]], [5]), (BY_SESSION, [[5, 8]], [])])
def test_a_late_row_of_an_open_session(window, sessions, gone):
    script = TestStream().add(rows(8)).advance_watermark_to(15).add(rows(5))
    assert taken(script, window) == (sessions, gone)


def test_it_may_join_through_other_late_rows_of_its_bundle():
    script = TestStream().add(rows(20)).advance_watermark_to(26)
    assert taken(script.add(rows(3, 12))) == ([[3, 12, 20]], [])
    assert taken(script.add(rows(3)).add(rows(12))) == ([[12, 20]], [3])


def test_a_session_of_another_key_or_an_expired_one_saves_no_row():
    script = TestStream().add(rows(8)).add(rows(8, key="b")).advance_watermark_to(18)
    assert taken(script.add(rows(8)).add(rows(12, key="c")).add(rows(5, key="c"))) == ([[8], [8], [5, 12]], [8])


def test_a_closed_session_saves_no_row():
    once = pipeline().trigger(bm.triggers.AfterCount(1), allow_data_loss=True).discarding()
    panes = once.run(TestStream().add(rows(8)).advance_watermark_to(15).add(rows(5)))
    assert [pane.reason for pane in panes] == [None, DropReason.EXPIRED]


def test_each_windowing_judges_by_itself():
    both = pipeline({"own": OWN, "session": BY_SESSION})
    panes = both.run(TestStream().add(rows(8)).advance_watermark_to(15).add(rows(5)).advance_watermark_to(99))
    kept = {pane.key["windowing"]: pane.values.get("rows") for pane in panes if pane.reason is None}
    assert kept == {"own": [8], "session": [5, 8]}


def test_a_later_stage_keeps_the_windows():
    then = evolve(pipeline(), with_dropped=False).then(bm.Pipeline().key_by().accumulate(n=Collect("rows")))
    script = TestStream().add(rows(8)).advance_watermark_to(15).add(rows(5)).advance_watermark_to(99)
    (pane,) = then.run(script)
    assert pane.values == {"n": [[5, 8]]}


def test_stored_windows_do_not_depend_on_it():
    script = TestStream().add(rows(8, 40)).advance_watermark_to(15)
    assert [len(pipeline(window).state(script).windows()) for window in (OWN, BY_SESSION)] == [2, 2]
    script = script.add(rows(-9)).advance_watermark_to(18)
    assert [len(pipeline(window).state(script).windows()) for window in (OWN, BY_SESSION)] == [1, 1]


drawn = pipelines(
    window=st.builds(lambda gap: bm.Sessions(gap, late_rows="session"), st.integers(2, 6)),
    watermark=st.just(bm.BoundedOutOfOrderness(0)),
    keys=st.just(()),
    lateness=st.sampled_from([0, 0, 1, 3]),
    accumulation=st.just(Collect("ts")),
    with_dropped=st.just(True),  # noqa: FBT003
)


def expired(panes):
    return Counter(repr(pane.values) for pane in panes if pane.reason is DropReason.EXPIRED)


@cost(2.5)
@given(drawn, dense_scripts)
def test_a_row_expired_by_its_session_is_expired_by_its_own_window_too(pipeline, script):
    own = evolve(pipeline, window=bm.Sessions(said(pipeline).window.gap))
    assert expired(pipeline.run(script)) <= expired(own.run(script))


@cost(2.5)
@given(drawn, dense_scripts)
def test_without_late_rows_both_meanings_agree(pipeline, script):
    events = [
        attrs.evolve(event, watermark_us=None) if hasattr(event, "watermark_us") else event for event in script.events
    ]
    early = TestStream(tuple(event for event in events if as_step(event).watermark_us is None))
    own = evolve(pipeline, window=bm.Sessions(said(pipeline).window.gap))
    early = early.advance_watermark_to_infinity()
    assert pipeline.run(early) == own.run(early)


@cost(2.5)
@given(drawn, dense_scripts)
def test_rows_that_come_apart_expire_no_less(pipeline, script):
    """A trigger that finishes a session also changes what later rows may join."""
    whole = evolve(pipeline, trigger=bm.triggers.Default())
    parts = [
        [attrs.evolve(event, rows=(row,)) for row in event.rows] if isinstance(event, Bundle) else [event]
        for event in script.events
    ]
    apart = TestStream(tuple(itertools.chain.from_iterable(parts)))
    assert expired(whole.run(script)) <= expired(whole.run(apart))
