"""Expressions over panes, after the pipeline: of keys, aggregates and the window's bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from beamish.kernels.quoting import quoted
from beamish.statement.expressions import WINDOW_BOUNDS, Expression, path_of
from beamish.statement.marks import Marks
from beamish.statement.nodes import FIRST_ITEM
from beamish.statement.normal import normal
from beamish.statement.reading import Named, Read, read
from beamish.statement.text import Span, Text
from beamish.statement.tokens import Token, span_of
from beamish.statement.translation import node_of

_NOT_DETERMINISTIC = """
    RAND RANDOM RANDN UUID SHUFFLE RANDSTR NOW CURRENT_TIMESTAMP CURRENT_DATE CURDATE CURRENT_TIME LOCALTIMESTAMP UNIX_TIMESTAMP
    MONOTONICALLY_INCREASING_ID SPARK_PARTITION_ID INPUT_FILE_NAME INPUT_FILE_BLOCK_START INPUT_FILE_BLOCK_LENGTH CURRENT_BATCH_ID
"""
NOT_DETERMINISTIC = frozenset(_NOT_DETERMINISTIC.split())
_WITHOUT_BRACKETS = frozenset({"CURRENT_TIMESTAMP", "CURRENT_DATE", "CURRENT_TIME", "LOCALTIMESTAMP"})


@attrs.frozen
class Key:
    """An expression under GROUP BY.

    Attributes:
        name: the key column of the pipeline.
        words: its words.
        column: whether it is a column of the rows.
    """

    name: str
    words: Sequence[Token]
    column: bool


@attrs.frozen
class Aggregate:
    """An aggregate where it stands.

    Attributes:
        name: the column of its accumulation.
        words: its words.
        first: whether its value is the first item of that column's.
    """

    name: str
    words: Sequence[Token]
    first: bool


@attrs.frozen
class Panes:
    """What an expression over panes may name.

    Attributes:
        text: the statement.
        keys: the expressions under GROUP BY.
        aggregates: all aggregates of the statement, where they stand.
        owners: names by which columns may say whose they are, in lower case.
        windowed: whether there is a WINDOW clause.
        aliases: what the names after AS, in lower case, stand for.
    """

    text: Text
    keys: Sequence[Key]
    aggregates: Sequence[Aggregate]
    owners: Sequence[str]
    windowed: bool
    aliases: Mapping[str, str]

    def expression(self, tokens: Sequence[Token], name: str, *, bounds: bool) -> Expression:
        """An expression over panes.

        Args:
            tokens: its words.
            name: the column that holds it.
            bounds: whether it may name the window's bounds.

        Raises:
            SqlError: it is none, names what is neither a key nor in an aggregate, or is another each time.
        """
        self._check_deterministic(tokens)
        span = span_of(tokens)
        marks: Marks[Key | Aggregate] = Marks(self.text)
        for aggregate in self.aggregates:
            where = span_of(aggregate.words)
            if span.start <= where.start < span.end:
                marks.put(where, aggregate)
        marked = marks.text()
        found = read(self.text, span, marked)
        for key in self.keys:
            if not key.column:
                found, marked = self._with_key(key, tokens, marks, found, marked)
        parts: list[tuple[Span, str]] = []
        names: dict[Span, tuple[str, ...]] = {}
        for column in found.columns:
            sql, path = self._meant(column, marks, bounds=bounds)
            parts.append((marks.where(column), sql))
            names[column.span] = path
        node = node_of(found, marked, names)
        return Expression(name, self._replaced(span, parts), node, self.text[span], self.text, span.start)

    def key_of(self, tokens: Sequence[Token]) -> Key | None:
        """The key that an item of the SELECT list is, word by word."""
        said = normal(self.text, without_brackets(tokens), self.owners)
        return next(
            (key for key in self.keys if normal(self.text, without_brackets(key.words), self.owners) == said), None
        )

    def _check_deterministic(self, tokens: Sequence[Token]) -> None:
        for at, token in enumerate(tokens):
            called = at + 1 < len(tokens) and tokens[at + 1].kind == "L_PAREN"
            if token.word in NOT_DETERMINISTIC and (called or token.word in _WITHOUT_BRACKETS):
                raise self.text.error(
                    token.start,
                    f"{token.word} over panes: a retraction must repeat the row it takes back, and this is another each time; "
                    "compute it where the rows are read, or where they are written",
                )

    def _with_key(
        self, key: Key, tokens: Sequence[Token], marks: Marks[Key | Aggregate], found: Read, marked: Text
    ) -> tuple[Read, Text]:
        """The expression with the key in place of what is written as under GROUP BY.

        ``b * a + 1`` holds the words of ``a + 1``, but is no expression over it: with its mark put back the tree must be the same.
        """
        wanted, tried = without_brackets(key.words), marks.copy()
        said, length, at = normal(self.text, wanted), len(wanted), 0
        while at + length <= len(tokens):
            part = tokens[at : at + length]
            same = normal(self.text, part) == said and tried.is_free(span_of(part))
            if same:
                tried.put(span_of(part), key)
            at += length if same else 1
        if len(tried) == len(marks):
            return found, marked
        text = tried.text()
        again = read(self.text, found.span, text)
        own = read(self.text, span_of(wanted)).tree
        if repr(tried.expanded(again.tree, key, own)).lower() != repr(found.tree).lower():
            return found, marked
        marks.take_over(tried)
        return again, text

    def _meant(self, column: Named, marks: Marks[Key | Aggregate], *, bounds: bool) -> tuple[str, tuple[str, ...]]:
        """What a column is: for Spark, and the path to it among the columns of panes."""
        mark = marks.of(column)
        if isinstance(mark, Aggregate) and mark.first:
            return f"get({quoted(mark.name)}, 0)", (mark.name, FIRST_ITEM)
        if mark is not None:
            return quoted(mark.name), (mark.name,)
        path = path_of(column, self.owners)
        for key in self.keys:
            if key.column and key.name.lower() == path[0].lower():
                return ".".join(map(quoted, (key.name, *path[1:]))), (key.name, *path[1:])
        word = path[0].upper()
        if len(path) == 1 and word in WINDOW_BOUNDS:
            self._check_bounds(column, word, bounds=bounds)
            return f"`window`.`{WINDOW_BOUNDS[word]}`", ("window", WINDOW_BOUNDS[word])
        said = ".".join(column.path)
        if said.lower() in self.aliases:
            raise self.text.error(
                column.span.start,
                f"{said} is a name of the SELECT list, and no column: write what it stands for, {self.aliases[said.lower()]}",
            )
        raise self.text.error(
            column.span.start,
            f"{said} is neither under GROUP BY, written there as here, nor in an aggregate: a group has many; add it to GROUP BY, "
            f"or say which: MAX({said}), LAST({said})",
        )

    def _check_bounds(self, column: Named, word: str, *, bounds: bool) -> None:
        if not bounds:
            raise self.text.error(
                column.span.start, f"{word} may stand in the SELECT list only; filter what comes out by it"
            )
        if not self.windowed:
            raise self.text.error(
                column.span.start, f"{word} without WINDOW: say WINDOW TUMBLING (SIZE 5 MINUTES) after FROM"
            )

    def _replaced(self, span: Span, parts: Sequence[tuple[Span, str]]) -> str:
        said, at = "", span.start
        for where, sql in sorted(parts, key=lambda part: part[0].start):
            said += self.text[Span(at, where.start)] + sql
            at = where.end
        return said + self.text[Span(at, span.end)]


def without_brackets(tokens: Sequence[Token]) -> Sequence[Token]:
    """Without brackets around all of it."""
    while (
        len(tokens) > 2
        and tokens[0].kind == "L_PAREN"
        and all(token.depth > tokens[0].depth for token in tokens[1:-1])
        and tokens[-1].kind == "R_PAREN"
    ):
        tokens = tokens[1:-1]
    return tokens
