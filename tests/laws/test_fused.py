"""Law: together equals apart (rules/laws.md#law-fused), for chains and trees whose keys are alike, grow or shrink; restarts and migrations too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import beamish as bm
from beamish.accumulations import Collect, Count, Sum
from beamish.contract.stored import DictStore
from beamish.errors import BeamishError
from beamish.fusion.at_rest import fused_store, stages_of
from beamish.fusion.groups import APART, FUSE, Fuse, GroupedFlow
from beamish.local import Variation, _Node
from beamish.pane import Pane
from beamish.rescale import check_carries_over, put_together, split
from beamish.script import ScriptRows, as_step, panes_from_table, script_rows
from beamish.testing import TestStream
from beamish.triggers import AfterCount, AfterWatermark, Always
from tests.agreement import agree_otherwise, check_same
from tests.cost import cost
from tests.declared_options import evolve
from tests.strategies import flows, merges
from tests.strategies.chains import chains
from tests.strategies.pipelines import rows_once
from tests.strategies.scripts import scripts
from tests.strategies.spark_steps import AsOnSpark
from tests.strategies.watermarks import watermarks


@st.composite
def keyed_chains(draw: st.DrawFn) -> tuple[bm.Pipeline, Fuse]:
    """A chain of two or three stages whose keys are alike, grow, or shrink to one by which all are sharded."""
    chain = draw(chains(with_dropped=st.just(False)))  # noqa: FBT003
    own = tuple(map(str, chain.flow.flows[0].takes[0].keys))
    chain = evolve(chain, keys=draw(st.sampled_from([own, own, (*own, "v0"), own[:1]])))
    if draw(st.booleans()):
        third = bm.Pipeline().key_by(*own[:1]) if own else bm.Pipeline()
        third = (
            third.window(bm.GlobalWindow()).trigger(Always()).accumulating().accumulate(n=Count(), all=Collect("w0"))
        )
        chain = _then(chain, third)
    return chain, draw(st.sampled_from([FUSE, Fuse(shard_by=own[:1])])) if own else FUSE


def _then(chain: bm.Pipeline, third: bm.Pipeline) -> bm.Pipeline:
    try:
        return chain.then(third)
    except BeamishError:  # a third stage does not follow each second one
        return chain


@st.composite
def late_chains(draw: st.DrawFn) -> tuple[bm.Pipeline, Fuse]:
    """A stage that emits late panes, and one that drops panes too late for it."""
    first = (
        bm.Pipeline().event_time("ts", draw(watermarks)).key_by("team").window(bm.FixedWindows(draw(st.integers(1, 4))))
    )
    first = first.trigger(AfterWatermark(late=AfterCount(1))).allowed_lateness(1000).discarding().accumulate(v0=Count())
    second = bm.Pipeline().key_by("team").allowed_lateness(draw(st.integers(0, 3))).discarding()
    return first.then(second.accumulate(n=Count(), total=Sum("v0"))), FUSE


@st.composite
def after_rows_once(draw: st.DrawFn) -> tuple[bm.Pipeline, Fuse]:
    """A stage over rows without duplicates, which are distributed by their ids, or by a key."""
    first = draw(rows_once())
    keys = draw(st.sampled_from([(), ("team",), ("score",), ("team", "score")]))
    second = bm.Pipeline().key_by(*keys) if keys else bm.Pipeline()
    second = second.window(bm.FixedWindows(5)).trigger(Always()).allowed_lateness(1000).accumulating()
    return _then(first, second.accumulate(n=Count(), all=Collect("score"))), FUSE


trees = st.tuples(st.one_of(flows.flows(), merges.merges()), st.just(FUSE))


def script_of(pipeline: bm.Pipeline) -> st.SearchStrategy[TestStream]:
    if len(pipeline.flow.sources) > 1:
        return st.one_of(merges.scripts(pipeline), flows.tree_scripts(pipeline))
    return scripts(pipeline)


def rows_of(pipeline: bm.Pipeline, script: TestStream) -> ScriptRows:
    pipeline.flow.check()
    rows = script_rows(pipeline.flow, script.events)
    assume(rows.any)
    return rows


def fusing(
    drawn: st.SearchStrategy[tuple[bm.Pipeline, Fuse]], data: st.DataObject
) -> tuple[bm.Pipeline, Fuse, TestStream]:
    """A pipeline some of whose stages run together, how, and a script."""
    pipeline, fuse = data.draw(drawn)
    script = data.draw(script_of(pipeline))
    fused = fuse.grouped(pipeline.flow.completed.bind(rows_of(pipeline, script).schemas, shards=2))
    assume(len(fused.each) < len(pipeline.flow.flows))
    return pipeline, fuse, script


@pytest.mark.of_law("law-fused")
@pytest.mark.parametrize("drawn", [keyed_chains(), after_rows_once(), trees], ids=["chains", "rows once", "trees"])
@given(st.data())
@cost(2)
def test_fused_stages_give_what_they_give_apart(drawn, data):
    pipeline, fuse, script = fusing(drawn, data)
    how = Variation(shards=data.draw(st.integers(1, 3)), packs=2, round_trip=data.draw(st.booleans()), fuse=fuse)
    agree_otherwise(pipeline, script, how)


@pytest.mark.of_law("law-fused")
@pytest.mark.parametrize("drawn", [late_chains(), keyed_chains()], ids=["late panes", "chains"])
@given(st.data())
@cost(2)
def test_shards_of_fused_stages_are_stepped_as_often_as_they_need(drawn, data):
    pipeline, fuse, script = fusing(drawn, data)
    assume(len(pipeline.flow.sources) == 1)  # of several, Spark's watermark is not that of each
    how = Variation(shards=data.draw(st.integers(1, 3)), packs=2, adapt=AsOnSpark, fuse=fuse)
    agree_otherwise(pipeline, script, how)


@pytest.mark.of_law("law-fused", "law-carried-over")
@pytest.mark.parametrize("drawn", [keyed_chains(), after_rows_once(), trees], ids=["chains", "rows once", "trees"])
@given(st.data())
@cost(2)
def test_fused_stages_are_carried_over_to_stages_apart_and_back(drawn, data):
    pipeline, fuse = data.draw(drawn)
    script = data.draw(script_of(pipeline))
    rows = rows_of(pipeline, script)
    stops = sorted(data.draw(st.sets(st.integers(1, max(len(script.events) - 1, 1)), min_size=1, max_size=2)))
    hows = data.draw(st.sampled_from([(fuse, APART, fuse), (APART, fuse, APART), (fuse, fuse, fuse)]))
    shards = data.draw(st.tuples(*[st.integers(1, 3)] * 3))
    came = list(carried(pipeline, rows, script, stops, list(zip(hows, shards, strict=True))))
    check_same(pipeline.run(script), came, pipeline, script, hows, shards, "- as it is, + carried over")


def carried(
    pipeline: bm.Pipeline,
    rows: ScriptRows,
    script: TestStream,
    stops: Sequence[int],
    runs: Sequence[tuple[Fuse, int]],
) -> Iterator[Pane]:
    """The output of a script that is stopped and migrated before some events; ``runs``: the fusion and shards of each run."""
    flow, left = pipeline.flow.completed, iter(runs)
    tables = {name: iter(of) for name, of in rows.tables.items()}

    def begun() -> tuple[_Node, GroupedFlow]:
        fuse, shards = next(left)
        now = fuse.grouped(flow.bind(rows.schemas, shards=shards))
        return _Node(now, Variation(round_trip=True)), now

    node, now = begun()
    for number, event in enumerate(script.events):
        if number in stops:
            before, then = node, now
            node, now = begun()
            carry_over(before, then, node, now)
        step = as_step(event)
        table = node.step(event, {step.input: next(tables[step.input])} if step.rows else {})
        yield from panes_from_table(table, node.gives)


def carry_over(before: _Node, then: GroupedFlow, after: _Node, now: GroupedFlow) -> None:
    """The state of all stages, as ``bm.migrate`` distributes it."""
    stored: dict[int, list[DictStore]] = {}
    for group, node in zip(then.each, before.nodes(), strict=True):
        each = stages_of(dict(enumerate(node._stores)))
        for link, stores in zip(group.links, each.values(), strict=True):
            stored[link.number] = list(stores.values())
    for group, node in zip(now.each, after.nodes(), strict=True):
        links = group.links
        parts = {}
        for link in links:
            check_carries_over(link.operator, dict(enumerate(stored[link.number])))
            parts[link.number] = [split(link, store) for store in stored[link.number]]
        node._stores = [
            fused_store(links, [put_together(link, [of[to] for of in parts[link.number]]) for link in links])
            for to in range(group.operator.shards)
        ]
        node._shards = [node._operator.open(store) for store in node._stores]
        node._given = [max(before._given) for _ in node._given]
