"""The SELECT list: what is shown of panes, and under which names."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from beamish.kernels.reserved import PREFIX, is_reserved
from beamish.statement.clauses import Clauses
from beamish.statement.expressions import Expression
from beamish.statement.nodes import COLUMN
from beamish.statement.over_panes import Key, Panes
from beamish.statement.text import Text
from beamish.statement.tokens import Token, span_of, split

_SHOWN_BESIDE = ("window", "pane", "timestamp", "dropped")


@attrs.frozen
class Shown:
    """An item of the SELECT list.

    Attributes:
        expression: what is shown, over panes.
        is_key: whether it is an expression under GROUP BY.
    """

    expression: Expression
    is_key: bool

    @property
    def key(self) -> str | None:
        """The key column that it shows; None: it is no key."""
        return self.expression.node.value[0] if self.is_key else None


def shown_of(text: Text, clauses: Clauses, panes: Panes) -> list[Shown]:
    """The items of the SELECT list.

    Raises:
        SqlError: one is none, or has no name or one that is taken, or an expression under GROUP BY is not there.
    """
    shown: list[Shown] = []
    taken: list[Key | None] = []
    for item in split(clauses.words["SELECT"], 0):
        if not item:
            raise text.error(clauses.begins["SELECT"].start, "an item of the SELECT list is missing; take out a comma")
        words, alias = _alias(text, item)
        if len(words) == 1 and words[0].kind == "STAR":
            raise text.error(
                words[0].start, "SELECT *: name what is shown: the expressions under GROUP BY, and aggregates"
            )
        expression = panes.expression(words, "", bounds=True)
        named = alias or (words[-1] if expression.node.op == COLUMN and _is_column(words) else None)
        if named is None:
            raise text.error(words[0].start, f"{expression.said} needs a name: {expression.said} AS name")
        check_name(text, named, named.text, "choose another after AS")
        if any(other.expression.name.lower() == named.text.lower() for other in shown):
            raise text.error(
                named.start,
                f"{named.text} is there twice, and Spark does not tell upper from lower case; choose another",
            )
        key = panes.key_of(words)
        taken.append(key)
        shown.append(Shown(attrs.evolve(expression, name=named.text), key is not None))
    for key in panes.keys:
        if key not in taken:
            said = text.sql[key.words[0].span.start : key.words[-1].span.end]
            raise text.error(
                key.words[0].start,
                f"{said} is under GROUP BY but not in the SELECT list, so rows could not be told apart; add it",
            )
    return shown


def aliases_of(text: Text, clauses: Clauses) -> dict[str, str]:
    """What the names after AS, in lower case, stand for.

    Raises:
        SqlError: AS stands where it cannot.
    """
    items = [_alias(text, item) for item in split(clauses.words["SELECT"], 0) if item]
    return {alias.text.lower(): text[span_of(words)] for words, alias in items if alias is not None}


def _is_column(words: Sequence[Token]) -> bool:
    """Whether an item names itself: names with dots between."""
    return all(token.is_name or token.kind == "DOT" for token in words)


def _alias(text: Text, item: Sequence[Token]) -> tuple[Sequence[Token], Token | None]:
    """An item of the SELECT list without its name, and that."""
    for at, token in enumerate(item):
        if token.kind == "ALIAS" and token.depth == item[0].depth:
            if at == 0 or at + 2 != len(item) or not item[at + 1].is_name:
                raise text.error(token.start, "AS stands between an expression and one name: COUNT(*) AS n")
            return item[:at], item[at + 1]
    last = item[-1]
    ends = ("VAR", "IDENTIFIER", "R_PAREN", "R_BRACKET", "NUMBER", "STRING", "END")
    if (
        len(item) > 1
        and last.is_name
        and last.kind in ("VAR", "IDENTIFIER")
        and last.depth == 0
        and item[-2].kind in ends
    ):
        return item[:-1], last
    return item, None


def check_name(text: Text, token: Token, name: str, fix: str) -> None:
    """Check that what comes out may have a column of this name.

    Raises:
        SqlError: it has one of its own, or the name is reserved.
    """
    if name.lower() in _SHOWN_BESIDE:
        raise text.error(token.start, f"{name}: what comes out has a column of this name beside; {fix}")
    if is_reserved(name):
        raise text.error(token.start, f"{name}: names that begin with {PREFIX!r} are beamish's own; {fix}")
