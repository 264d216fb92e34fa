"""Expressions that run in process, for each operation some, over the columns of ``COLUMNS``; and what draws values for these."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pyarrow as pa
from hypothesis import strategies as st

import beamish as bm
from beamish.statement.grammar.expressions import Expression

COLUMNS = {
    "b": pa.int64(),
    "c": pa.int64(),
    "x": pa.float64(),
    "y": pa.float64(),
    "s": pa.string(),
    "r": pa.string(),
    "n": pa.string(),
    "p": pa.bool_(),
    "q": pa.bool_(),
    "t": pa.timestamp("us", tz="UTC"),
    "u": pa.timestamp("us", tz="UTC"),
    "d": pa.date32(),
    "m": pa.decimal128(9, 2),
}

CASES = """
b + c | b + 1 | x + y | b + x | 1 + 2 | 2147483647 + 1 | b + NULL | b + 1.25 | x + 1.25 | 1.5 + 2.25
b - c | x - y | b - 1.5 | CAST(b AS INT) - 1
b * c | x * y | b * 0.5 | CAST(b AS INT) * CAST(c AS INT)
b / c | x / y | b / 2 | x / b | NULL / c
b DIV c | b DIV 3 | CAST(b AS INT) DIV 2
b % c | x % y | b % 3 | MOD(b, c) | b % -3 | x % 2 | CAST(b AS INT) % 7
-b | -x | - (b + 1)
ABS(b) | ABS(x) | ABS(b - c)
ROUND(x) | ROUND(x, 2) | ROUND(x, 1) | ROUND(b)
FLOOR(x) | FLOOR(b) | CEIL(x) | CEILING(x) | CEIL(b)
SQRT(x) | SQRT(b) | SIGN(x) | SIGN(b) | SIGNUM(x)
b = c | x = y | s = r | p = q | t = u | b = x | b = NULL | x = 0.5 | b = 1.5 | t = d | x = b
b <> c | x <> y | s != r | p <> q | b < c | x < y | s < r | p < q | t < u | b <= c | x <= y | b > c | x > y | b >= c | x >= y
x < b | b < 2.5 | x >= 0.5 | t >= TIMESTAMP '2001-02-03 04:05:06' | d < DATE '2001-02-03' | d < t
b IS DISTINCT FROM c | x IS NOT DISTINCT FROM y | s IS DISTINCT FROM NULL | p IS DISTINCT FROM q AND b = c
b <=> c | x <=> y | s <=> r | s <=> NULL
p AND q | p OR q | NOT p | NOT p AND q OR p | p AND NULL | p OR NULL | b <> 0 AND 10 / b > 1 | b = 0 OR 10 / b > 1
b IS NULL | s IS NOT NULL | p IS TRUE | p IS NOT FALSE
b BETWEEN c AND 7 | x BETWEEN y AND 2.5 | b NOT BETWEEN 1 AND 3 | s BETWEEN 'a' AND r
b IN (1, 2, c) | s IN ('a', r, NULL) | b NOT IN (1, NULL) | x IN (y, 0.5) | b IN (1.5, 2)
NULLIF(b, c) | NULLIF(x, y) | NULLIF(s, 'a')
GREATEST(b, c) | GREATEST(x, y) | GREATEST(s, r, 'b') | LEAST(b, c, 3) | LEAST(x, y) | LEAST(t, u)
COALESCE(b, c) | COALESCE(s, r, 'none') | NVL(x, 0) | IFNULL(b, 1.5) | COALESCE(b, 1 / 0)
CASE WHEN b > 0 THEN 'up' WHEN b < 0 THEN 'down' END | CASE WHEN b = 0 THEN 0 ELSE 10 / b END | CASE b WHEN 1 THEN x WHEN c THEN 2 END
IF(p, b, c) | IF(b > 1, b, x) | IF(q, s, NULL)
UPPER(s) | UCASE(s) | LOWER(s) | LCASE(s) | UPPER(r) | LOWER(r)
TRIM(s) | LTRIM(s) | RTRIM(s) | TRIM(n) | TRIM(BOTH 'a' FROM s) | TRIM(LEADING 'ab' FROM s) | TRIM(TRAILING s FROM r) | TRIM(' ' FROM s)
SUBSTRING(s FROM 2) | SUBSTRING(s FROM 1 FOR 2) | EXTRACT(YEAR FROM t) | EXTRACT(dow FROM d) | EXTRACT(MINUTE FROM t)
LENGTH(s) | CHAR_LENGTH(s) | LEN(r) | LENGTH(n)
CONCAT(s, r) | s || r | CONCAT(s, '-', b) | s || 1 | CONCAT(s, p, t)
SUBSTRING(s, 2) | SUBSTRING(s, 1, 2) | SUBSTR(s, -2, 1) | SUBSTRING(s, 0, 2) | SUBSTRING(s, -5, 3) | SUBSTRING(s, 2, -1)
REPLACE(s, 'a', 'bb') | REPLACE(s, r, '') | REPLACE(s, 'a')
STARTSWITH(s, r) | ENDSWITH(s, r) | CONTAINS(s, r) | CONTAINS(s, '')
s LIKE 'a%' | s LIKE '_' | s NOT LIKE '%b_' | s LIKE r'\\%%' | s LIKE '' | s LIKE 'A.%'
YEAR(t) | QUARTER(t) | MONTH(t) | DAY(t) | DAYOFMONTH(t) | DAYOFWEEK(t) | HOUR(t) | MINUTE(t) | SECOND(t) | YEAR(d) | DAYOFWEEK(d)
DATE_TRUNC('YEAR', t) | DATE_TRUNC('QUARTER', t) | DATE_TRUNC('month', t) | DATE_TRUNC('WEEK', t) | DATE_TRUNC('DAY', t)
DATE_TRUNC('HOUR', t) | DATE_TRUNC('MINUTE', t) | DATE_TRUNC('SECOND', t) | DATE_TRUNC('MILLISECOND', t) | DATE_TRUNC('DAY', d)
t + INTERVAL 5 MINUTES | INTERVAL '3' HOUR + t | t - INTERVAL '-1' SECOND | t - u | t - u < INTERVAL 1 DAY 2 HOURS | UNIX_MILLIS(t)
CAST(b AS INT) | CAST(b AS DOUBLE) | CAST(b AS STRING) | CAST(b AS BOOLEAN) | b::INT | INT(b)
CAST(x AS BIGINT) | CAST(x AS INT) | CAST(x AS BOOLEAN) | CAST(1.5 AS INT) | CAST(2.25 AS DOUBLE)
CAST(n AS BIGINT) | CAST(n AS INT) | CAST(n AS DOUBLE) | CAST(n AS BOOLEAN) | CAST(n AS DATE) | CAST(n AS TIMESTAMP)
CAST(p AS BIGINT) | CAST(p AS DOUBLE) | CAST(p AS STRING)
NOT b = c | b + c * 2 - 1 | b - c - 1 | -b % 3 | s || r = 'ab' | b = c OR p AND q | NOT p OR q | b BETWEEN 1 AND 3 AND p
b * 3 % 5 | b % 5 * 2 | x / y / 2 | -b + c | NOT b IN (1, 2) | (b = c) IS NULL | p = q OR b < c | b > 1 = p | 10 - 4 - 3 | b DIV 2 * 2
s || b < r | b < c = p | b = c IS NULL | NOT b = c IS NULL | -9223372036854775808 | b - -9223372036854775808 | m * 2 + 1.5
s || (b - 3) | CASE WHEN p THEN b END + 1 | NOT p = q | NOT s LIKE 'a%' | x * -1 | - - b | b + - c | 2 - (b - 1)
CAST(d AS STRING) | CAST(d AS TIMESTAMP) | CAST(t AS DATE) | CAST(t AS STRING)
"""
EXPRESSIONS = [case.strip() for line in CASES.strip().splitlines() for case in line.split(" | ")]


def expression(sql: str) -> Expression:
    """An expression over rows."""
    text = f"SELECT b, COUNT(*) AS n FROM t WHERE {sql} GROUP BY b"
    made = bm.sql(text, event_time="ts", watermark=bm.BoundedOutOfOrderness(0))._compiled.inputs[0].where
    assert made is not None
    return made


_BIGINTS = st.one_of(
    st.integers(-3, 12), st.sampled_from([2**31, -(2**31), 2**63 - 1, -(2**63), 10**15]), st.integers(-(2**40), 2**40)
)
_DOUBLES = st.one_of(
    st.sampled_from(
        [0.0, -0.0, 0.5, 1.0, -1.0, 2.5, -2.5, 0.285, 1.005, 1e300, float("nan"), float("inf"), float("-inf")]
    ),
    st.floats(-1e6, 1e6),
    st.integers(-5, 9).map(float),
)
_TEXTS = st.one_of(
    st.sampled_from(["", "a", "b", "ab", "A.x", "\\x", "%y"]), st.text("aAbB %_\\.\tßéΣ日😀", max_size=5)
)
_NUMERAL_TEXTS = """
1|" 12 "|-7|+3|1.5|.5|2.|1e3||x|true| F |no|2024-02-29|2023-02-29|1999-12-31 23:59:59|2024-03-01T01:02:03.25|9223372036854775807
"""
_NUMERALS = st.one_of(
    st.sampled_from(_NUMERAL_TEXTS.strip().replace('"', "").split("|")),
    st.sampled_from(["9223372036854775808", "2147483648", "0"]),
    st.integers(-(10**6), 10**6).map(str),
)
_TIMES = st.datetimes(datetime(1600, 1, 1), datetime(2500, 1, 1)).map(lambda time: time.replace(tzinfo=UTC))  # noqa: DTZ001
_DATES = st.dates(date(1600, 1, 1), date(2500, 1, 1))
_FLAGS = st.booleans()

rows = st.lists(
    st.fixed_dictionaries(
        {
            name: st.none() | values
            for name, values in zip(
                COLUMNS,
                [
                    _BIGINTS,
                    _BIGINTS,
                    _DOUBLES,
                    _DOUBLES,
                    _TEXTS,
                    _TEXTS,
                    _NUMERALS,
                    _FLAGS,
                    _FLAGS,
                    _TIMES,
                    _TIMES,
                    _DATES,
                    st.decimals(-9999, 9999, places=2),
                ],
                strict=True,
            )
        }
    ),
    min_size=40,
    max_size=80,
)
