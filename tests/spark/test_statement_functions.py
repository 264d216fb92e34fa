"""Each function of a script means what Spark's does (docs/sql.md#in-process), on drawn values, in Spark's ANSI mode."""

import math
import os

import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

import beamish as bm
from beamish.statement.functions import FUNCTIONS, nested
from beamish.statement.grammar.names import AGGREGATES, SPARK
from beamish.statement.running import _LAZY, evaluate
from tests.budget import SPARK_SECONDS, search
from tests.statement.answers import ASKED, FAILS, record, recorded, table_of, written
from tests.statement.cases import COLUMNS, EXPRESSIONS, expression, rows
from tests.statement.drawn import expressions
from tests.statement.literals import LITERALS

pytestmark = pytest.mark.spark

FEWER_TEXTS = ("CAST(n AS DATE)", "CAST(n AS TIMESTAMP)")
"""Spark reads more texts as times than a script does: ``'2024'``, ``'2024-1-1'``, with time zones."""
IN_A_SCRIPT = ("only Spark computes this", "in a script", "not in a script")
"""What a script refuses and Spark may take (docs/sql.md#in-process)."""
SCHEMA = pa.schema(COLUMNS)
ONCE = settings(max_examples=1, deadline=None, database=None, derandomize=True, phases=[Phase.generate])


def test_every_function_is_compared():
    compared = {node.op for sql in EXPRESSIONS for node in expression(sql).node.walk()}
    assert compared >= {*FUNCTIONS, *_LAZY} - nested.FUNCTIONS.keys()  # these: tests/spark/test_statement.py


@ONCE
@given(rows, st.lists(expressions(), min_size=30, max_size=30, unique=True))
def test_in_process_functions_give_what_spark_gives(spark, drawn, more):
    compare(spark, drawn, [*EXPRESSIONS, *LITERALS, *more], always=[*EXPRESSIONS, *LITERALS])


@pytest.mark.deep
def test_drawn_expressions_give_what_spark_gives(spark):
    @settings(max_examples=20, deadline=None, database=None)
    @given(rows, st.lists(expressions(), min_size=30, max_size=30, unique=True))
    def law(spark, drawn, drawn_expressions):
        compare(spark, drawn, drawn_expressions)

    search(law, SPARK_SECONDS / 8, spark=spark)


def compare(spark, drawn, asked, always=()):
    """In one job, values and failures of all expressions for all rows."""
    table = pa.Table.from_pylist(drawn, schema=SCHEMA)
    df = spark.createDataFrame(table.append_column("row", pa.array(range(table.num_rows))))
    asked = [sql for sql in asked if sql in always or is_taken(df, sql)]
    names = [f"v{number}" for number in range(len(asked))]
    found = df.select("row", *(tried(spark, sql, name) for sql, name in zip(asked, names, strict=True)))
    found = found.toArrow().sort_by("row")
    for sql, name in zip(asked, names, strict=True):
        ours, theirs = by_row(sql, table), found[name]
        for row, said in enumerate(ours):
            spark_fails = not theirs[row].is_valid
            if isinstance(said, bm.SqlError):
                limited = sql in FEWER_TEXTS or any(words in str(said) for words in IN_A_SCRIPT)
                assert spark_fails or limited, f"{sql} of {drawn[row]}: {said}, and Spark takes it"
            else:
                assert not spark_fails, f"{sql} of {drawn[row]}: {said!r}, and Spark fails"
                value = theirs[row].as_py()["v"]
                assert plain(said) == plain(value), f"{sql} of {drawn[row]}: {said!r}, Spark: {value!r}"


def is_taken(df, sql):
    """Whether Spark takes an expression over these columns at all."""
    try:
        df.select(F.expr(sql))
    except PySparkException:
        return False
    return True


def tried(spark, sql, name):
    """A column that is null where Spark fails, and else has the value in a struct."""
    from pyspark.sql.classic.column import Column

    jvm = spark._jvm.org.apache.spark.sql
    value = F.struct(F.when(F.col("row") >= 0, F.expr(sql)).alias("v"))
    caught = jvm.catalyst.expressions.TryEval(jvm.classic.ExpressionUtils.expression(value._jc))
    return Column(jvm.classic.ExpressionUtils.column(caught)).alias(name)


def by_row(sql, table):
    """The value of each row, or its error; computed at once where no row fails, and then for some rows also by themselves."""
    made = expression(sql)
    try:
        values = evaluate(made.node, table, made.text).to_pylist()
    except bm.SqlError:
        values = [alone(made, table, row) for row in range(table.num_rows)]
        kept = [row for row, value in enumerate(values) if not isinstance(value, bm.SqlError)]
        if kept:
            at_once = evaluate(made.node, table.take(pa.array(kept, pa.int64())), made.text).to_pylist()
            assert [*map(plain, at_once)] == [plain(values[row]) for row in kept], sql
    else:
        assert [*map(plain, values[:3])] == [plain(alone(made, table, row)) for row in range(3)], sql
    return values


def alone(made, table, row):
    """The value of one row, or its error."""
    try:
        return evaluate(made.node, table.slice(row, 1), made.text)[0].as_py()
    except bm.SqlError as error:
        return error


def plain(value):
    """To compare: NaN with itself, and the sign of a zero too."""
    return str(value) if isinstance(value, float) and (math.isnan(value) or value == 0) else value


@pytest.mark.deep
def test_recorded_casts_and_roundings_are_sparks(spark):
    found = {sql: answer for one in ASKED for sql, answer in answers_of_spark(spark, *one)}
    if os.environ.get("BEAMISH_RECORD"):
        record(found)
    assert found == recorded()


def answers_of_spark(spark, column, texts, asked):
    """The answer for each value, as ``written``; times as texts, since some are of no year that Python has."""
    table = table_of(column, texts)
    df = spark.createDataFrame(table.append_column("row", pa.array(range(table.num_rows))))
    names = [f"v{number}" for number in range(len(asked))]
    shown = [f"CAST({sql} AS STRING)" if sql.endswith(("DATE)", "TIMESTAMP)")) else sql for sql in asked]
    found = df.select("row", *(tried(spark, sql, name) for sql, name in zip(shown, names, strict=True))).toArrow()
    for sql, name in zip(asked, names, strict=True):
        values = found.sort_by("row")[name].to_pylist()
        answers = [FAILS if value is None else written(value["v"]) for value in values]
        yield sql, dict(zip(texts, answers, strict=True))


def test_the_functions_that_are_known_are_sparks(spark):
    found = {row[0].upper() for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect()}
    named = {name for name in found if name.isidentifier()}
    assert named <= SPARK | AGGREGATES, "a function of a new version: add it to beamish/statement/grammar/names.py"
    if spark.version >= "4.3":
        assert (SPARK | AGGREGATES) - named == {"TRY_CAST", "TIMESTAMPADD", "TIMESTAMPDIFF"}  # keywords
