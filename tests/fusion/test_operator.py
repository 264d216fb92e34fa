"""Fused stages in one shard: what a stage compares its rows with, and whose state a shard has."""

import pytest

import beamish as bm
from beamish.accumulations import Sum
from beamish.contract.stored import DictStore
from beamish.fusion.groups import APART, FUSE
from beamish.local import Variation, run
from beamish.script import script_rows
from tests.agreement import differences
from tests.fusion.late import CHAIN, FIRST, SCRIPT
from tests.strategies.spark_steps import AsOnSpark


def test_a_late_pane_of_a_shard_that_had_no_rows_is_late_for_the_next_stage():
    panes = CHAIN.run(SCRIPT)
    assert {pane.key["team"] for pane in panes if pane.window.start.second == 30} == set()
    fused = run(CHAIN.flow, SCRIPT.events, Variation(shards=5, adapt=AsOnSpark, fuse=FUSE))
    assert differences(fused, panes, CHAIN) == []


def bound(how, pipeline=CHAIN):
    return how.grouped(
        pipeline.flow.completed.bind(script_rows(pipeline.flow, SCRIPT.events).schemas, shards=1)
    ).operator


def test_a_shard_with_the_state_of_one_stage_is_refused_by_fused_ones():
    store = DictStore()
    bound(APART, FIRST).open(store).step([None], None, [])
    with pytest.raises(
        bm.StateError, match=r"each stage in an operator of its own, the pipeline is applied with fused: pass"
    ):
        bound(FUSE).open(store)


def test_a_shard_with_the_state_of_other_stages_is_refused():
    store = DictStore()
    bound(FUSE).open(store).step([None], None, [])
    longer = CHAIN.then(bm.Pipeline().key_by("team").allowed_lateness(5).accumulating().accumulate(n=Sum("n")))
    with pytest.raises(
        bm.StateError, match=r"with stages 1, 2 in one operator, the pipeline is applied with stages 1, 2, 3 in one"
    ):
        bound(FUSE, longer).open(store)
