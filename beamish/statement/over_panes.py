"""Expressions over panes, after the pipeline: of keys, aggregates and the window's bounds; and the SELECT list."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from itertools import count

import attrs
from sqlglot import exp

from beamish.durations import Duration
from beamish.kernels.column_names import PREFIX, is_reserved, quoted
from beamish.kernels.key_sets import GROUPING_ID, GroupingSets
from beamish.statement.grammar.aggregates import Aggregate
from beamish.statement.grammar.clauses import KSQLDB, Dialect, Item, Name
from beamish.statement.grammar.expressions import (
    COLUMN,
    LITERAL,
    Expression,
    Node,
    expression,
    is_grouping,
    no_sets,
    path_of,
)
from beamish.statement.grammar.names import is_known, unknown
from beamish.statement.grammar.text import Span, Text, Tree, call_of, function_of, normal, span_of, word_of

_NOT_DETERMINISTIC = """
    RAND RANDOM RANDN UUID SHUFFLE RANDSTR NOW CURRENT_TIMESTAMP CURRENT_DATE CURDATE CURRENT_TIME LOCALTIMESTAMP UNIX_TIMESTAMP
    MONOTONICALLY_INCREASING_ID SPARK_PARTITION_ID INPUT_FILE_NAME INPUT_FILE_BLOCK_START INPUT_FILE_BLOCK_LENGTH CURRENT_BATCH_ID
"""
NOT_DETERMINISTIC = frozenset(_NOT_DETERMINISTIC.split())
_WITHOUT_BRACKETS = frozenset({"CURRENT_TIMESTAMP", "CURRENT_DATE", "CURRENT_TIME", "LOCALTIMESTAMP"})


@attrs.frozen(eq=False)
class Key:
    """An expression under GROUP BY.

    Attributes:
        name: the key column of the pipeline.
        tree: the expression, without brackets around it.
        column: the column of the rows that it is; None: it is computed.
    """

    name: str
    tree: Tree
    column: str | None


@attrs.frozen(eq=False)
class Panes:
    """The scope of an expression over panes.

    Attributes:
        text: the statement.
        keys: the expressions under GROUP BY.
        aggregates: the aggregates, by their place.
        owners: names by which columns may be qualified, in lower case.
        windowed: whether there is a WINDOW clause.
        aliases: the expressions of names after AS, in lower case.
        dialect: the dialect.
        sets: the sets of the keys; None: all are in each group.
    """

    text: Text
    keys: Sequence[Key]
    aggregates: Mapping[Span, Aggregate]
    owners: Sequence[str]
    windowed: bool
    aliases: Mapping[str, str]
    dialect: Dialect = KSQLDB
    sets: GroupingSets | None = None

    def expression(self, tree: Tree, *, bounds: bool) -> Expression:
        """An expression over panes.

        Args:
            tree: the expression.
            bounds: whether it may name the window's bounds.

        Raises:
            SqlError: it names what is neither a key nor in an aggregate, or changes between calls.
        """
        check_deterministic(self.text, span_of(tree))
        known: dict[int, Node] = {}
        parts: list[tuple[Span, str]] = []
        for part in self._parts(tree):
            span = span_of(part)
            sql, node = self._meant(part, bounds=bounds)
            known[id(part)] = attrs.evolve(node, at=span.start)
            parts.append((span, sql))
        return expression(self.text, tree, "", known, parts)

    def key_of(self, tree: Tree) -> Key | None:
        """The key that an expression is, word by word."""
        tree = without_brackets(tree)
        if self.sets is not None and is_grouping(self.text, tree):
            whole = self._grouping(tree)[1].op == COLUMN
            return Key(GROUPING_ID, tree, None) if whole else None
        said = normal(self.text, span_of(tree), self.owners)
        return next(
            (
                key
                for key in self.keys
                if type(key.tree) is type(tree) and normal(self.text, span_of(key.tree), self.owners) == said
            ),
            None,
        )

    def _parts(self, tree: Tree) -> Iterator[Tree]:
        """The aggregates, the expressions written as under GROUP BY, and other columns."""
        named = isinstance(tree, exp.Column) or call_of(tree) is not None or is_grouping(self.text, tree)
        if named or (not isinstance(tree, exp.Paren) and self.key_of(tree) is not None):
            yield tree
            return
        for child in tree.iter_expressions():
            yield from self._parts(child)

    def _meant(self, part: Tree, *, bounds: bool) -> tuple[str, Node]:
        """A part, for Spark and in process."""
        call = call_of(part)
        if call is not None:
            aggregate = self.aggregates[call.span]
            return aggregate.sql, aggregate.node
        if is_grouping(self.text, part):
            return self._grouping(part)
        key = self.key_of(part)
        if key is not None:
            return quoted(key.name), Node(COLUMN, value=(key.name,))
        return self._column(part, bounds=bounds)

    def _grouping(self, tree: Tree) -> tuple[str, Node]:
        """A number with a bit for each column, the first the highest, 1 where it is not in the set of the group."""
        if self.sets is None:
            raise no_sets(self.text, tree)
        sets, named = self.sets, [self._named(tree, one) for one in tree.iter_expressions()]
        if not named or tuple(named) == sets.columns:
            return quoted(GROUPING_ID), Node(COLUMN, value=(GROUPING_ID,))
        made: tuple[str, Node] | None = None
        for name in named:
            bit, two = Node(LITERAL, value=sets.bit(name)), Node(LITERAL, value=2)
            shifted = Node("DIV", (Node(COLUMN, value=(GROUPING_ID,)), bit))
            one = f"(({quoted(GROUPING_ID)} DIV {sets.bit(name)}) % 2)", Node("%", (shifted, two))
            made = (
                one if made is None else (f"({made[0]} * 2 + {one[0]})", Node("+", (Node("*", (made[1], two)), one[1])))
            )
        assert made is not None  # noqa: S101 - a column is named
        return made

    def _named(self, of: Tree, tree: Tree) -> str:
        """The key column of an argument (SqlError: it is not under GROUP BY)."""
        key = self.key_of(tree)
        if key is None or key not in self.keys:
            keys = ", ".join(self.text[span_of(one.tree)] for one in self.keys)
            raise self.text.error(
                span_of(tree).start,
                f"{self.text[span_of(of)]}: {self.text[span_of(tree)]} is not under GROUP BY, written there as here; name one of {keys}",
            )
        return key.name

    def _column(self, column: Tree, *, bounds: bool) -> tuple[str, Node]:
        path, start = path_of(column, self.owners), span_of(column).start
        for key in self.keys:
            if key.column is not None and key.column.lower() == path[0].lower():
                return ".".join(map(quoted, (key.name, *path[1:]))), Node(COLUMN, value=(key.name, *path[1:]))
        word = path[0].upper()
        if len(path) == 1 and word in self.dialect.bounds and (self.windowed or self.dialect is KSQLDB):
            self._check_bounds(start, word, bounds=bounds)
            sql, node = bound_of(self.dialect.bounds[word])
            if self.dialect.millis and _in_arithmetic(column):
                return f"unix_millis({sql})", Node("UNIX_MILLIS", (node,))
            return sql, node
        check_known(self.text, _parents_of(column))
        said = ".".join(part.name for part in column.parts)
        if said.lower() in self.aliases:
            raise self.text.error(
                start,
                f"{said} is a name of the SELECT list, and no column: write what it stands for, {self.aliases[said.lower()]}",
            )
        raise self.text.error(
            start,
            f"{said} is neither under GROUP BY, written there as here, nor in an aggregate: a group has many values; add it to GROUP BY, "
            f"or aggregate it: MAX({said}), LAST({said})",
        )

    def _check_bounds(self, start: int, word: str, *, bounds: bool) -> None:
        if not bounds:
            raise self.text.error(start, f"{word} is allowed in the SELECT list only; filter the output by it")
        if not self.windowed:
            raise self.text.error(start, f"{word} without WINDOW: add WINDOW TUMBLING (SIZE 5 MINUTES) after FROM")


def bound_of(which: str) -> tuple[str, Node]:
    """A bound of the window, for Spark and in process."""
    if which == "time":  # Flink's, the last millisecond in the window
        sql, node = bound_of("end")
        millisecond = Node(LITERAL, value=timedelta(milliseconds=1))
        return f"({sql} - INTERVAL '0.001' SECOND)", Node("-", (node, millisecond))
    return f"`window`.`{which}`", Node(COLUMN, value=("window", which))


def updated_panes(text: Text, within: Duration, at: int) -> Expression:
    """The condition on panes whose latest row is at most so long before the end of their window."""
    end, us = Node(COLUMN, value=("window", "end")), within.us
    least = Node("-", (end, Node(LITERAL, value=timedelta(microseconds=us))))
    node = Node(">=", (Node(COLUMN, value=("timestamp",)), least))
    sql = f"`timestamp` >= `window`.`end` - INTERVAL '{us // 1_000_000}.{us % 1_000_000:06}' SECOND"
    return Expression("", sql, node, f"the latest row is at most {within} before the window's end", text, at)


def check_known(text: Text, trees: Iterable[Tree]) -> None:
    """Check the functions that expressions call (SqlError: neither Spark nor bm.sql has one)."""
    for tree in trees:
        name = function_of(text, tree)
        if name and not is_known(name):
            raise text.error(span_of(tree).start, unknown(name))


def _parents_of(tree: Tree) -> Iterator[Tree]:
    """The expressions around one, from within."""
    while tree.parent is not None:
        tree = tree.parent
        yield tree


def _in_arithmetic(bound: Tree) -> bool:
    """Whether a bound of the window is an operand of arithmetic: then it is a number of milliseconds, as in ksqlDB."""
    parent = bound.parent
    while isinstance(parent, exp.Paren):
        parent = parent.parent
    with_interval = parent is not None and any(True for _ in parent.find_all(exp.Interval))
    return isinstance(parent, (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.IntDiv)) and not with_interval


def check_deterministic(text: Text, span: Span) -> None:
    """Check that an expression over panes is the same each time (SqlError: it is not)."""
    tokens = text.words(span)
    for at, token in enumerate(tokens):
        called = at + 1 < len(tokens) and tokens[at + 1].token_type.name == "L_PAREN"
        word = word_of(token)
        if word in NOT_DETERMINISTIC and (called or word in _WITHOUT_BRACKETS):
            raise text.error(
                token.start,
                f"{word} over panes: a retraction must repeat its row, and this value changes between calls; "
                "compute it where the rows are read, or where they are written",
            )


def without_brackets(tree: Tree) -> Tree:
    """Without brackets around all of it."""
    while isinstance(tree, exp.Paren):
        tree = tree.this
    return tree


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
    """The items of the SELECT list (SqlError: one has a name that is taken, or an expression under GROUP BY is not there)."""
    shown: list[Shown] = []
    taken: list[Key | None] = []
    unnamed = count()
    for item in items:
        if item.tree.is_star:
            raise text.error(
                span_of(item.tree).start,
                "SELECT *: name what is shown: the expressions under GROUP BY, and aggregates",
            )
        expression = panes.expression(item.tree, bounds=True)
        named = item.alias or own_name(item)
        named = named or Name(panes.dialect.unnamed_item(len(shown), next(unnamed)), expression.at)
        check_new_name(text, named, shown)
        key = panes.key_of(item.tree)
        taken.append(key)
        shown.append(Shown(attrs.evolve(expression, name=named.text), key is not None))
    for key in panes.keys:
        if key not in taken and not panes.dialect.hides_keys:
            span = span_of(key.tree)
            raise text.error(
                span.start,
                f"{text[span]} is under GROUP BY but not in the SELECT list, so groups would be indistinguishable; add it",
            )
    return shown


def aliases_of(text: Text, items: Sequence[Item]) -> dict[str, str]:
    """The expressions of the names after AS, in lower case."""
    return {item.alias.text.lower(): text[span_of(item.tree)] for item in items if item.alias is not None}


def own_name(item: Item) -> Name | None:
    """The name of a column, or of a field in it; others without AS are called as ksqlDB calls them."""
    if not isinstance(item.tree, (exp.Column, exp.Dot)):
        return None
    last = item.tree.parts[-1] if isinstance(item.tree, exp.Column) else item.tree.expression
    return Name(last.name, span_of(last).start)


def check_new_name(text: Text, name: Name, shown: Sequence[Shown]) -> None:
    """Check the name of an item after others (SqlError: it is taken or reserved)."""
    check_name(text, name, "choose another after AS")
    if any(other.expression.name.lower() == name.text.lower() for other in shown):
        raise text.error(
            name.start, f"{name.text} is there twice, and Spark does not tell upper from lower case; choose another"
        )


def check_name(text: Text, name: Name, fix: str) -> None:
    """Check that what is emitted may have a column of this name (SqlError: the name is taken or reserved)."""
    if name.text.lower() in _SHOWN_BESIDE:
        raise text.error(name.start, f"{name.text}: the output has its own column of this name; {fix}")
    if is_reserved(name.text):
        raise text.error(name.start, f"{name.text}: names that begin with {PREFIX!r} are reserved; {fix}")
