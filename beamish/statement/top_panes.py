"""Top-N over a windowed GROUP BY, as Flink writes it: ROW_NUMBER in a SELECT around it, numbering the groups of each window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from beamish.kernels.column_names import quoted
from beamish.pipeline import Pipeline
from beamish.statement.clauses import Item, Name, Statement
from beamish.statement.expressions import COLUMN, Expression, Node, columns_of, expression
from beamish.statement.inputs import Input
from beamish.statement.over import OverRows, names_of, one_over, outer_condition
from beamish.statement.over_panes import Shown, check_new_name
from beamish.statement.text import Span, Text, Tree, span_of
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
    of = _Groups(text, {one.expression.name.lower(): one.expression for one in groups})
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


def _shown(text: Text, item: Item, name: Name, of: _Groups, keys: Sequence[str]) -> list[Shown]:
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


@attrs.frozen
class _Groups:
    """The items of the inner SELECT list, by their names in lower case."""

    text: Text
    by_name: Mapping[str, Expression]

    def item(self, tree: Tree) -> Expression:
        """The item that a column names (SqlError: it is another expression, or not in the list)."""
        name = tree.parts[-1].name if hasattr(tree, "parts") else self.text[span_of(tree)]
        found = self.by_name.get(name.lower())
        if found is None:
            raise self.text.error(span_of(tree).start, f"{name} is not in the inner SELECT list; add it there")
        return found

    def is_bound(self, one: Expression) -> bool:
        """Whether an item is a bound of the window."""
        columns = [node.value for node in one.node.walk() if node.op == COLUMN]
        return bool(columns) and all(path[0] == "window" for path in columns)

    def column(self, tree: Tree) -> str:
        """The column of the panes that a column names (SqlError: it is computed of several)."""
        return self._plain(self.item(tree), span_of(tree).start)

    def _plain(self, one: Expression, at: int) -> str:
        if one.node.op != COLUMN or len(one.node.value) != 1:
            raise self.text.error(
                at,
                f"{one.name} is computed of the groups, {one.said}: around a GROUP BY only its columns and aggregates are numbered; compute "
                "it in a second statement",
            )
        name: str = one.node.value[0]
        return name

    def placed(self, one: Expression, keys: Sequence[str], at: int) -> Expression:
        """An item over the numbered rows."""
        if self.is_bound(one):
            return one
        name = self._plain(one, at)
        path = (name,) if name in keys else (ROWS, name)
        return attrs.evolve(one, sql=".".join(map(quoted, path)), node=Node(COLUMN, value=path, at=at), at=at)
