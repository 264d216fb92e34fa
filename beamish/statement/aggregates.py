"""The aggregates of a statement, and the accumulations that they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

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
from beamish.errors import OptionError
from beamish.statement.text import Span, Text
from beamish.statement.tokens import Token, span_of, split

Column = Callable[[Sequence[Token]], str]
"""What gives the name of the column that holds an expression."""
UserAggregates = Mapping[str, Callable[[str], Accumulation]]


@attrs.frozen
class Call:
    """An aggregate as it is called.

    Attributes:
        name: in upper case.
        words: all its words.
        distinct: whether DISTINCT is said.
        args: the words of each argument.
    """

    name: str
    words: Sequence[Token]
    distinct: bool
    args: Sequence[Sequence[Token]]

    @property
    def span(self) -> Span:
        """Where it stands."""
        return span_of(self.words)


def calls_in(text: Text, tokens: Sequence[Token], user: UserAggregates) -> list[Call]:
    """The calls of aggregates, but not those within another.

    Raises:
        SqlError: one is called in another, or an argument is empty.
    """
    calls: list[Call] = []
    at = 0
    while at < len(tokens):
        token = tokens[at]
        if not _is_aggregate(tokens, at, user):
            at += 1
            continue
        end = next(
            i for i in range(at + 1, len(tokens)) if tokens[i].kind == "R_PAREN" and tokens[i].depth == token.depth
        )
        inner = tokens[at + 2 : end]
        distinct = bool(inner) and inner[0].kind == "DISTINCT"
        args = split(inner[1:] if distinct else inner, token.depth + 1)
        for i in range(at + 2, end):
            if _is_aggregate(tokens, i, user):
                raise text.error(
                    tokens[i].start,
                    f"{tokens[i].word} within {token.word}: an aggregate is of rows, not of aggregates; use a second "
                    "statement over what the first gives, or first.then(second)",
                )
        if not all(args):
            raise text.error(tokens[end].start, f"{token.word}: an argument is missing; write {_example(token.word)}")
        calls.append(Call(token.word, tokens[at : end + 1], distinct, args))
        at = end + 1
    return calls


def accumulation_of(text: Text, call: Call, user: UserAggregates, column: Column) -> Accumulation:
    """The accumulation that an aggregate is.

    Raises:
        SqlError: it has other arguments than it can.
    """
    if call.name == "COUNT":
        return _count(text, call, column)
    if call.distinct:
        raise text.error(
            call.args[0][0].start if call.args else call.span.start,
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
        if name.upper() in _TABLE or name.upper() == "COUNT":
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
        first = self.call.args[at]
        if len(first) == 1 and first[0].kind == "STAR":
            raise self.text.error(first[0].start, f"{self.call.name}(*): only COUNT takes all columns; name one")
        return self._column(first)

    def has(self, at: int) -> bool:
        """Whether there is one at that place."""
        return at < len(self.call.args)

    def number(self, at: int) -> float:
        """A number."""
        (token, *more) = self.call.args[at]
        if more or token.kind != "NUMBER":
            raise self.text.error(
                token.start, f"{self.call.name}: must be a plain number; write {_example(self.call.name)}"
            )
        try:
            return float(token.text)
        except ValueError:
            raise self.text.error(token.start, f"{self.call.name}: {token.text!r} is no plain number") from None

    def whole(self, at: int) -> int:
        """A whole number."""
        number = self.number(at)
        if number != int(number):
            raise self.text.error(self.call.args[at][0].start, f"{self.call.name}: must be a whole number")
        return int(number)

    def flag(self, at: int) -> bool:
        """TRUE or FALSE."""
        if not self.has(at):
            return False
        (token, *more) = self.call.args[at]
        if more or token.word not in ("TRUE", "FALSE"):
            raise self.text.error(token.start, f"{self.call.name}: whether nulls are ignored is TRUE or FALSE")
        return token.word == "TRUE"


def _is_aggregate(tokens: Sequence[Token], at: int, user: UserAggregates) -> bool:
    word = tokens[at].word
    called = at + 1 < len(tokens) and tokens[at + 1].kind == "L_PAREN"
    return called and (word in _TABLE or word == "COUNT" or word in user)


def _example(name: str) -> str:
    return {
        "COUNT": "COUNT(*), COUNT(x) or COUNT(DISTINCT x)", "PERCENTILE": "PERCENTILE(x, 0.5)", "TOPK": "TOPK(x, 3)",
        "MIN_BY": "MIN_BY(x, y)", "MAX_BY": "MAX_BY(x, y)",
        "FIRST": "FIRST(x) or FIRST(x, TRUE)", "LAST": "LAST(x) or LAST(x, TRUE)",
        "APPROX_COUNT_DISTINCT": "APPROX_COUNT_DISTINCT(x) or APPROX_COUNT_DISTINCT(x, 0.02)",
    }.get(name, f"{name}(x)")  # fmt: skip


def _count(text: Text, call: Call, column: Column) -> Accumulation:
    if call.distinct and call.args and not any(len(arg) == 1 and arg[0].kind == "STAR" for arg in call.args):
        return CountDistinct(*map(column, call.args))
    if call.distinct or len(call.args) != 1:
        raise text.error(
            call.span.start, f"COUNT takes one argument, or DISTINCT and columns; write {_example('COUNT')}"
        )
    (token, *more) = call.args[0]
    if not more and token.kind in ("STAR", "NUMBER"):
        return Count()
    return Count(column(call.args[0]))


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
