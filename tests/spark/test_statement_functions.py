"""Each function of a script means what Spark's does (docs/sql.md#in-process), on drawn values, in Spark's ANSI mode."""

import math

import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

import beamish as bm
from beamish.statement.evaluation import _LAZY, evaluate
from beamish.statement.functions import FUNCTIONS
from tests.statement.cases import COLUMNS, EXPRESSIONS, expression, rows
from tests.statement.literals import LITERALS

pytestmark = pytest.mark.spark

FEWER_TEXTS = ("CAST(n AS DATE)", "CAST(n AS TIMESTAMP)")
"""Spark reads more texts as times than a script does: ``'2024'``, ``'2024-1-1'``, with time zones."""
SCHEMA = pa.schema(COLUMNS)
FEW = settings(max_examples=2, deadline=None, database=None, derandomize=True, phases=[Phase.generate])


def test_every_function_is_compared():
    assert {node.op for sql in EXPRESSIONS for node in expression(sql).node.walk()} >= {*FUNCTIONS, *_LAZY}


@FEW
@given(rows)
def test_in_process_functions_give_what_spark_gives(spark, drawn):
    table = pa.Table.from_pylist(drawn, schema=SCHEMA)
    df = spark.createDataFrame(table.append_column("row", pa.array(range(table.num_rows))))
    known, asked, refused = {}, [], []
    for number, sql in enumerate(EXPRESSIONS):
        values, fails = by_row(sql, table)
        known[f"v{number}"] = values
        asked.append(F.when(~F.col("row").isin(fails), F.expr(sql)).alias(f"v{number}"))
        refused += [(sql, fails[0])] if fails else []
    found = df.select("row", *asked).toArrow().sort_by("row")
    for number, sql in enumerate(EXPRESSIONS):
        ours, theirs = known[f"v{number}"], found[f"v{number}"].to_pylist()
        assert [*map(plain, ours)] == [*map(plain, theirs)], f"{sql} of {first_difference(drawn, ours, theirs)}"
    taken = [(sql, drawn[row]) for sql, row in refused if sql not in FEWER_TEXTS and is_taken(df, sql, row)]
    assert not taken, "refused in process, and taken by Spark"


def is_taken(df, sql, row):
    """Whether Spark gives a value."""
    try:
        df.where(F.col("row") == row).select(F.expr(sql)).collect()
    except PySparkException:
        return False
    return True


def by_row(sql, table):
    """The value of each row, and the rows that are refused."""
    made = expression(sql)
    values, fails = [], []
    for row in range(table.num_rows):
        try:
            values += evaluate(made.node, table.slice(row, 1), made.text).to_pylist()
        except bm.SqlError:
            values.append(None)
            fails.append(row)
    kept = [row for row in range(table.num_rows) if row not in fails]
    at_once = evaluate(made.node, table.take(pa.array(kept, pa.int64())), made.text).to_pylist()
    assert [*map(plain, at_once)] == [plain(values[row]) for row in kept], sql
    return values, fails


def plain(value):
    return "nan" if isinstance(value, float) and math.isnan(value) else value


def first_difference(drawn, ours, theirs):
    row = next(i for i, (a, b) in enumerate(zip(ours, theirs, strict=True)) if plain(a) != plain(b))
    return f"{drawn[row]}: {ours[row]!r}, Spark: {theirs[row]!r}"


def test_literals_have_the_values_that_spark_reads(spark):
    (row,) = spark.range(1).select(*map(F.expr, LITERALS)).collect()
    assert dict(zip(LITERALS, row, strict=True)) == LITERALS
