"""Laws of trees: merges whose sides are sources, stages, chains or merges, drawn.

See rules/output.md#order-of-output, rules/stages.md#joins, #steps-of-later-stages, #retractions-as-rows, rules/laws.md#law-order-and-shards, #law-state-round-trip.
"""

from __future__ import annotations

from collections import Counter

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

import beamish as bm
from beamish import PaneKind
from beamish.flow import Panes
from beamish.instants import instant_us
from beamish.script import Step, as_step
from beamish.testing import TestStream
from tests.cost import cost
from tests.declared_options import said
from tests.laws.batches import key_name, window_of
from tests.strategies.flows import ANYTHING, NOTHING_LOST, flows, tree_scripts
from tests.strategies.pipelines import retracting
from tests.strategies.windows import fixed_windows
from tests.twin.joins import JOINS
from tests.twin.order import normal
from tests.twin.windows import assign

yes, no = st.just(True), st.just(False)  # noqa: FBT003


RETRACTING = attrs.evolve(ANYTHING, mode=st.just(retracting))


PATIENT = attrs.evolve(NOTHING_LOST, mode=st.just(retracting), lateness=st.just(10**6), window=fixed_windows)


@pytest.mark.of_law("law-live-panes-equal-batch")
@cost(2)
@given(st.data())
def test_finally_a_join_equals_the_batch_join_of_its_sides_live_panes(data):
    """rules/laws.md#law-live-panes-equal-batch, where the root drops nothing: it waits, and no row is without event
    time."""
    pipeline = data.draw(flows(how=NOTHING_LOST, root=PATIENT, join=yes, with_dropped=no))
    script = with_times(data.draw(tree_scripts(pipeline, ends=True)))
    live = Counter()
    for pane in pipeline.run(script):
        by = 1 if pane.kind is PaneKind.PANE else -1
        live[key_name(pipeline, pane.key), pane.window, pair_of(pane.values["pairs"])] += by
    assert +live == joined(pipeline, script), f"{pipeline!r}\n{script!r}"


def with_times(script):
    """The script without rows that have no event time."""
    events = [
        attrs.evolve(event, rows=tuple(row for row in event.rows if row[f"{event.input}_at"] is not None))
        if hasattr(event, "rows")
        else event
        for event in script.events
    ]
    return TestStream(tuple(events))


def pair_of(pair):
    """A pair of rows as something to count."""
    return tuple((name, row and plain(row)) for name, row in sorted(pair.items()))


def plain(row):
    return tuple((name, repr(normal(value))) for name, value in sorted(row.items()))


def joined(pipeline, script):
    """The rows of the join at the root, from the rows of its sides that are live in the end."""
    (join,) = said(pipeline).accumulations.values()
    sides = {
        relation.name: live_of_side(pipeline, one, relation.keys, script)
        for one, relation in zip(pipeline.flow.inputs, pipeline.flow.takes, strict=True)
    }
    left, right = sides[join.left], sides[join.right]
    keeps_left, keeps_right = JOINS[type(join)]
    pairs = Counter()
    for place in {*left, *right}:
        ours, theirs = left.get(place, Counter()), right.get(place, Counter())
        apart = join.null_keys == "unmatched" and "None" in place[0]
        for some, others in [(ours, Counter()), (Counter(), theirs)] if apart else [(ours, theirs)]:
            some = some or Counter({None: 1} if keeps_right and others else {})  # noqa: PLW2901
            others = others or Counter({None: 1} if keeps_left and some else {})  # noqa: PLW2901
            for one, n in some.items():
                for other, m in others.items():
                    pairs[(*place, tuple(sorted([(join.left, one), (join.right, other)])))] += n * m
    return pairs


def live_of_side(pipeline, side, keys, script):
    """The rows of a side that are live in the end: for each (key, window of the root) how often each row is there."""
    live = {}
    for time_us, window, row, by in rows_of_side(side, script):
        key = repr([normal(row.get(column)) for column in keys])
        own = plain({column: value for column, value in row.items() if column not in keys})
        option = said(pipeline).window
        windows = (
            [window] if option is None else [window_of(pipeline, bounds) for bounds in assign(option, time_us, row)]
        )
        for one in windows:
            live.setdefault((key, one), Counter())[own] += by
    return {place: +rows for place, rows in live.items() if +rows}


def rows_of_side(side, script):
    """Event time, window, columns, and 1, or -1 for a retraction."""
    if isinstance(side, Panes):
        names = [source.name for source in side.flow.sources]
        steps = map(as_step, script.events)
        own = [step if step.input in (None, *names) else Step(clock_us=step.clock_us) for step in steps]
        for pane in bm.Pipeline(side.flow).run(TestStream(tuple(own))):
            by = 1 if pane.kind is PaneKind.PANE else -1
            yield instant_us("timestamp", pane.timestamp), pane.window, {**pane.key, **pane.values}, by
        return
    for event in script.events:
        for row in getattr(event, "rows", ()):
            if event.input == side.name:
                yield instant_us("ts", row[side.event_time]), None, row, 1
