"""The columns that a checkpoint notes are those that a pipeline binds to where no DataFrame is given."""

import json

import pytest

import beamish as bm
from beamish.contract.stored import ABOUT, COLUMNS, DictStore
from beamish.fusion.groups import APART
from beamish.script import script_rows
from beamish.spark.checkpoint.stored_query import StageState, StoredQuery, _bound_to_noted
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
