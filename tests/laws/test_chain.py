"""Laws of chained stages: the engine gives what the twin gives; totals downstream are right (RULES 30, 31)."""

from __future__ import annotations

import random

import attrs
from hypothesis import given
from hypothesis import strategies as st

import beamish as bm
from beamish import accumulations as a
from beamish.local import run
from beamish.testing import TestStream
from beamish.triggers import AfterWatermark, Always
from tests.agreement import differences
from tests.strategies import S, combiners, modes, pipelines, scripts, usual_triggers, windows
from tests.twin.chain import run_chain

FIRST = {"v0": a.Sum("score"), "v1": a.Count()}
LATER = st.sampled_from(
    [
        a.Count(),
        a.Count("v0"),
        a.Sum("v0"),
        a.Mean("v1"),
        a.Min("v0"),
        a.Max("v0"),
        a.CollectSet("v0"),
        a.Collect("v0"),
        a.TopN(2, "v0"),
        a.CountDistinct("v0", "v1"),
        a.First("v0"),
        a.Last("v1"),
        a.Median("v0"),
        a.StdDev("v1"),
    ]
)
KEYS = st.sampled_from([(), ("v0",), ("v1",), ("v0", "v1")])
NOT_MERGING = st.one_of(
    st.none(),
    st.none(),
    st.builds(bm.FixedWindows, st.integers(1, 12)),
    st.builds(bm.SlidingWindows, st.integers(1, 12), st.integers(2, 5)),
    st.just(bm.GlobalWindow()),
)


@st.composite
def chains(draw):
    first = draw(pipelines(accumulation=st.just(a.Count())))
    first = bm.Pipeline(attrs.evolve(first.options, accumulations=FIRST, with_dropped=False))
    signed = first.options.retracts
    window = draw(NOT_MERGING if signed else st.one_of(NOT_MERGING, windows.filter(lambda w: not w.columns)))
    mode = draw(modes.filter(lambda mode: mode is not bm.AccumulationMode.DISCARDING) if signed else modes)
    second = bm.Pipeline(
        attrs.evolve(
            bm.Pipeline().options,
            keys=draw(KEYS),
            window=window,
            trigger=draw(usual_triggers),
            allow_data_loss=True,
            allowed_lateness=bm.durations.Duration(draw(st.sampled_from([0, 5, 1000])) * S),
            mode=mode,
            combiner=draw(combiners),
            with_dropped=draw(st.booleans()),
            only_updated=mode not in (None, bm.AccumulationMode.DISCARDING) and draw(st.booleans()),
            accumulations={f"w{i}": one for i, one in enumerate(draw(st.lists(LATER, min_size=1, max_size=3)))},
        )
    )
    return first.then(second)


@given(st.data())
def test_engine_and_twin_give_the_same_panes_of_a_chain(data):
    chain = data.draw(chains())
    script = data.draw(scripts(chain.stages[0].options))
    stages = [stage.options for stage in chain.stages]
    found = differences(chain.run(script), run_chain(stages, script.events), stages[-1])
    assert not found, "\n".join([repr(chain), repr(script), "- engine, + twin", *found])


@given(st.data())
def test_shards_packing_and_stored_bytes_change_nothing_in_a_chain(data):
    chain = data.draw(chains())
    script = data.draw(scripts(chain.stages[0].options))
    stages = [stage.options for stage in chain.stages]
    otherwise = run(stages, script.events, shards=data.draw(st.integers(1, 3)), packs=2, round_trip=True)
    found = differences(chain.run(script), otherwise, stages[-1])
    assert not found, "\n".join([repr(chain), repr(script), *found])


@given(st.integers(0, 2**32))
def test_totals_downstream_are_right_after_every_bundle(number):
    """Sum per key, then count and names per sum: always what a batch of the rows so far gives."""
    chance = random.Random(number)
    totals = (
        bm.Pipeline()
        .event_time("ts", bm.BoundedOutOfOrderness(0))
        .key_by("team")
        .window(bm.FixedWindows(10))
        .trigger(AfterWatermark(early=Always(), late=Always()))
        .allowed_lateness(1000)
        .accumulating_and_retracting()
        .accumulate(total=a.Sum("score"))
    )
    groups = (
        bm.Pipeline()
        .key_by("total")
        .trigger(Always())
        .allowed_lateness(1000)
        .accumulating_and_retracting()
        .accumulate(teams=a.CollectSet("team"), last=a.Max("team"), count=a.Count())
    )
    script, rows = TestStream(), []
    for _ in range(6):
        bundle = [
            {"ts": chance.randint(0, 30), "team": chance.choice("abc"), "score": chance.randint(0, 2)}
            for _ in range(chance.randint(0, 4))
        ]
        rows += bundle
        script = script.add(bundle)
        if chance.random() < 0.4:
            script = script.advance_watermark_to(
                max([chance.randint(0, 40), *[e.us / S for e in script.events if hasattr(e, "us")]])
            )
        assert live(totals.then(groups).run(script)) == expected(rows)


def live(panes):
    standing = {}
    for pane in panes:
        place = pane.window.start.timestamp(), pane.key["total"]
        if pane.kind == "RETRACTION":
            assert standing.pop(place) == pane.values
        else:
            assert place not in standing
            standing[place] = dict(pane.values)
    return standing


def expected(rows):
    totals = {}
    for row in rows:
        place = row["ts"] // 10 * 10, row["team"]
        totals[place] = totals.get(place, 0) + row["score"]
    groups = {}
    for (start, team), total in totals.items():
        groups.setdefault((float(start), total), []).append(team)
    return {place: {"teams": sorted(teams), "last": max(teams), "count": len(teams)} for place, teams in groups.items()}
