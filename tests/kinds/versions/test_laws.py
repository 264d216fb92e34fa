"""Laws of tables and their versions (rules/tables.md#versions): live versions are those of a batch."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

import beamish as bm
from beamish import DropReason, PaneKind
from beamish.instants import instant, instant_us
from beamish.kinds.versions.options import VALID_FROM, VALID_TO
from beamish.script import as_step
from beamish.testing import TestStream
from tests.agreement import close
from tests.cost import cost
from tests.declared_options import said
from tests.kinds.versions.batch import (
    Change,
    declaring,
    dropped_ids,
    in_a_batch,
    is_final,
    key_name,
    live,
    numbered,
    ordered_by_id,
    rows_of,
    versions_of_batch,
)
from tests.kinds.versions.beginning import begins_as_with_a_first_bundle
from tests.kinds.versions.strategy import Drawing, as_of_joins, no, scripts, simple, versions, yes
from tests.kinds.versions.twin import name_of
from tests.twin.run import twin_of

UNLISTED = Drawing(with_dropped=no)
LISTED = Drawing(policy=simple, with_dropped=yes)
PATIENT = Drawing(policy=simple, history=st.just(10**6), whole=yes, with_dropped=no)


def spans_of(panes, keys):
    """The versions of each key, in order: validity interval and value."""
    found = {}
    for pane in panes:
        values = dict(pane.values)
        start, end = values.pop(VALID_FROM), values.pop(VALID_TO)
        span = instant_us("from", start), None if end is None else instant_us("to", end), values
        found.setdefault(key_name(pane.key, keys), []).append(span)
    return {key: sorted(spans, key=lambda span: span[0]) for key, spans in found.items()}


@pytest.mark.of_law("law-versions")
@given(st.data())
def test_live_versions_of_a_key_never_overlap(data):
    pipeline = data.draw(versions(of=UNLISTED))
    script, came = data.draw(scripts(pipeline)), []
    for event, panes in script.trace(pipeline):
        came += panes
        for spans in spans_of(live(came), said(pipeline).keys).values():
            for (_, end, _), (start, _, _) in pairwise(spans):
                assert end is not None, (event, spans)
                assert end <= start, (event, spans)


@pytest.mark.of_law("law-versions")
@given(st.data())
def test_finally_the_live_versions_equal_a_batch(data):
    """Over the changes that were not dropped; no two are equal, or it matters when they came."""
    pipeline = ordered_by_id(data.draw(versions(of=LISTED, kinds=("rows",))))
    script = numbered(data.draw(scripts(pipeline)), data.draw(st.integers(0, 99)))
    panes = pipeline.run(script)
    (source,) = pipeline.flow.sources
    came = live(panes)
    names = [name for name in came[0].values if name not in (VALID_FROM, VALID_TO)] if came else []
    batch = versions_of_batch(pipeline, rows_of(script, source, source.keys, dropped_ids(panes)), names)
    ours = spans_of(came, source.keys)
    assert ours.keys() == batch.keys(), f"{pipeline!r}\n{script!r}"
    assert all(close(ours[key], list(batch[key])) for key in batch), f"{pipeline!r}\n{script!r}\n{ours}\n{batch}"


@given(st.data())
def test_a_batch_gives_the_final_versions(data):
    """Nothing is late, each row is emitted once, and only rows without time or key are dropped."""
    pipeline = ordered_by_id(data.draw(versions(of=LISTED, kinds=("rows",))))
    script = numbered(data.draw(scripts(pipeline)), data.draw(st.integers(0, 99)))
    (source,) = pipeline.flow.sources
    panes = in_a_batch(pipeline, script, data.draw(st.integers(1, 3)))
    came = [pane for pane in panes if pane.kind is not PaneKind.DROPPED]
    assert all(map(is_final, came))
    assert {pane.reason for pane in panes} <= {None, DropReason.NULL_EVENT_TIME, DropReason.NULL_KEY}
    names = [name for name in came[0].values if name not in (VALID_FROM, VALID_TO)] if came else []
    batch = versions_of_batch(pipeline, rows_of(script, source, source.keys, dropped_ids(panes)), names)
    ours = spans_of(came, source.keys)
    assert ours.keys() == batch.keys(), f"{pipeline!r}\n{script!r}"
    assert all(close(ours[key], list(batch[key])) for key in batch), f"{pipeline!r}\n{script!r}\n{ours}\n{batch}"


some_joins = as_of_joins(of=UNLISTED, lefts=("rows",), tables=("rows",), fixed={"tolerance": None})


@cost(2)
@given(st.data())
def test_the_state_has_versions_within_the_history_and_the_latest(data):
    pipeline = data.draw(st.one_of(versions(of=UNLISTED, kinds=("rows", "panes")), some_joins))
    script = data.draw(scripts(pipeline, ends=False))
    twin = twin_of(pipeline.flow)
    for event in script.events:
        twin.step(as_step(event))
    watermark = twin.w if said(pipeline).as_of else twin.watermark
    oldest = watermark - said(pipeline).versions.history.us
    known = {
        (name, one.from_us): one
        for name in twin.table.changes
        for one in twin.table.versions(name)
        if one.to_us is None or one.to_us > oldest
    }
    holds_what_is_known(pipeline, script, None, known)
    at = max(oldest, 0) + data.draw(st.sampled_from([0, 1, 2_000_000]))
    valid = {place: one for place, one in known.items() if one.from_us <= at and (one.to_us is None or at < one.to_us)}
    holds_what_is_known(pipeline, script, instant(at), valid)


def test_the_latest_version_is_in_the_state_at_the_end_of_time_too():
    pipeline = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).versions(0)
    script = TestStream().add([{"ts": 1, "rate": 1}]).advance_watermark_to_infinity()
    (found,) = pipeline.state(script).versions()
    assert (found.values, found.valid_to) == ({"rate": 1}, None)


def holds_what_is_known(pipeline, script, as_of, known):
    found = {}
    for one in pipeline.state(script).versions(as_of=as_of):
        place = name_of(list(one.key.values())), instant_us("from", one.valid_from)
        found[place] = {**one.values, VALID_FROM: one.valid_from, VALID_TO: one.valid_to}
    assert found.keys() == known.keys(), f"{pipeline!r}\n{script!r}\n{as_of}\n{set(found) ^ set(known)}"
    assert all(close(found[place], one.spans) for place, one in known.items()), f"{pipeline!r}\n{script!r}\n{as_of}"


@given(st.data())
def test_initial_rows_are_a_first_bundle_already_emitted(data):
    pipeline = data.draw(versions(of=UNLISTED, kinds=("rows",)))
    begins_as_with_a_first_bundle(pipeline, data.draw(scripts(pipeline)), None)


@pytest.mark.of_law("law-versions")
@cost(2)
@given(st.data())
def test_finally_versions_of_panes_equal_those_of_live_panes(data):
    """Where each pane of a key has a time of its own, and nothing is too late."""
    keys = data.draw(st.sampled_from([(), ("team",)]))
    totals = (
        bm.Pipeline()
        .event_time("ts", bm.BoundedOutOfOrderness(0))
        .key_by(*keys)
        .window(data.draw(st.sampled_from([bm.FixedWindows(5), bm.SlidingWindows(6, 3)])))
        .trigger(bm.triggers.AfterWatermark(early=bm.triggers.AfterCount(2), late=bm.triggers.Always()))
        .allowed_lateness(10)
        .accumulating_and_retracting()
        .accumulate(v0=bm.accumulations.Sum("value"))
    )
    only_updated = data.draw(st.booleans())
    pipeline = totals.then(bm.Pipeline().key_by(*keys)).versions(10**6, values=["v0"], only_updated=only_updated)
    script = data.draw(scripts(pipeline, ends=True))
    changes = [
        Change(instant_us("timestamp", pane.timestamp), key_name(pane.key, keys), pane.values)
        for pane in live(totals.run(script))
        if None not in pane.key.values()
    ]
    batch = versions_of_batch(pipeline, changes, ["v0"])
    assert spans_of(live(pipeline.run(script)), keys) == batch, f"{pipeline!r}\n{script!r}"


@pytest.mark.of_law("law-versions")
@given(st.data())
def test_order_within_the_lateness_does_not_affect_final_versions(data):
    """Where their times or sequences differ."""
    pipeline = ordered_by_id(data.draw(versions(of=PATIENT, kinds=("rows",))))
    script = numbered(data.draw(scripts(pipeline, ends=False)), data.draw(st.integers(0, 99)))
    changes = [row for event in script.events for row in as_step(event).rows]
    random.Random(data.draw(st.integers(0, 99))).shuffle(changes)
    shuffled = TestStream()
    while changes:
        size = data.draw(st.integers(1, 5))
        bundle, changes = changes[:size], changes[size:]
        shuffled = shuffled.add(bundle).advance_watermark_to(len(shuffled.events))
    keys = said(pipeline).keys
    one, other = (spans_of(live(pipeline.run(each)), keys) for each in (script, shuffled))
    assert one.keys() == other.keys()
    assert all(close(one[key], other[key]) for key in one), f"{pipeline!r}\n{script!r}\n{shuffled!r}"


@pytest.mark.of_law("law-versions")
@cost(1.5)
@given(st.data())
def test_latest_only_emits_the_versions_still_valid(data):
    plain = data.draw(versions(of=UNLISTED, latest_only=no))
    latest = declaring(plain, latest_only=True)
    script = data.draw(scripts(plain))
    came, shown = [], []
    for (_, all_of_them), (_, some) in zip(script.trace(plain), script.trace(latest), strict=True):
        came, shown = live([*came, *all_of_them]), live([*shown, *some])
        still = [pane.values for pane in came if pane.values[VALID_TO] is None]
        assert sorted(map(repr, still)) == sorted(repr(pane.values) for pane in shown), f"{plain!r}\n{script!r}"


@pytest.mark.of_law("law-versions")
@given(st.data())
def test_only_updated_joins_adjoining_versions_of_equal_values_and_nothing_else(data):
    plain = data.draw(versions(of=UNLISTED, kinds=("rows",), latest_only=no))
    one, other = (declaring(plain, only_updated=updated) for updated in (False, True))
    script, keys = data.draw(scripts(plain)), said(plain).keys
    merged = {}
    for key, spans in spans_of(live(one.run(script)), keys).items():
        for start, end, values in spans:
            last = merged.setdefault(key, [])
            if last and last[-1][1] == start and close(last[-1][2], values):
                last[-1] = (last[-1][0], end, last[-1][2])
            else:
                last.append((start, end, values))
    found = spans_of(live(other.run(script)), keys)
    assert found.keys() == merged.keys()
    assert all(close(found[key], merged[key]) for key in merged), f"{plain!r}\n{script!r}"
