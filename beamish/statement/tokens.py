"""The words of a statement, cut as Spark cuts them, with the place of each."""

from __future__ import annotations

import re
from collections.abc import Sequence

import attrs
from sqlglot.errors import SqlglotError

from beamish.errors import SqlError
from beamish.statement.dialect import SparkDialect
from beamish.statement.text import Span, Text

_OPENING, _CLOSING = ("L_PAREN", "L_BRACKET", "L_BRACE"), ("R_PAREN", "R_BRACKET", "R_BRACE")
_QUOTED = ("STRING", "RAW_STRING", "IDENTIFIER", "HEX_STRING", "BIT_STRING", "NATIONAL_STRING")
_AFTER_THESE = """
    SELECT ALIAS FROM WHERE GROUP_BY HAVING COMMA DOT AND OR NOT EQ NEQ LT GT LTE GTE NULLSAFE_EQ PLUS DASH STAR SLASH DIV MOD DPIPE
    IS LIKE ILIKE RLIKE BETWEEN IN CASE WHEN THEN ELSE L_PAREN L_BRACKET
"""
OPERAND_FOLLOWS = frozenset(_AFTER_THESE.split())
"""After these an operand follows, so a word that stands there begins no clause."""

_STRINGS = re.compile(r"--[^\n]*|/\*.*?\*/|'(?:\\.|''|[^'\\])*+'|\"(?:\\.|\"\"|[^\"\\])*+\"|`[^`]*`", re.DOTALL)
_BEGINS = re.compile(r"/\*|['\"`]")


@attrs.frozen
class Token:
    """A word, number, string or sign.

    Attributes:
        kind: sqlglot's name of its type.
        word: in upper case; empty if it is quoted.
        text: what it says, without quotes.
        span: where it stands.
        depth: how many brackets are open around it.
    """

    kind: str
    word: str
    text: str
    span: Span
    depth: int

    @property
    def start(self) -> int:
        """Where it begins."""
        return self.span.start

    @property
    def is_name(self) -> bool:
        """Whether it can name something."""
        return self.kind == "IDENTIFIER" or re.fullmatch(r"[^\W\d]\w*", self.word) is not None


def tokens_of(text: Text) -> list[Token]:
    """The words of a text.

    Raises:
        SqlError: a quote, comment or bracket has no end, or there is nothing.
    """
    try:
        found = SparkDialect().tokenize(text.sql)
    except SqlglotError:
        raise _unended(text) from None
    except Exception as error:  # whatever a text does to a parser, the text is wrong
        raise text.error(0, f"the text cannot be read: {error}") from error
    tokens: list[Token] = []
    open_: list[Token] = []
    for token in found:
        kind, span = str(token.token_type.name), Span(token.start, token.end + 1)
        if kind in _CLOSING:
            if not open_ or _OPENING.index(open_[-1].kind) != _CLOSING.index(kind):
                raise text.error(span.start, f"{token.text!r} closes nothing; take it out, or open it before")
            open_.pop()
        word = "" if kind in _QUOTED else " ".join(token.text.upper().split())
        made = Token(kind, word, token.text, span, len(open_))
        if kind in _OPENING:
            open_.append(made)
        tokens.append(made)
    if open_:
        raise text.error(open_[-1].start, f"{open_[-1].text!r} is never closed; close it")
    if not tokens:
        raise text.error(0, "there is no statement; write SELECT ... FROM ... GROUP BY ...")
    return tokens


def begins_clause(tokens: Sequence[Token], at: int) -> bool:
    """Whether a word stands where no operand can, and so can begin a clause."""
    return at > 0 and tokens[at].depth == 0 and tokens[at - 1].kind not in OPERAND_FOLLOWS


def split(tokens: Sequence[Token], depth: int) -> list[Sequence[Token]]:
    """What stands between the commas outside brackets deeper than ``depth``; without any token, nothing."""
    parts: list[list[Token]] = [[]]
    for token in tokens:
        if token.kind == "COMMA" and token.depth == depth:
            parts.append([])
        else:
            parts[-1].append(token)
    return list(parts) if tokens else []


def span_of(tokens: Sequence[Token]) -> Span:
    """From the first to the last of them."""
    return Span(tokens[0].span.start, tokens[-1].span.end)


def _unended(text: Text) -> SqlError:
    begins = _BEGINS.search(_STRINGS.sub(lambda found: " " * len(found[0]), text.sql))
    at = begins.start() if begins else 0
    return text.error(at, "this is never closed; close the quote or comment")
