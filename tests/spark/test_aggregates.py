"""Accumulations that are named after aggregates of Spark give what Spark gives."""

import random

import pytest
from pyspark.sql import functions as F

import beamish as bm
from beamish import accumulations as a
from beamish.testing import TestStream
from tests.agreement import close

pytestmark = pytest.mark.spark

SPARKS = {
    "skewness": (a.Skewness("x"), "skewness(x)"),
    "kurtosis": (a.Kurtosis("x"), "kurtosis(x)"),
    "product": (a.Product("d"), None),
    "covar_samp": (a.Covariance("x", "d"), "covar_samp(x, d)"),
    "covar_pop": (a.Covariance("x", "d", population=True), "covar_pop(x, d)"),
    "corr": (a.Correlation("x", "d"), "nanvl(corr(x, d), null)"),
    "mode": (a.Mode("x"), "mode(x, true)"),
    "bit_and": (a.BitAnd("x"), "bit_and(x)"),
    "bit_or": (a.BitOr("x"), "bit_or(x)"),
    "bit_xor": (a.BitXor("x"), "bit_xor(x)"),
    "bool_and": (a.BoolAnd("b"), "bool_and(b)"),
    "bool_or": (a.BoolOr("b"), "bool_or(b)"),
    "count_if": (a.CountIf("b"), "count_if(b)"),
}
LINE = ("count", "slope", "intercept", "r2", "avgx", "avgy", "sxx", "syy", "sxy")


def test_spark_gives_the_same(spark):
    chance = random.Random(5)
    rows = [
        {
            "k": f"k{size}",
            "x": chance.choice([None, *range(-3, 9)]),
            "d": chance.choice([None, 0.5, 1.25, -2.0, 3.0]),
            "b": chance.choice([None, True, False]),
        }
        for size in range(30)
        for _ in range(size // 2)
    ]
    accumulated = {name: accumulation for name, (accumulation, _) in SPARKS.items()}
    pipeline = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("k")
    pipeline = pipeline.window(bm.FixedWindows(10)).accumulate(line=a.LinearRegression("d", "x"), **accumulated)
    panes = pipeline.run(TestStream().add([{"ts": 1, **row} for row in rows]).advance_watermark_to(10))
    df = spark.createDataFrame(rows, "k string, x bigint, d double, b boolean")
    theirs = df.groupBy("k").agg(
        *(F.product("d").alias(name) if sql is None else F.expr(sql).alias(name) for name, (_, sql) in SPARKS.items()),
        F.struct(*(F.expr(f"regr_{field}(d, x)").alias(field) for field in LINE)).alias("line"),
    )
    found = {row["k"]: row.asDict(recursive=True) for row in theirs.collect()}
    assert len(found) == len(panes) == 28
    for pane in panes:
        expected = {name: found[pane.key["k"]][name] for name in pane.values}
        assert close(dict(pane.values), expected), (pane.key, pane.values, expected)
