"""Batch DataFrames: Spark's own window function and the engine join the same rows (rules/running.md#batch-plan)."""

import random
from datetime import UTC, datetime, timedelta

import pytest
from pyspark.sql import functions as F

import beamish as bm
from beamish.spark.compile.batch import engine_panes
from beamish.spark.compile.inputs import name_inputs
from beamish.spark.compile.native import native_joined, why_not_native_as_of

pytestmark = pytest.mark.spark

NOW = bm.BoundedOutOfOrderness(0)
FAR = "timestamp_micros(253402300800000000)"
"""The year 10000."""


@pytest.fixture(scope="module")
def frames(spark):
    """Rows and changes with all that ties: equal times, sequences, values; without time or key; out of range."""
    chance = random.Random(5)

    def time():
        return (
            datetime(2024, 1, 1, tzinfo=UTC) + timedelta(seconds=chance.randint(0, 12))
            if chance.random() > 0.05
            else None
        )

    def key():
        return chance.choice(["a", "b", None]), chance.choice([1, 2, None])

    rows = [(number, time(), *key()) for number in range(150)]
    changes = [
        (
            time(),
            *key(),
            chance.choice([0.5, float("nan"), None]),
            chance.choice(["x", None]),
            chance.choice([True, False, None]),
            chance.choice([1, 2, None]),
        )
        for _ in range(70)
    ]
    orders = spark.createDataFrame(rows, "id int, ts timestamp, `the cur` string, n int")
    rates = spark.createDataFrame(
        changes, "at timestamp, cur string, m int, `a.rate` double, note string, gone boolean, seq int"
    )
    beyond = orders.selectExpr("id", f"{FAR} ts", "`the cur`", "n").limit(3)
    before = rates.selectExpr("timestamp_micros(-99999999999999999) at", "cur", "m", "9d", "note", "gone", "seq").limit(
        20
    )
    return {"orders": orders.unionAll(beyond), "rates": rates.unionAll(before)}


def joined(frames, *, keys=2, **options):
    table = {
        name: options.pop(name) for name in ("deleted", "sequence_by", "only_updated", "values") if name in options
    }
    on = dict(list({"the cur": "cur", "n": "m"}.items())[:keys])
    rates = bm.Pipeline().event_time("at", NOW).key_by(*on.values()).versions("1 hour", **table)
    join = bm.as_of_join(orders=bm.Pipeline().event_time("ts", NOW), rates=rates, on=on, **options)
    named = name_inputs(join.flow, None, frames)
    return named.bind(2), named.frames


def rows_of(df):
    """The rows; each way numbers them in its own order (rules/panes.md#pane-sequence)."""
    found = [row.asDict(recursive=True) for row in df.collect()]
    numbers = {(row["the cur"], row["n"], row["pane"].pop("sequence")) for row in found}
    assert len(numbers) == len(found)
    return sorted(map(repr, found))


@pytest.mark.parametrize(
    "options",
    [
        {"deleted": "gone", "sequence_by": "seq"},
        {"how": "left", "deleted": "gone"},
        {"how": "left", "allow_exact_matches": False, "values": ["a.rate", "at"], "sequence_by": "seq", "keys": 1},
        {"tolerance": 2, "values": ["note"], "keys": 1},
        {"how": "left", "tolerance": 1, "allow_exact_matches": False},
    ],
    ids=repr,
)
def test_native_plan_equals_engine(frames, options):
    flow, named = joined(frames, **options)
    assert not why_not_native_as_of(flow.operator.plan)
    native = native_joined(flow.operator.plan, *(named[source.name] for source in flow.sources))
    engine = engine_panes(flow, named)
    assert native.schema.simpleString() == engine.schema.simpleString()
    assert rows_of(native) == rows_of(engine) != []


def test_unsupported_plans_run_in_the_engine(frames):
    def why_not(frames, **options):
        return why_not_native_as_of(joined(frames, **options)[0].operator.plan)

    assert "only_updated" in why_not(frames, only_updated=True)
    assert "single key" in why_not(frames, keys=0)
    orders, rates = frames.values()
    floats = {"orders": orders.withColumn("the cur", F.lit(0.0)), "rates": rates.withColumn("cur", F.col("`a.rate`"))}
    assert "0.0" in why_not(floats)
