"""Laws of joins of rows that are at most a span apart (rules/stages.md#within)."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

import beamish as bm
from beamish import accumulations as a
from beamish.instants import instant_us
from beamish.script import as_step
from beamish.testing import TestStream
from tests.cost import cost
from tests.declared_options import evolve, said
from tests.kinds.refine.strategy import meaning
from tests.strategies.merges import NAMES, meetings, merges, scripts
from tests.strategies.pipelines import modes, retracting


def words(*what):
    return "\n".join(map(repr, what))


def rows_of(script, name):
    """The rows of an input that have an event time: key, time, row; each with a number of its own."""
    rows = [row for event in script.events if as_step(event).input == name for row in as_step(event).rows]
    timed = [
        (row[f"{name}_team"], instant_us("", row[f"{name}_at"]), row) for row in rows if row[f"{name}_at"] is not None
    ]
    return [
        (repr(team), time, repr(sorted((c, v) for c, v in row.items() if c != f"{name}_team")), row)
        for team, time, row in timed
    ]


def of_two(data):
    """A merge of two inputs whose rows meet."""
    inputs = {name: bm.Pipeline().event_time(f"{name}_at", bm.BoundedOutOfOrderness(0)) for name in NAMES[:2]}
    merged = bm.merge(**{name: one.key_by(f"{name}_team") for name, one in inputs.items()})
    within, join = data.draw(meetings(NAMES[:2]))
    return evolve(merged, window=within, accumulations={"pair": join})


def by_two_loops(pipeline, left, right):
    """The pairs of rows that meet, and the rows that are kept though they meet none."""
    within, join = said(pipeline).window, said(pipeline).accumulations["pair"]
    conditions = [meaning(join.match_if[name]) if name in join.match_if else None for name in (join.left, join.right)]
    since, until = -within.before.us, within.after.us

    def meets(one, other):
        time, of = (other[1], one[1]) if join.left == within.of else (one[1], other[1])
        is_in = {
            "both": since <= of - time <= until,
            "left": since <= of - time < until,
            "right": since < of - time <= until,
            "neither": since < of - time < until,
        }
        has_match = one[0] == other[0] and (one[0] != repr(None) or join.null_keys == "pair")
        fulfil = all(on is None or on(row[3]) is True for on, row in zip(conditions, (one, other), strict=True))
        return has_match and fulfil and is_in[within.inclusive]

    pairs = Counter((one[0], one[2], other[2]) for one in left for other in right if meets(one, other))
    if isinstance(join, a.LeftOuterJoin | a.FullOuterJoin):
        alone = [one for one in left if not any(meets(one, other) for other in right)]
        pairs += Counter((one[0], one[2], None) for one in alone)
    if isinstance(join, a.RightOuterJoin | a.FullOuterJoin):
        alone = [other for other in right if not any(meets(one, other) for one in left)]
        pairs += Counter((other[0], None, other[2]) for other in alone)
    return pairs


def pairs_of(pipeline, panes):
    """The pairs of panes."""
    join = said(pipeline).accumulations["pair"]

    def side(pane, name):
        row = pane.values["pair"][name]
        if row is None:
            return None
        seconds = {c: v.timestamp() if hasattr(v, "timestamp") else v for c, v in row.items()}
        return repr(sorted(seconds.items()))

    return Counter(
        (repr(next(iter(pane.key.values()))), side(pane, join.left), side(pane, join.right)) for pane in panes
    )


@pytest.mark.of_law("law-within")
@cost(2)
@given(st.data())
def test_live_pairs_are_those_within_the_span_each_once(data):
    """By two loops over all rows, which know no windows."""
    always = {"trigger": bm.triggers.Always(), "mode": retracting}
    pipeline = evolve(of_two(data), allowed_lateness=bm.durations.duration("", "10 days"), **always)
    join = said(pipeline).accumulations["pair"]
    script = data.draw(scripts(pipeline, ends=False))
    expected = by_two_loops(pipeline, rows_of(script, join.left), rows_of(script, join.right))
    assert pairs_of(pipeline, bm.live(pipeline.run(script))) == expected, words(pipeline, script)


@pytest.mark.of_law("law-within")
@given(st.data())
def test_no_pair_of_rows_that_are_on_time_is_lost_with_no_lateness_allowed(data):
    """The output of the default trigger for rows that are not late: a pane per window, no row dropped."""
    pipeline = evolve(of_two(data), with_dropped=True)
    join, script, watermark = said(pipeline).accumulations["pair"], TestStream(), 0
    for _ in range(data.draw(st.integers(1, 8))):
        name = data.draw(st.sampled_from(NAMES[:2]))
        times = data.draw(st.lists(st.integers(watermark, watermark + 9), max_size=3))
        rows = [{f"{name}_at": time, f"{name}_team": "red", "value": data.draw(st.integers(0, 9))} for time in times]
        watermark += data.draw(st.sampled_from([0, 1, 3, 8]))
        script = script.add(rows, input=name).advance_watermark_to(watermark)
    panes = pipeline.run(script.advance_watermark_to_infinity())
    assert not [pane for pane in panes if pane.kind is bm.PaneKind.DROPPED], words(pipeline, script)
    expected = by_two_loops(pipeline, rows_of(script, join.left), rows_of(script, join.right))
    assert pairs_of(pipeline, panes) == expected, words(pipeline, script)


@pytest.mark.of_law("law-within")
@cost(2)
@given(st.sampled_from(list(bm.AccumulationMode)), st.data())
def test_pairs_are_in_the_window_of_the_left_row(mode, data):
    pipeline = evolve(data.draw(merges(meets=True, mode=modes, with_dropped=st.just(False))), mode=mode)  # noqa: FBT003
    pipeline = evolve(pipeline, only_updated=False)
    within, join = said(pipeline).window, said(pipeline).accumulations["pairs"]
    other = join.left if join.right == within.of else join.right
    for pane in pipeline.run(data.draw(scripts(pipeline))):
        row = pane.values["pairs"][other]
        if row is not None:
            period = within.period_us / 1_000_000
            assert pane.start.timestamp() <= row[f"{other}_at"] < pane.start.timestamp() + period
