"""Law: a run that is stopped, carried over to other shards and continued gives what one that never stopped gives.

See rules/laws.md#law-carried-over.
"""

from __future__ import annotations

from itertools import chain

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

import beamish as bm
from beamish.accumulations import Count, InnerJoin, Max, Sum
from beamish.at_rest.rescale import check_carries_over, put_together, split
from beamish.contract.store import DictStore
from beamish.durations import Duration
from beamish.errors import StateError
from beamish.kinds.deduplicate.option import Deduplication
from beamish.kinds.suppress import newest_shard
from beamish.local import Variation, _Node
from beamish.script.events import as_step
from beamish.script.panes import panes_from_table
from beamish.script.tables import script_rows
from beamish.testing import TestStream
from beamish.triggers import AfterCount, Repeatedly
from tests import test_hold_back as hold_back
from tests.agreement import differences
from tests.cost import cost
from tests.laws.test_retention import retaining
from tests.laws.test_windows_of_rows import counted, keyed
from tests.own.hold_back_operator import HoldBackOperator
from tests.said import evolve
from tests.seconds import S
from tests.strategies import changes, merges, versions
from tests.strategies.pipelines import pipelines, rows_once
from tests.strategies.scripts import dense_scripts, scripts
from tests.strategies.suppress import busy, busy_scripts, suppressed
from tests.strategies.windows import windowings, windows
from tests.upgrades.carried import AS_THEY_COME, in_two_runs, line, typed
from tests.upgrades.rows import BARE, CHAIN, CHANGES, MERGED, OF_TWO, PLAIN, SCRIPT, TABLE

few = cost(5)


def carry_over(operator, stores):
    """The stores of a stage's shards, for an operator that goes on with them."""
    check_carries_over(operator, dict(enumerate(stores)))
    parts = [split(operator, store) for store in stores]
    return [put_together(operator, [part[to] for part in parts]) for to in range(operator.shards)]


def carried(pipeline, now, script, first, shards, *, types=AS_THEY_COME):
    """What comes of a script whose first events run in some shards, and the others in others; ``now``: the pipeline of these."""
    both = [typed(script_rows(pipeline.flow, script.events), of) for of in types]
    if not both[0].any:
        return [], []
    tables = {name: zip(*(rows.tables[name] for rows in both), strict=True) for name in both[0].tables}
    before, after = (
        _Node(one.flow.completed.bind(rows.schemas, shards=count), Variation(shards=count, round_trip=True))
        for one, count, rows in zip((pipeline, now), shards, both, strict=True)
    )
    run, out = before, ([], [])
    for number, event in enumerate(script.events):
        if number == first:
            for old, new in zip(before.nodes(), after.nodes(), strict=True):
                new._stores = carry_over(new._operator, old._stores)
                new._shards = [new._operator.open(store) for store in new._stores]
                new._given = [max(old._given) for _ in new._given]
            run = after
        step = as_step(event)
        table = run.step(step, next(tables[step.input])[run is after] if step.rows else None)
        out[run is after].extend(panes_from_table(table, run._operator.gives))
    return out


def changes_nothing(pipeline, script, data):
    shards = data.draw(st.sampled_from([(1, 3), (3, 1), (2, 5), (4, 2), (2, 2)]))
    first = data.draw(st.integers(1, max(len(script.events) - 1, 1)))
    both = [*chain(*carried(pipeline, pipeline, script, first, shards))]
    found = differences(pipeline.run(script), both, pipeline)
    assert not found, "\n".join([repr(pipeline), f"{first} of {script!r}", "- as it is, + carried over", *found])


def _kept(pipeline):
    """A drawn pipeline whose keys keep all of their past."""
    stage = pipeline.flow.stage
    options = attrs.evolve(stage.options, retention=None)
    return bm.Pipeline(attrs.evolve(pipeline.flow, stage=attrs.evolve(stage, options=options)))


@pytest.mark.of_law("law-carried-over")
@given(st.data())
def test_other_shards_change_nothing(data):
    pipeline = _kept(data.draw(pipelines(window=windows)))
    changes_nothing(pipeline, data.draw(scripts(pipeline)), data)


@pytest.mark.of_law("law-carried-over")
@few
@given(st.data())
def test_other_shards_change_nothing_of_ids_for_a_time(data):
    drawn = pipelines(
        window=windows.filter(lambda option: not isinstance(option, bm.CalendarWindows)),
        watermark=st.just(bm.BoundedOutOfOrderness(0)),
        keys=st.sampled_from([(), ("score",)]),
        accumulation=st.sampled_from([Count(), Sum("score")]),
    )
    within = Duration(data.draw(st.sampled_from([3, 20])) * S)
    pipeline = evolve(_kept(data.draw(drawn)), deduplication=Deduplication(("score",), within))
    changes_nothing(pipeline, data.draw(dense_scripts), data)


@pytest.mark.of_law("law-carried-over")
@few
@given(st.data())
def test_other_shards_change_nothing_of_rows_once(data):
    pipeline = data.draw(rows_once())
    changes_nothing(pipeline, data.draw(scripts(pipeline)), data)


@pytest.mark.of_law("law-carried-over")
@few
@given(st.data())
def test_other_shards_change_nothing_of_what_is_retained(data):
    pipeline = data.draw(retaining())
    changes_nothing(pipeline, data.draw(scripts(pipeline)), data)


@pytest.mark.of_law("law-carried-over")
@few
@given(st.data())
def test_other_shards_change_nothing_of_what_is_retained_in_long_scripts(data):
    drawn = retaining(
        window=windows.filter(lambda option: not isinstance(option, bm.CalendarWindows) and not option.is_all_of_time),
        watermark=st.just(bm.BoundedOutOfOrderness(0)),
        keys=st.sampled_from([(), ("score",)]),
        lateness=st.sampled_from([5, 40, 1000]),
        accumulation=st.sampled_from([Count(), Sum("score")]),
    )
    pipeline = data.draw(drawn.filter(lambda one: one.flow.stage.options.deduplication is None))
    changes_nothing(pipeline, data.draw(dense_scripts), data)


@pytest.mark.of_law("law-carried-over")
@few
@given(st.data())
def test_other_shards_change_nothing_of_windows_of_rows(data):
    pipeline = data.draw(counted(keys=keyed))
    changes_nothing(pipeline, data.draw(scripts(pipeline)), data)


@pytest.mark.of_law("law-carried-over")
@few
@given(st.data())
def test_other_shards_change_nothing_of_pairs_that_come_once(data):
    pipeline = data.draw(merges.merges(once=True).map(_kept))
    changes_nothing(pipeline, data.draw(merges.scripts(pipeline)), data)


@pytest.mark.of_law("law-carried-over")
@pytest.mark.parametrize("shards", [(2, 1), (4, 2), (3, 1)])
def test_a_pair_comes_once_where_shards_that_numbered_more_rows_and_fewer_are_one_now(shards):
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
def test_rows_are_counted_on_over_the_stream(keys):
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


@pytest.mark.of_law("law-carried-over")
@few
@given(st.data())
def test_other_shards_change_nothing_of_what_a_suppress_holds(data):
    some = pipelines(window=windows).map(_kept)
    pipeline = data.draw(suppressed(some, buffers=st.just(bm.Buffer())))
    changes_nothing(pipeline, data.draw(scripts(pipeline)), data)


@pytest.mark.of_law("law-carried-over")
@few
@given(st.data())
def test_other_shards_change_nothing_of_a_suppress_in_long_scripts(data):
    pipeline = data.draw(busy(buffers=st.just(bm.Buffer())))
    changes_nothing(pipeline, data.draw(busy_scripts), data)


@pytest.mark.of_law("law-carried-over")
@few
@given(st.data())
def test_other_shards_change_nothing_under_several_windowings(data):
    pipeline = _kept(data.draw(pipelines(window=windows.flatmap(windowings))))
    changes_nothing(pipeline, data.draw(scripts(pipeline)), data)


@pytest.mark.of_law("law-carried-over")
@few
@given(st.data())
def test_other_shards_change_nothing_of_a_suppress_over_several_windowings(data):
    some = pipelines(window=windows.flatmap(windowings)).map(_kept)
    pipeline = data.draw(suppressed(some, buffers=st.just(bm.Buffer())))
    changes_nothing(pipeline, data.draw(scripts(pipeline)), data)


@pytest.mark.of_law("law-carried-over")
@few
@given(st.data())
def test_other_shards_change_nothing_of_changes(data):
    pipeline = data.draw(changes.changes(buffers=st.just(bm.Buffer())))
    changes_nothing(pipeline, data.draw(changes.scripts(pipeline)), data)


@pytest.mark.parametrize("shards", [(1, 3), (3, 1), (2, 2)])
@pytest.mark.parametrize("name", hold_back.PIPELINES)
def test_a_custom_kind_is_rescaled_by_its_declaration(name, shards):
    pipeline, script = hold_back.PIPELINES[name], hold_back.SCRIPT
    for first in range(1, len(script.events)):
        both = [*chain(*carried(pipeline, pipeline, script, first, shards))]
        assert not differences(pipeline.run(script), both, pipeline)


def test_a_kind_that_declares_no_state_is_not_rescaled(monkeypatch):
    monkeypatch.setattr(HoldBackOperator, "notes", lambda _: ())
    pipeline = hold_back.PIPELINES["rows held back"]
    with pytest.raises(StateError, match="HoldBackOperator does not declare the state of its shards"):
        carried(pipeline, pipeline, hold_back.SCRIPT, 1, (1, 2))


@pytest.mark.parametrize("shards", [(1, 3), (3, 1), (2, 2)])
def test_a_change_that_is_held_comes_out_once(monkeypatch, shards):
    """Some lie among the recent ones and in another segment too."""
    for name, value in {"_FEWEST": 3, "_SHARE": 1, "_LARGEST": 2}.items():
        monkeypatch.setattr(newest_shard, name, value)
    script = TestStream()
    for ts in range(12):
        script = script.add([{"ts": float(ts), "k": key, "v": ts} for key in "abcdef"[: 6 - ts % 4]])
        script = script.advance_watermark_to(ts)
    script = script.advance_watermark_to(60).advance_watermark_to(70)
    for first in range(1, len(script.events), 5):
        both = [*chain(*carried(CHANGES, CHANGES, script, first, shards))]
        assert not differences(CHANGES.run(script), both, CHANGES)


@pytest.mark.of_law("law-carried-over")
@few
@given(st.data())
def test_other_shards_change_nothing_of_a_versioned_table(data):
    pipeline = data.draw(
        st.one_of(
            versions.versions(),
            versions.followed(versions.versions(of=versions.Drawing(with_dropped=st.sampled_from([False])))),
        )
    )
    changes_nothing(pipeline, data.draw(versions.scripts(pipeline)), data)


@pytest.mark.of_law("law-carried-over")
@few
@given(st.data())
def test_other_shards_change_nothing_of_an_as_of_join(data):
    pipeline = data.draw(versions.as_of_joins())
    changes_nothing(pipeline, data.draw(versions.scripts(pipeline)), data)


@pytest.mark.of_law("law-carried-over")
def test_other_shards_change_nothing_in_a_chain_and_in_a_merge():
    for pipeline, script in ((CHAIN, SCRIPT), (MERGED, OF_TWO)):
        whole = [pipeline.run(script), *(carried(pipeline, pipeline, script, at, (2, 3)) for at in (1, 2, 3))]
        for both in whole[1:]:
            assert not differences(whole[0], [*chain(*both)], pipeline)


@pytest.mark.of_law("law-carried-over")
def test_an_accumulation_that_is_dropped_is_gone_and_the_others_stay():
    then = BARE.accumulating_and_retracting().accumulate(n=Count(), s=Sum("v"), most=Max("v"))
    now = BARE.accumulating_and_retracting().accumulate(n=Count(), most=Max("v"))
    for first in (2, 3, 4):
        _, as_if_never_there = carried(now, now, SCRIPT, first, (2, 2))
        _, second = carried(then, now, SCRIPT, first, (2, 3))
        assert second
        assert sorted(map(line, second)) == sorted(map(line, as_if_never_there))


@pytest.mark.of_law("law-carried-over")
def test_each_key_is_numbered_on():
    panes = [*chain(*carried(PLAIN, PLAIN, SCRIPT, 3, (2, 5)))]
    for key in "ab":
        numbers = [pane.sequence for pane in panes if pane.key["k"] == key]
        assert numbers == sorted(set(numbers))


@pytest.mark.parametrize(("then", "now"), [(TABLE, CHANGES), (CHANGES, TABLE), (TABLE, PLAIN), (PLAIN, CHANGES)])
def test_a_stage_of_another_kind_does_not_go_on_with_it(then, now):
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
def test_what_means_something_else_is_refused(now):
    with pytest.raises(StateError):
        carried(PLAIN, now, SCRIPT, 3, (2, 3))


def test_a_trigger_may_change_as_it_may_between_two_runs():
    eager = PLAIN.trigger(bm.triggers.AfterWatermark(early=bm.triggers.AfterCount(1), late=bm.triggers.AfterCount(1)))
    _, as_it_is = in_two_runs(PLAIN, eager, SCRIPT, 3)
    _, second = carried(PLAIN, eager, SCRIPT, 3, (2, 3))
    assert sorted(map(line, second)) == sorted(map(line, as_it_is))


def test_a_shard_that_never_had_a_row_is_nothing():
    operator = PLAIN.flow.bind(script_rows(PLAIN.flow, SCRIPT.events).schemas, shards=3).operator
    assert carry_over(operator, [DictStore(), DictStore()]) == [{}, {}, {}]
