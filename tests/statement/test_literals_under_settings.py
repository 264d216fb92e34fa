"""Literals that Spark would read otherwise under a setting of the session are refused on Spark (docs/sql.md#in-process)."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

import beamish as bm
from beamish.spark.statement import check_literals
from tests.statement.cases import expression

QUOTES = "spark.sql.ansi.doubleQuotedIdentifiers"
ESCAPES = "spark.sql.parser.escapedStringLiterals"
DOUBLED = "spark.sql.legacy.consecutiveStringLiterals.enabled"
EXPONENTS = "spark.sql.legacy.exponentLiteralAsDecimal.enabled"
SETTINGS = (QUOTES, ESCAPES, DOUBLED, EXPONENTS)


@pytest.mark.parametrize(
    ("sql", "refused"),
    [
        ("s = 'a'", ()),
        ('s = "a"', (QUOTES,)),
        ('s = r"a"', (QUOTES,)),
        ("s = 'say \"no\"'", ()),
        (r"s = 'a\n'", (ESCAPES,)),
        (r"s = r'a\n'", ()),
        ("s = 'O''B'", (DOUBLED,)),
        ("s = \"O''B\"", (QUOTES,)),
        ('s = "O""B"', (QUOTES, DOUBLED)),
        ("s = '' OR r = ''", ()),
        ("x > 1e5", (EXPONENTS,)),
        ("x > .5E-2", (EXPONENTS,)),
        ("s = '1e5' OR x1e5 > 1", ()),
        ("`a\"b` = 1 /* it's \\ */", ()),
    ],
)
def test_a_literal_is_refused_under_the_settings_that_change_it(sql, refused):
    made = expression(sql)
    for setting in SETTINGS:
        spark = cast("Any", SimpleNamespace(conf={setting: "true"}))
        if setting in refused:
            with pytest.raises(bm.SqlError, match=rf'(?s)under {setting}.*spark\.conf\.set\("{setting}", "false"\)'):
                check_literals(spark, made)
        else:
            check_literals(spark, made)
    check_literals(cast("Any", SimpleNamespace(conf={})), made)
