"""Draws expressions over the columns of ``COLUMNS``, with brackets only where they are drawn: what binds more must be known to both sides."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.statement.literals import literals

BIGINT, DOUBLE, DECIMAL, TEXT, FLAG, TIME, DATE = ("bigint", "double", "decimal", "text", "flag", "time", "date")
LEAVES = {
    BIGINT: ["b", "c", "0", "1", "-3", "7", "2147483648", "-9223372036854775808", "9223372036854775807", "NULL"],
    DOUBLE: ["x", "y", "0.5D", "1e2", "-2.5e0", "x"],
    DECIMAL: ["m", "0.25", "1.50", "-3.125", "m"],
    TEXT: ["s", "r", "n", "''", "'a%'", "r'\\%_'", "'O''Brien'", '"é日😀"', "NULL"],
    FLAG: ["p", "q", "TRUE", "FALSE", "CAST(NULL AS BOOLEAN)"],
    TIME: ["t", "u", "TIMESTAMP '2001-02-03 04:05:06.7'"],
    DATE: ["d", "DATE '2024-02-29'"],
}
OF_ONE = {
    BIGINT: [
        ("- {}", BIGINT),
        ("ABS({})", BIGINT),
        ("LENGTH({})", TEXT),
        ("YEAR({})", TIME),
        ("EXTRACT(MONTH FROM {})", DATE),
    ],
    DOUBLE: [("-{}", DOUBLE), ("SQRT({})", DOUBLE), ("ROUND({}, 1)", DOUBLE), ("CAST({} AS DOUBLE)", BIGINT)],
    DECIMAL: [("-{}", DECIMAL), ("ABS({})", DECIMAL), ("CAST({} AS DECIMAL(12, 3))", BIGINT)],
    TEXT: [
        *[("UPPER({})", TEXT), ("TRIM({})", TEXT), ("TRIM(LEADING 'a' FROM {})", TEXT), ("CAST({} AS STRING)", BIGINT)],
        *[("SUBSTRING({} FROM 1 FOR 2)", TEXT), ("CAST({} AS STRING)", FLAG), ("CAST({} AS STRING)", TIME)],
    ],
    FLAG: [
        *[
            ("NOT {}", FLAG),
            ("{} IS NULL", BIGINT),
            ("{} IS NOT NULL", TEXT),
            ("{} IS TRUE", FLAG),
            ("{} IS NOT FALSE", FLAG),
        ],
        *[("{} IN (1, NULL, 7)", BIGINT), ("{} NOT IN ('a', 'b')", TEXT), ("CAST({} AS BOOLEAN)", BIGINT)],
    ],
    TIME: [
        ("DATE_TRUNC('HOUR', {})", TIME),
        ("CAST({} AS TIMESTAMP)", DATE),
        ("{} + INTERVAL 90 MINUTES", TIME),
        ("INTERVAL '-2' DAY + {}", TIME),
    ],
    DATE: [("CAST({} AS DATE)", TIME)],
}
OF_TWO = {
    BIGINT: [(f"{{}} {op} {{}}", BIGINT) for op in ("+", "-", "*", "%", "DIV")],
    DOUBLE: [*((f"{{}} {op} {{}}", DOUBLE) for op in "+-*/%"), ("{} / {}", BIGINT)],
    DECIMAL: [(f"{{}} {op} {{}}", DECIMAL) for op in "+-*"],
    TEXT: [("{} || {}", TEXT), ("CONCAT({}, {})", TEXT), ("COALESCE({}, {})", TEXT), ("NULLIF({}, {})", TEXT)],
    FLAG: [
        *[("{} AND {}", FLAG), ("{} OR {}", FLAG), ("{} = {}", FLAG), ("{} LIKE {}", TEXT), ("{} NOT LIKE {}", TEXT)],
        *(
            (f"{{}} {op} {{}}", of)
            for of in (BIGINT, DOUBLE, TEXT, TIME, DECIMAL)
            for op in ("=", "==", "<>", "!=", "<", "<=", ">", ">=", "<=>")
        ),
        *[("{} IS DISTINCT FROM {}", of) for of in (BIGINT, TEXT, FLAG)],
        *[("{} IS NOT DISTINCT FROM {}", of) for of in (DOUBLE, TIME)],
        ("{} - {} > INTERVAL 1 DAY", TIME),
        *[("{} BETWEEN {} AND 7", BIGINT), ("{} NOT BETWEEN {} AND 'b'", TEXT)],
    ],
    TIME: [("COALESCE({}, {})", TIME), ("GREATEST({}, {})", TIME)],
    DATE: [("COALESCE({}, {})", DATE), ("LEAST({}, {})", DATE)],
}


@st.composite
def expressions(draw: st.DrawFn, kind: str | None = None, depth: int = 3) -> str:
    """An expression of a kind."""
    kind = kind or draw(st.sampled_from(sorted(LEAVES)))
    shape = draw(st.integers(0, 5)) if depth else 0
    if shape == 0:
        return draw(literals())[0] if kind == TEXT and draw(st.booleans()) else draw(st.sampled_from(LEAVES[kind]))

    def operand(of: str) -> str:
        made = draw(expressions(of, depth - 1))
        return f"({made})" if draw(st.integers(0, 3)) == 0 else made

    if shape == 1:
        form, of = draw(st.sampled_from(OF_ONE[kind]))
        return form.format(operand(of))
    if shape == 2:
        when, then, otherwise = operand(FLAG), operand(kind), operand(kind)
        return draw(
            st.sampled_from([f"CASE WHEN {when} THEN {then} ELSE {otherwise} END", f"IF({when}, {then}, {otherwise})"])
        )
    form, of = draw(st.sampled_from(OF_TWO[kind]))
    return form.format(operand(of), operand(of))
