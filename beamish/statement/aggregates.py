"""The aggregates of a statement, and the accumulations that they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs
from sqlglot import exp

from beamish.accumulations import (
    ApproxCountDistinct,
    Collect,
    CollectSet,
    Count,
    CountDistinct,
    First,
    Last,
    Max,
    MaxBy,
    Mean,
    Median,
    Min,
    MinBy,
    Quantiles,
    StdDev,
    Sum,
    TopN,
    Variance,
)
from beamish.accumulations.base.accumulation import Accumulation
from beamish.errors import OptionError, SqlError
from beamish.statement.grammar import Call, Tree, call_of, span_of
from beamish.statement.text import Text

Column = Callable[[Tree], str]
"""What gives the name of the column that holds an expression."""
UserAggregates = Mapping[str, Callable[[str], Accumulation]]


def calls_in(tree: Tree) -> list[Call]:
    """The calls of aggregates, in the order of the text."""
    calls = [call for call in map(call_of, tree.walk()) if call is not None]
    return sorted(calls, key=lambda call: call.span.start)


def accumulation_of(text: Text, call: Call, user: UserAggregates, column: Column) -> Accumulation:
    """The accumulation that an aggregate is.

    Raises:
        SqlError: it has other arguments than it can.
    """
    if call.name == "COUNT":
        return _count(text, call, column)
    if call.distinct:
        raise text.error(
            span_of(call.args[0]).start if call.args else call.span.start,
            f"{call.name}(DISTINCT ...): only COUNT takes it; COLLECT_SET(x) has the distinct values",
        )
    arguments = _Arguments(text, call, column)
    if call.name in user:
        arguments.check(1)
        name = arguments.column()
        with text.at(call.span.start):
            return _of_user(call.name, user[call.name], name)
    least, most, make = _TABLE[call.name]
    arguments.check(least, most)
    with text.at(call.span.start):
        return make(arguments)


def checked_aggregates(aggregates: Mapping[Any, Any]) -> dict[str, Callable[[str], Accumulation]]:
    """The user's aggregates by their names in upper case.

    Raises:
        OptionError: a name is none, or is taken, or there is no function under it.
    """
    checked = {}
    for name, make in aggregates.items():
        if not isinstance(name, str) or not name.isidentifier():
            raise OptionError(f"sql(aggregates): {name!r} must be a plain name, such as 'WAVG'")
        if name.upper() in NAMES:
            raise OptionError(f"sql(aggregates): {name!r} is an aggregate of bm.sql; choose another name")
        if not callable(make):
            raise OptionError(
                f"sql(aggregates): {name}={make!r} must be a function of the name of a column that gives an accumulation, such "
                "as lambda column: TopN(3, column)"
            )
        checked[name.upper()] = make
    return checked


@attrs.frozen
class _Arguments:
    text: Text
    call: Call
    _column: Column

    def check(self, least: int, most: int | None = None) -> None:
        """Check how many there are."""
        most = least if most is None else most
        if not least <= len(self.call.args) <= most:
            wanted = f"{least}" if least == most else f"{least} or {most}"
            raise self.text.error(
                self.call.span.start,
                f"{self.call.name} takes {wanted} argument{'' if most == 1 else 's'}, not {len(self.call.args)}; write "
                f"{_example(self.call.name)}",
            )

    def column(self, at: int = 0) -> str:
        """The column that holds the one at that place."""
        tree = self.call.args[at]
        if isinstance(tree, exp.Star):
            raise self._error(at, "only COUNT takes all columns; name one", "(*)")
        return self._column(tree)

    def has(self, at: int) -> bool:
        """Whether there is one at that place."""
        return at < len(self.call.args)

    def number(self, at: int) -> float:
        """A number."""
        tree = self.call.args[at]
        if not isinstance(tree, exp.Literal) or tree.is_string:
            raise self._error(at, f"must be a plain number; write {_example(self.call.name)}")
        return float(tree.name)

    def whole(self, at: int) -> int:
        """A whole number."""
        number = self.number(at)
        if number != int(number):
            raise self._error(at, "must be a whole number")
        return int(number)

    def flag(self, at: int) -> bool:
        """TRUE or FALSE."""
        if not self.has(at):
            return False
        tree = self.call.args[at]
        if not isinstance(tree, exp.Boolean):
            raise self._error(at, "whether nulls are ignored is TRUE or FALSE")
        return bool(tree.this)

    def _error(self, at: int, says: str, of: str = "") -> SqlError:
        return self.text.error(span_of(self.call.args[at]).start, f"{self.call.name}{of}: {says}")


def _example(name: str) -> str:
    return {
        "COUNT": "COUNT(*), COUNT(x) or COUNT(DISTINCT x)", "PERCENTILE": "PERCENTILE(x, 0.5)", "TOPK": "TOPK(x, 3)",
        "MIN_BY": "MIN_BY(x, y)", "MAX_BY": "MAX_BY(x, y)",
        "FIRST": "FIRST(x) or FIRST(x, TRUE)", "LAST": "LAST(x) or LAST(x, TRUE)",
        "APPROX_COUNT_DISTINCT": "APPROX_COUNT_DISTINCT(x) or APPROX_COUNT_DISTINCT(x, 0.02)",
    }.get(name, f"{name}(x)")  # fmt: skip


def _count(text: Text, call: Call, column: Column) -> Accumulation:
    if call.distinct and call.args and not any(isinstance(arg, exp.Star) for arg in call.args):
        return CountDistinct(*map(column, call.args))
    if call.distinct or len(call.args) != 1:
        raise text.error(
            call.span.start, f"COUNT takes one argument, or DISTINCT and columns; write {_example('COUNT')}"
        )
    (arg,) = call.args
    if isinstance(arg, exp.Star) or (isinstance(arg, exp.Literal) and not arg.is_string):
        return Count()
    return Count(column(arg))


def _of_user(name: str, make: Callable[[str], Accumulation], column: str) -> Accumulation:
    made = make(column)
    if not isinstance(made, Accumulation):
        raise OptionError(f"sql(aggregates): {name}({column!r}) gave {made!r}; it must give an accumulation")
    return made


_TABLE: Mapping[str, tuple[int, int, Callable[[_Arguments], Accumulation]]] = {
    "SUM": (1, 1, lambda a: Sum(a.column())),
    "MIN": (1, 1, lambda a: Min(a.column())),
    "MAX": (1, 1, lambda a: Max(a.column())),
    "AVG": (1, 1, lambda a: Mean(a.column())),
    "MEAN": (1, 1, lambda a: Mean(a.column())),
    "VARIANCE": (1, 1, lambda a: Variance(a.column())),
    "VAR_SAMP": (1, 1, lambda a: Variance(a.column())),
    "VAR_POP": (1, 1, lambda a: Variance(a.column(), population=True)),
    "STDDEV": (1, 1, lambda a: StdDev(a.column())),
    "STDDEV_SAMP": (1, 1, lambda a: StdDev(a.column())),
    "STDDEV_POP": (1, 1, lambda a: StdDev(a.column(), population=True)),
    "MIN_BY": (2, 2, lambda a: MinBy(a.column(), a.column(1))),
    "MAX_BY": (2, 2, lambda a: MaxBy(a.column(), a.column(1))),
    "FIRST": (1, 2, lambda a: First(a.column(), ignore_nulls=a.flag(1))),
    "LAST": (1, 2, lambda a: Last(a.column(), ignore_nulls=a.flag(1))),
    "COLLECT_LIST": (1, 1, lambda a: Collect(a.column())),
    "COLLECT_SET": (1, 1, lambda a: CollectSet(a.column())),
    "APPROX_COUNT_DISTINCT": (
        1, 2,
        lambda a: ApproxCountDistinct(a.column(), a.number(1)) if a.has(1) else ApproxCountDistinct(a.column()),
    ),
    "MEDIAN": (1, 1, lambda a: Median(a.column())),
    "PERCENTILE": (2, 2, lambda a: Quantiles(a.column(), (a.number(1),))),
    "TOPK": (2, 2, lambda a: TopN(a.whole(1), a.column())),
}  # fmt: skip
"""The least and the greatest number of arguments, and the accumulation."""
GIVES_LIST_OF_ONE = frozenset({"PERCENTILE"})
"""Aggregates whose value is the only item of their accumulation's."""
NAMES = frozenset({"COUNT", *_TABLE})
"""Aggregates that are built in."""
