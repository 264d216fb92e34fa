"""The laws of stages (beamish/contract/stage.py), for whatever the strategies draw."""

from __future__ import annotations

import pickle
from contextlib import suppress

import attrs
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import beamish as bm
from beamish.script import script_rows
from tests.kinds.changes import strategy as changes
from tests.kinds.suppress.strategy import suppressed
from tests.strategies import merges, scripts
from tests.strategies.flows import flows
from tests.strategies.pipelines import pipelines, rows_once

TYPES = [pa.int64(), pa.float64(), pa.string(), pa.bool_(), pa.timestamp("us", tz="UTC"), pa.list_(pa.int64())]


@st.composite
def pipelines_and_scripts(draw):
    kind = draw(st.sampled_from(["rows", "tree", "changes"]))
    if kind == "changes":
        pipeline = draw(changes.changes())
        return pipeline, draw(changes.scripts(pipeline))
    if kind == "rows":
        pipeline = draw(st.one_of(pipelines(), suppressed(pipelines()), pipelines(once=True), rows_once()))
        return pipeline, draw(scripts.scripts(pipeline))
    pipeline = draw(st.one_of(flows(), suppressed(flows())))
    return pipeline, draw(merges.scripts(pipeline))


@given(st.one_of(pipelines(), flows(), suppressed(flows()), changes.changes(), pipelines(once=True), rows_once()))
def test_a_stage_is_a_frozen_value(pipeline):
    for flow in pipeline.flow.flows:
        copy = pickle.loads(pickle.dumps(flow.stage))
        assert copy == flow.stage
        assert hash(copy) == hash(flow.stage)
        with pytest.raises(attrs.exceptions.FrozenInstanceError):
            flow.stage.options = None


@given(pipelines_and_scripts(), st.integers(1, 3))
def test_gives_takes_equals_bind_takes_shards_gives_but_for_the_schema(drawn, shards):
    pipeline, script = drawn
    rows = script_rows(pipeline.flow, script.events)
    assume(rows.any)
    bound = pipeline.flow.bind(rows.schemas, shards=shards)
    for flow, its in zip(pipeline.flow.flows, bound.flows, strict=True):
        assert flow.gives.schema is None
        assert its.operator.gives.schema is not None
        assert attrs.evolve(its.operator.gives, schema=None) == flow.gives


@given(pipelines_and_scripts(), st.data())
def test_bind_refuses_checked_pipelines_only_for_their_columns(drawn, data):
    pipeline, script = drawn
    pipeline.flow.check()
    rows = script_rows(pipeline.flow, script.events)
    assume(rows.any)
    schemas = {name: data.draw(otherwise(schema)) for name, schema in rows.schemas.items()}
    with suppress(bm.ColumnError):
        pipeline.flow.bind(schemas, shards=2)


@st.composite
def otherwise(draw, schema):
    """The columns, of which some are missing or of another type."""
    fields = []
    for field in schema:
        what = draw(st.sampled_from(["as it is", "as it is", "missing", "of another type"]))
        if what != "missing":
            fields.append(field if what == "as it is" else pa.field(field.name, draw(st.sampled_from(TYPES))))
    return pa.schema(fields)
