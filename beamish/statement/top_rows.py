"""Top-N by other columns than the event time, as Flink writes it: ROW_NUMBER in an inner SELECT, and WHERE n <= 3 around it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs
from sqlglot import exp

from beamish.accumulations.top import NUMBER, TopRows
from beamish.kernels.column_names import quoted
from beamish.statement.grammar.clauses import Item, Over, Statement
from beamish.statement.grammar.expressions import COLUMN, Expression, Node, columns_of, expression, path_of
from beamish.statement.grammar.statements import conjuncts
from beamish.statement.grammar.text import Call, Span, Text, Tree, call_of, span_of
from beamish.statement.inputs import Before
from beamish.statement.over_panes import bound_of

ROWS = "first rows"
"""The column of the pipeline with the rows."""
_TURNED = {exp.LTE: exp.GTE, exp.LT: exp.GT, exp.GTE: exp.LTE, exp.GT: exp.LT, exp.EQ: exp.EQ}
"""Comparisons, with their sides exchanged."""


def is_numbered(read: Statement) -> bool:
    """Whether a statement asks for rows by their number among those of their key."""
    calls = [call_of(item.tree) for item in read.items if item.over is not None]
    return read.outer is not None and len(calls) == 1 and _is_number(calls[0])


def is_top(over: Over, event_time: str) -> bool:
    """Whether rows are in another order than that of event times."""
    tree, descends, _ = over.order[0]
    return not (isinstance(tree, exp.Column) and tree.name.lower() == event_time.lower() and not descends)


def _is_number(call: Call | None) -> bool:
    return call is not None and call.name == "ROW_NUMBER"


def is_by_arrival(read: Statement, over: Over) -> bool:
    """Whether rows are in the order of their arrival: by a column of processing time."""
    schema, tree = read.schemas.get(read.rows.name.lower()), over.order[0][0]
    return schema is not None and isinstance(tree, exp.Column) and tree.name.lower() in schema.processing


def first_row(text: Text, read: Statement, over: Over, keys: Sequence[str]) -> TopRows:
    """The first row of each key by arrival; within a micro-batch the least.

    Raises:
        SqlError: more rows are asked for, or the last one.
    """
    _, descends, at = over.order[0]
    if descends or len(over.order) > 1 or not keys or most_of(text, read) > 1:
        raise text.error(
            at,
            "ORDER BY processing time: only the first row of each key is known by it, PARTITION BY k ORDER BY it ASC and n = 1; order by "
            "an event time or another column",
        )
    return TopRows(1, by=keys[0], least=True)


def top_rows(text: Text, read: Statement, over: Over, column: Callable[[Tree], str]) -> TopRows:
    """The accumulation.

    Args:
        text: the statement.
        read: the statement, read.
        over: its OVER.
        column: gives the column of an expression.

    Raises:
        SqlError: WHERE does not bound the number.
    """
    by = tuple(column(tree) for tree, _, _ in over.order)
    return TopRows(most_of(text, read), by=by, least=[not descends for _, descends, _ in over.order])


def most_of(text: Text, read: Statement) -> int:
    """How many rows WHERE lets through."""
    (item,) = [item for item in read.items if item.over is not None]
    assert read.outer is not None  # noqa: S101 - see is_top
    name = "" if item.alias is None else item.alias.text.lower()
    found = [most for part in conjuncts(read.outer) if (most := _bound(part, name)) is not None]
    if not found or min(found) < 1:
        raise text.error(
            span_of(read.outer).start,
            "WHERE around ROW_NUMBER by another column than the event time: the number needs a bound, such as n <= 3, since a table of "
            "all rows by number would change without end",
        )
    return min(found)


def _bound(tree: Tree, name: str) -> int | None:
    """The greatest number that satisfies a comparison with a whole number; None: it has none."""
    if type(tree) not in _TURNED:
        return None
    kind, left, right = type(tree), tree.left, tree.right
    if isinstance(left, exp.Literal):
        kind, left, right = _TURNED[kind], right, left
    whole = isinstance(right, exp.Literal) and not right.is_string and right.this.isdecimal()
    if not whole or not isinstance(left, exp.Column) or left.name.lower() != name or kind in (exp.GTE, exp.GT):
        return None
    return int(right.this) - (kind is exp.LT)


def shown_item(text: Text, read: Statement, item: Item, before: Before, keys: Sequence[str]) -> Expression:
    """An item over the first rows: their number, or an expression over their columns and the bounds of their window."""
    owners = (read.rows.alias.lower(),)
    windowed = not read.windows.option.is_all_of_time
    if item.over is not None:
        return number_of(text, item)
    known: dict[int, Node] = {}
    parts: list[tuple[Span, str]] = []
    for column in columns_of(item.tree):
        which = read.dialect.bounds.get(path_of(column, owners)[0].upper()) if windowed else None
        if which is not None:
            sql, known[id(column)] = bound_of(which)
            parts.append((span_of(column), sql))
            continue
        before.column(column)
        path, span = path_of(column, owners), span_of(column)
        if len(path) > 1 or path[0].lower() not in {key.lower() for key in keys}:
            path = (ROWS, *path)
        known[id(column)] = Node(COLUMN, value=path, at=span.start)
        parts.append((span, ".".join(map(quoted, path))))
    return expression(text, item.tree, "", known, parts)


def number_of(text: Text, item: Item) -> Expression:
    """ROW_NUMBER() of the first rows."""
    span = span_of(item.tree)
    return of_rows(Expression("", quoted(NUMBER), Node(COLUMN, value=(NUMBER,)), text[span], text, span.start))


def of_rows(column: Expression) -> Expression:
    """A column of the first rows."""
    node = attrs.evolve(column.node, value=(ROWS, *column.node.value))
    return attrs.evolve(column, node=node, sql=f"{quoted(ROWS)}.{column.sql}")
