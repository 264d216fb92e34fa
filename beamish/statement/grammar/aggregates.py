"""The aggregates of a statement, and their accumulations."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol

import attrs
from sqlglot import exp

from beamish.accumulations import (
    ApproxCountDistinct,
    BitAnd,
    BitOr,
    BitXor,
    BoolAnd,
    BoolOr,
    BottomN,
    Collect,
    CollectSet,
    Correlation,
    Count,
    CountDistinct,
    CountIf,
    Covariance,
    First,
    Histogram,
    Kurtosis,
    Last,
    LinearRegression,
    Max,
    MaxBy,
    Mean,
    Median,
    Min,
    MinBy,
    Mode,
    Product,
    Quantiles,
    Skewness,
    StdDev,
    Sum,
    TopN,
    Variance,
)
from beamish.accumulations.base.accumulation import Accumulation
from beamish.errors import OptionError, SqlError
from beamish.kernels.column_names import quoted
from beamish.statement.grammar.expressions import COLUMN, LITERAL, Expression, Node
from beamish.statement.grammar.text import Call, Text, Tree, call_of, normal, span_of


class Columns(Protocol):
    """The columns that hold expressions."""

    @property
    def offset(self) -> str | None:
        """The column that orders the rows of a group as they came; None: not declared."""

    def column(self, tree: Tree) -> str:
        """The name of the column of an expression."""

    def computed(self, of: str, trees: Sequence[Tree], make: Callable[[Sequence[Expression]], tuple[str, Node]]) -> str:
        """The name of a column that an aggregate computes from expressions, for Spark and in process."""

    def struct(self, of: str, fields: Mapping[str, Tree], present: Tree | None) -> str:
        """The name of a column of structs."""


UserAggregates = Mapping[str, Callable[..., Accumulation]]


@attrs.frozen(eq=False)
class Aggregate:
    """An aggregate: accumulations by the name of their column, and its value over these, for Spark and in process."""

    accumulations: Mapping[str, Accumulation]
    sql: str
    node: Node


def of_one(
    name: str, accumulation: Accumulation, sql: str = "{}", node: Callable[[Node], Node] = lambda node: node
) -> Aggregate:
    """A value over one accumulation: for Spark with its column in place of ``{}``."""
    return Aggregate({name: accumulation}, sql.format(quoted(name)), node(Node(COLUMN, value=(name,))))


def calls_in(tree: Tree) -> list[Call]:
    """The calls of aggregates, in the order of the text."""
    calls = [call for call in map(call_of, tree.walk()) if call is not None]
    return sorted(calls, key=lambda call: call.span.start)


def aggregate_of(text: Text, call: Call, user: UserAggregates, columns: Columns, owners: Collection[str]) -> Aggregate:
    """The aggregate of a call (SqlError: invalid arguments)."""
    arguments = _Arguments(text, call, columns, owners)
    if call.distinct and call.name not in ("COUNT", "COUNT_DISTINCT"):
        raise text.error(
            span_of(call.args[0]).start if call.args else call.span.start,
            f"{call.name}(DISTINCT ...): only COUNT takes it; COLLECT_SET(x) has the distinct values",
        )
    if call.name in user:
        arguments.check(1, max(1, len(call.args)))
        names = [arguments.column(at) for at in range(len(call.args))]
        with text.at(call.span.start):
            return of_one(arguments.name, _of_user(call.name, user[call.name], names))
    least, most, make = _TABLE[call.name]
    arguments.check(least, most)
    with text.at(call.span.start):
        made = make(arguments)
        return made if isinstance(made, Aggregate) else of_one(arguments.name, made)


def checked_aggregates(aggregates: Mapping[Any, Any]) -> dict[str, Callable[..., Accumulation]]:
    """Custom aggregates by name in upper case (OptionError: an invalid or taken name, or not a function)."""
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
    columns: Columns
    _owners: Collection[str]

    @property
    def name(self) -> str:
        """The column of the call's accumulation."""
        return normal(self.text, self.call.span, self._owners)

    def said(self, at: int = 0) -> str:
        """The normal form of the one at that place."""
        return normal(self.text, span_of(self.call.args[at]), self._owners)

    def check(self, least: int, most: int | None = None) -> None:
        """Check the number of arguments, and that none is ``*``."""
        for at, tree in enumerate(self.call.args):
            if isinstance(tree, exp.Star) and self.call.name != "COUNT":
                raise self.error(at, "only COUNT takes all columns; name one", "(*)")
        most = least if most is None else most
        if self.call.name in ("COUNT", "COUNT_DISTINCT") and self.call.distinct:
            most = len(self.call.args)
        if not least <= len(self.call.args) <= most:
            wanted = f"{least}" if least == most else f"{least} to {most}"
            raise self.text.error(
                self.call.span.start,
                f"{self.call.name} takes {wanted} argument{'' if most == 1 else 's'}, not {len(self.call.args)}; write "
                f"{_example(self.call.name)}",
            )

    def column(self, at: int = 0) -> str:
        """The column that holds the one at that place."""
        return self.columns.column(self.call.args[at])

    def has(self, at: int) -> bool:
        """Whether there is an argument at this position."""
        return at < len(self.call.args)

    def number(self, at: int) -> float:
        """A number."""
        tree = self.call.args[at]
        if not isinstance(tree, exp.Literal) or tree.is_string:
            raise self.error(at, f"must be a plain number; write {_example(self.call.name)}")
        return float(tree.name)

    def whole(self, at: int) -> int:
        """An integer argument."""
        number = self.number(at)
        if number != int(number):
            raise self.error(at, "must be a whole number")
        return int(number)

    def flag(self, at: int, *, otherwise: bool = False) -> bool:
        """TRUE or FALSE."""
        if not self.has(at):
            return otherwise
        tree = self.call.args[at]
        if not isinstance(tree, exp.Boolean):
            raise self.error(at, "whether nulls are ignored is TRUE or FALSE")
        return bool(tree.this)

    def error(self, at: int, says: str, of: str = "") -> SqlError:
        """The error for the argument at that place."""
        return self.text.error(span_of(self.call.args[at]).start, f"{self.call.name}{of}: {says}")


def _example(name: str) -> str:
    return {
        "COUNT": "COUNT(*), COUNT(x) or COUNT(DISTINCT x)", "PERCENTILE": "PERCENTILE(x, 0.5)", "TOPK": "TOPK(x, 3)",
        "TOPKDISTINCT": "TOPKDISTINCT(x, 3)", "EARLIEST_BY_OFFSET": "EARLIEST_BY_OFFSET(x) or EARLIEST_BY_OFFSET(x, 3)",
        "LATEST_BY_OFFSET": "LATEST_BY_OFFSET(x) or LATEST_BY_OFFSET(x, 3)",
        **{name: f"{name}(x, y)" for name in ("MIN_BY", "MAX_BY", "CORRELATION", "CORR")},
        "FIRST": "FIRST(x) or FIRST(x, TRUE)", "LAST": "LAST(x) or LAST(x, TRUE)",
        "APPROX_COUNT_DISTINCT": "APPROX_COUNT_DISTINCT(x) or APPROX_COUNT_DISTINCT(x, 0.02)",
    }.get(name, f"{name}(x)")  # fmt: skip


def _count(a: _Arguments) -> Accumulation:
    args = a.call.args
    star = any(isinstance(arg, exp.Star) for arg in args)
    if a.call.distinct and args and not star:
        return CountDistinct(*map(a.column, range(len(args))))
    if a.call.distinct or len(args) > 1:
        raise a.text.error(
            a.call.span.start, f"COUNT takes one argument, or DISTINCT and columns; write {_example('COUNT')}"
        )
    if not args or star or (isinstance(args[0], exp.Literal) and not args[0].is_string):
        return Count()
    return Count(a.column())


def _by_offset(*, latest: bool) -> Callable[[_Arguments], Accumulation | Aggregate]:
    """EARLIEST_BY_OFFSET and LATEST_BY_OFFSET: (x), (x, ignore nulls), (x, n), (x, n, ignore nulls); nulls are ignored by default."""

    def make(a: _Arguments) -> Accumulation | Aggregate:
        several = a.has(1) and not isinstance(a.call.args[1], exp.Boolean)
        ignores = a.flag(2 if several else 1, otherwise=True)
        n = a.whole(1) if several else 1
        if n < 1:
            raise a.error(1, "must be at least 1")
        offset = a.columns.offset
        if offset is None:
            by, edge, x = ("MAX_BY", "LAST", a.said()) if latest else ("MIN_BY", "FIRST", a.said())
            raise a.text.error(
                a.call.span.start,
                f"{a.call.name}: which column has the offset? Name it, as Kafka's: bm.sql(..., offset='offset'); or write "
                f"{by}({x}, some_column), or by event time {edge}({x}, TRUE)",
            )
        place = Node(COLUMN, value=(offset,), at=a.call.span.start)
        if not several:
            by = a.columns.computed(
                "offset" if ignores else "offset and nulls",
                a.call.args[:1],
                lambda of: _where_present(of[0], ignores, quoted(offset), place),
            )
            return (MaxBy if latest else MinBy)(a.column(), by)

        def held(of: Sequence[Expression]) -> tuple[str, Node]:
            node = Node("STRUCT", (place, of[0].node), ("offset", "value"))
            return _where_present(
                of[0], ignores, f"named_struct('offset', {quoted(offset)}, 'value', {of[0].sql})", node
            )

        column = a.columns.computed("values" if ignores else "values and nulls", a.call.args[:1], held)
        kept = TopN(n, column) if latest else BottomN(n, column)
        sql = "reverse({})" if latest else "{}"
        return of_one(
            a.name,
            kept,
            f"transform({sql}, x -> x.value)",
            lambda node: Node("VALUES", (Node("REVERSE", (node,)) if latest else node,)),
        )

    return make


def _where_present(x: Expression, ignores: bool, sql: str, node: Node) -> tuple[str, Node]:
    """A value; where nulls are ignored, null where ``x`` is."""
    if not ignores:
        return sql, node
    return f"CASE WHEN ({x.sql}) IS NOT NULL THEN {sql} END", Node(
        "CASE", (Node("IS", (x.node, Node(LITERAL))), Node(LITERAL), node)
    )


def _top_distinct(a: _Arguments) -> Aggregate:
    n = a.whole(1)
    if n < 1:
        raise a.error(1, "must be at least 1")
    sql = f"slice(sort_array({{}}, false), 1, {n})"
    return of_one(a.name, CollectSet(a.column()), sql, lambda node: Node("SLICE", (Node("REVERSE", (node,)),), n))


def _top(a: _Arguments) -> Accumulation:
    """TOPK(x, n), or TOPK(x, y, ..., n): structs of the greatest x and their other columns."""
    *trees, _ = a.call.args
    n = a.whole(len(trees))
    if len(trees) == 1:
        return TopN(n, a.column())
    names = ["sort_col", *(f"col{number}" for number in range(len(trees) - 1))]
    return TopN(n, a.columns.struct(a.call.name, dict(zip(names, trees, strict=True)), trees[0]))


def _only(a: _Arguments) -> Aggregate:
    """ATTR: the value that all rows have; null if they have several, a null among them counted."""
    x, column = a.said(), a.column()
    parts = {f"COUNT({x})": Count(column), "COUNT(*)": Count(), f"MIN({x})": Min(column), f"MAX({x})": Max(column)}
    sql = "CASE WHEN {} = {} AND {} = {} THEN {} END".format(*map(quoted, (*parts, f"MIN({x})")))
    return Aggregate(parts, sql, Node("ATTR", tuple(Node(COLUMN, value=(name,)) for name in parts)))


def _histogram(a: _Arguments) -> Aggregate:
    """A map of strings to their counts."""
    texts = a.columns.computed(
        "HISTOGRAM",
        a.call.args,
        lambda of: (f"CAST({of[0].sql} AS STRING)", Node("CAST", (of[0].node,), "string", of[0].at)),
    )
    return of_one(a.name, Histogram(texts), "map_from_entries({})", lambda node: Node("MAP_OF_ENTRIES", (node,)))


def _sum_list(a: _Arguments) -> Accumulation:
    """The sum of all numbers in lists; null items and lists without numbers are ignored."""
    numbers = "transform(filter({}, x -> x IS NOT NULL), x -> x + 0L)"

    def make(of: Sequence[Expression]) -> tuple[str, Node]:
        items = numbers.format(of[0].sql)
        return f"aggregate(slice({items}, 2, size({items})), get({items}, 0), (x, y) -> x + y)", Node(
            "SUM_LIST", (of[0].node,), at=of[0].at
        )

    return Sum(a.columns.computed("SUM_LIST", a.call.args, make))


def _whole_mean(a: _Arguments) -> Aggregate:
    """Flink's AVG of whole numbers, which is one; null without values."""
    parts = {f"SUM({a.said()})": Sum(a.column()), f"COUNT({a.said()})": Count(a.column())}
    total, count = map(quoted, parts)
    of = [Node(COLUMN, value=(name,)) for name in parts]
    zero = Node(LITERAL, value=0)
    node = Node(
        "CASE", (Node("<>", (of[1], zero)), Node("DIV", (Node("CAST", (of[0],), "bigint"), of[1])), Node(LITERAL))
    )
    return Aggregate(parts, f"CASE WHEN {count} <> 0 THEN {total} DIV {count} END", node)


_REGRESSION = ("COUNT", "SLOPE", "INTERCEPT", "R2", "AVGX", "AVGY", "SXX", "SYY", "SXY")


def _regression(field: str) -> Callable[[_Arguments], Aggregate]:
    """A field of the least-squares line of the first argument by the second."""

    def make(a: _Arguments) -> Aggregate:
        line = LinearRegression(a.column(), a.column(1))
        return of_one(a.name, line, f"{{}}.{field}", lambda node: Node("FIELD", (node,), field))

    return make


def _or_zero(node: Node) -> Node:
    """As ksqlDB has it of fewer than two values."""
    return Node("COALESCE", (node, Node(LITERAL, value=0.0)))


def _of_user(name: str, make: Callable[..., Accumulation], columns: Sequence[str]) -> Accumulation:
    said = ", ".join(map(repr, columns))
    try:
        made = make(*columns)
    except TypeError as error:
        raise OptionError(f"sql(aggregates): {name}({said}): {error}") from error
    if not isinstance(made, Accumulation):
        raise OptionError(f"sql(aggregates): {name}({said}) gave {made!r}; it must give an accumulation")
    return made


_TABLE: Mapping[str, tuple[int, int, Callable[[_Arguments], Accumulation | Aggregate]]] = {
    "COUNT": (0, 9, _count),
    "COUNT_DISTINCT": (1, 1, lambda a: CountDistinct(a.column())),
    "SUM": (1, 1, lambda a: Sum(a.column())),
    "MIN": (1, 1, lambda a: Min(a.column())),
    "MAX": (1, 1, lambda a: Max(a.column())),
    "AVG": (1, 1, lambda a: Mean(a.column())),
    "WHOLE AVG": (1, 1, _whole_mean),
    "MEAN": (1, 1, lambda a: Mean(a.column())),
    "VARIANCE": (1, 1, lambda a: Variance(a.column())),
    "VAR_SAMP": (1, 1, lambda a: Variance(a.column())),
    "VAR_POP": (1, 1, lambda a: Variance(a.column(), population=True)),
    "STDDEV": (1, 1, lambda a: StdDev(a.column())),
    "STDDEV_SAMPLE": (1, 1, lambda a: of_one(a.name, StdDev(a.column()), "coalesce({}, 0.0D)", _or_zero)),
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
    "PERCENTILE": (
        2, 2,
        lambda a: of_one(a.name, Quantiles(a.column(), (a.number(1),)), "get({}, 0)", lambda node: Node("GET", (node, Node(LITERAL, value=0)))),
    ),
    "TOPKDISTINCT": (2, 2, _top_distinct),
    "EARLIEST_BY_OFFSET": (1, 3, _by_offset(latest=False)),
    "LATEST_BY_OFFSET": (1, 3, _by_offset(latest=True)),
    "ATTR": (1, 1, _only),
    "HISTOGRAM": (1, 1, _histogram),
    **dict.fromkeys(("CORRELATION", "CORR"), (2, 2, lambda a: Correlation(a.column(), a.column(1)))),
    "COVAR_SAMP": (2, 2, lambda a: Covariance(a.column(), a.column(1))),
    "COVAR_POP": (2, 2, lambda a: Covariance(a.column(), a.column(1), population=True)),
    **{f"REGR_{field}": (2, 2, _regression(field.lower())) for field in _REGRESSION},
    "SKEWNESS": (1, 1, lambda a: Skewness(a.column())),
    "KURTOSIS": (1, 1, lambda a: Kurtosis(a.column())),
    "PRODUCT": (1, 1, lambda a: Product(a.column())),
    "MODE": (1, 1, lambda a: Mode(a.column())),
    "BIT_AND": (1, 1, lambda a: BitAnd(a.column())),
    "BIT_OR": (1, 1, lambda a: BitOr(a.column())),
    "BIT_XOR": (1, 1, lambda a: BitXor(a.column())),
    **dict.fromkeys(("BOOL_AND", "EVERY"), (1, 1, lambda a: BoolAnd(a.column()))),
    "BOOL_OR": (1, 1, lambda a: BoolOr(a.column())),
    "COUNT_IF": (1, 1, lambda a: CountIf(a.column())),
    "SUM_LIST": (1, 1, _sum_list),
    "TOPK": (2, 9, _top),
}  # fmt: skip
"""The least and the greatest number of arguments, and the accumulation."""
NAMES = frozenset(_TABLE)
"""Aggregates that are built in."""
