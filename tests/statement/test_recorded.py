"""Casts and roundings of a script give what Spark gave for a table of texts and numbers (``answers.py``)."""

import re

import pytest

import beamish as bm
from beamish.statement.running import evaluate
from tests.statement.answers import ASKED, FAILS, recorded, table_of, written
from tests.statement.cases import expression

UNSUPPORTED = re.compile(r"^[+-]?\d{5}|^-|^0000|^0001.*\+|^9999.*-01:00$|Los_Angeles|[PE]ST")
"""Times that a script refuses: outside the years 1 to 9999, and with time zones by name."""


def answers_of_script(sql, column, texts):
    """The answers, or the errors."""
    made, table = expression(sql), table_of(column, texts)
    for row, text in enumerate(texts):
        try:
            yield text, written(evaluate(made.node, table.slice(row, 1), made.text)[0].as_py())
        except bm.SqlError as error:
            yield text, error


@pytest.mark.parametrize(("column", "texts", "asked"), ASKED, ids=[column for column, _, _ in ASKED])
def test_a_script_gives_what_spark_gave(column, texts, asked):
    answers = recorded()
    for sql in asked:
        for text, ours in answers_of_script(sql, column, texts):
            theirs = answers[sql][text]
            if not isinstance(ours, bm.SqlError):
                assert ours == theirs, f"{sql} of {text!r}"
            elif theirs != FAILS:
                assert "in a script" in str(ours), f"{sql} of {text!r}: {ours}, Spark gives {theirs!r}"
                assert UNSUPPORTED.search(text), f"{sql} of {text!r}: {ours}, Spark gives {theirs!r}"


def test_digits_of_an_interval_are_those_of_ascii():
    made = expression("t < t + INTERVAL '٣' HOUR")
    with pytest.raises(bm.SqlError, match="only Spark computes this"):
        evaluate(made.node, table_of("t", ["2024-01-31 12:30:15"]), made.text)
