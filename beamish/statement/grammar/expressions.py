"""Expressions: over rows, before the pipeline; as trees of plain values that run in process, made of what sqlglot read."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any

import attrs
from sqlglot import exp

from beamish.errors import SqlError
from beamish.statement.grammar.clauses import KSQLDB
from beamish.statement.grammar.names import is_known, unknown
from beamish.statement.grammar.text import Span, Text, Tree, function_of, span_of, word_of

UNKNOWN = "unknown"
"""Not computed in process; its value is the name of the function, or else the text."""
COLUMN = "column"
"""A column; its value is the path to it, a tuple of names."""
LITERAL = "literal"
"""A constant; its value is None, a bool, an int, a float, a Decimal, a timedelta or a text."""


_GROUPINGS = ("GROUPING", "GROUPING_ID")


@attrs.frozen
class Node:
    """An operator or function with its operands.

    Attributes:
        op: COLUMN, LITERAL, UNKNOWN, or a name in ``functions.FUNCTIONS``.
        args: its operands.
        value: a further constant.
        at: its position in the text.
    """

    op: str
    args: tuple[Node, ...] = ()
    value: Any = None
    at: int = attrs.field(default=0, eq=False)

    def walk(self) -> Iterator[Node]:
        """Itself and all descendants."""
        yield self
        for arg in self.args:
            yield from arg.walk()


_OPERATIONS: Mapping[str, tuple[str, tuple[str, ...], frozenset[str]]] = {
    name: (op, tuple(args.split()), frozenset(words.split()))
    for name, op, args, words in [
        ("Add", "+", "this expression", ""),
        ("Sub", "-", "this expression", ""),
        ("Mul", "*", "this expression", ""),
        ("Div", "/", "this expression", ""),
        ("IntDiv", "DIV", "this expression", ""),
        ("Mod", "%", "this expression", "MOD"),
        ("Neg", "negative", "this", ""),
        ("EQ", "=", "this expression", ""),
        ("NEQ", "<>", "this expression", ""),
        ("LT", "<", "this expression", ""),
        ("LTE", "<=", "this expression", ""),
        ("GT", ">", "this expression", ""),
        ("GTE", ">=", "this expression", ""),
        ("NullSafeEQ", "<=>", "this expression", ""),
        ("NullSafeNEQ", "IS DISTINCT FROM", "this expression", ""),
        ("And", "AND", "this expression", ""),
        ("Or", "OR", "this expression", ""),
        ("Not", "NOT", "this", ""),
        ("Is", "IS", "this expression", ""),
        ("Between", "BETWEEN", "this low high", ""),
        ("In", "IN", "this expressions", ""),
        ("Like", "LIKE", "this expression", ""),
        ("DPipe", "CONCAT", "this expression", ""),
        ("Concat", "CONCAT", "expressions", "CONCAT"),
        ("Coalesce", "COALESCE", "this expressions", "COALESCE NVL IFNULL"),
        ("Nullif", "NULLIF", "this expression", "NULLIF"),
        ("Upper", "UPPER", "this", "UPPER UCASE"),
        ("Lower", "LOWER", "this", "LOWER LCASE"),
        ("Length", "LENGTH", "this", "LENGTH CHAR_LENGTH CHARACTER_LENGTH LEN"),
        ("Substring", "SUBSTRING", "this start length", "SUBSTRING SUBSTR"),
        ("Replace", "REPLACE", "this expression replacement", "REPLACE"),
        ("StartsWith", "STARTSWITH", "this expression", "STARTSWITH"),
        ("EndsWith", "ENDSWITH", "this expression", "ENDSWITH"),
        ("Contains", "CONTAINS", "this expression", "CONTAINS"),
        ("Abs", "ABS", "this", "ABS"),
        ("Round", "ROUND", "this decimals", "ROUND"),
        ("Floor", "FLOOR", "this", "FLOOR"),
        ("Ceil", "CEIL", "this", "CEIL CEILING"),
        ("Sqrt", "SQRT", "this", "SQRT"),
        ("Sign", "SIGN", "this", "SIGN SIGNUM"),
        ("Array", "ARRAY", "expressions", "ARRAY"),
        ("Greatest", "GREATEST", "this expressions", "GREATEST"),
        ("Least", "LEAST", "this expressions", "LEAST"),
        ("Year", "YEAR", "this", "YEAR"),
        ("Quarter", "QUARTER", "this", "QUARTER"),
        ("Month", "MONTH", "this", "MONTH"),
        ("Day", "DAY", "this", "DAY"),
        ("DayOfMonth", "DAY", "this", "DAYOFMONTH"),
        ("DayOfWeek", "DAYOFWEEK", "this", "DAYOFWEEK"),
        ("Hour", "HOUR", "this", "HOUR"),
        ("Minute", "MINUTE", "this", "MINUTE"),
        ("Second", "SECOND", "this", "SECOND"),
        ("UnixMillis", "UNIX_MILLIS", "this", "UNIX_MILLIS"),
    ]
}
"""sqlglot's class: the operation, its operands, and the function names (sqlglot has one class for several)."""

_SPECIAL = "AS_VALUE CAST DATE_TRUNC EXTRACT IF LTRIM MAP RTRIM STRUCT TRIM"
IN_PROCESS = frozenset([*_SPECIAL.split(), *(word for _, _, words in _OPERATIONS.values() for word in words)])
"""The functions that run in process."""

_FLAGS = frozenset(
    {
        "safe",
        "typed",
        "ignore_nulls",
        "coalesce",
        "nulls_excluded",
        "big_int",
        "casing_rule",
        "is_left",
        "_type",
        "bracket_notation",
    }
)
"""sqlglot's additional arguments that do not change the meaning here."""

_TYPES: Mapping[str, str] = {
    "INT": "int", "BIGINT": "bigint", "DOUBLE": "double", "BOOLEAN": "boolean", "TEXT": "string", "VARCHAR": "string",
    "DATE": "date", "TIMESTAMP": "timestamp", "TIMESTAMPTZ": "timestamp",
}  # fmt: skip


_UNITS = {
    name.upper(): timedelta(**{f"{name}s": 1})
    for name in ("day", "hour", "minute", "second", "millisecond", "microsecond")
}
_PARTS = {
    "YEAR": "YEAR", "QUARTER": "QUARTER", "MONTH": "MONTH", "DAY": "DAY", "DAYOFWEEK": "DAYOFWEEK", "DOW": "DAYOFWEEK",
    "HOUR": "HOUR", "MINUTE": "MINUTE",
}  # fmt: skip
"""The parts that EXTRACT gives as the function of a name does."""


def node_of(tree: Tree, text: Text, known: Mapping[int, Node]) -> Node:
    """The tree that runs in process.

    Args:
        tree: the expression.
        text: the statement.
        known: what is known of a part, by its id: columns, and after the pipeline keys and aggregates.
    """
    return _Translation(text, known).node(tree)


@attrs.frozen
class _Translation:
    text: Text
    known: Mapping[int, Node]

    def node(self, tree: Tree) -> Node:
        if id(tree) in self.known:
            return self.known[id(tree)]
        if isinstance(tree, exp.Paren):
            return self.node(tree.this)
        at, name = span_of(tree).start, function_of(self.text, tree)
        if name and not is_known(name):
            return Node(UNKNOWN, tuple(self._children(tree)), name, at)
        if isinstance(tree, (exp.Literal, exp.Null, exp.Boolean, exp.RawString)):
            return Node(LITERAL, value=_literal(tree), at=at)
        if isinstance(tree, exp.Neg) and isinstance(tree.this, exp.Literal) and not tree.this.is_string:
            return Node(LITERAL, value=-_literal(tree.this), at=at)  # -9223372036854775808 is a bigint
        made = self._special(tree, at) or self._operation(tree, at)
        return made or Node(UNKNOWN, tuple(self._children(tree)), name or self.text[span_of(tree)], at)

    def _children(self, tree: Tree) -> list[Node]:
        return [self.node(child) for child in tree.iter_expressions() if isinstance(child, (exp.Condition, exp.Column))]

    def _words(self, tree: Tree) -> str:
        """The name of a function; empty: another expression."""
        return self.text[Span(tree.meta["start"], tree.meta["end"] + 1)].upper() if "start" in tree.meta else ""

    def _operation(self, tree: Tree, at: int) -> Node | None:
        known = _OPERATIONS.get(type(tree).__name__)
        if known is None:
            return None
        op, names, words = known
        if isinstance(tree.args.get("expression"), (exp.Any, exp.All)):
            return None
        if words and "start" in tree.meta and self._words(tree) not in words:
            return None
        if {name for name, value in tree.args.items() if value} - {*names, *_FLAGS}:
            return None
        operands: list[Tree] = []
        for name in names:
            value = tree.args.get(name)
            operands += value if isinstance(value, list) else [] if value is None else [value]
        return Node(op, tuple(self.node(_bare(operand)) for operand in operands), at=at)

    def _special(self, tree: Tree, at: int) -> Node | None:
        """An expression that is not in ``_OPERATIONS``."""
        if isinstance(tree, exp.Cast):
            type_ = _TYPES.get(tree.to.this.name) if not tree.to.expressions else None
            if type_ is None or tree.args.get("safe"):
                return None
            return Node("CAST", (self.node(tree.this),), type_, at)
        if isinstance(tree, exp.Anonymous) and tree.name.upper() == "AS_VALUE" and len(tree.expressions) == 1:
            return self.node(tree.expressions[0])
        if isinstance(tree, exp.Anonymous) and tree.name.upper() == "MAP":
            entries = [
                (one.this, one.expression) if isinstance(one, exp.PropertyEQ) else (one,) for one in tree.expressions
            ]
            return Node("MAP", tuple(self.node(part) for entry in entries for part in entry), at=at)
        if isinstance(tree, exp.Struct) and all(isinstance(one, exp.PropertyEQ) for one in tree.expressions):
            values = tuple(self.node(one.expression) for one in tree.expressions)
            return Node("STRUCT", values, tuple(one.name for one in tree.expressions), at)
        if isinstance(tree, exp.Dot) and isinstance(tree.expression, exp.Identifier):
            return Node("FIELD", (self.node(tree.this),), tree.expression.name, at)
        if isinstance(tree, exp.Bracket) and len(tree.expressions) == 1 and not tree.args.get("safe"):
            return Node("ITEM", (self.node(tree.this), self.node(tree.expressions[0])), at=at)
        if isinstance(tree, exp.Interval):
            return self._interval(tree, at)
        if isinstance(tree, exp.Case):
            return self._case(tree, at)
        if isinstance(tree, exp.If):
            no = tree.args.get("false")
            otherwise = Node(LITERAL, at=at) if no is None else self.node(no)
            return Node("CASE", (self.node(tree.this), self.node(tree.args["true"]), otherwise), at=at)
        if isinstance(tree, exp.Trim):
            return self._trim(tree, at)
        if isinstance(tree, exp.Extract) and tree.name.upper() in _PARTS:
            return Node(_PARTS[tree.name.upper()], (self.node(tree.expression),), at=at)
        if isinstance(tree, exp.TimestampTrunc) and self._words(tree) == "DATE_TRUNC":
            return Node("DATE_TRUNC", (self.node(tree.this),), str(tree.args["unit"].name).upper(), at)
        return None

    def _interval(self, tree: Tree, at: int) -> Node | None:
        number, unit = tree.name, str(tree.args.get("unit") or "").upper().removesuffix("S")
        if unit not in _UNITS or not re.fullmatch(r"-?[0-9]{1,9}", number) or not isinstance(tree.this, exp.Literal):
            return None
        return Node(LITERAL, value=_UNITS[unit] * int(number), at=at)

    def _trim(self, tree: Tree, at: int) -> Node | None:
        side, characters = str(tree.args.get("position") or "BOTH").upper(), tree.args.get("expression")
        if characters is None:
            known = self._words(tree) in ("", "TRIM", "LTRIM", "RTRIM")
            return Node("TRIM", (self.node(tree.this),), side, at) if known else None
        if "FROM" not in map(word_of, self.text.words(Span(span_of(characters).end, span_of(tree.this).start))):
            return None  # TRIM(x, y), whose operands change places between names and versions
        return Node("TRIM", (self.node(tree.this), self.node(characters)), side, at)

    def _case(self, tree: Tree, at: int) -> Node:
        subject = None if tree.this is None else self.node(tree.this)
        args = []
        for when in tree.args["ifs"]:
            condition = self.node(when.this)
            args.append(condition if subject is None else Node("=", (subject, condition), at=condition.at))
            args.append(self.node(when.args["true"]))
        otherwise = tree.args.get("default")
        args.append(Node(LITERAL, at=at) if otherwise is None else self.node(otherwise))
        return Node("CASE", tuple(args), at=at)


def _bare(tree: Tree) -> Tree:
    """Without the cast to a date that sqlglot puts around the operand of YEAR and its kind."""
    return tree.this if isinstance(tree, exp.TsOrDsToDate) and "start" not in tree.meta else tree


def _literal(tree: Tree) -> Any:
    if isinstance(tree, exp.Null):
        return None
    if isinstance(tree, exp.Boolean):
        return bool(tree.this)
    if isinstance(tree, exp.RawString) or tree.is_string:
        return str(tree.this)
    digits = str(tree.this)
    if "e" in digits.lower():
        return float(digits)
    return Decimal(digits) if "." in digits else int(digits)


@attrs.frozen
class Expression:
    """An expression, for Spark and in process.

    Attributes:
        name: the column that holds it.
        sql: Spark's expression.
        node: the tree that runs in process.
        said: the expression as the user wrote it.
        text: the statement.
        at: its place.
    """

    name: str
    sql: str
    node: Node
    said: str
    text: Text = attrs.field(repr=False)
    at: int = attrs.field(eq=False)

    def error(self, says: str) -> SqlError:
        """The error for this expression; of a routine that Spark does not know, the error for that name."""
        routine = re.search(r"\[UNRESOLVED_ROUTINE\].*?`(?:\w+`\.`)*(\w+)`", says)
        return self.text.error(self.at, unknown(routine[1].upper()) if routine else says)


def over_rows(text: Text, tree: Tree, name: str, owners: Collection[str]) -> Expression:
    """An expression over the rows, before the pipeline.

    Args:
        text: the statement.
        tree: the expression.
        name: the column that holds it.
        owners: names by which columns may be qualified, in lower case.

    Raises:
        SqlError: it names the window's bounds.
    """
    known: dict[int, Node] = {}
    for column in columns_of(tree):
        path, span = path_of(column, owners), span_of(column)
        if len(path) == 1 and path[0].upper() in KSQLDB.bounds:
            raise text.error(
                span.start, f"{path[0].upper()}: rows are in no window yet; it may stand in the SELECT list only"
            )
        known[id(column)] = Node(COLUMN, value=path, at=span.start)
    return expression(text, tree, name, known, ())


def expression(
    text: Text, tree: Tree, name: str, known: Mapping[int, Node], parts: Sequence[tuple[Span, str]]
) -> Expression:
    """An expression, with other words for Spark in place of some parts (SqlError: it asks for the set of a group)."""
    for node in tree.walk():
        if id(node) not in known and is_grouping(text, node):
            raise no_sets(text, node)
    span = span_of(tree)
    sql, at = "", span.start
    typed = (one for one in _typed(text, tree) if not any(part.start <= one[0].start < part.end for part, _ in parts))
    for where, words in sorted([*parts, *typed], key=lambda part: part[0].start):
        sql += text[Span(at, where.start)] + words
        at = where.end
    sql += text[Span(at, span.end)]
    return Expression(name, sql, node_of(tree, text, known), text[span], text, span.start)


def is_grouping(text: Text, tree: Tree) -> bool:
    """Whether an expression calls GROUPING or GROUPING_ID."""
    return isinstance(tree, exp.Func) and function_of(text, tree) in _GROUPINGS


def no_sets(text: Text, tree: Tree) -> SqlError:
    """The error for such a call where no group is of a set."""
    span = span_of(tree)
    return text.error(
        span.start,
        f"{text[span]}: it tells totals from other groups, in the SELECT list and HAVING of a statement with GROUP BY ROLLUP, CUBE or "
        "GROUPING SETS; leave it out",
    )


def all_of(conditions: Sequence[Expression]) -> Expression:
    """The conjunction of conditions, at least one."""
    first, *others = conditions
    for one in others:
        sql, node = f"({first.sql}) AND ({one.sql})", Node("AND", (first.node, one.node), at=first.at)
        first = attrs.evolve(first, sql=sql, node=node, said=f"{first.said} AND {one.said}")
    return first


def _typed(text: Text, tree: Tree) -> Iterator[tuple[Span, str]]:
    """The parts that Spark writes differently from ksqlDB, with Spark's words."""
    for node in tree.walk():
        if isinstance(node, (exp.Column, exp.Dot)):
            parts = node.parts if isinstance(node, exp.Column) else [node.this, node.expression]
            gaps = (Span(span_of(before).end, span_of(after).start) for before, after in pairwise(parts))
            yield from ((gap, ".") for gap in gaps if "->" in text[gap])
        elif isinstance(node, exp.PropertyEQ):
            yield from _assigned(text, node)
        elif isinstance(node, exp.IntDiv):  # the / of whole numbers in Flink
            gap = Span(span_of(node.this).end, span_of(node.expression).start)
            yield from ((Span(one.start, one.end + 1), " DIV ") for one in text.words(gap) if one.text == "/")
        elif isinstance(node, exp.Array) and (found := re.match(r"ARRAY\s*\[", text[span_of(node)], re.IGNORECASE)):
            span = span_of(node)
            yield Span(span.start + found.end() - 1, span.start + found.end()), "("
            yield Span(span.end - 1, span.end), ")"
        elif isinstance(node, exp.Anonymous) and node.name.upper() == "AS_VALUE":
            yield _first(node, "AS_VALUE"), ""


def _assigned(text: Text, node: Tree) -> Iterator[tuple[Span, str]]:
    """``STRUCT(a := x)`` as ``named_struct('a', x)``, ``MAP(k := x)`` as ``MAP(k, x)``."""
    key, value, of = span_of(node.this), span_of(node.expression), node.parent
    if ":=" not in text[Span(key.end, value.start)]:
        return
    if not isinstance(of, exp.Struct):
        yield Span(key.end, value.start), ", "
        return
    yield Span(key.start, value.start), "'" + node.this.name.replace("\\", "\\\\").replace("'", "\\'") + "', "
    if node is of.expressions[0]:
        yield _first(of, "STRUCT"), "named_struct"


def _first(node: Tree, word: str) -> Span:
    return Span(span_of(node).start, span_of(node).start + len(word))


def columns_of(tree: Tree) -> Iterator[Tree]:
    """The columns that an expression names."""
    return tree.find_all(exp.Column)  # type: ignore[no-any-return]


def path_of(column: Tree, owners: Collection[str]) -> tuple[str, ...]:
    """The names of a column and of the fields in it, without the name of the source."""
    path = tuple(part.name for part in column.parts)
    return path[1:] if len(path) > 1 and path[0].lower() in owners else path
