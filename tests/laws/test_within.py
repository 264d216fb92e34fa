"""Laws of joins of rows that are at most a span apart (semantics.md#within)."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

import beamish as bm
from beamish import accumulations as a
from beamish.instants import instant_us
from beamish.local import Variation
from beamish.local import run as run_engine
from beamish.script.events import as_step
from tests.agreement import differences
from tests.said import evolve, said
from tests.strategies.merges import NAMES, meetings, merges, scripts
from tests.strategies.pipelines import modes, retracting
from tests.twin import run


def words(*what):
    return "\n".join(map(repr, what))


@given(st.data())
def test_engine_and_twin_give_the_same_pairs_of_rows_that_meet(data):
    pipeline = data.draw(merges(meets=True))
    script = data.draw(scripts(pipeline))
    found = differences(pipeline.run(script), run(pipeline, script.events), pipeline)
    assert not found, "\n".join([words(pipeline, script), "- engine, + twin", *found])


@given(st.data())
def test_shards_packing_and_stored_state_change_nothing_where_rows_meet(data):
    pipeline = data.draw(merges(meets=True))
    script = data.draw(scripts(pipeline))
    cut = run_engine(pipeline.flow, script.events, Variation(shards=3, packs=2, round_trip=True))
    found = differences(pipeline.run(script), cut, pipeline)
    assert not found, "\n".join([words(pipeline, script), *found])


def rows_of(script, name):
    """The rows of an input that have an event time: key, time, row; each with a number of its own."""
    rows = [row for event in script.events if as_step(event).input == name for row in as_step(event).rows]
    timed = [
        (row[f"{name}_team"], instant_us("", row[f"{name}_at"]), row) for row in rows if row[f"{name}_at"] is not None
    ]
    return [
        (repr(team), time, repr(sorted((c, v) for c, v in row.items() if c != f"{name}_team")))
        for team, time, row in timed
    ]


@given(st.data())
def test_the_live_pairs_of_all_rows_are_those_at_most_the_span_apart_each_once(data):
    """By two loops over all rows, which know no windows."""
    drawn = data.draw(merges(meets=True, mode=st.just(retracting), with_dropped=st.just(False)))  # noqa: FBT003
    of_two = {name: bm.Pipeline().event_time(f"{name}_at", bm.BoundedOutOfOrderness(0)) for name in NAMES[:2]}
    merged = bm.merge(**{name: one.key_by(f"{name}_team") for name, one in of_two.items()})
    within, join = data.draw(meetings(NAMES[:2]))
    plain = evolve(
        merged,
        window=within,
        trigger=said(drawn).trigger,
        allow_data_loss=True,
        mode=retracting,
        accumulations={"pair": join},
    )
    pipeline = evolve(plain, trigger=bm.triggers.Always(), allowed_lateness=bm.durations.duration("", "10 days"))
    script = data.draw(scripts(pipeline, ends=False))
    left, right = rows_of(script, join.left), rows_of(script, join.right)

    def meets(one, other):
        time, of = (other, one) if join.left == within.of else (one, other)
        return time - within.before.us <= of <= time + within.after.us

    pairs = Counter(
        (one[0], one[2], other[2]) for one in left for other in right if one[0] == other[0] and meets(one[1], other[1])
    )
    if isinstance(join, a.LeftOuterJoin):
        met = [one for one in left if not any(one[0] == other[0] and meets(one[1], other[1]) for other in right)]
        pairs += Counter((one[0], one[2], None) for one in met)
    if isinstance(join, a.RightOuterJoin):
        met = [other for other in right if not any(one[0] == other[0] and meets(one[1], other[1]) for one in left)]
        pairs += Counter((other[0], None, other[2]) for other in met)

    def side(pane, name):
        row = pane.values["pair"][name]
        if row is None:
            return None
        seconds = {c: v.timestamp() if hasattr(v, "timestamp") else v for c, v in row.items()}
        return repr(sorted(seconds.items()))

    live = Counter(
        (repr(next(iter(pane.key.values()))), side(pane, join.left), side(pane, join.right))
        for pane in bm.live(pipeline.run(script))
    )
    assert live == pairs, words(pipeline, script)


@given(st.sampled_from(list(bm.AccumulationMode)), st.data())
def test_pairs_come_in_the_window_of_the_row_that_meets_others(mode, data):
    pipeline = evolve(data.draw(merges(meets=True, mode=modes, with_dropped=st.just(False))), mode=mode)  # noqa: FBT003
    pipeline = evolve(pipeline, only_updated=False)
    within, join = said(pipeline).window, said(pipeline).accumulations["pairs"]
    other = join.left if join.right == within.of else join.right
    for pane in pipeline.run(data.draw(scripts(pipeline))):
        row = pane.values["pairs"][other]
        if row is not None:
            assert pane.start.timestamp() <= row[f"{other}_at"] < pane.end.timestamp()
