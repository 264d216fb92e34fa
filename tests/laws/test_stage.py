"""The laws of beamish/stages/stage.py, for stages as the calls of a pipeline make them."""

from __future__ import annotations

import contextlib
import pickle

import attrs
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import beamish as bm
from tests.strategies.accumulations import accumulations
from tests.strategies.triggers import triggers
from tests.strategies.watermarks import watermarks
from tests.strategies.windows import windows

COLUMNS = pa.schema(
    {
        "ts": pa.timestamp("us", "UTC"),
        "team": pa.string(),
        "score": pa.int64(),
        "ratio": pa.float64(),
        "name": pa.string(),
        "cost": pa.decimal128(10, 2),
        "flag": pa.bool_(),
        "mark": pa.timestamp("us", "UTC"),
    }
)


@st.composite
def flows(draw: st.DrawFn):
    """A flow of one stage, or of a stage over it, that its ``check`` accepts."""
    first = (
        bm.Pipeline()
        .event_time("ts", draw(watermarks))
        .key_by(*draw(st.sampled_from([(), ("team",)])))
        .window(draw(windows))
        .trigger(draw(triggers), allow_data_loss=True)
        .accumulation_mode(draw(st.sampled_from(bm.AccumulationMode)))
        .accumulate(v=draw(accumulations))
    )
    if draw(st.booleans()):
        later = bm.Pipeline().trigger(draw(triggers), allow_data_loss=True).accumulating()
        try:
            first = first.then(later.accumulate(n=bm.accumulations.Count()))
        except bm.PipelineError:
            assume(False)  # noqa: FBT003
    try:
        first.flow.check()
    except bm.PipelineError:
        assume(False)  # noqa: FBT003
    return first.flow


@given(flows())
def test_a_stage_is_a_frozen_value(flow):
    stage = flow.stage
    copy = pickle.loads(pickle.dumps(stage))
    assert copy == stage
    assert hash(copy) == hash(stage)
    with pytest.raises(AttributeError):
        stage.options = None


@given(flows(), st.integers(1, 3))
def test_gives_takes_equals_bind_takes_shards_gives(flow, shards):
    bound = flow.bind({None: COLUMNS}, shards=shards)
    for known, one in zip(flow.flows, bound.flows, strict=True):
        assert attrs.evolve(one.operator.gives, schema=None) == attrs.evolve(known.gives, schema=None)
        assert one.operator.gives.schema is not None


@given(flows(), st.sampled_from(COLUMNS.names))
def test_what_check_accepts_bind_refuses_only_for_its_columns(flow, missing):
    flow.bind({None: COLUMNS}, shards=2)
    without = COLUMNS.remove(COLUMNS.get_field_index(missing))
    with contextlib.suppress(bm.ColumnError):
        flow.bind({None: without}, shards=2)
