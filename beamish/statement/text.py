"""The text of a statement, and what is wrong at a place in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import attrs

from beamish.errors import BeamishError, SqlError

_BLANKED = re.compile(r"[^\r\n]")


@attrs.frozen
class Span:
    """A part of a text: from the offset ``start`` to before ``end``."""

    start: int
    end: int


@attrs.frozen
class Text:
    """What the user wrote."""

    sql: str

    def __getitem__(self, span: Span) -> str:
        return self.sql[span.start : span.end]

    def only(self, *spans: Span) -> str:
        """The same text with blanks for all that is in none of the spans, so that offsets and lines stay.

        Args:
            spans: in order.
        """
        parts, at = [], 0
        for span in spans:
            parts += [_blank(self.sql[at : span.start]), self[span]]
            at = span.end
        return "".join(parts) + _blank(self.sql[at:])

    def error(self, at: int, says: str) -> SqlError:
        """What is wrong, with the line and a mark under the place.

        Args:
            at: the offset; past the end: the last character.
            says: the rule and the way out.
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
        """What beamish refuses meanwhile is wrong at that place."""
        try:
            yield
        except SqlError:
            raise
        except BeamishError as error:
            raise self.error(at, str(error)) from error


def _blank(text: str) -> str:
    return _BLANKED.sub(" ", text)
