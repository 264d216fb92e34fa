"""The text of a statement, its words, and what is wrong at a place in it.

Spark's SQL for sqlglot, with Spark 4's string literals.

A doubled quote within its own kind of quotes is one quote: ``'O''Brien'``. sqlglot's Spark dialect reads two literals, as Spark
does with ``spark.sql.legacy.consecutiveStringLiterals.enabled``, and its versions disagree about escapes. So sqlglot only
delimits literals here.

The normal form of an expression: independent of blanks, comments and case. Computed columns and accumulations are named by it, and a
checkpoint holds these names. So it is made of the words of the text alone, and no version of a parser changes it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import accumulate
from typing import Any

import attrs
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError

from beamish.errors import BeamishError, SqlError

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


Token = Any
"""A token of sqlglot's, whose versions have its class in different modules."""
_BRACKETS = {"R_PAREN": "L_PAREN", "R_BRACKET": "L_BRACKET", "R_BRACE": "L_BRACE"}
_DEPTHS = {"L_PAREN": 1, "R_PAREN": -1}
_STRINGS = re.compile(r"--[^\n]*|/\*.*?\*/|'(?:\\.|''|[^'\\])*+'|\"(?:\\.|\"\"|[^\"\\])*+\"|`[^`]*`", re.DOTALL)
_BEGINS = re.compile(r"/\*|['\"`]")


@attrs.frozen
class Span:
    """A range of a text, end exclusive."""

    start: int
    end: int


@attrs.frozen
class Text:
    """A statement as the user wrote it."""

    sql: str

    def __getitem__(self, span: Span) -> str:
        return self.sql[span.start : span.end]

    @cached_property
    def tokens(self) -> Sequence[Token]:
        """Its words, numbers, strings and signs, cut as Spark cuts them.

        Raises:
            SqlError: a quote, comment or bracket is never closed, or there is nothing.
        """
        try:
            tokens = SparkDialect().tokenize(self.sql)
        except SqlglotError:
            raise self._unended() from None
        except Exception as error:  # whatever a text does to a tokenizer, the text is wrong
            raise self.error(0, f"the text cannot be read: {error}") from error
        self._check_brackets(tokens)
        return tokens

    def words(self, span: Span) -> list[Token]:
        """The tokens of a part."""
        return [token for token in self.tokens if span.start <= token.start < span.end]

    def error(self, at: int, says: str) -> SqlError:
        """An error with the line and a mark under the place.

        Args:
            at: the offset; past the end: the last character.
            says: the rule and the fix.
        """
        at = max(0, min(at, len(self.sql) - 1))
        start = self.sql.rfind("\n", 0, at) + 1
        end = self.sql.find("\n", at)
        shown = self.sql[start : len(self.sql) if end < 0 else end]
        line, column = self.sql.count("\n", 0, at) + 1, at - start + 1
        indent = re.sub(r"[^\t]", " ", shown[: column - 1])
        return SqlError(f"line {line}, column {column}: {says}\n    {shown}\n    {indent}^", line, column)

    @contextmanager
    def at(self, at: int) -> Iterator[None]:
        """Report what beamish refuses meanwhile at that place."""
        try:
            yield
        except SqlError:
            raise
        except BeamishError as error:
            raise self.error(at, str(error)) from error

    def _check_brackets(self, tokens: Sequence[Token]) -> None:
        open_: list[Token] = []
        for token in tokens:
            kind = token.token_type.name
            if kind in _BRACKETS.values():
                open_.append(token)
            elif kind in _BRACKETS and (not open_ or open_.pop().token_type.name != _BRACKETS[kind]):
                raise self.error(token.start, f"{token.text!r} closes nothing; take it out, or open it before")
        if open_:
            raise self.error(open_[-1].start, f"{open_[-1].text!r} is never closed; close it")

    def _unended(self) -> SqlError:
        begins = _BEGINS.search(_STRINGS.sub(lambda found: " " * len(found[0]), self.sql))
        return self.error(begins.start() if begins else 0, "this is never closed; close the quote or comment")


_QUOTED = ("STRING", "RAW_STRING", "IDENTIFIER", "HEX_STRING", "BIT_STRING", "NATIONAL_STRING")


def word_of(token: Token) -> str:
    """A word in upper case; empty if it is quoted."""
    return "" if token.token_type.name in _QUOTED else " ".join(token.text.upper().split())


def is_name(token: Token) -> bool:
    """Whether a token can name something."""
    return token.token_type.name == "IDENTIFIER" or re.fullmatch(r"[^\W\d]\w*", word_of(token)) is not None


_NO_BLANK_BEFORE = ("COMMA", "R_PAREN", "R_BRACKET", "DOT", "L_BRACKET", "DCOLON")
_NO_BLANK_AFTER = ("L_PAREN", "L_BRACKET", "DOT", "DCOLON")
_OPERAND_FOLLOWS = """
    SELECT ALIAS FROM WHERE GROUP_BY HAVING COMMA DOT AND OR NOT EQ NEQ LT GT LTE GTE NULLSAFE_EQ PLUS DASH STAR SLASH DIV MOD DPIPE
    IS LIKE ILIKE RLIKE BETWEEN IN CASE WHEN THEN ELSE L_PAREN L_BRACKET
"""
_NO_FUNCTIONS = frozenset(_OPERAND_FOLLOWS.split())


def normal(text: Text, span: Span, owners: Collection[str] = ()) -> str:
    """The normal form.

    Args:
        text: the statement.
        span: the place of the expression.
        owners: names of the source, in lower case; they are left out before columns.
    """
    words = text.words(span)
    tokens = [token for at, token in enumerate(words) if not _is_owner(words, at, owners)]
    said = ""
    for at, token in enumerate(tokens):
        kind, before = token.token_type.name, tokens[at - 1] if at else None
        after = None if before is None else before.token_type.name
        called = kind == "L_PAREN" and before is not None and is_name(before) and after not in _NO_FUNCTIONS
        joined = kind in _NO_BLANK_BEFORE or called or after is None or after in _NO_BLANK_AFTER
        said += ("" if joined else " ") + _spelled(text, tokens, at)
    return said


def _is_owner(tokens: Sequence[Token], at: int, owners: Collection[str]) -> bool:
    """Whether a word is the name of the source before a column, or the dot after that."""
    if tokens[at].token_type.name == "DOT":
        return at > 0 and _is_owner(tokens, at - 1, owners)
    first = at == 0 or tokens[at - 1].token_type.name != "DOT"
    followed = at + 1 < len(tokens) and tokens[at + 1].token_type.name == "DOT"
    return first and followed and is_name(tokens[at]) and tokens[at].text.lower() in owners


def _spelled(text: Text, tokens: Sequence[Token], at: int) -> str:
    token, kind = tokens[at], tokens[at].token_type.name
    if kind == "IDENTIFIER" and token.text.isidentifier():
        return str(token.text).lower()
    word = word_of(token)
    function = at + 1 < len(tokens) and tokens[at + 1].token_type.name == "L_PAREN"
    if not word:
        return text[Span(token.start, token.end + 1)]
    return word.lower() if kind == "VAR" and not function else word


Tree = Any
"""An expression as sqlglot has it; its ``meta["span"]`` is its place."""


@attrs.frozen(eq=False)
class Call:
    """A call of an aggregate.

    Attributes:
        name: in upper case.
        span: its place.
        distinct: whether DISTINCT is set.
        args: its arguments.
    """

    name: str
    span: Span
    distinct: bool
    args: Sequence[Tree]


def span_of(tree: Tree) -> Span:
    """The place of an expression: from the first to the last place in it that is known."""
    if "span" in tree.meta:
        found: Span = tree.meta["span"]
        return found
    spans = [span_of(child) for child in tree.iter_expressions()]
    spans += [Span(tree.meta["start"], tree.meta["end"] + 1)] if "start" in tree.meta else []
    known = [span for span in spans if span.end > 0]
    return Span(min(span.start for span in known), max(span.end for span in known)) if known else Span(0, 0)


def function_of(text: Text, tree: Tree) -> str:
    """The name of the function that an expression calls, in upper case; empty if it is another."""
    tokens = text.words(span_of(tree))
    if len(tokens) < 3 or not is_name(tokens[0]) or tokens[1].token_type.name != "L_PAREN":
        return ""
    depths = accumulate(_DEPTHS.get(token.token_type.name, 0) for token in tokens)
    return word_of(tokens[0]) if [*depths].index(0, 1) == len(tokens) - 1 else ""


def call_of(tree: Tree) -> Call | None:
    """The call of an aggregate that an expression is; None: it is another."""
    found: Call | None = tree.meta.get("call")
    return found
