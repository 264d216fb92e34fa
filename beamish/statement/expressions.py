"""Expressions over rows, before the pipeline; and what an expression is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from beamish.errors import SqlError
from beamish.statement.nodes import Node
from beamish.statement.reading import Named, read
from beamish.statement.text import Text
from beamish.statement.tokens import Token, span_of
from beamish.statement.translation import node_of

WINDOW_BOUNDS: Mapping[str, str] = {"WINDOWSTART": "start", "WINDOWEND": "end"}


@attrs.frozen
class Expression:
    """An expression, for Spark and for what runs in process.

    Attributes:
        name: the column that holds it.
        sql: what Spark computes.
        node: what is computed in process.
        said: as the user wrote it.
        text: the statement.
        at: where it stands.
    """

    name: str
    sql: str
    node: Node
    said: str
    text: Text = attrs.field(repr=False)
    at: int = attrs.field(eq=False)

    def error(self, says: str) -> SqlError:
        """What is wrong with it."""
        return self.text.error(self.at, says)


def over_rows(text: Text, tokens: Sequence[Token], name: str, owners: Sequence[str]) -> Expression:
    """An expression over the rows, before the pipeline.

    Args:
        text: the statement.
        tokens: its words.
        name: the column that holds it.
        owners: names by which columns may say whose they are, in lower case.

    Raises:
        SqlError: it is none, or names the window's bounds.
    """
    span = span_of(tokens)
    found = read(text, span)
    for column in found.columns:
        word = column.path[0].upper()
        if len(column.path) == 1 and word in WINDOW_BOUNDS:
            raise text.error(
                column.span.start, f"{word}: rows are in no window yet; it may stand in the SELECT list only"
            )
    names = {column.span: path_of(column, owners) for column in found.columns}
    return Expression(name, text[span], node_of(found, text, names), text[span], text, span.start)


def path_of(column: Named, owners: Sequence[str]) -> tuple[str, ...]:
    """The names of a column and of the fields in it, without the name of the source."""
    return column.path[1:] if len(column.path) > 1 and column.path[0].lower() in owners else column.path
