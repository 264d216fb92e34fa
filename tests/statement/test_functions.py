"""Regressions found by the comparison with Spark (tests/spark/test_statement_functions.py)."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

import beamish as bm
from beamish.statement.grammar.aggregates import NAMES
from beamish.statement.grammar.expressions import _OPERATIONS
from beamish.statement.grammar.names import AGGREGATES, KSQLDB, SPARK, is_known
from beamish.statement.running import evaluate
from tests.statement.cases import COLUMNS, expression
from tests.statement.literals import LITERALS

GREATEST = 2**63 - 1


@pytest.mark.parametrize(
    ("b", "c", "rest"),
    [
        (GREATEST, 2**62 + 1, 2**62 - 2),
        (2**53 + 3, 2**60, 2**53 + 3),
        (-GREATEST, 2**62, -(2**62 - 1)),
        (7, -4, 3),
        (-7, 4, -3),
    ],
)
def test_a_remainder_of_great_whole_numbers_is_exact_and_has_the_sign_of_the_dividend(b, c, rest):
    row = {**dict.fromkeys(COLUMNS), "b": b, "c": c}
    table = pa.Table.from_pylist([row], schema=pa.schema(COLUMNS))
    for sql in ("b % c", "MOD(b, c)"):
        made = expression(sql)
        assert evaluate(made.node, table, made.text).to_pylist() == [rest], sql


def test_an_operand_beside_null_is_not_computed_where_spark_does_not():
    table = pa.table({"b": pa.nulls(2, pa.int64()), "c": [2**62, 1]})
    for sql in ("b + c * 2", "b = c * 2", "c * 2 / b", "c * 2 % b"):
        made = expression(sql)
        assert evaluate(made.node, table, made.text).to_pylist() == [None, None], sql
    for sql in ("c * 2 + b", "c * 2 < b", "b / (c * 2)"):
        made = expression(sql)
        with pytest.raises(bm.SqlError):
            evaluate(made.node, table, made.text)


@pytest.mark.parametrize("literal", LITERALS)
def test_a_literal_has_its_value_in_a_script(literal):
    made = expression(literal)
    assert evaluate(made.node, pa.table({"b": [1]}), made.text).to_pylist() == [LITERALS[literal]]


@pytest.mark.parametrize(
    "condition", ["s LIKE 'O''B%'", "s LIKE '%''%'", "s IN ('x', 'O''Brien')", "s = CONCAT('O''', \"Brien\")"]
)
def test_a_doubled_quote_is_compared_as_one(condition):
    made = expression(condition)
    table = pa.Table.from_pylist(
        [{**dict.fromkeys(COLUMNS), "s": s} for s in ("O'Brien", "OBrien", "x'")], schema=pa.schema(COLUMNS)
    )
    assert evaluate(made.node, table, made.text).to_pylist()[:2] == [True, False], condition


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("NOT b = c IS NULL", True),
        ("(b = c) IS NULL", False),
        ("-b % c", -1),
        ("b < c = TRUE", False),
        ("s || b = 'x7'", True),
    ],
)
def test_operators_bind_as_in_spark(sql, value):
    made = expression(sql)
    assert evaluate(made.node, pa.table({"b": [7], "c": [2], "s": ["x"]}), made.text).to_pylist() == [value]


@pytest.mark.parametrize("sql", ["p = b < c", "s || b + 1"])
def test_what_spark_reads_from_the_left_is_refused_as_there(sql):
    made = expression(sql)
    with pytest.raises(bm.SqlError, match=r"do not meet|must be a number"):
        evaluate(made.node, pa.table({"b": [7], "c": [2], "s": ["x"], "p": [True]}), made.text)


def test_the_least_bigint_is_a_literal():
    made = expression("-9223372036854775808")
    assert evaluate(made.node, pa.table({"b": [7]}), made.text).type == pa.int64()


def test_replacements_of_ksqldb_functions_are_known():
    for name, spark in KSQLDB.items():
        for called in re.findall(r"\b([A-Z_]+)\(", spark):
            assert called in SPARK | NAMES, f"{name}: {spark}"
    same = {name for name, spark in KSQLDB.items() if not spark}
    assert all(is_known(name) or name in NAMES for name in same)
    assert not any(is_known(name) for name, spark in KSQLDB.items() if spark == "-")


def test_spark_has_all_functions_of_scripts():
    assert all(is_known(word) for _, _, words in _OPERATIONS.values() for word in words)
    assert not SPARK & AGGREGATES
