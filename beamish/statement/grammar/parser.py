"""Spark's expressions as sqlglot parses them, with Spark's precedence, aggregates, fields as ksqlDB writes them, and places."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NoReturn

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError
from sqlglot.tokens import TokenType  # type: ignore[attr-defined]

from beamish.errors import SqlError
from beamish.statement.grammar.clauses import ORDER, REFUSED, RULES
from beamish.statement.grammar.names import AGGREGATES, is_known, unknown
from beamish.statement.grammar.text import Call, Span, SparkDialect, Text, Tree, call_of, function_of, span_of, word_of

_PREDICATES = ("BETWEEN", "ILIKE", "IN", "IS", "LIKE", "RLIKE")
_NO_OPERANDS = ("ALL", "CUBE", "DISTINCT", "GROUPING_SETS", "HINT", "ROLLUP")
_HIGHER_ORDER = """
    AGGREGATE ARRAY_SORT EXISTS FILTER FORALL MAP_FILTER MAP_ZIP_WITH REDUCE TRANSFORM TRANSFORM_KEYS TRANSFORM_VALUES ZIP_WITH
"""
_LAMBDAS = frozenset(_HIGHER_ORDER.split())
"""Functions in whose arguments ``x -> y`` is a function; elsewhere it is a field of a struct."""
_COMPARISONS: Mapping[Any, type] = {
    TokenType.EQ: exp.EQ,
    TokenType.NEQ: exp.NEQ,
    TokenType.NULLSAFE_EQ: exp.NullSafeEQ,
    TokenType.LT: exp.LT,
    TokenType.LTE: exp.LTE,
    TokenType.GT: exp.GT,
    TokenType.GTE: exp.GTE,
}
_OPERATORS: Sequence[Mapping[Any, type]] = (
    {TokenType.PIPE: exp.BitwiseOr},
    {TokenType.CARET: exp.BitwiseXor},
    {TokenType.AMP: exp.BitwiseAnd},
    {TokenType.PLUS: exp.Add, TokenType.DASH: exp.Sub, TokenType.DPIPE: exp.DPipe},
    {TokenType.STAR: exp.Mul, TokenType.SLASH: exp.Div, TokenType.MOD: exp.Mod, TokenType.DIV: exp.IntDiv},
)
"""Spark's operators, from those that bind least; sqlglot and its versions bind some otherwise."""
_PLACED = """
    disjunction conjunction equality comparison bitwise term unary type atom bracket column field primary function
"""


class StuckError(ParseError):
    """sqlglot's error, with its place."""

    def __init__(self, message: str, at: int) -> None:
        super().__init__(message)
        self.at = at


class ExpressionParser(Spark.Parser):  # type: ignore[misc,valid-type]
    """Parses expressions; each knows its place."""

    COLUMN_OPERATORS: Mapping[Any, Any] = {  # a->b is a field
        TokenType.ARROW: None,
        **{kind: Spark.Parser.COLUMN_OPERATORS[kind] for kind in (TokenType.DOT, TokenType.DCOLON)},
    }
    RANGE_PARSERS: Mapping[Any, Any] = {
        token: parse for token, parse in Spark.Parser.RANGE_PARSERS.items() if token.name in _PREDICATES
    }

    UNARY_PARSERS: Mapping[Any, Any] = {
        token: parse for token, parse in Spark.Parser.UNARY_PARSERS.items() if token != TokenType.NOT
    }

    order, rules = ORDER, RULES

    def __init__(self, text: Text, aggregates: Collection[str]) -> None:
        super().__init__(dialect=SparkDialect())
        self._text, self._aggregates = text, aggregates
        self._function = ""

    def raise_error(self, message: str, token: Any = None) -> NoReturn:
        """Raise sqlglot's error with its place."""
        token = token or self._curr or self._prev
        raise StuckError(message.partition(" for <class")[0].rstrip(". "), token.start if token else 0)

    def _operand(self, *, star: bool = False) -> Tree:
        """An expression; ``star``: it may be ``a.*``."""
        token = self._curr
        if token and token.token_type.name in _NO_OPERANDS:
            raise self._text.error(token.start, REFUSED[token.token_type.name])
        tree: Tree = self._parse_disjunction()
        if tree is None:
            says = "not an expression; write one, such as region or price * amount"
            raise self._text.error(
                (token or self._prev).start, REFUSED.get(token.token_type.name, says) if token else says
            )
        for node in () if star and tree.is_star else tree.walk():
            self._check(node, tree)
        return tree

    def _check(self, node: Tree, tree: Tree) -> None:
        start = span_of(node).start
        if isinstance(node, exp.In) and not node.expressions:
            raise self._text.error(start, "IN without values; write k IN (1, 2)")
        if isinstance(node, exp.Star) and node is not tree and call_of(node.parent) is None:
            span = span_of(node.parent if isinstance(node.parent, exp.Column) else node)
            raise self._text.error(span.start, f"{self._text[span]}: name the columns; only COUNT(*) takes all")
        if isinstance(node, (exp.Parameter, exp.Placeholder)):
            raise self._text.error(start, f"{self._text[span_of(node)]}: a parameter; write the value")
        if isinstance(node, exp.Func) and call_of(node) is None:
            quantifies = isinstance(node.parent, (exp.Like, exp.ILike))  # LIKE ANY (...)
            name = "" if quantifies else function_of(self._text, node)
            of_spark = name in AGGREGATES and name not in self._aggregates
            if of_spark or (isinstance(node, exp.AggFunc) and name and not is_known(name)):
                raise self._text.error(start, unknown(name))

    def _parse_equality(self, *_: Any, **__: Any) -> Any:
        """An operand of AND and OR."""
        if self._match(TokenType.NOT):
            return exp.Not(this=self._needed(self._parse_equality()))
        this = self._parse_comparison()
        negate = this is not None and self._match(TokenType.NOT)
        if this is None or not self._match_set(self.RANGE_PARSERS):
            self._retreat(self._index - 1 if negate else self._index)
            return this
        made = self._needed(self.RANGE_PARSERS[self._prev.token_type](self, this))
        return exp.Not(this=made) if negate else made

    def _parse_is(self, this: Any) -> Any:
        negate = self._match(TokenType.NOT)
        if self._match_text_seq("DISTINCT", "FROM"):
            kind = exp.NullSafeEQ if negate else exp.NullSafeNEQ
            return kind(this=this, expression=self._needed(self._parse_comparison()))
        if not self._match_set((TokenType.NULL, TokenType.TRUE, TokenType.FALSE)) and not self._match_text_seq(
            "UNKNOWN"
        ):
            self.raise_error("expected NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM after IS")
        word = word_of(self._prev)
        made = exp.Is(
            this=this, expression=exp.Boolean(this=word == "TRUE") if word in ("TRUE", "FALSE") else exp.Null()
        )
        return exp.Not(this=made) if negate else made

    def _parse_comparison(self, *_: Any, **__: Any) -> Any:
        this = self._parse_bitwise()
        if self._curr and self._match_text_seq("AT", "TIME", "ZONE", advance=False):
            raise self._text.error(
                self._curr.start, "AT TIME ZONE: Spark writes it as FROM_UTC_TIMESTAMP(t, 'Europe/London')"
            )
        while this is not None and self._match_set(_COMPARISONS):
            kind = _COMPARISONS[self._prev.token_type]
            while self._match_set((TokenType.LT, TokenType.GT)):  # << and >>, which only Spark computes
                kind = exp.BitwiseLeftShift
            this = kind(this=this, expression=self._needed(self._parse_bitwise()))
        return this

    def _parse_bitwise(self) -> Any:
        return self._binary(0)

    def _parse_term(self, *_: Any, **__: Any) -> Any:
        return self._binary(3)

    def _binary(self, level: int) -> Any:
        if level == len(_OPERATORS):
            this = self._parse_unary()
            return exp.Collate(this=this, expression=self._parse_id_var()) if self._match(TokenType.COLLATE) else this
        this = self._binary(level + 1)
        while this is not None and self._match_set(_OPERATORS[level]):
            kind = _OPERATORS[level][self._prev.token_type]
            this = self._combined(kind, this, self._needed(self._binary(level + 1)))
        return this

    def _combined(self, kind: type, this: Tree, other: Tree) -> Tree:
        """An operator with its operands."""
        return kind(this=this, expression=other)

    def _needed(self, tree: Any) -> Any:
        if tree is None:
            self.raise_error("an operand is missing")
        return tree

    def _parse_select(self, *_: Any, **__: Any) -> Any:
        if self._curr and self._curr.token_type in (TokenType.SELECT, TokenType.WITH):
            raise self._text.error(self._curr.start, REFUSED[self._curr.token_type.name])

    def _parse_window(self, this: Any, *_: Any, **__: Any) -> Any:
        return this  # OVER and FILTER are refused where they stand

    def _parse_function_call(self, *args: Any, **options: Any) -> Any:
        token = self._curr
        if not token:
            return None
        outer, self._function = self._function, word_of(token)
        called = self._next and self._next.token_type == TokenType.L_PAREN
        dotted = self._prev and self._prev.token_type == TokenType.DOT
        try:
            if called and self._function in self._aggregates and not dotted:
                return self._aggregate()
            if self._function == "MAP":  # MAP('a' := 1) as well as MAP('a', 1)
                options["anonymous"] = True
            return super()._parse_function_call(*args, **options)
        finally:
            self._function = outer

    def _parse_lambda(self, *args: Any, **options: Any) -> Any:
        if self._function in _LAMBDAS and self._next and self._next.token_type == TokenType.FARROW:
            raise self._text.error(self._next.start, f"=>: Spark writes it as {self._curr.text} -> ...")
        if self._function not in _LAMBDAS and self._next and self._next.token_type == TokenType.ARROW:
            return self._parse_disjunction()
        return super()._parse_lambda(*args, **options)

    def _aggregate(self) -> Tree:
        name, function = self._curr, self._function
        self._advance(2)
        distinct = self._match(TokenType.DISTINCT)
        made: list[Tree] = []
        while not self._match(TokenType.R_PAREN):
            if made and not self._match(TokenType.COMMA):
                raise self._expected("expected ',' or ')'", "SELECT")
            if not self._curr or self._curr.token_type in (TokenType.COMMA, TokenType.R_PAREN):
                raise self._text.error((self._curr or self._prev).start, f"{function}: an argument is missing")
            made.append(self._argument(function))
        tree = exp.Anonymous(this=function, expressions=made)
        tree.meta["call"] = Call(function, Span(name.start, self._prev.end + 1), bool(distinct), made)
        return tree

    def _argument(self, function: str) -> Tree:
        tree = self._operand()
        for node in tree.walk():
            inner = call_of(node)
            if inner is not None:
                raise self._text.error(
                    inner.span.start,
                    f"{inner.name} within {function}: an aggregate is of rows, not of aggregates; use a second statement over "
                    "the first one's output, or first.then(second)",
                )
        return tree

    def _expected(self, what: str, clause: str) -> SqlError:
        token, rule = self._curr, self.rules.get(clause, f"the clauses are {self.order}")
        if token:
            return self._text.error(token.start, f"{what}, not {token.text!r}; {rule}")
        return self._text.error(self._prev.start, f"{what} after {self._prev.text!r}; {rule}")


def _placed(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method of the parser whose expressions know their place."""

    def parse(self: Any, *args: Any, **options: Any) -> Any:
        first = span_of(args[0]).start if args and isinstance(args[0], exp.Expression) else None
        token = self._curr
        made = method(self, *args, **options)
        if isinstance(made, exp.Expression) and token:
            made.meta["span"] = Span(token.start if first is None else first, self._prev.end + 1)
        return made

    return parse


for _name in _PLACED.split():
    if hasattr(ExpressionParser, f"_parse_{_name}"):
        setattr(ExpressionParser, f"_parse_{_name}", _placed(getattr(ExpressionParser, f"_parse_{_name}")))
