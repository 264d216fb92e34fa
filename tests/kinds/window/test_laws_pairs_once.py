"""Laws of joins that give each pair once (rules/laws.md#law-each-pair-once): they come to what a plain join gives."""

from __future__ import annotations

from collections import Counter

import attrs
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import beamish as bm
from beamish import PaneKind
from beamish.accumulations import FullOuterJoin, InnerJoin
from beamish.instants import instant_us
from beamish.local import Variation
from beamish.local import run as run_varied
from beamish.script import as_step
from beamish.testing import TestStream
from tests.agreement import differences
from tests.cost import cost
from tests.declared_options import evolve, said
from tests.strategies.merges import close_rows, merges
from tests.strategies.windows import fixed_windows, global_windows
from tests.twin.windows import assign

LISTED = st.just(True)  # noqa: FBT003


def words(*what):
    return "\n".join(map(repr, what))


patient = st.just(bm.BoundedOutOfOrderness(0))


def with_ids(script):
    """The script, whose rows have an id each."""
    events, number = [], 0
    for event in script.events:
        rows = []
        for row in as_step(event).rows:
            number += 1
            rows.append({**row, "id": number})
        events.append(attrs.evolve(event, rows=tuple(rows)) if rows else event)
    return TestStream((*events,)).advance_watermark_to_infinity()


def pairs_of(panes, join):
    """The pairs of panes as ids; None: the row came alone."""
    given = [pane.values["pairs"] for pane in panes if pane.kind is PaneKind.PANE]
    return [tuple(pair[name] and pair[name]["id"] for name in (join.left, join.right)) for pair in given]


@pytest.mark.of_law("law-each-pair-once")
@cost(2)
@given(st.data())
def test_the_pairs_are_those_of_a_plain_join_each_once(data):
    """And of an outer join every row that was taken and is in no pair, once."""
    drawn = merges(once=True, cuts=False, policy=patient, with_dropped=LISTED)
    pipeline = data.draw(drawn)
    script = with_ids(data.draw(close_rows(pipeline)))
    join = said(pipeline).accumulations["pairs"]
    panes = pipeline.run(script)
    once = Counter(pair for pair in pairs_of(panes, join) if None not in pair)
    full_interval = isinstance(said(pipeline).window, bm.Within) and isinstance(join, FullOuterJoin)
    same = (
        FullOuterJoin if full_interval else InnerJoin
    )  # a full join puts rows into other windows, from which they are dropped
    plain = {"pairs": same(join.left, join.right, null_keys=join.null_keys, match_if=join.match_if)}
    plain = evolve(pipeline, accumulations=plain, mode=bm.AccumulationMode.ACCUMULATING).run(script)
    assert once == Counter({pair for pair in pairs_of(plain, join) if None not in pair}), words(pipeline, script)
    alone = Counter(pair for pair in pairs_of(panes, join) if None in pair)
    assert alone == Counter(without_match(script, panes, join, said(pipeline).window, once)), words(pipeline, script)


def without_match(script, panes, join, window, pairs):
    """The rows that come alone: in a window, taken by it, and in no pair."""
    dropped = [pane.values for pane in panes if pane.kind is PaneKind.DROPPED]
    for place, (name, keeps) in enumerate(((join.left, join.keeps_left), (join.right, join.keeps_right))):
        if not keeps:
            continue
        out = {row[name]["id"] for row in dropped if row[name]} | {pair[place] for pair in pairs}
        came = [
            row["id"]
            for event in script.events
            for row in as_step(event).rows
            if as_step(event).input == name and assign(window, instant_us("", row[f"{name}_at"]), row, name)
        ]
        yield from ((id_, None) if place == 0 else (None, id_) for id_ in came if id_ not in out)


class OnlyWhenDue:
    """A shard that is stepped as on Spark: with rows, or when something in it is due (``Cadence.WHEN_DUE``)."""

    def __init__(self, shard, inputs):
        self.shard, self.sources_us = shard, [None] * inputs

    def __getattr__(self, name):
        return getattr(self.shard, name)

    def step(self, sources_us, clock_us, payloads):
        self.sources_us = [old if now is None else now for old, now in zip(self.sources_us, sources_us, strict=True)]
        due, known = self.shard.next_due_us, None not in self.sources_us
        if payloads or (known and due is not None and min(self.sources_us) >= due):
            return self.shard.step(self.sources_us, clock_us, payloads)
        return self.shard.step([None] * len(self.sources_us), None, [])


def only_when_due(operator):
    opened = operator.open
    operator.open = lambda store: OnlyWhenDue(opened(store), len(operator.takes))
    return operator


@cost(2)
@given(st.data())
def test_a_shard_stepped_only_when_due_drops_rows_in_time(data):
    pipeline = data.draw(merges(once=True, policy=patient, window=st.one_of(global_windows, fixed_windows)))
    join = said(pipeline).accumulations["pairs"]
    assume(not said(pipeline).trigger.needs_clock and (join.keep_for or join.keeps_left or join.keeps_right))
    pipeline = evolve(
        pipeline, on_time=bm.OnTimeBehavior.FIRE_IF_NON_EMPTY, closing=bm.ClosingBehavior.FIRE_IF_NON_EMPTY
    )
    script = data.draw(close_rows(pipeline))
    found = differences(
        pipeline.run(script),
        run_varied(pipeline.flow, script.events, Variation(adapt=only_when_due)),
        pipeline,
    )
    assert not found, "\n".join([words(pipeline, script), "- every step, + when due", *found])
