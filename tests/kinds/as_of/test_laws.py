"""Laws of as-of joins (rules/tables.md#as-of-joins): in the end all is as in a batch."""

from __future__ import annotations

import random
from collections import Counter

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

import beamish as bm
from beamish import DropReason, PaneKind
from beamish.instants import instant, instant_us
from beamish.kinds.versions.options import VALID_FROM
from beamish.script import as_step
from beamish.testing import TestStream
from tests.agreement import agree, close
from tests.cost import cost
from tests.declared_options import said
from tests.kinds.as_of.rows import ROWS, met, value_names
from tests.kinds.versions.batch import (
    declaring,
    dropped_ids,
    in_a_batch,
    is_final,
    key_name,
    live,
    matches_of_batch,
    numbered,
    ordered_by_id,
    rows_of,
)
from tests.kinds.versions.beginning import begins_as_with_a_first_bundle
from tests.kinds.versions.strategy import Drawing, as_of_joins, joins_at_arrival, no, scripts, simple, yes
from tests.lines import line
from tests.strategies.pipelines import retracting

UNLISTED = Drawing(with_dropped=no)


def test_lateness_is_known_at_a_watermark_before_1970():
    at = {name: bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)) for name in ("orders", "rates")}
    pipeline = bm.as_of_join(orders=at["orders"], rates=at["rates"].versions(1)).with_dropped()
    script = TestStream().add([{"ts": -5, "rate": 1}], input="rates").advance_watermark_to(-10)
    agree(pipeline, script.add([{"ts": -30}], input="orders").add([{"ts": -40, "rate": 2}], input="rates"))


def batch_of(pipeline, script, panes):
    """The match of each row in a batch of all rows that were not dropped."""
    left, table = pipeline.flow.inputs
    changes, rows = (rows_of(script, one, one.keys, dropped_ids(panes, one.name)) for one in (table, left))
    return matches_of_batch(pipeline, changes, rows, value_names(pipeline, script))


@pytest.mark.of_law("law-as-of-joins")
@given(st.data())
def test_finally_the_live_rows_are_the_batch_join_of_rows_not_dropped(data):
    """Whatever is early, whatever the grace, whoever is waited for; no two changes are equal."""
    of = Drawing(policy=simple, mode=st.just(retracting), with_dropped=yes)
    pipeline = ordered_by_id(data.draw(as_of_joins(of=of, **ROWS)))
    script = numbered(data.draw(scripts(pipeline, ends=True)), data.draw(st.integers(0, 99)))
    panes = pipeline.run(script)
    ours, batch = met(pipeline, live(panes)), batch_of(pipeline, script, panes)
    assert close(dict(sorted(ours.items())), dict(sorted(batch.items()))), f"{pipeline!r}\n{script!r}"


@given(st.data())
def test_finally_each_row_is_joined_with_the_version_as_of_its_time(data):
    of = Drawing(policy=simple, mode=st.just(retracting), with_dropped=yes)
    drawn = as_of_joins(of=of, fixed={"direction": "backward"}, **ROWS)
    pipeline = declaring(data.draw(drawn), sequence_by="id", only_updated=False)
    script = numbered(data.draw(scripts(pipeline, ends=True)), data.draw(st.integers(0, 99)))
    panes, (left, source) = pipeline.run(script), pipeline.flow.inputs
    changes, rows = (rows_of(script, one, one.keys, dropped_ids(panes, one.name)) for one in (source, left))
    options, deleted = said(pipeline).as_of, said(pipeline).versions.deleted
    names, expected = value_names(pipeline, script), {}
    with bm.VersionedTable(10**9) as table:
        for change in sorted(changes, key=lambda change: change.row["id"]):  # the later one counts
            gone = deleted is not None and change.row[deleted] is True
            value = None if gone else {name: change.row[name] for name in names}
            table.put(key_of(change, source), value, instant(change.time_us))
        for row in rows:
            at = instant(row.time_us - (not options.allow_exact_matches))
            found = None if None in key_of(row, left) else table.get(key_of(row, left), as_of=at)
            if (
                found
                and options.tolerance is not None
                and row.time_us - instant_us("from", found.valid_from) > options.tolerance.us
            ):
                found = None
            if found or options.how == "left":
                match = {**found.value, VALID_FROM: found.valid_from} if found else None
                expected[row.row["id"]] = match
    ours = met(pipeline, live(panes))
    assert close(dict(sorted(ours.items())), dict(sorted(expected.items()))), f"{pipeline!r}\n{script!r}"


@given(st.data())
def test_at_arrival_each_row_meets_the_latest_change_that_has_arrived(data):
    """By a dict that is written and read event by event."""
    drawn = joins_at_arrival(of=Drawing(policy=simple, with_dropped=yes), **ROWS)
    pipeline = declaring(data.draw(drawn), sequence_by="id", only_updated=False)
    script = numbered(data.draw(scripts(pipeline)), data.draw(st.integers(0, 99)))
    panes, (left, table) = pipeline.run(script), pipeline.flow.inputs
    deleted, how = said(pipeline).versions.deleted, said(pipeline).as_of.how
    latest, expected = {}, {}
    for event in script.events:
        step = TestStream((event,))
        for change in rows_of(step, table, table.keys, dropped_ids(panes, table.name)):
            at = change.time_us, change.row["id"]
            latest[change.key] = max(latest.get(change.key, (at, change.row)), (at, change.row), key=lambda one: one[0])
        for row in rows_of(step, left, left.keys, dropped_ids(panes, left.name)):
            (since_us, _), change = latest.get(row.key, ((0, 0), None))
            if change is not None and not (deleted and change[deleted] is True):
                match = {name: change[name] for name in value_names(pipeline, script)}
                expected[row.row["id"]] = match | {VALID_FROM: instant(since_us)}
            elif how == "left":
                expected[row.row["id"]] = None
    ours = met(pipeline, live(panes))
    assert close(dict(sorted(ours.items())), dict(sorted(expected.items()))), f"{pipeline!r}\n{script!r}"


def key_of(row, source):
    return tuple(row.row[name] for name in source.keys)


@given(st.data())
def test_a_batch_gives_the_final_matches(data):
    """Each row is emitted once, for any lateness, grace and mode."""
    pipeline = ordered_by_id(data.draw(as_of_joins(of=Drawing(policy=simple, with_dropped=yes), **ROWS)))
    script = numbered(data.draw(scripts(pipeline)), data.draw(st.integers(0, 99)))
    panes = in_a_batch(pipeline, script, data.draw(st.integers(1, 3)))
    came = [pane for pane in panes if pane.kind is not PaneKind.DROPPED]
    assert all(map(is_final, came))
    assert {pane.reason for pane in panes} <= {None, DropReason.NULL_EVENT_TIME, DropReason.NULL_KEY}
    ours, batch = met(pipeline, came), batch_of(pipeline, script, panes)
    assert close(dict(sorted(ours.items())), dict(sorted(batch.items()))), f"{pipeline!r}\n{script!r}"


@cost(2)
@given(st.data())
def test_initial_rows_of_a_join_are_a_first_bundle(data):
    pipeline = data.draw(as_of_joins(of=UNLISTED, lefts=("rows", "panes"), tables=("rows",)))
    begins_as_with_a_first_bundle(pipeline, data.draw(scripts(pipeline)), "rates")


PATIENT = Drawing(policy=simple, history=st.just(10**6), whole=yes, mode=st.just(retracting), with_dropped=no)


@pytest.mark.of_law("law-as-of-joins")
@cost(1.5)
@given(st.data())
def test_within_the_lateness_the_order_of_rows_and_changes_changes_nothing(data):
    pipeline = ordered_by_id(data.draw(as_of_joins(of=PATIENT, **ROWS)))
    script = numbered(data.draw(scripts(pipeline, ends=True)), data.draw(st.integers(0, 99)))
    rows = [(step.input, row) for step in map(as_step, script.events) for row in step.rows]
    chance = random.Random(data.draw(st.integers(0, 99)))
    chance.shuffle(rows)
    shuffled = TestStream()
    for number, (name, row) in enumerate(rows):
        shuffled = shuffled.add([row], input=name)
        if chance.random() < 0.3:
            shuffled = shuffled.advance_watermark_to(number)
    shuffled = shuffled.advance_watermark_to_infinity()
    one, other = (met(pipeline, live(pipeline.run(each))) for each in (script, shuffled))
    assert close(dict(sorted(one.items())), dict(sorted(other.items()))), f"{pipeline!r}\n{script!r}\n{shuffled!r}"


@pytest.mark.of_law("law-as-of-joins")
@cost(1.5)
@given(st.data())
def test_a_discarding_join_emits_the_first_pane_of_a_retracting_one(data):
    pipeline = data.draw(
        as_of_joins(of=attrs.evolve(UNLISTED, mode=st.just(retracting)), **ROWS, fixed={"how": "left"})
    )
    script = numbered(data.draw(scripts(pipeline)), 0)
    first = [pane for pane in pipeline.run(script) if pane.is_first and pane.kind is PaneKind.PANE]
    once = pipeline.discarding().run(script)
    assert [line(attrs.evolve(pane, is_last=True)) for pane in first] == list(map(line, once)), (
        f"{pipeline!r}\n{script!r}"
    )


@pytest.mark.of_law("law-as-of-joins")
@given(st.data())
def test_each_row_of_a_discarding_left_join_is_emitted_once_or_dropped(data):
    of = Drawing(policy=simple, mode=st.just(bm.AccumulationMode.DISCARDING), with_dropped=yes)
    pipeline = data.draw(as_of_joins(of=of, **ROWS, fixed={"how": "left"}))
    script = numbered(data.draw(scripts(pipeline, ends=True)), 0)
    panes = pipeline.run(script)
    came = [pane.values["id"] for pane in panes if pane.kind is PaneKind.PANE] + dropped_ids(panes, "orders")
    rows = [row["id"] for step in map(as_step, script.events) if step.input == "orders" for row in step.rows]
    assert sorted(came) == sorted(rows), f"{pipeline!r}\n{script!r}"


@pytest.mark.of_law("law-as-of-joins")
@cost(2)
@given(st.data())
def test_a_stage_over_a_join_finally_equals_the_batch_of_both(data):
    """It counts, of each key, the rows of the batch join."""
    of = Drawing(policy=simple, mode=st.just(retracting), with_dropped=no)
    pipeline = ordered_by_id(data.draw(as_of_joins(of=of, **ROWS)))
    script = numbered(data.draw(scripts(pipeline, ends=True)), data.draw(st.integers(0, 99)))
    keys = said(pipeline).keys
    counted = pipeline.then(
        bm.Pipeline()
        .key_by(*keys)
        .window(bm.GlobalWindow())
        .trigger(bm.triggers.AfterWatermark(early=bm.triggers.Always()))
        .accumulating_and_retracting()
        .accumulate(n=bm.accumulations.Count())
    )
    listed = pipeline.with_dropped()
    batch = batch_of(listed, script, listed.run(script))
    orders = pipeline.flow.inputs[0]
    expected = Counter(row.key for row in rows_of(script, orders, keys) if row.row["id"] in batch)
    found = {key_name(pane.key, keys): pane.values["n"] for pane in live(counted.run(script))}
    assert found == expected, f"{pipeline!r}\n{script!r}"
