"""Laws of chained stages: totals downstream are right.

See rules/stages.md#steps-of-later-stages, #retractions-as-rows.
"""

from __future__ import annotations

import random

import attrs
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import beamish as bm
from beamish import accumulations as a
from beamish.testing import TestStream
from beamish.triggers import AfterWatermark, Always
from tests.agreement import close
from tests.cost import cost
from tests.declared_options import evolve, said
from tests.laws.batches import batch_of_chain, meets_a_session_gone, numbered
from tests.laws.ledger import live_panes
from tests.lines import line
from tests.seconds import S
from tests.strategies.chains import chains
from tests.strategies.pipelines import pipelines, retracting
from tests.strategies.scripts import dense_scripts, scripts
from tests.strategies.watermarks import bounded_out_of_orderness
from tests.strategies.windows import windows_by_overlap

retracting_stages = pipelines(
    window=windows_by_overlap,
    mode=st.just(retracting),
    accumulation=st.just(a.Count()),
    watermark=bounded_out_of_orderness,
).map(lambda first: evolve(first, combiner=bm.TimestampCombiner.END_OF_WINDOW))


def of_teams(script):
    """A script of two keys that ends."""
    events = [
        attrs.evolve(event, rows=[{**row, "team": "ab"[int(row["ts"]) % 2], "part": 1.0} for row in event.rows])
        if hasattr(event, "rows")
        else event
        for event in script.events
    ]
    return TestStream(tuple(events)).advance_watermark_to_infinity()


@pytest.mark.of_law("law-live-panes-equal-batch")
@cost(2)
@given(st.data())
def test_after_the_end_of_time_the_live_panes_of_a_chain_are_those_of_two_batches(data):
    """For both stages; a removal that is dropped as late has removed nothing (rules/stages.md#retractions-as-rows)."""
    yes = st.just(True)  # noqa: FBT003
    chain = data.draw(chains(first=retracting_stages, mode=st.just(retracting), with_dropped=yes))
    (only,) = chain.flow.inputs
    first = bm.Pipeline(only.flow)
    script = numbered(data.draw(st.one_of(scripts(first, ends=True), dense_scripts.map(of_teams))))
    if said(first).window.merging:
        assume(not meets_a_session_gone(first, script))
    panes = chain.run(script)
    live = live_panes(chain, panes)
    expected = batch_of_chain(chain, script, panes)
    words = f"{chain!r}\n{script!r}"
    assert live.keys() == expected.keys(), words
    for at, pane in live.items():
        assert close(dict(pane.values), expected[at]), f"{words}\n{line(pane)}\n{expected[at]}"


@pytest.mark.of_law("law-totals-downstream")
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
    script, rows, tables = TestStream(), [], []
    for _ in range(6):
        bundle = [
            {"ts": chance.randint(0, 30), "team": chance.choice("abc"), "score": chance.randint(0, 2)}
            for _ in range(chance.randint(0, 4))
        ]
        rows = [*rows, *bundle]
        script = script.add(bundle)
        tables.append(rows)
        if chance.random() < 0.4:
            script = script.advance_watermark_to(
                max([chance.randint(0, 40), *[e.us / S for e in script.events if hasattr(e, "us")]])
            )
            tables.append(rows)
    panes = []
    for (_, more), table in zip(script.trace(totals.then(groups)), tables, strict=True):
        panes += more
        found = {(pane.window.start.timestamp(), pane.key["total"]): dict(pane.values) for pane in bm.live(panes)}
        assert found == expected(table)


def expected(rows):
    totals = {}
    for row in rows:
        place = row["ts"] // 10 * 10, row["team"]
        totals[place] = totals.get(place, 0) + row["score"]
    groups = {}
    for (start, team), total in totals.items():
        groups.setdefault((float(start), total), []).append(team)
    return {place: {"teams": sorted(teams), "last": max(teams), "count": len(teams)} for place, teams in groups.items()}
