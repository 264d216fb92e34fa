"""The columns that a checkpoint notes are those that a pipeline binds to where no DataFrame is given."""

import json

import pytest

import beamish as bm
from beamish.accumulations import Count
from beamish.contract.stored import ABOUT, COLUMNS, DictStore
from beamish.fusion.groups import APART
from beamish.script import script_rows
from beamish.spark.checkpoint.entries import _by_likelihood
from beamish.spark.checkpoint.stored_query import StageState, StoredQuery, _bound_to_noted, in_order
from beamish.spark.compile.stream import abouts_of
from tests.checkpoints.cases import CASES

SHARDS = 2


def stored(bound, *, without=()):
    """A checkpoint of the stages, as far as they are described."""
    texts = [json.loads(about.text) for about in abouts_of(APART.grouped(bound)).values()]
    notes = [{name: value for name, value in text.items() if name not in without} for text in texts]
    stages = [StageState(at, "", {0: DictStore({ABOUT: json.dumps(note).encode()})}) for at, note in enumerate(notes)]
    return StoredQuery(0, stages, ticks=False, in_flight=False, shard_by={})


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


def test_stages_of_every_kind_store_their_input_schemas(case):
    flow = case.pipeline.flow.completed
    bound = flow.bind(script_rows(flow, case.script.events).schemas, shards=SHARDS)
    again = _bound_to_noted(stored(bound), flow, SHARDS)
    for one, other in zip(bound.flows, again.flows, strict=True):
        assert one.operator.identity == other.operator.identity
        assert [relation.columns for relation in one.operator.takes] == [
            relation.columns for relation in other.operator.takes
        ]


def test_a_checkpoint_without_the_note_asks_for_the_stream():
    case = CASES["as_of_join"]
    flow = case.pipeline.flow.completed
    bound = flow.bind(script_rows(flow, case.script.events).schemas, shards=SHARDS)
    with pytest.raises(bm.OptionError, match="does not have its columns; pass the streams"):
        _bound_to_noted(stored(bound, without=(COLUMNS,)), flow, SHARDS)


AT = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("k")
ONE = AT.window(bm.FixedWindows(10)).accumulate(n=Count())
TWO = ONE.then(bm.Pipeline().key_by("k").accumulate(n=Count()))
TREES = {
    "one": (ONE, [1]),
    "a chain": (TWO.then(bm.Pipeline().accumulate(n=Count())), [3, 2, 1]),
    "a merge": (bm.merge(a=ONE, b=ONE).accumulate(n=Count()), [3, 1, 2]),
    "beside a source": (bm.merge(a=AT, b=ONE).window(bm.FixedWindows(10)).accumulate(n=Count()), [2, 1]),
    "merges of chains": (
        bm.merge(a=TWO, b=bm.merge(c=ONE, d=TWO).accumulate(n=Count())).accumulate(n=Count()),
        [7, 2, 1, 6, 3, 5, 4],
    ),
}
"""Pipelines, and the stages of Spark's operators 0, 1 and so on: an operator before those it reads, these from left to right."""


@pytest.mark.parametrize("described", [False, True], ids=["before there were descriptions", "described"])
@pytest.mark.parametrize("tree", TREES)
def test_operators_are_matched_to_stages(tree, described):
    pipeline, numbers = TREES[tree]
    found = [
        StageState(
            2 * operator, "", {0: DictStore({ABOUT: json.dumps({"stage": number}).encode()} if described else {})}
        )
        for operator, number in enumerate(numbers)
    ]
    ordered = in_order(found[::-1], pipeline.flow)
    assert [numbers[one.operator // 2] for one in ordered] == list(range(1, len(numbers) + 1))


@pytest.mark.parametrize("tree", TREES)
def test_the_state_of_a_stage_is_first_looked_for_in_its_operator(tree):
    pipeline, numbers = TREES[tree]
    ids = [2 * operator for operator, _ in enumerate(numbers)]
    assert [numbers[_by_likelihood(ids, number, pipeline.flow)[0] // 2] for number in sorted(numbers)] == sorted(
        numbers
    )
    assert _by_likelihood([0], 2, ONE.flow) == [0]


def test_operators_of_another_pipeline_are_in_the_order_of_a_chain():
    both = [StageState(0, "", {}), StageState(1, "", {})]
    assert [one.operator for one in in_order(both, ONE.flow)] == [1, 0]
