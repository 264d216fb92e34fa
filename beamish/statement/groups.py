"""The groups of a windowed statement as the rows of another one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import attrs

from beamish.kernels.column_names import quoted
from beamish.statement.grammar.clauses import Rows
from beamish.statement.grammar.expressions import COLUMN, Expression, Node
from beamish.statement.grammar.text import Text, Tree, span_of
from beamish.statement.over_panes import Shown
from beamish.statement.top_rows import ROWS

Make = Callable[[Sequence[Expression]], tuple[str, Node]]


@attrs.frozen
class Groups:
    """The groups of an inner statement as columns: the items of its SELECT list, by their names in lower case."""

    text: Text
    by_name: Mapping[str, Expression]
    offset: str | None = None

    @classmethod
    def of(cls, text: Text, items: Sequence[Shown]) -> Groups:
        """Those of its items."""
        return cls(text, {one.expression.name.lower(): one.expression for one in items})

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

    def is_column(self, name: str) -> bool:
        """Whether it is a column of the groups."""
        return bool(name)

    def check_time(self, rows: Rows) -> None:
        """Check that windows are of the time of the windows before (SqlError: they are of another column)."""
        assert rows.time is not None  # noqa: S101 - a window function names it
        found = self.by_name.get(rows.time.text.lower())
        if found is None or found.node.op == COLUMN or not self.is_bound(found):
            raise self.text.error(
                rows.time.start,
                f"{rows.time.text}: windows over {rows.name} are of its window_time: select it in the view, window_time AS rowtime, and "
                "name it here",
            )

    def computed(self, of: str, trees: Sequence[Tree], make: Make) -> str:
        """Refuse an expression that an aggregate computes from others."""
        raise self.text.error(span_of(trees[0]).start, f"{of} over groups: only their columns are aggregated again")

    def struct(self, of: str, fields: Mapping[str, Tree], present: Tree | None) -> str:
        """Refuse a struct of columns."""
        tree = next(iter(fields.values()))
        raise self.text.error(span_of(tree).start, f"{of} over groups: only their columns are aggregated again")
