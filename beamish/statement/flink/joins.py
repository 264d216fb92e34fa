"""Joins of Flink's SQL: the conditions under ON, or under WHERE, read as equalities, bounds of time and windows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
from sqlglot import exp

from beamish.durations import Duration
from beamish.statement.flink.times import interval_us
from beamish.statement.grammar.clauses import How, Join, Name, Rows, Statement
from beamish.statement.grammar.expressions import columns_of
from beamish.statement.grammar.statements import conjuncts
from beamish.statement.grammar.text import Text, Tree, span_of

_KINDS = (
    "two streams are joined within a time: ON a.k = b.k AND a.ts BETWEEN b.ts - INTERVAL '1' HOUR AND b.ts; in windows: ON a.k = b.k "
    "AND a.window_start = b.window_start AND a.window_end = b.window_end; or a stream with a table: JOIN t FOR SYSTEM_TIME AS OF a.ts"
)
_LEAST, _MOST = "least", "most"
_BOUNDS: Mapping[type, tuple[str, int]] = {
    exp.GTE: (_LEAST, 0),
    exp.GT: (_LEAST, 1),
    exp.LTE: (_MOST, 0),
    exp.LT: (_MOST, -1),
}
"""By comparison the bound of the difference of its sides, and by how many microseconds it is off the constant."""


@attrs.frozen(eq=False)
class Pending:
    """A join as it is written.

    Attributes:
        how: which rows without a match are shown.
        rows: the other source.
        as_of: the column at whose time it is read; None: it is a stream.
        on: the condition; None: it is under WHERE.
        start: its place.
    """

    how: How
    rows: Rows
    as_of: Name | None
    on: Tree | None
    start: int


@attrs.frozen
class _Time:
    """A column plus a constant, in microseconds, or without one."""

    alias: str
    name: Name
    plus_us: int | None = None

    @property
    def column(self) -> tuple[str, str]:
        """The column, by its source."""
        return self.alias, self.name.text.lower()


def joins_of(text: Text, read: Statement, pending: Sequence[Pending]) -> tuple[Rows, list[Join], list[Tree]]:
    """The first source, with its event time, the joins, and the conditions on joined rows.

    Args:
        text: the statement.
        read: the statement, without its joins.
        pending: the joins as they are written.

    Raises:
        SqlError: one has no bounds in time.
    """
    filters = [] if read.where is None else [*conjuncts(read.where)]
    rows, joins = read.rows, list[Join]()
    aliases = [rows.alias.lower()]
    for one in pending:
        conditions = filters if one.on is None else [*conjuncts(one.on)]
        found = _Conditions(text, one, aliases, conditions)
        left = [tree for tree in conditions if not found.take(tree)]
        if one.on is None:
            filters = left
        elif left and one.how != "inner":
            raise text.error(
                span_of(left[0]).start,
                "ON of an outer join takes equalities of both sides, and their times or windows; filter the rows of one side where "
                "they are read",
            )
        else:
            filters += left
        join, rows = found.join(rows)
        joins.append(join)
        aliases.append(one.rows.alias.lower())
    return rows, joins, filters


class _Conditions:
    """The conditions of a join, sorted; columns are times if they are compared with an interval."""

    def __init__(self, text: Text, pending: Pending, aliases: Sequence[str], conditions: Sequence[Tree]) -> None:
        self._text, self._pending = text, pending
        self._left, self._right = {*aliases}, pending.rows.alias.lower()
        self._on: list[Tree] = []
        self._windows: set[str] = set()
        self._times: dict[str, tuple[int, Name, Name]] = {}
        compared = [pair for tree in conditions for pair in self._compared(tree)]
        shifted = [pair for pair in compared if any(one.plus_us is not None for one in pair[1:])]
        self._known = {one.column for pair in shifted for one in pair[1:]}

    def take(self, tree: Tree) -> bool:
        """Whether a condition is of the join: else it is one on joined rows."""
        bounds = [*self._bounds(tree)]
        if bounds:
            for bound in bounds:
                self._bind(*bound)
            return True
        if not isinstance(tree, exp.EQ) or not self._is_of_both(tree):
            return False
        names = {side.name.lower() for side in (tree.this, tree.expression) if isinstance(side, exp.Column)}
        if self._pending.rows.windows is not None and names in ({"window_start"}, {"window_end"}, {"window_time"}):
            self._windows |= names
        else:
            self._on.append(tree)
        return True

    def _bind(self, which: str, difference_us: int, mine: Name, theirs: Name) -> None:
        """Note a bound: of several the narrowest (SqlError: they are of different columns)."""
        for _, *names in self._times.values():
            if [one.text.lower() for one in names] != [mine.text.lower(), theirs.text.lower()]:
                one, other = (" and ".join(name.text for name in pair) for pair in (names, (mine, theirs)))
                raise self._text.error(
                    mine.start,
                    f"bounds of {other} beside those of {one}: a join has bounds in time of one column on each side; filter its rows in "
                    "a second statement",
                )
        if which in self._times:
            difference_us = (max if which == _LEAST else min)(difference_us, self._times[which][0])
        self._times[which] = (difference_us, mine, theirs)

    def _is_of_both(self, tree: Tree) -> bool:
        """Whether each side of an equality is of one of the sources."""
        one, other = (
            {column.parts[0].name.lower() if len(column.parts) > 1 else "" for column in columns_of(side)}
            for side in (tree.this, tree.expression)
        )
        left, right = {*self._left, ""}, {self._right, ""}
        return bool(one and other) and ((one <= left and other <= right) or (one <= right and other <= left))

    def _bounds(self, tree: Tree) -> Iterator[tuple[str, int, Name, Name]]:
        """The bounds of a comparison of times: which, the difference of the first source's to the other's, and both columns."""
        for kind, mine, theirs in self._compared(tree):
            if not {mine.column, theirs.column} <= self._known:
                continue
            which, off_us = _BOUNDS[kind]
            difference_us = (theirs.plus_us or 0) - (mine.plus_us or 0) + off_us
            if mine.alias == self._right:
                yield {_LEAST: _MOST, _MOST: _LEAST}[which], -difference_us, theirs.name, mine.name
            else:
                yield which, difference_us, mine.name, theirs.name

    def _compared(self, tree: Tree) -> Iterator[tuple[type, _Time, _Time]]:
        """The comparisons of columns of both sources, and their kinds."""
        if isinstance(tree, exp.Between):
            pairs = [(exp.GTE, tree.this, tree.args["low"]), (exp.LTE, tree.this, tree.args["high"])]
        elif type(tree) in _BOUNDS:
            pairs = [(type(tree), tree.this, tree.expression)]
        else:
            return
        for kind, one, other in pairs:
            mine, theirs = self._time(one), self._time(other)
            if mine is not None and theirs is not None and (mine.alias == self._right) != (theirs.alias == self._right):
                yield kind, mine, theirs

    def _time(self, tree: Tree) -> _Time | None:
        """A qualified column, plus or minus an interval; None: another expression."""
        while isinstance(tree, exp.Paren):
            tree = tree.this
        if isinstance(tree, (exp.Add, exp.Sub)) and isinstance(tree.expression, exp.Interval):
            of, interval = self._time(tree.this), tree.expression
            us = interval_us(interval.name, str(interval.args.get("unit") or "").upper(), None)
            if of is None or us is None:
                return None
            return attrs.evolve(of, plus_us=(of.plus_us or 0) + (us if isinstance(tree, exp.Add) else -us))
        if (
            not isinstance(tree, exp.Column)
            or len(tree.parts) != 2
            or tree.parts[0].name.lower() not in {*self._left, self._right}
        ):
            return None
        return _Time(tree.parts[0].name.lower(), Name(tree.parts[1].name, span_of(tree).start))

    def join(self, rows: Rows) -> tuple[Join, Rows]:
        """The join, and the first source with its event time."""
        one = self._pending
        if not self._on:
            raise self._text.error(one.start, f"a join needs an equality of both sides, such as ON a.k = b.k; {_KINDS}")
        made: dict[str, Any] = {"how": one.how, "rows": one.rows, "grace": None, "on": self._on, "start": one.start}
        if one.as_of is not None:
            if self._times or self._windows:
                raise self._text.error(
                    one.start, "FOR SYSTEM_TIME AS OF takes equalities alone; take the other conditions out"
                )
            return Join(within=None, as_of=one.as_of, **made), rows
        if one.rows.windows is not None or rows.windows is not None:
            self._check_windows(rows)
            return Join(within=None, windows=rows.windows, **made), rows
        if {*self._times} != {_LEAST, _MOST}:
            raise self._text.error(
                one.start, f"{one.rows.name} is joined without bounds in time on both sides: {_KINDS}"
            )
        (least, mine, theirs), (most, *_) = self._times[_LEAST], self._times[_MOST]
        within = (Duration(most), Duration(-least))
        made["rows"] = attrs.evolve(one.rows, time=theirs)
        return Join(within=within, **made), attrs.evolve(rows, time=mine)

    def _check_windows(self, rows: Rows) -> None:
        other = self._pending.rows
        if {*self._windows} < {"window_start", "window_end"}:
            raise self._text.error(
                self._pending.start,
                "a join of windows is ON their bounds too: a.window_start = b.window_start AND a.window_end = b.window_end",
            )
        if self._times:
            raise self._text.error(self._pending.start, "bounds of time in a join of windows: take them out")
        if rows.windows != other.windows:
            raise self._text.error(
                self._pending.start,
                f"{rows.windows!r} beside {other.windows!r}: both sides have the same windows; write one of them",
            )
        if rows.windows is not None and rows.windows.merging:
            raise self._text.error(
                self._pending.start, "sessions of two streams are not joined, nor in Flink; use TUMBLE, HOP or CUMULATE"
            )
