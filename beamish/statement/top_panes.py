"""Top-N over a windowed GROUP BY, as Flink writes it: ROW_NUMBER in a SELECT around it, numbering the groups of each window."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from beamish.pipeline import Pipeline
from beamish.statement.grammar.clauses import Item, Name, Statement
from beamish.statement.grammar.expressions import COLUMN, Expression, Node, columns_of, expression
from beamish.statement.grammar.text import Span, Text, span_of
from beamish.statement.groups import Groups
from beamish.statement.inputs import Input
from beamish.statement.over import OverRows, names_of, one_over, outer_condition
from beamish.statement.over_panes import Shown, check_new_name
from beamish.statement.top_rows import ROWS, number_of, top_rows


def numbered_panes(
    text: Text, read: Statement, groups: Sequence[Shown], inputs: Sequence[Input], pipeline: Pipeline
) -> OverRows:
    """The statement around a windowed GROUP BY.

    Args:
        text: the statement.
        read: the statement around it.
        groups: the items of the SELECT list of the inner one.
        inputs: what is computed of the rows before it.
        pipeline: the pipeline of the inner one.

    Raises:
        SqlError: it is not of each window, or needs an item that is not a column or an aggregate.
    """
    start = next(item.over.start for item in read.items if item.over is not None)
    over = one_over(text, read)
    of = Groups.of(text, groups)
    partition = [of.item(tree) for tree in over.partition]
    bounds = {one.node.value for one in partition if of.is_bound(one)}
    if not {("window", "start"), ("window", "end")} <= bounds:
        raise text.error(
            start,
            "PARTITION BY over windows names them: PARTITION BY window_start, window_end, ...; select both in the inner query",
        )
    keys = [of.column(tree) for tree, one in zip(over.partition, partition, strict=True) if not of.is_bound(one)]
    with text.at(start):
        stage = Pipeline().key_by(*keys).accumulate(**{ROWS: top_rows(text, read, over, of.column)})
        made = pipeline.then(stage)
        made.flow.completed.check()
    shown: list[Shown] = []
    names = names_of(text, read.items, read.items, read.dialect)
    for item, name in zip(read.items, names, strict=True):
        for one in _shown(text, item, name, of, keys):
            check_new_name(text, Name(one.expression.name, one.expression.at), shown)
            shown.append(one)
    assert read.outer is not None  # noqa: S101 - it has a number
    having = outer_condition(text, read.outer, shown, (read.rows.alias.lower(),))
    places = {f"accumulate({ROWS}=": start}
    return OverRows(made, inputs[0], shown, frozenset(), keys, having, places, text, read.chosen, is_top=True)


def _shown(text: Text, item: Item, name: Name, of: Groups, keys: Sequence[str]) -> list[Shown]:
    """The items of the SELECT list that one is."""
    if item.over is not None:
        return [Shown(attrs.evolve(number_of(text, item), name=name.text), is_key=False)]
    if item.tree.is_star:
        return [_as_shown(of.placed(one, keys, one.at), one.name) for one in of.by_name.values()]
    known: dict[int, Node] = {}
    parts: list[tuple[Span, str]] = []
    for column in columns_of(item.tree):
        one = of.placed(of.item(column), keys, span_of(column).start)
        known[id(column)] = one.node
        parts.append((span_of(column), one.sql))
    return [_as_shown(expression(text, item.tree, "", known, parts), name.text)]


def _as_shown(one: Expression, name: str) -> Shown:
    is_key = one.node.op == COLUMN and len(one.node.value) == 1
    return Shown(attrs.evolve(one, name=name), is_key)
