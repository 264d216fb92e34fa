"""Texts and numbers whose casts and roundings are recorded from Spark (``recorded.json``), and how they are written there.

``BEAMISH_RECORD=1 pytest tests/spark/test_statement_functions.py -m deep -k recorded`` records them again.
"""

# ruff: noqa: RUF001 - digits and letters of other scripts are the subject

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.statement.cases import COLUMNS

RECORDED = Path(__file__).with_name("recorded.json")
FAILS = "fails"

_NUMBERS = """
0|-0|+0|00|-00|1|-1|+1|--1|+-1|1-|1.|1.5|-1.5|.5|-.5|+.5|.|-|+||1e3|1E3|1e+3|1e-3|-1e3|1e|e1|1e3.5|.e1|1.e1|1.e|1 e3|1d|1D|1f|1F|1L|1l|1.5d|1.f
1e3f|1dd|1df|d|f|0x10|0x1p3|0X1.8P1|0x1.8|0x1p|-0xAp0f|0x.8p1|0xp1|0x1p99999|0x1p-99999|0x1.fffffffffffff8p0|1_000|1,000|1 0|1.2.3|$1|1%|(1)
NaN|nan|NAN|nAn|+NaN|-NaN|+nan|-nan|NaNd|Infinity|infinity|INFINITY|+Infinity|-Infinity|+infinity|-infinity|inf|-inf|+inf|INF|-INF|Inf|infd|infinit
infinity1|∞|1∞|١٢|１２|1٢|१.५|1e٣|²|½|−1|＋1|1．5|９|null|NULL|None|#N/A
9223372036854775807|9223372036854775808|-9223372036854775808|-9223372036854775809|+9223372036854775807|09223372036854775807|92233720368547758070
2147483647|2147483648|-2147483648|-2147483649|0002147483647|32767|32768|9007199254740993|1e308|1.7976931348623157e308|1.7976931348623159e308
1e309|-1e309|1e400|1e999999999999|0e999999999999|4.9e-324|2e-324|1e-400|0.1|0.30000000000000004|123456789012345678901234567890|-1e-7|1.0|-0.0|-0.0d
"""
_WORDS = """
true|TRUE|True|tRuE|t|T|y|Y|yes|YES|Yes|yeS|n|N|no|NO|f|F|false|FALSE|False|on|off|ON|01|10|2|1.0|tru|truee|yeah|nope|yeſ|ｔ|TRUE1|ok|tr ue
"""
_DATES = """
2024|2024-|2024-1|2024-01|2024-01-|2024-1-1|2024-01-1|2024-1-01|2024-01-31|2024-01-31T|2024-01-31Tx|2024-01-31 x|2024-01-31x|2024-1-1T|2024-01T
2024-01 |2024 x|2024-13-01|2024-00-01|2024-01-00|2024-01-32|2024-02-30|2023-02-29|2024-02-29|1900-02-29|0000-01-01|0001-01-01|-2024-01-01|+2024-01-01
-0001-01-01|+02024-01-01|02024-01-01|10000-01-01|+10000-01-01|999-01-01|202-1-1|20-1-1|1-1-1|0002024-01-01|00002024-01-01|9999999-01-01|2024/01/31
2024.01.31|20240131|2024-001-01|2024-01-031|1582-10-04|1582-10-10|1582-10-15|9999-12-31|today|epoch|now|tomorrow|yesterday|٢٠٢٤-٠١-٠١
２０２４-０１-０１|2024‐01‐01|2024-01-31-|2024-01-31-05|2024--01|24-01-31|Jan 31 2024|31.01.2024|--01-31|+2024|-2024
"""
_TIMES = """
2024-01-31 12|2024-01-31 12:|2024-01-31 12:30|2024-01-31 12:30:|2024-01-31 12:30:15|2024-01-31T12:30:15|2024-01-31t12:30:15|2024-01-31 1:2:3
2024-01-31 01:02:3|2024-01-31  12:30:15|2024-01-31 24:00:00|2024-01-31 23:60:00|2024-01-31 23:59:60|2024-01-31 12:30:15.|2024-01-31 12:30:15.5
2024-01-31 12:30:15.123456|2024-01-31 12:30:15.1234567|2024-01-31 12:30:15.123456789999|2024-01-31 12:30:15.000001|2024-01-31 12:30:15,5
2024-01-31 12:30:15Z|2024-01-31 12:30:15 Z|2024-01-31 12:30:15z|2024-01-31 12:30:15+01:00|2024-01-31 12:30:15-08|2024-01-31 12:30:15+1:00
2024-01-31 12:30:15 +01:00|2024-01-31 12:30:15+01:0|2024-01-31 12:30:15+0100|2024-01-31 12:30:15+5|2024-01-31 12:30:15UTC|2024-01-31 12:30:15 UTC
2024-01-31 12:30:15UTC+1|2024-01-31 12:30:15 GMT+01:00|2024-01-31 12:30:15 GMT|2024-01-31 12:30:15 UT|2024-01-31 12:30:15 utc|2024-01-31 12:30:15America/Los_Angeles
2024-01-31 12:30:15 America/Los_Angeles|2024-01-31 12:30:15 PST|2024-01-31 12:30:15 EST|2024-01-31 12:30:15 x|2024-01-31 12:30:15+18:00
2024-01-31 12:30:15+18:01|2024-01-31 12:30:15-18:00|2024-01-31 12:30:15+19|2024-01-31 12:30:15+01:60|2024-01-31 12:30:15+01:00:30|2024-01-31 12:30:15.5Z
2024-01-31 12:30:15.5+01:00|2024-01-31 12:30:15.Z|2024-01-31 12:30Z|2024-01-31 12Z|2024-01-31 12:30+01:00|2024-01-31Z|2024-01-31+01:00|2024-01Z
2024-1-1 1:1|2024-01 12:30|2024 12:30|2024-02-30 01:00:00|2023-02-29 00:00:00|0001-01-01 00:00:00|0001-01-01 00:00:00+01:00|9999-12-31 23:59:59.999999
9999-12-31 23:59:59-01:00|10000-01-01 00:00:00|+2024-01-31 12:30:15|-2024-01-31 12:30:15|0000-01-01 00:00:00|1582-10-10 12:00:00|0002024-01-31 12:30:15
02024-01-31 12:30:15|2024-01-31 012:30:15|2024-01-31 12:030:15|2024-01-31T12:30:15.123Z|2024-01-31 12.30.15|٢٠٢٤-٠١-٠١ ٠١:٠٢:٠٣|2024-01-31 12:30:15٠
2024-01-31 12:30:15+٠١:٠٠|2024-01-31 12:30:15.٥|2024-01-31 12:30:15 +0530|2024-01-31 12:30:15+01:00 |2024-01-31 12:30:15 1|2024-01-31 12:30:15.5 .5
"""
_SPACED = ("1", "-1.5", "true", "NaN", "inf", "2024-01-31", "2024", "2024-01-31 12:30:15", "2024-01-31 12:30:15Z")
_SPACES = [" {}", "{} ", "  {}  ", "\t{}\n", "\0{}", "{}\0", "{}\x7f", "\x1f{}\x1c", "\x0b{}\x0c", "\r\n{}\r\n"]
_SPACES += ["\xa0{}", "{}\xa0", "\u2003{}", "{}\u3000", "\x85{}", "{}\x9f", "\ufeff{}", "{}\u200b", "\u2028{}"]


def _texts() -> list[str]:
    lines = [line for block in (_NUMBERS, _WORDS, _DATES, _TIMES) for line in block.strip("\n").split("\n")]
    spaced = [form.format(text) for text in _SPACED for form in _SPACES]
    return list(dict.fromkeys([*(text for line in lines for text in line.split("|")), " ", "\t", "\0", *spaced]))


_DOUBLES = [
    0.0,
    -0.0,
    0.4,
    -0.4,
    0.5,
    -0.5,
    0.049,
    -0.049,
    0.05,
    1.5,
    2.5,
    -2.5,
    0.285,
    1.005,
    2.675,
    -1.005,
    1e-300,
    -1e-300,
]
_DOUBLES += [
    5e-324,
    1e15 + 0.5,
    2.0**52 + 0.5,
    1e16,
    1e22,
    1e23,
    1e300,
    -1e300,
    2.0**31,
    2.0**31 - 1,
    2147483647.5,
    -2147483648.5,
]
_DOUBLES += [
    -(2.0**31) - 1,
    2.0**63,
    2.0**63 - 1024,
    -(2.0**63),
    -(2.0**63) - 2048,
    float("nan"),
    float("inf"),
    float("-inf"),
]
_LONGS = [0, 1, -1, 5, 15, -15, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**53 + 1, 2**63 - 1, -(2**63)]
_DECIMALS = ["0.00", "-0.01", "0.50", "-0.50", "1.50", "2.50", "-2.50", "9999999.99", "-9999999.99", "0.49"]
_TIMESTAMPS = [
    "2024-01-31 12:30:15",
    "2024-01-31 12:30:15.5",
    "2024-01-31 00:00:00.000001",
    "0001-01-01 00:00:00",
    "0999-12-31 23:59:59.100000",
]
_TIMESTAMPS += ["1969-12-31 23:59:59.999999", "1582-10-10 01:02:03.120000", "9999-12-31 23:59:59.999999"]

ASKED: Sequence[tuple[str, Sequence[str], Sequence[str]]] = [
    (
        "n",
        _texts(),
        [f"CAST(n AS {type_})" for type_ in ("INT", "BIGINT", "DOUBLE", "BOOLEAN", "DATE", "TIMESTAMP", "STRING")],
    ),
    (
        "x",
        [repr(value) for value in _DOUBLES],
        [
            *[
                "ROUND(x)",
                "ROUND(x, 1)",
                "ROUND(x, 2)",
                "ROUND(x, 20)",
                "FLOOR(x)",
                "CEIL(x)",
                "ABS(x)",
                "SIGN(x)",
                "-x",
                "SQRT(x)",
            ],
            *[
                "x % 2",
                "x % -0.5D",
                "x * 0",
                "0 - x",
                "x + 0",
                "NULLIF(x, 1)",
                "COALESCE(x, 1)",
                "GREATEST(x, 0)",
                "LEAST(x, 0)",
            ],
            *[
                "CAST(x AS INT)",
                "CAST(x AS BIGINT)",
                "CAST(x AS BOOLEAN)",
                "CAST(x AS DOUBLE)",
                "1 / NULLIF(ROUND(x), 0)",
            ],
            *[
                "GREATEST(0D, x)",
                "GREATEST(x, -0.0D)",
                "LEAST(-0.0D, x)",
                "CAST(ROUND(x) AS BIGINT)",
                "x / 3",
                "x IN (0, 1)",
            ],
        ],
    ),
    (
        "b",
        [str(value) for value in _LONGS],
        [
            *[f"CAST(b AS {type_})" for type_ in ("INT", "BIGINT", "DOUBLE", "BOOLEAN", "STRING")],
            *[
                "ROUND(b)",
                "ROUND(b, 2)",
                "FLOOR(b)",
                "CEIL(b)",
                "ABS(b)",
                "-b",
                "SIGN(b)",
                "b * 1D",
                "SQRT(b)",
                "0D * b",
            ],
        ],
    ),
    (
        "m",
        _DECIMALS,
        [
            *[f"CAST(m AS {type_})" for type_ in ("INT", "BIGINT", "DOUBLE")],
            *["FLOOR(m)", "CEIL(m)", "ABS(m)", "-m", "SIGN(m)", "m * 0D", "SQRT(m)"],
        ],
    ),
    ("p", ["true", "false"], [f"CAST(p AS {type_})" for type_ in ("INT", "BIGINT", "DOUBLE", "STRING", "BOOLEAN")]),
    (
        "d",
        ["0001-01-01", "0999-12-31", "1582-10-10", "2024-02-29", "9999-12-31"],
        ["CAST(d AS STRING)", "CAST(d AS TIMESTAMP)"],
    ),
    ("t", _TIMESTAMPS, ["CAST(t AS STRING)", "CAST(t AS DATE)", "CAST(t AS TIMESTAMP)"]),
]
"""The column, its values as texts, and what is asked of each."""


def value_of(column: str, text: str) -> Any:
    """A value of a column."""
    read = {"n": str, "x": float, "b": int, "m": Decimal, "p": "true".__eq__, "d": date.fromisoformat}
    return read.get(column, lambda time: datetime.fromisoformat(f"{time}+00:00"))(text)  # type: ignore[operator]


def table_of(column: str, texts: Sequence[str]) -> pa.Table:
    """Rows with these values, the other columns null."""
    rows = [{**dict.fromkeys(COLUMNS), column: value_of(column, text)} for text in texts]
    return pa.Table.from_pylist(rows, schema=pa.schema(COLUMNS))


def written(value: Any) -> str | None:
    """A value as a text: NaN and the sign of a zero too."""
    if isinstance(value, datetime):
        whole, _, fraction = value.replace(tzinfo=None).isoformat(" ").partition(".")
        return f"{whole}.{fraction.rstrip('0')}" if fraction else whole
    return None if value is None else value if isinstance(value, str) else str(value)


Answers = Mapping[str, Mapping[str, str | None]]
"""The answer for each value, by expression."""


def recorded() -> Answers:
    answers: Answers = json.loads(RECORDED.read_text("utf-8"))
    return answers


def record(answers: Answers) -> None:
    """An expression a line."""
    lines = [f"{json.dumps(sql)}: {json.dumps(answers[sql])}" for sql in answers]
    RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
