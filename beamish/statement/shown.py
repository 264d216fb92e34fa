"""The SELECT list: expressions over panes, and their names."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

import attrs
from sqlglot import exp

from beamish.kernels.reserved import PREFIX, is_reserved
from beamish.statement.expressions import Expression
from beamish.statement.over_panes import Key, Panes
from beamish.statement.parts import Item, Name
from beamish.statement.text import Text
from beamish.statement.trees import span_of

_SHOWN_BESIDE = ("window", "pane", "timestamp", "dropped")


@attrs.frozen
class Shown:
    """An item of the SELECT list.

    Attributes:
        expression: the expression, over panes.
        is_key: whether it is in GROUP BY.
    """

    expression: Expression
    is_key: bool

    @property
    def key(self) -> str | None:
        """Its key column; None: not a key."""
        return self.expression.node.value[0] if self.is_key else None


def shown_of(text: Text, items: Sequence[Item], panes: Panes) -> list[Shown]:
    """The items of the SELECT list.

    Raises:
        SqlError: one has a name that is taken, or an expression under GROUP BY is not there.
    """
    shown: list[Shown] = []
    taken: list[Key | None] = []
    unnamed = count()
    for item in items:
        if isinstance(item.tree, exp.Star):
            raise text.error(
                span_of(item.tree).start,
                "SELECT *: name what is shown: the expressions under GROUP BY, and aggregates",
            )
        expression = panes.expression(item.tree, bounds=True)
        named = item.alias or _own_name(item) or Name(f"KSQL_COL_{next(unnamed)}", expression.at)
        check_name(text, named, "choose another after AS")
        if any(other.expression.name.lower() == named.text.lower() for other in shown):
            raise text.error(
                named.start,
                f"{named.text} is there twice, and Spark does not tell upper from lower case; choose another",
            )
        key = panes.key_of(item.tree)
        taken.append(key)
        shown.append(Shown(attrs.evolve(expression, name=named.text), key is not None))
    for key in panes.keys:
        if key not in taken:
            span = span_of(key.tree)
            raise text.error(
                span.start,
                f"{text[span]} is under GROUP BY but not in the SELECT list, so rows could not be told apart; add it",
            )
    return shown


def aliases_of(text: Text, items: Sequence[Item]) -> dict[str, str]:
    """What the names after AS, in lower case, stand for."""
    return {item.alias.text.lower(): text[span_of(item.tree)] for item in items if item.alias is not None}


def _own_name(item: Item) -> Name | None:
    """The name of a column, or of a field in it; others without AS are called as ksqlDB calls them."""
    if not isinstance(item.tree, (exp.Column, exp.Dot)):
        return None
    last = item.tree.parts[-1] if isinstance(item.tree, exp.Column) else item.tree.expression
    return Name(last.name, span_of(last).start)


def check_name(text: Text, name: Name, fix: str) -> None:
    """Check that what is emitted may have a column of this name.

    Raises:
        SqlError: the name is taken or reserved.
    """
    if name.text.lower() in _SHOWN_BESIDE:
        raise text.error(name.start, f"{name.text}: what comes out has a column of this name beside; {fix}")
    if is_reserved(name.text):
        raise text.error(name.start, f"{name.text}: names that begin with {PREFIX!r} are reserved; {fix}")
