"""Expressions as sqlglot reads them: a check that they are some, and the columns that they name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError

from beamish.errors import SqlError
from beamish.statement.dialect import SparkDialect
from beamish.statement.text import Span, Text

_SELECT = "SELECT "


@attrs.frozen
class Named:
    """A column as an expression names it.

    Attributes:
        path: the names between the dots.
        span: where it stands.
    """

    path: tuple[str, ...]
    span: Span


@attrs.frozen(eq=False)
class Read:
    """An expression that was read.

    Attributes:
        tree: as sqlglot has it.
        span: where it stands.
        columns: the columns that it names, in the order of the text.
    """

    tree: exp.Expression
    span: Span
    columns: Sequence[Named]


def read(text: Text, span: Span, marked: Text | None = None) -> Read:
    """Read an expression.

    Args:
        text: the statement; offsets in what is read are offsets in it.
        span: where the expression stands.
        marked: the same with marks in it, to be read in its place.

    Raises:
        SqlError: it is none, or holds an aggregate that bm.sql has not.
    """
    # Blanks for all that comes before keep the offsets; the word SELECT needs seven of them.
    shift = shift_of(span)
    padded = _SELECT + " " * (span.start + shift - len(_SELECT)) + (marked or text)[span]
    try:
        tree = sqlglot.parse_one(padded, read=SparkDialect)
    except ParseError as error:
        raise _error(text, span, padded, shift, error) from None
    except Exception as error:  # whatever an expression does to a parser, the expression is wrong
        raise text.error(span.start, f"this cannot be read as an expression: {error}") from error
    found = tree.expressions if isinstance(tree, exp.Select) and set(said_of(tree)) <= {"expressions"} else ()
    if len(found) != 1 or isinstance(found[0], (exp.Alias, exp.Aliases, exp.Star)):
        raise text.error(span.start, "this is no expression; write one, such as region or price * amount")
    for one_of in found[0].find_all(exp.In):
        if not one_of.expressions:
            raise text.error(place_of(one_of, shift, span.start), "IN without values; write k IN (1, 2)")
    for aggregate in found[0].find_all(exp.AggFunc):
        name = aggregate.sql_name() if hasattr(aggregate, "sql_name") else type(aggregate).__name__.upper()
        raise text.error(
            place_of(aggregate, shift, span.start),
            f"{name}: no aggregate of bm.sql; give it an accumulation: bm.sql(..., aggregates={{{name!r}: lambda column: ...}})",
        )
    columns = [
        Named(tuple(part.name for part in column.parts), span_of_parts(column.parts, shift, span))
        for column in found[0].find_all(exp.Column)
        if not isinstance(column.this, exp.Star)
    ]
    return Read(found[0], span, sorted(columns, key=lambda column: column.span.start))


def shift_of(span: Span) -> int:
    """How far what is read of a place near the beginning of the text is moved, to make room for SELECT."""
    return max(0, len(_SELECT) - span.start)


def said_of(tree: exp.Expression) -> list[str]:
    """What is said of a tree: the names of its parts that there are."""
    return [name for name, value in tree.args.items() if value]


def span_of_parts(parts: Sequence[Any], shift: int, within: Span) -> Span:
    """Where the parts of a name stand."""
    starts = [part.meta["start"] for part in parts if "start" in part.meta]
    ends = [part.meta["end"] for part in parts if "end" in part.meta]
    return Span(min(starts) - shift, max(ends) + 1 - shift) if starts else within


def place_of(tree: exp.Expression, shift: int, otherwise: int) -> int:
    """Where a tree begins: the first place that is known of it or of what is below."""
    places = [node.meta["start"] - shift for node in tree.walk() if "start" in node.meta]
    return min(places, default=otherwise)


def _error(text: Text, span: Span, padded: str, shift: int, error: ParseError) -> SqlError:
    if not error.errors:
        return text.error(span.start, "this cannot be read as an expression")
    first = error.errors[0]
    line, column, highlight = first["line"] or 1, first["col"] or 1, first["highlight"] or ""
    begins = sum(len(one) + 1 for one in padded.split("\n")[: line - 1])
    at = max(span.start, min(begins + column - max(1, len(highlight)) - shift, span.end - 1))
    words = str(first["description"]).partition(" for <class")[0].rstrip(". ")
    return text.error(at, f"this cannot be read as an expression: {words}; mend it, or take it out")
