"""Rollup, cube and grouping sets (rules/key-sets.md)."""

import pickle

import attrs
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import IntegerType

import beamish as bm
from beamish.accumulations import Collect, Count, CountDistinct, InnerJoin, Sum
from beamish.contract.stored import DictStore
from beamish.testing import TestStream
from tests.agreement import differences
from tests.cost import cost
from tests.laws.cases import in_key_sets
from tests.refused import START, cases, refused
from tests.strategies.scripts import scripts

ROLLUP = bm.Rollup("country", "city")
KEYED = START.key_by(ROLLUP)
HOURS = KEYED.window(bm.FixedWindows("1 hour"))
ROW = {"ts": 1, "country": "NO", "city": "Oslo", "euros": 5}


def column_of(flow):
    """The keys of its single source, as declared."""
    (source,) = flow.sources
    return source.key_sets


@pytest.mark.of_law("law-key-sets")
@cost(3)
@given(st.data())
def test_the_panes_of_a_set_are_those_of_a_pipeline_keyed_by_it(data):
    pipeline = data.draw(in_key_sets())
    script = data.draw(scripts(pipeline))
    sets = column_of(pipeline.flow)
    panes = pipeline.run(script)
    for kept, id_ in zip(sets.sets, sets.ids, strict=True):
        alone = pipeline.key_by(*kept)
        own = [of_set(pane, kept) for pane in panes if pane.key["grouping_id"] == id_]
        expected = [of_set(pane, kept) for pane in alone.run(script)]
        found = differences(own, expected, alone)
        assert not found, "\n".join([repr(pipeline), repr(script), repr(kept), *found])
    assert {pane.key["grouping_id"] for pane in panes} <= set(sets.ids)


def of_set(pane, kept):
    """A pane with the key columns of a set, without what differs between two pipelines; rows that were dropped without their columns."""
    key = {name: pane.key[name] for name in kept}
    values = {} if pane.kind is bm.PaneKind.DROPPED else pane.values
    return attrs.evolve(pane, key=key, values=values, sequence=0)


@pytest.mark.parametrize(
    ("sets", "ids"),
    [
        (bm.Rollup("a", "b"), {("a", "b"): 0, ("a",): 1, (): 3}),
        (bm.Cube("a", "b"), {("a", "b"): 0, ("a",): 1, ("b",): 2, (): 3}),
        (bm.GroupingSets("b", ("a", "b"), ()), {("b",): 1, ("b", "a"): 0, (): 3}),
        (bm.GroupingSets(("a", "b", "c"), ("b",)), {("a", "b", "c"): 0, ("b",): 5}),
    ],
    ids=repr,
)
def test_grouping_ids_are_those_of_spark(sets, ids):
    names = {tuple(sorted(kept)): id_ for kept, id_ in zip(sets.sets, sets.ids, strict=True)}
    assert names == {tuple(sorted(kept)): id_ for kept, id_ in ids.items()}
    assert eval(repr(sets), vars(bm)) == sets
    assert pickle.loads(pickle.dumps(sets)) == sets
    assert hash(sets) == hash(eval(repr(sets), vars(bm)))


def test_a_pipeline_has_its_sets_in_repr_and_explain():
    pipeline = START.key_by("shop", ROLLUP).window(bm.FixedWindows(5)).accumulate(n=Count())
    assert eval(repr(pipeline), {**vars(bm), "Count": Count}) == pipeline
    assert ".key_by('shop', Rollup('country', 'city'))" in repr(pipeline)
    words = " ".join(pipeline.explain().split())
    assert (
        "each row is in the groups of (country, city), (country), (); a key column that is not in the set is null"
        in words
    )
    assert START.key_by(ROLLUP).key_by("country").flow.inputs[0].key_sets is None


def test_one_level_is_a_condition_and_a_later_stage_groups_totals():
    totals = HOURS.accumulate(n=Count()).having(pc.field("grouping_id") == 1)
    script = TestStream().add([ROW, {**ROW, "city": "Bergen"}, {**ROW, "country": "SE"}]).advance_watermark_to(3600)
    assert [(pane.key["country"], pane.values["n"]) for pane in totals.run(script)] == [("NO", 2), ("SE", 1)]
    countries = totals.then(bm.Pipeline().key_by("grouping_id").accumulate(countries=Count(), rows=Sum("n")))
    (pane,) = countries.run(script)
    assert (pane.key, pane.values) == ({"grouping_id": 1}, {"countries": 2, "rows": 3})


def test_changes_of_a_table_are_in_all_their_groups():
    feed = bm.Pipeline().from_changelog("flink").event_time("ts", bm.BoundedOutOfOrderness(0)).key_by(ROLLUP)
    counted = feed.window(bm.GlobalWindow()).trigger(bm.triggers.Always()).accumulating().accumulate(n=Count())
    script = TestStream().add([{"op": "+I", **ROW}, {"op": "+I", **ROW}]).add([{"op": "-D", **ROW}])
    assert [pane.values["n"] for pane in counted.run(script)] == [2, 2, 2, 1, 1, 1]


def test_windowings_and_rolling_spans_have_them():
    script = TestStream().add([ROW, {**ROW, "city": "Bergen"}]).advance_watermark_to(7200)
    named = KEYED.window({"m": bm.FixedWindows(60), "h": bm.FixedWindows(3600)}).accumulate(n=Count())
    assert len(named.run(script)) == 8
    rolling = KEYED.window(bm.Rolling({"h": "1 hour"}, step="10 minutes")).accumulate(n=Count())
    assert {pane.values["n_h"] for pane in rolling.run(script) if pane.key["grouping_id"] == 3} == {2, 0}


CALLS = {
    "no key sets": bm.Rollup,
    "a key set of a number": lambda: bm.Rollup(5),
    "a key set of a path": lambda: bm.Rollup("a.b"),
    "a key set with a column twice": lambda: bm.Rollup("a", "a"),
    "a cube of seven columns": lambda: bm.Cube(*"abcdefg"),
    "a key set twice": lambda: bm.GroupingSets("a", ("a",)),
    "only the grand total": lambda: bm.GroupingSets(()),
    "two key sets": lambda: START.key_by(bm.Rollup("a"), bm.Cube("b")),
    "a key beside and in a set": lambda: START.key_by("a", bm.Rollup("a")),
    # as a Column, which needs a session
    "an expression beside key sets": lambda: START.key_by(IntegerType(), bm.Rollup("a")),
    "key sets in a later stage": lambda: HOURS.accumulate(n=Count()).then(bm.Pipeline().key_by(bm.Cube("n"))),
}


def at_an_expression():
    """A pipeline whose event time is not a name, as a Column of Spark."""
    flow = HOURS.accumulate(n=Count()).flow
    return bm.Pipeline(attrs.evolve(flow, inputs=(attrs.evolve(flow.inputs[0], event_time=range(1)),)))


TOGETHER = {
    "key sets over": lambda: KEYED.over(bm.Preceding(5)).accumulate(n=Count()),
    "key sets of versions": lambda: KEYED.versions(5),
    "key sets of a merge": lambda: (
        bm.merge(a=KEYED, b=KEYED).window(bm.FixedWindows(5)).accumulate(n=InnerJoin("a", "b"))
    ),
    "key sets in windows over the stream": lambda: KEYED.window(bm.CountWindows(4, over="stream")).accumulate(
        n=Count()
    ),
    "key sets in sessions of a stream": lambda: KEYED.window({"a": bm.CountSessions(3)}).accumulate(n=Count()),
    "a total as a value": lambda: HOURS.accumulate(n=CountDistinct("city")),
    "a field of a total as a value": lambda: HOURS.accumulate(n=Sum("city.people")),
    "a field of a total as an id": lambda: HOURS.deduplicate("city.mayor").accumulate(n=Count()),
    "key sets of the event time": lambda: (
        START.key_by(bm.Rollup("ts")).window(bm.FixedWindows(5)).accumulate(n=Count())
    ),
    "key sets of a struct with the event time": lambda: (
        bm.Pipeline()
        .event_time("sold.at", bm.BoundedOutOfOrderness(0))
        .key_by(bm.Rollup("sold"))
        .window(bm.FixedWindows(5))
        .accumulate(n=Count())
    ),
    "key sets with an expression as event time": at_an_expression,
}
COLUMNS = {
    "a condition on a total": HOURS.where(pc.field("city") == "Oslo").accumulate(n=Count()),
    "a column called grouping_id": HOURS.accumulate(n=Count()),
}


@cases(CALLS)
def test_invalid_sets_are_rejected_at_their_call(name):
    refused(__file__, name, CALLS[name])


@cases(TOGETHER)
def test_sets_are_rejected_where_they_mean_nothing(name):
    refused(__file__, name, lambda: TOGETHER[name]().explain())


@cases(COLUMNS)
def test_columns_that_clash_are_rejected(name):
    row = ROW if name == "a condition on a total" else {**ROW, "Grouping_ID": 1}
    refused(__file__, name, lambda: COLUMNS[name].run(TestStream().add([row])))


def test_a_checkpoint_with_other_sets_is_rejected():
    columns = {"ts": pa.timestamp("us"), "country": pa.string(), "city": pa.string(), "grouping_id": pa.int64()}

    def opened(keys, store):
        pipeline = START.key_by(keys).window(bm.FixedWindows(5)).accumulate(n=Count(), all=Collect("ts"))
        return pipeline.flow.bind({None: pa.schema(columns)}, shards=1).operator.open(store)

    store = DictStore()
    opened(ROLLUP, store).step([None], None, [])
    opened(ROLLUP, store)
    refused(__file__, "other key sets", lambda: opened(bm.Cube("country", "city"), store))
