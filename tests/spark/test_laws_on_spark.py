"""Drawn pipelines and scripts on real Spark give what the engine gives: other shard and partition counts, the query
stopped and started again from its checkpoint, with and without heartbeats (RULES 39, 41, 42)."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from beamish import GlobalWindow
from beamish.spark.endless import waits_only_for_end
from tests.agreement import differences
from tests.strategies import pipelines, scripts

pytestmark = pytest.mark.spark

EXAMPLES = int(os.environ.get("BEAMISH_SPARK_EXAMPLES", "15"))


def fit_for_a_stream(pipeline):
    options = pipeline.options
    return not (isinstance(options.window, GlobalWindow) and waits_only_for_end(options.trigger))


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(data=st.data())
def test_drawn_pipelines_on_spark_give_what_the_engine_gives(spark, data):
    pipeline = data.draw(pipelines().filter(fit_for_a_stream))
    script = data.draw(scripts(pipeline.options, least=1).filter(lambda script: 5 <= len(script.events) <= 9))
    needs_clock = pipeline.options.needs_clock
    on_spark = script.on_spark(
        spark,
        pipeline,
        shards=data.draw(st.integers(1, 4)) if pipeline.options.keys else None,
        partitions=data.draw(st.integers(1, 2)),
        restart_after=() if needs_clock else (data.draw(st.integers(0, len(script.events) - 2)),),
        heartbeats=None if needs_clock else data.draw(st.booleans()),
    )
    found = differences(pipeline.run(script), on_spark, pipeline.options)
    assert not found, "\n".join([repr(pipeline), repr(script), "- engine, + Spark", *found])
