"""Spark's SQL for sqlglot, with Spark 4's string literals.

A doubled quote within its own kind of quotes is one quote: ``'O''Brien'``. sqlglot's Spark dialect reads two literals, as Spark
does with ``spark.sql.legacy.consecutiveStringLiterals.enabled``, and its versions disagree about escapes. So sqlglot only
delimits literals here.
"""

from __future__ import annotations

import re
from typing import Any

from sqlglot.dialects.spark import Spark

_ESCAPE = re.compile(r"\\U([0-9A-Fa-f]{8})|\\u([0-9A-Fa-f]{4})|\\([01][0-7]{2})|\\(.)|(['\"])\5", re.DOTALL)
_CHARACTERS = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": r"\%", "_": r"\_"}


class SparkDialect(Spark):
    """See the module docstring."""

    class Tokenizer(Spark.Tokenizer):
        """Spark's dialect, in which a doubled quote does not end a literal."""

        STRING_ESCAPES = ["'", '"', "\\"]  # noqa: RUF012 - sqlglot's metaclass reads it

    def tokenize(self, sql: str, *args: Any, **options: Any) -> list[Any]:
        """Tokenize like sqlglot; the text of a string is Spark's value."""
        tokens = super().tokenize(sql, *args, **options)
        for token in tokens:
            if token.token_type.name == "STRING":
                token.text = literal_value(sql[token.start : token.end + 1])
        return tokens


def literal_value(literal: str) -> str:
    """The value of a quoted string literal, by the rules of Spark's ``unescapeSQLString``."""
    quote, inner = literal[0], literal[1:-1]
    value = _ESCAPE.sub(lambda found: _character(found, quote), inner)
    return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\ufffd", "?")


def _character(found: re.Match[str], quote: str) -> str:
    eight, four, octal, escaped, doubled = found.groups()
    if escaped is not None:
        return _CHARACTERS.get(escaped, escaped)
    if doubled is not None:
        return doubled if doubled == quote else found[0]
    above = (int(octal, 8) if octal else int(eight or four, 16)) - 0x10000
    if above < 0:
        return chr(above + 0x10000)
    return chr(0xD800 + above // 0x400 & 0xFFFF) + chr(0xDC00 + above % 0x400)  # a surrogate pair, as in Java
