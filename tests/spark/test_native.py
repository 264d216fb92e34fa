"""Batch DataFrames: Spark's own aggregation and the engine give the same panes (rules/running.md#batch)."""

import math
import random
from datetime import UTC, datetime, timedelta

import attrs
import pytest

import beamish as bm
from beamish.accumulations import (
    BitAnd,
    BitOr,
    BitXor,
    BoolAnd,
    BoolOr,
    Collect,
    Count,
    CountDistinct,
    CountIf,
    Max,
    Mean,
    Min,
    StdDev,
    Sum,
    Variance,
)
from beamish.spark.compile.batch import engine_panes
from beamish.spark.compile.inputs import name_inputs
from beamish.spark.compile.native import native_panes, why_not_native
from tests.cost import deep_after

pytestmark = pytest.mark.spark

ACCUMULATIONS = {
    "rows": Count(),
    "known": Count("x"),
    "total": Sum("x"),
    "price": Sum("d"),
    "weight": Sum("f"),
    "least": Min("f"),
    "most": Max("x"),
    "mean": Mean("x"),
    "mean_price": Mean("d"),
    "variance": Variance("x"),
    "spread": StdDev("x", population=True),
    "kinds": CountDistinct("x", "f"),
    "bits": BitXor("x"),
    "all_bits": BitAnd("x"),
    "some_bits": BitOr("x"),
    "all": BoolAnd("b"),
    "some": BoolOr("b"),
    "large": CountIf("b"),
}
WINDOWS = [
    bm.FixedWindows(7, 3),
    bm.FixedWindows("1 minute", -5),
    bm.SlidingWindows(10, 3, 1),
    bm.SlidingWindows(9, 9),
    bm.Sessions(1),
    bm.Sessions("100 milliseconds"),
    bm.GlobalWindow(),
]


@pytest.fixture(scope="module")
def rows(spark):
    chance = random.Random(3)

    def time():
        us = chance.choice([chance.randint(-30_000_000, 30_000_000), chance.randint(-30, 30) * 1_000_000])
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=us) if chance.random() > 0.05 else None

    made = [
        (time(), chance.choice(["a", "b", None]), chance.choice([0.0, float("nan"), 1.5]), chance.choice([None, 1, 2]))
        for _ in range(400)
    ]
    rows = spark.createDataFrame(made, "ts timestamp, k string, f double, x int")
    year_10000 = rows.limit(2).selectExpr("timestamp_micros(253402300800000000) ts", "k", "f", "x")
    return rows.unionAll(year_10000).selectExpr("*", "cast(x as decimal(8, 2)) d", "x > 1 b")


def planned(window, rows, keys=("k",), combiner=bm.TimestampCombiner.END_OF_WINDOW, **accumulations):
    pipeline = (
        bm.Pipeline()
        .event_time("ts", bm.BoundedOutOfOrderness(0))
        .key_by(*keys)
        .window(window)
        .timestamp_combiner(combiner)
        .accumulate(**(accumulations or ACCUMULATIONS))
    )
    named = name_inputs(pipeline.flow, rows, {})
    return named.bind(2), named.frames


def same(a, b):
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=1e-9) or (math.isnan(a) and math.isnan(b))
    return a == b


def by_window(df):
    """The panes; each way numbers them in its own order (rules/panes.md#pane-sequence)."""
    found = [row.asDict(recursive=True) for row in df.collect()]
    assert len({(row.get("k"), row["pane"].pop("sequence")) for row in found}) == len(found)
    return sorted(found, key=lambda row: (str(row.get("k")), str(row["window"])))


@pytest.mark.parametrize("window", deep_after(4, WINDOWS), ids=repr)
def test_native_plan_equals_engine(rows, window):
    combiners = iter(bm.TimestampCombiner)
    for keys in ((), ("k",)):
        flow, frames = planned(window, rows, keys, next(combiners))
        plan = flow.operator.plan
        native, engine = native_panes(plan, frames[None]), engine_panes(flow, frames)
        assert not why_not_native(plan)
        assert native.schema.simpleString() == engine.schema.simpleString()
        one, other = by_window(native), by_window(engine)
        assert len(one) == len(other) > 0
        for a, b in zip(one, other, strict=True):
            assert all(same(a[name], b[name]) for name in a), (a, b)


def test_no_row_no_pane(rows):
    for keys in ((), ("k",)):
        flow, frames = planned(bm.GlobalWindow(), rows.limit(0), keys)
        assert native_panes(flow.operator.plan, frames[None]).collect() == []


def test_unsupported_plans_run_in_the_engine(rows):
    def why_not(window, **planning):
        return why_not_native(planned(window, rows, **planning)[0].operator.plan)

    assert "Collect" in why_not(bm.FixedWindows(1), all=Collect("x"))
    assert "slide" in why_not(bm.SlidingWindows(1, 2))
    assert "CalendarWindows" in why_not(bm.CalendarWindows(days=1))
    assert "-0.0" in why_not(bm.Sessions(1), keys=("f",), n=Count())
    plan = planned(bm.FixedWindows(1), rows)[0].operator.plan
    assert "with_dropped" in why_not_native(attrs.evolve(plan, options=attrs.evolve(plan.options, with_dropped=True)))
