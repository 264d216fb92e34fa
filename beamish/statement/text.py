"""The text of a statement, its words, and what is wrong at a place in it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import attrs
from sqlglot.errors import SqlglotError

from beamish.errors import BeamishError, SqlError
from beamish.statement.dialect import SparkDialect

Token = Any
"""A token of sqlglot's, whose versions have its class in different modules."""
_BRACKETS = {"R_PAREN": "L_PAREN", "R_BRACKET": "L_BRACKET", "R_BRACE": "L_BRACE"}
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
