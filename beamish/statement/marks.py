"""Single characters put in place of parts of a text, so that what they stand for is read as a column."""

from __future__ import annotations

from typing import Generic, TypeVar

from sqlglot import exp

from beamish.statement.reading import Named
from beamish.statement.text import Span, Text

_T = TypeVar("_T")


class Marks(Generic[_T]):
    """Marks in a text, each for a part of it.

    A mark is a character of the private use area that the text has not; blanks after it keep all else at its place.
    """

    def __init__(self, text: Text) -> None:
        self._text = text
        self._put: dict[str, tuple[Span, _T]] = {}
        self._free = (one for one in map(chr, range(0xE000, 0xF8FF)) if one not in text.sql)

    def __len__(self) -> int:
        return len(self._put)

    def copy(self) -> Marks[_T]:
        """The same, to try something."""
        copied: Marks[_T] = Marks(self._text)
        copied._put, copied._free = dict(self._put), self._free
        return copied

    def take_over(self, other: Marks[_T]) -> None:
        """Be as the other is."""
        self._put = other._put

    def put(self, where: Span, what: _T) -> None:
        """Put a mark in place of a part."""
        self._put[next(self._free)] = (where, what)

    def is_free(self, where: Span) -> bool:
        """Whether no mark is there."""
        return all(other.end <= where.start or where.end <= other.start for other, _ in self._put.values())

    def text(self) -> Text:
        """The text with the marks."""
        said = self._text.sql
        for mark, (where, _) in self._put.items():
            said = said[: where.start] + mark.ljust(where.end - where.start) + said[where.end :]
        return Text(said)

    def of(self, column: Named) -> _T | None:
        """What a column stands for; None: for itself."""
        found = self._put.get(column.path[0])
        return None if found is None else found[1]

    def where(self, column: Named) -> Span:
        """Where in the text what a column stands for is."""
        found = self._put.get(column.path[0])
        return column.span if found is None else found[0]

    def expanded(self, tree: exp.Expression, what: _T, own: exp.Expression) -> exp.Expression:
        """A tree with another in place of the marks of ``what``."""
        return tree.transform(lambda node: own.copy() if self._stands_for(node, what) else node)

    def _stands_for(self, node: exp.Expression, what: _T) -> bool:
        found = self._put.get(node.name) if isinstance(node, exp.Column) else None
        return found is not None and found[1] is what
