"""Law: a run that is stopped, carried over to other shards and continued gives what one that never stopped gives.

See rules/laws.md#law-carried-over.
"""

from __future__ import annotations

from itertools import chain

import pytest

import beamish as bm
from beamish.accumulations import Count, InnerJoin, Max, Sum
from beamish.contract.stored import DictStore
from beamish.errors import StateError
from beamish.kinds.suppress import shard
from beamish.script import script_rows
from beamish.testing import TestStream
from beamish.triggers import AfterCount, Repeatedly
from tests.agreement import differences
from tests.upgrades.carried import carried, carry_over, in_two_runs, line
from tests.upgrades.rows import BARE, CHANGES, PLAIN, SCRIPT, TABLE

pytestmark = pytest.mark.dear


@pytest.mark.of_law("law-carried-over")
@pytest.mark.parametrize("shards", [(2, 1), (4, 2), (3, 1)])
def test_pairs_are_emitted_once_after_rescaling(shards):
    rows = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("k")
    sliding = bm.merge(a=rows, b=rows).window(bm.SlidingWindows(20, 10)).allowed_lateness(1000).discarding()
    pipeline = sliding.trigger(Repeatedly(AfterCount(1))).accumulate(p=InnerJoin("a", "b", once=True))
    for busy_key in "abcdef":
        many = [{"k": busy_key, "ts": ts, "x": x} for x, ts in enumerate((5.0, 12.0, 15.0, 25.0))]
        each = [{"k": key, "ts": 15.0, "x": 9} for key in "abcdef"]
        script = TestStream().add(many, input="a").add(each, input="b").add(many, input="b").add(many, input="a")
        both = [*chain(*carried(pipeline, pipeline, script, 2, shards))]
        assert not differences(pipeline.run(script), both, pipeline)


@pytest.mark.of_law("law-carried-over")
@pytest.mark.parametrize("keys", [("team",), ("team", "part")])
def test_stream_row_numbers_continue_after_rescaling(keys):
    pipeline = (
        bm.Pipeline()
        .event_time("ts", bm.BoundedOutOfOrderness(0))
        .key_by(*keys)
        .window(bm.CountWindows(3, over="stream"))
    ).accumulate(n=Count())
    script = TestStream()
    for team in "aba":
        script = script.add([{"ts": 1.0, "team": team, "part": "x"}] * 2)
    script = script.advance_watermark_to_infinity()
    for first in (1, 2):
        both = [*chain(*carried(pipeline, pipeline, script, first, (1, 3)))]
        assert not differences(pipeline.run(script), both, pipeline)


@pytest.mark.parametrize("shards", [(1, 3), (3, 1), (2, 2)])
def test_a_buffered_change_is_emitted_once_after_rescaling(monkeypatch, shards):
    """Some lie among the recent ones and in another segment too."""
    for name, value in {"_FEWEST": 3, "_SHARE": 1, "_LARGEST": 2}.items():
        monkeypatch.setattr(shard, name, value)
    script = TestStream()
    for ts in range(12):
        script = script.add([{"ts": float(ts), "k": key, "v": ts} for key in "abcdef"[: 6 - ts % 4]])
        script = script.advance_watermark_to(ts)
    script = script.advance_watermark_to(60).advance_watermark_to(70)
    for first in range(1, len(script.events), 5):
        both = [*chain(*carried(CHANGES, CHANGES, script, first, shards))]
        assert not differences(CHANGES.run(script), both, CHANGES)


@pytest.mark.of_law("law-carried-over")
def test_a_removed_accumulation_is_dropped_by_migration():
    then = BARE.accumulating_and_retracting().accumulate(n=Count(), s=Sum("v"), most=Max("v"))
    now = BARE.accumulating_and_retracting().accumulate(n=Count(), most=Max("v"))
    for first in (2, 3, 4):
        _, as_if_never_there = carried(now, now, SCRIPT, first, (2, 2))
        _, second = carried(then, now, SCRIPT, first, (2, 3))
        assert second
        assert sorted(map(line, second)) == sorted(map(line, as_if_never_there))


@pytest.mark.of_law("law-carried-over")
def test_sequence_numbers_of_a_key_continue():
    panes = [*chain(*carried(PLAIN, PLAIN, SCRIPT, 3, (2, 5)))]
    for key in "ab":
        numbers = [pane.sequence for pane in panes if pane.key["k"] == key]
        assert numbers == sorted(set(numbers))


@pytest.mark.parametrize(("then", "now"), [(TABLE, CHANGES), (CHANGES, TABLE), (TABLE, PLAIN), (PLAIN, CHANGES)])
def test_a_stage_of_another_kind_rejects_the_state(then, now):
    with pytest.raises(StateError):
        carried(then, now, SCRIPT, 3, (2, 3))


@pytest.mark.parametrize(
    "now",
    [
        PLAIN.window(bm.FixedWindows(5)),
        PLAIN.discarding(),
        PLAIN.window({"tens": bm.FixedWindows(10)}),
        PLAIN.key_by("v"),
    ],
)
def test_an_incompatible_stage_is_rejected(now):
    with pytest.raises(StateError):
        carried(PLAIN, now, SCRIPT, 3, (2, 3))


def test_a_trigger_may_change_in_a_migration():
    eager = PLAIN.trigger(bm.triggers.AfterWatermark(early=bm.triggers.AfterCount(1), late=bm.triggers.AfterCount(1)))
    _, as_it_is = in_two_runs(PLAIN, eager, SCRIPT, 3)
    _, second = carried(PLAIN, eager, SCRIPT, 3, (2, 3))
    assert sorted(map(line, second)) == sorted(map(line, as_it_is))


def test_an_empty_shard_migrates_to_nothing():
    operator = PLAIN.flow.bind(script_rows(PLAIN.flow, SCRIPT.events).schemas, shards=3).operator
    assert carry_over(operator, [DictStore(), DictStore()]) == [{}, {}, {}]
