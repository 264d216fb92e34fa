"""Expressions over rows, before the pipeline."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise

import attrs
from sqlglot import exp

from beamish.errors import SqlError
from beamish.statement.nodes import COLUMN, Node
from beamish.statement.text import Span, Text
from beamish.statement.translation import node_of
from beamish.statement.trees import Tree, span_of

WINDOW_BOUNDS: Mapping[str, str] = {"WINDOWSTART": "start", "WINDOWEND": "end"}


@attrs.frozen
class Expression:
    """An expression, for Spark and in process.

    Attributes:
        name: the column that holds it.
        sql: Spark's expression.
        node: the tree that runs in process.
        said: the expression as the user wrote it.
        text: the statement.
        at: its place.
    """

    name: str
    sql: str
    node: Node
    said: str
    text: Text = attrs.field(repr=False)
    at: int = attrs.field(eq=False)

    def error(self, says: str) -> SqlError:
        """The error for this expression."""
        return self.text.error(self.at, says)


def over_rows(text: Text, tree: Tree, name: str, owners: Collection[str]) -> Expression:
    """An expression over the rows, before the pipeline.

    Args:
        text: the statement.
        tree: the expression.
        name: the column that holds it.
        owners: names by which columns may be qualified, in lower case.

    Raises:
        SqlError: it names the window's bounds.
    """
    known: dict[int, Node] = {}
    for column in columns_of(tree):
        path, span = path_of(column, owners), span_of(column)
        if len(path) == 1 and path[0].upper() in WINDOW_BOUNDS:
            raise text.error(
                span.start, f"{path[0].upper()}: rows are in no window yet; it may stand in the SELECT list only"
            )
        known[id(column)] = Node(COLUMN, value=path, at=span.start)
    return expression(text, tree, name, known, ())


def expression(
    text: Text, tree: Tree, name: str, known: Mapping[int, Node], parts: Sequence[tuple[Span, str]]
) -> Expression:
    """An expression, with other words for Spark in place of some parts."""
    span = span_of(tree)
    sql, at = "", span.start
    typed = (one for one in _typed(text, tree) if not any(part.start <= one[0].start < part.end for part, _ in parts))
    for where, words in sorted([*parts, *typed], key=lambda part: part[0].start):
        sql += text[Span(at, where.start)] + words
        at = where.end
    sql += text[Span(at, span.end)]
    return Expression(name, sql, node_of(tree, text, known), text[span], text, span.start)


def _typed(text: Text, tree: Tree) -> Iterator[tuple[Span, str]]:
    """What ksqlDB's users type and Spark writes otherwise, with Spark's words."""
    for node in tree.walk():
        if isinstance(node, (exp.Column, exp.Dot)):
            parts = node.parts if isinstance(node, exp.Column) else [node.this, node.expression]
            gaps = (Span(span_of(before).end, span_of(after).start) for before, after in pairwise(parts))
            yield from ((gap, ".") for gap in gaps if "->" in text[gap])
        elif isinstance(node, exp.PropertyEQ):
            yield from _assigned(text, node)
        elif isinstance(node, exp.Array) and (found := re.match(r"ARRAY\s*\[", text[span_of(node)], re.IGNORECASE)):
            span = span_of(node)
            yield Span(span.start + found.end() - 1, span.start + found.end()), "("
            yield Span(span.end - 1, span.end), ")"
        elif isinstance(node, exp.Anonymous) and node.name.upper() == "AS_VALUE":
            yield _first(node, "AS_VALUE"), ""


def _assigned(text: Text, node: Tree) -> Iterator[tuple[Span, str]]:
    """``STRUCT(a := x)`` as ``named_struct('a', x)``, ``MAP(k := x)`` as ``MAP(k, x)``."""
    key, value, of = span_of(node.this), span_of(node.expression), node.parent
    if ":=" not in text[Span(key.end, value.start)]:
        return
    if not isinstance(of, exp.Struct):
        yield Span(key.end, value.start), ", "
        return
    yield Span(key.start, value.start), "'" + node.this.name.replace("\\", "\\\\").replace("'", "\\'") + "', "
    if node is of.expressions[0]:
        yield _first(of, "STRUCT"), "named_struct"


def _first(node: Tree, word: str) -> Span:
    return Span(span_of(node).start, span_of(node).start + len(word))


def columns_of(tree: Tree) -> Iterator[Tree]:
    """The columns that an expression names."""
    return tree.find_all(exp.Column)  # type: ignore[no-any-return]


def path_of(column: Tree, owners: Collection[str]) -> tuple[str, ...]:
    """The names of a column and of the fields in it, without the name of the source."""
    path = tuple(part.name for part in column.parts)
    return path[1:] if len(path) > 1 and path[0].lower() in owners else path
