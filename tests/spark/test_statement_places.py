"""Every function, aggregate and type of SQL in every clause: a script gives what Spark gives (docs/sql.md#in-process)."""

import math
import re
from contextlib import suppress
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache

import pyarrow as pa
import pytest

import beamish as bm
from beamish.accumulations import Max
from beamish.statement.grammar.aggregates import NAMES
from beamish.statement.running import evaluate
from beamish.testing import TestStream
from tests.statement.cases import COLUMNS, EXPRESSIONS, expression

pytestmark = pytest.mark.spark

T, U = datetime(2024, 2, 29, 12, 30, 1, 500000, tzinfo=UTC), datetime(2023, 12, 31, 23, 59, tzinfo=UTC)
VALUES = {"b": 7, "c": 3, "x": 2.5, "y": -0.5, "s": "ab", "r": "b", "n": "12", "p": True, "q": False, "t": T, "u": U}
FULL = {**VALUES, "d": date(2001, 2, 3), "m": Decimal("1.25")}
ROWS = [
    {"i": i, "ts": 1, **row}
    for i, row in enumerate(
        [FULL, {**FULL, "n": "true", "b": -2, "x": 0.0}, {**FULL, "n": "2024-02-29", "s": "O'B%_"}, dict.fromkeys(FULL)]
    )
]
TYPES = {"i": pa.int64(), "ts": pa.int64(), **COLUMNS}
ONCE_EACH = re.compile(r"('(?:''|[^'])*'|\"[^\"]*\")|\b([bcxysrnpqtudm])\b(?!['(])")


@cache
def chosen():
    """Expressions that have all operations between them, with the rows for which they do not fail, and whether they are conditions."""
    table = pa.Table.from_pylist(ROWS, schema=pa.schema(TYPES))
    seen, found = set(), []
    for sql in EXPRESSIONS:
        made = expression(sql)
        ops = {
            (node.op, str(node.value) if node.op in ("CAST", "TRIM", "DATE_TRUNC") else "") for node in made.node.walk()
        }
        if ops <= seen:
            continue
        seen |= ops
        rows, is_condition = [], False
        for i in range(len(ROWS)):
            with suppress(bm.SqlError):
                is_condition |= pa.types.is_boolean(evaluate(made.node, table.slice(i, 1), made.text).type)
                rows.append(i)
        found.append((sql, rows, is_condition))
    return found


def over_panes(sql):
    """The expression over aggregates: of one row each is the row's value."""
    return ONCE_EACH.sub(lambda found: found[1] or f"MAX({found[2]})", sql)


def guarded(sql, rows):
    return f"CASE WHEN i IN ({', '.join(map(str, rows))}) THEN {sql} END"


def condition(sql, is_condition):
    return f"({sql})" if is_condition else f"({sql}) IS NOT NULL"


def in_turn(chosen, rewritten):
    """A condition that is another of the expressions for each row: row ``j`` asks for number ``j`` of the cases."""
    cases = [(sql, of, is_condition) for sql, rows, is_condition in chosen for of in rows]
    whens = " ".join(
        f"WHEN j = {at} THEN {condition(rewritten(sql), is_condition)}"
        for at, (sql, _, is_condition) in enumerate(cases)
    )
    return f"CASE {whens} END", [{**ROWS[of], "j": at} for at, (_, of, _) in enumerate(cases)]


def in_an_aggregate(chosen):
    return f"SELECT i, {listed(f'MAX({guarded(sql, rows)})' for sql, rows, _ in chosen)} FROM rows GROUP BY i", ROWS


def over_aggregates(chosen):
    return f"SELECT i, {listed(guarded(over_panes(sql), rows) for sql, rows, _ in chosen)} FROM rows GROUP BY i", ROWS


def group_by(chosen):
    keys = [guarded(sql, rows) for sql, rows, _ in chosen]
    return f"SELECT i, {listed(keys)}, COUNT(*) AS n FROM rows GROUP BY i, {', '.join(keys)}", ROWS


def where(chosen):
    condition, rows = in_turn(chosen, lambda sql: sql)
    return f"SELECT j, COUNT(*) AS n FROM rows WHERE {condition} GROUP BY j", rows


def having(chosen):
    condition, rows = in_turn(chosen, over_panes)
    return f"SELECT j, COUNT(*) AS n FROM rows GROUP BY j HAVING {condition}", rows


def listed(items):
    return ", ".join(f"{item} AS e{at}" for at, item in enumerate(items))


PLACES = [in_an_aggregate, over_aggregates, group_by, where, having]


@pytest.fixture
def both(spark):
    """The rows that a statement gives in a script and on Spark, in an order."""

    def both(text, rows, types):
        query = bm.sql(
            text, event_time="ts", watermark=bm.BoundedOutOfOrderness(0), aggregates={"BIGGEST": Max}, offset="i"
        )
        ours = [pane.key | pane.values for pane in query.run(TestStream().add(rows))]
        table = pa.Table.from_pylist(rows, schema=pa.schema(types))
        df = spark.createDataFrame(table).selectExpr("* except (ts)", "timestamp_seconds(ts) as ts")
        names = list(ours[0])
        theirs = [row.asDict(recursive=True) for row in df.transform(query).select(*names).collect()]
        return [sorted((plain(row) for row in of), key=repr) for of in (ours, theirs)]

    return both


def plain(value):
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    if isinstance(value, list):
        return [plain(one) for one in value]
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC)
    return "nan" if isinstance(value, float) and math.isnan(value) else value


@pytest.mark.parametrize("place", PLACES)
def test_a_function_gives_in_a_clause_what_spark_gives(both, place):
    """Each function in one of the clauses."""
    agree(both, place, chosen()[PLACES.index(place) :: len(PLACES)])


@pytest.mark.deep
@pytest.mark.parametrize("place", PLACES)
def test_every_function_gives_in_every_clause_what_spark_gives(both, place):
    agree(both, place, chosen())


def agree(both, place, chosen):
    text, rows = place(chosen)
    ours, theirs = both(text, rows, {**TYPES, "j": pa.int64()} if "j" in rows[0] else TYPES)
    assert ours == theirs


OF_ANY = """
    COUNT({}) | COUNT(DISTINCT {}, i) | COUNT_DISTINCT({}) | MIN({}) | MAX({}) | FIRST({}) | LAST({}, TRUE) | EARLIEST_BY_OFFSET({})
    LATEST_BY_OFFSET({}) | EARLIEST_BY_OFFSET({}, 2) | LATEST_BY_OFFSET({}, 2, FALSE) | COLLECT_LIST({}) | COLLECT_SET({}) | ATTR({})
    MIN_BY({}, i) | MAX_BY(i, {}) | TOPK({}, 2) | TOPK({}, i, 2) | TOPKDISTINCT({}, 2) | APPROX_COUNT_DISTINCT({}) | MODE({})
"""
OF_NUMBERS = """
    SUM({}) | AVG({}) | MEAN({}) | VARIANCE({}) | VAR_SAMP({}) | VAR_POP({}) | STDDEV({}) | STDDEV_SAMPLE({})
    STDDEV_POP({}) | MEDIAN({}) | PERCENTILE({}, 0.5) | ROUND(CORRELATION({}, i), 9) | ROUND(CORR(i, {}), 9)
    ROUND(SKEWNESS({}), 9) | ROUND(KURTOSIS({}), 9) | ROUND(PRODUCT({}), 9) | ROUND(COVAR_SAMP({}, i), 9) | ROUND(COVAR_POP({}, i), 9)
    REGR_COUNT({}, i) | ROUND(REGR_SLOPE({}, i), 9) | ROUND(REGR_INTERCEPT({}, i), 9) | ROUND(REGR_R2({}, i), 9)
    ROUND(REGR_AVGX({}, i), 9) | ROUND(REGR_AVGY({}, i), 9) | ROUND(REGR_SXX({}, i), 9) | ROUND(REGR_SYY({}, i), 9)
    ROUND(REGR_SXY({}, i), 9)
"""
OTHERS = ["COUNT(*)", "HISTOGRAM(s)", "HISTOGRAM(b)", "SUM_LIST(l)", "HISTOGRAM(p)['true']", "BIGGEST(x)"]
OTHERS += ["BIT_AND(b)", "BIT_OR(b)", "BIT_XOR(b)", "BOOL_AND(p)", "EVERY(p)", "BOOL_OR(p)", "COUNT_IF(p)"]
NUMBERS = ("b", "x", "m")
NESTED: dict[str, pa.DataType] = {"l": pa.list_(pa.int64()), "w": pa.struct([("a", pa.int64()), ("b", pa.string())])}
ALL_TYPES = {**{name: TYPES[name] for name in ("b", "x", "s", "p", "t", "d", "m")}, **NESTED}
SIZES: list[dict[str, object]] = [
    {"l": [1, 2], "w": {"a": 1, "b": "x"}},
    {"l": [], "w": {"a": 1, "b": "y"}},
    {"l": [None, 3], "w": {"a": 2, "b": None}},
    {"l": None, "w": None},
]
TYPED_ROWS = [{**row, **nested, "g": 1} for row, nested in zip(ROWS, SIZES, strict=True)]


def aggregates(*, every):
    """Calls of all aggregates: with a column of some type each, or of ``every`` type."""
    for listed, columns in ((OF_ANY, [*ALL_TYPES]), (OF_NUMBERS, [*NUMBERS])):
        for at, call in enumerate(one.strip() for line in listed.strip().splitlines() for one in line.split(" | ")):
            yield from (call.format(column) for column in (columns if every else [columns[at % len(columns)]]))
    yield from OTHERS


def test_all_aggregates_are_compared():
    assert {re.match(r"(?:ROUND\()?(\w+)", call)[1] for call in aggregates(every=False)} == {
        name for name in {*NAMES, "BIGGEST"} if name.isidentifier()
    }


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.deep)])
def test_aggregates_of_a_type_give_in_select_and_having_what_spark_gives(both, every):
    calls = [*aggregates(every=every)]
    scalars = [
        call
        for call in calls
        if not re.match(r"ATTR|FIRST|ROUND.*m|TOPK|COLLECT|.*_BY_OFFSET\(\w, |HISTOGRAM|.*\([lw]", call)
    ]
    having = " AND ".join(f"({call}) IS NOT NULL" for call in scalars)
    text = f"SELECT g, {listed(calls)} FROM rows GROUP BY g HAVING {having}"
    ours, theirs = both(text, TYPED_ROWS, {**TYPES, **NESTED, "g": pa.int64()})
    assert len(ours) == 1
    assert ours == theirs


def test_columns_of_a_type_make_the_groups_that_they_make_on_spark(both):
    names = ", ".join(name for name in ALL_TYPES if name not in NESTED)
    text = f"SELECT {names}, COUNT(*) AS n FROM rows WHERE b IS NULL OR x >= 0 GROUP BY {names} HAVING COUNT(*) > 0"
    ours, theirs = both(text, TYPED_ROWS, {**TYPES, **NESTED, "g": pa.int64()})
    assert len(ours) == len(TYPED_ROWS)
    assert ours == theirs
