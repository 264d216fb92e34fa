"""Accumulations and the inputs of a merge."""

import pyarrow as pa
import pytest

from beamish.accumulations import CoGroup, InnerJoin, LeftOuterJoin, Sum
from beamish.accumulations.base.accumulation import MergedInput
from tests.accumulations.every import EVERY, Spread

INPUTS = {
    name: MergedInput(name, number, ("k",), {"k": pa.string(), "x": pa.int64()})
    for number, name in enumerate(["orders", "clicks"])
}


@pytest.mark.parametrize("accumulation", [*EVERY, Spread("x")], ids=repr)
def test_an_accumulation_without_an_input_is_bound_to_none(accumulation):
    assert accumulation.names_of_inputs == ()
    assert accumulation.columns_of("orders") == ()
    assert accumulation.bind("name", INPUTS) is accumulation
    assert not accumulation.explodes


def test_the_inputs_of_an_accumulation_are_those_it_names():
    of = Sum("x").of("clicks")
    assert (of.names_of_inputs, of.columns_of("clicks"), of.columns_of("orders")) == (("clicks",), ("x",), ())
    assert CoGroup("orders", "clicks").names_of_inputs == ("orders", "clicks")
    assert InnerJoin("clicks", "orders").names_of_inputs == ("clicks", "orders")


def test_bound_to_inputs_it_reads_the_merged_columns_and_prints_as_declared():
    for declared in (Sum("x").of("clicks"), CoGroup("clicks"), InnerJoin("orders", "clicks")):
        bound = declared.bind("name", INPUTS)
        assert repr(bound) == repr(declared)
        assert "clicks.x" in bound.inputs
        assert declared.bind("name", INPUTS) == bound


def test_only_joins_explode():
    types = [pa.int8(), pa.int64(), pa.int64()]
    together = CoGroup("orders", "clicks").bind("name", INPUTS)
    assert together.output_type(types) == together.value_type(types)
    assert not together.explodes
    join = LeftOuterJoin("orders", "clicks").bind("name", INPUTS)
    row = pa.struct([("x", pa.int64())])
    assert join.explodes
    assert join.output_type(types) == pa.struct([("orders", row), ("clicks", row)])
