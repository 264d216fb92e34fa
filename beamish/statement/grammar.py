"""The grammar of a statement: sqlglot's parser of Spark's expressions, with the clauses of ksqlDB around them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NoReturn, TypeVar

import attrs
from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError
from sqlglot.tokens import TokenType  # type: ignore[attr-defined]

from beamish.durations import Duration, duration
from beamish.errors import SqlError
from beamish.statement.clauses import CLAUSES, CREATED, FUNCTIONS, NEEDED, ORDER, PROPERTIES, REFUSED, RULES, STATEMENTS
from beamish.statement.dialect import SparkDialect
from beamish.statement.emit import Emit, Kind
from beamish.statement.text import Span, Text, Token, is_name, word_of
from beamish.statement.windows import Windows
from beamish.windows import FixedWindows, Sessions, SlidingWindows, WindowOption

Tree = Any
"""An expression as sqlglot has it; its ``meta["span"]`` is its place."""
T = TypeVar("T")

_WINDOWS = ("TUMBLING", "HOPPING", "SESSION")
_BEGIN = frozenset(clause.replace("_", " ") for clause in CLAUSES)
_RESERVED = frozenset(CLAUSES) - {"WINDOW", "EMIT"}
"""The words that cannot name a column."""
_READ = ", ".join(word for word, says in PROPERTIES.items() if says is None)
_NO_OPERANDS = ("ALL", "CUBE", "DISTINCT", "GROUPING_SETS", "HINT", "ROLLUP")
_UNITS = ("DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND")
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
    disjunction conjunction equality comparison bitwise term unary type atom column field primary function
"""


@attrs.frozen(eq=False)
class Call:
    """A call of an aggregate.

    Attributes:
        name: in upper case.
        span: its place.
        distinct: whether DISTINCT is set.
        args: its arguments.
    """

    name: str
    span: Span
    distinct: bool
    args: Sequence[Tree]


@attrs.frozen
class Name:
    """A name and its place."""

    text: str
    start: int


@attrs.frozen(eq=False)
class Item:
    """An item of the SELECT list: an expression, and its name; None: it has none."""

    tree: Tree
    alias: Name | None


@attrs.frozen
class Rows:
    """The source.

    Attributes:
        name: as FROM says, without the database.
        alias: the name by which columns may be qualified; the same without AS.
    """

    name: str
    alias: str


@attrs.frozen(eq=False)
class Statement:
    """A statement that was read.

    Attributes:
        name: the name after CREATE TABLE; None without.
        properties: those under WITH.
        begins: the place of each clause.
        items: the SELECT list.
        rows: the source.
        windows: the windows.
        where: the condition on rows; None without.
        group_by: the expressions that make a group.
        having: the condition on panes; None without.
        emit: the emitted rows.
        end: the place of the last word.
    """

    name: str | None
    properties: Mapping[str, Any]
    begins: Mapping[str, int]
    items: Sequence[Item]
    rows: Rows
    windows: Windows
    where: Tree | None
    group_by: Sequence[Tree]
    having: Tree | None
    emit: Emit
    end: int


def parsed(text: Text, aggregates: Collection[str]) -> Statement:
    """Read a statement.

    Args:
        text: the statement.
        aggregates: the names of aggregates, in upper case.

    Raises:
        SqlError: it is not one.
    """
    tokens = list(text.tokens)
    if tokens and tokens[-1].token_type == TokenType.SEMICOLON:
        tokens.pop()
    if not tokens:
        raise text.error(0, "there is no statement; write SELECT ... FROM ... GROUP BY ...")
    for token in tokens:
        if token.token_type == TokenType.SEMICOLON:
            raise text.error(token.start, "';' within the text: bm.sql takes one statement; give it each by itself")
    parser = Parser(text, aggregates)
    try:
        parser.parse(tokens, text.sql)
    except SqlError:
        raise
    except _StuckError as stuck:
        raise text.error(stuck.at, f"this cannot be read as an expression: {stuck}; mend it, or take it out") from None
    except Exception as error:  # whatever a text does to a parser, the text is wrong
        raise text.error(0, f"this cannot be read: {error}") from error
    return parser.statement


def span_of(tree: Tree) -> Span:
    """The place of an expression: from the first to the last place in it that is known."""
    if "span" in tree.meta:
        found: Span = tree.meta["span"]
        return found
    spans = [span_of(child) for child in tree.iter_expressions()]
    spans += [Span(tree.meta["start"], tree.meta["end"] + 1)] if "start" in tree.meta else []
    known = [span for span in spans if span.end > 0]
    return Span(min(span.start for span in known), max(span.end for span in known)) if known else Span(0, 0)


def call_of(tree: Tree) -> Call | None:
    """The call of an aggregate that an expression is; None: it is another."""
    found: Call | None = tree.meta.get("call")
    return found


class _StuckError(ParseError):
    """sqlglot's error, with its place."""

    def __init__(self, message: str, at: int) -> None:
        super().__init__(message)
        self.at = at


class Parser(Spark.Parser):  # type: ignore[misc,valid-type]
    """Reads a statement, after ``parse`` it is ``statement``; every expression knows its place."""

    statement: Statement
    COLUMN_OPERATORS: Mapping[Any, Any] = {**Spark.Parser.COLUMN_OPERATORS, TokenType.ARROW: None}  # a->b is a field

    def __init__(self, text: Text, aggregates: Collection[str]) -> None:
        super().__init__(dialect=SparkDialect())
        self._text, self._aggregates = text, aggregates
        self._function = ""

    def raise_error(self, message: str, token: Any = None) -> NoReturn:
        """Raise sqlglot's error with its place."""
        token = token or self._curr or self._prev
        raise _StuckError(message.partition(" for <class")[0].rstrip(". "), token.start if token else 0)

    def _parse_statement(self) -> Any:
        self.statement = self._statement()
        return exp.Null()

    # clauses

    def _statement(self) -> Statement:
        name, properties = self._created()
        begins: dict[str, Token] = {}
        parts: dict[str, Any] = {}
        here = ""
        while self._curr:
            token, clause = self._curr, self._clause()
            if clause is None or (not begins and clause != "SELECT"):
                raise self._stray(here)
            if here and CLAUSES.index(clause) <= CLAUSES.index(here):
                twice = "is there twice" if clause in begins else f"comes before {word_of(begins[here])}"
                raise self._text.error(
                    token.start, f"{word_of(token)} {twice}; the clauses are {ORDER}, each once, in this order"
                )
            self._advance()
            if not self._curr or self._curr.token_type.name in _RESERVED:
                raise self._text.error(token.start, f"{word_of(token)} says nothing; the clauses are {ORDER}")
            here, begins[clause] = clause, token
            parts[clause] = self._CLAUSES[clause](self)
        last = self._prev
        for kind, what in NEEDED.items():
            if kind not in begins:
                later = [token for other, token in begins.items() if CLAUSES.index(other) > CLAUSES.index(kind)]
                raise self._text.error(
                    (*later, last)[0].start,
                    f"there is no {kind.replace('_', ' ')}: {what}; the clauses are {ORDER}",
                )
        return Statement(
            name,
            properties,
            {clause: token.start for clause, token in begins.items()},
            parts["SELECT"],
            parts["FROM"],
            parts.get("WINDOW", Windows()),
            parts.get("WHERE"),
            parts["GROUP_BY"],
            parts.get("HAVING"),
            self._emitted(parts.get("EMIT"), name, "WINDOW" in begins),
            last.start,
        )

    def _clause(self) -> str | None:
        """The clause that the next word begins where no operand can stand; None: it begins none."""
        word = word_of(self._curr)
        return word.replace(" ", "_") if word in _BEGIN else None

    def _stray(self, here: str) -> SqlError:
        token = self._curr
        kind = token.token_type.name
        if not here:
            says = STATEMENTS.get(word_of(token)) or REFUSED.get(
                kind, f"{token.text!r}: a statement begins with SELECT or CREATE TABLE name AS SELECT"
            )
            return self._text.error(token.start, f"{says}; the clauses are {ORDER}")
        if kind in REFUSED:
            return self._text.error(token.start, REFUSED[kind])
        if here in RULES:
            return self._expected("expected the end of the clause", here)
        return self._text.error(
            token.start,
            f"this cannot be read as an expression: {token.text!r} does not continue it; mend it, or take it out",
        )

    def _created(self) -> tuple[str | None, Mapping[str, Any]]:
        """The name after CREATE TABLE, and what WITH says."""
        if not self._match_text_seq("CREATE"):
            return None, {}
        self._check_created()
        if not self._match_text_seq("TABLE"):
            raise self._expected("only a table is created", "CREATE")
        self._check_created()
        parts: list[str] = []
        while not parts or self._match(TokenType.DOT):
            parts.append(self._name("CREATE TABLE has a name and a SELECT: expected a name", "CREATE").text)
        properties = self._properties() if self._match(TokenType.WITH) else {}
        if not self._match(TokenType.ALIAS):
            raise self._expected("CREATE TABLE has a name and a SELECT: expected AS", "CREATE")
        return ".".join(parts), properties

    def _check_created(self) -> None:
        if self._curr and word_of(self._curr) in CREATED:
            raise self._text.error(self._curr.start, f"{CREATED[word_of(self._curr)]}; {RULES['CREATE']}")

    def _properties(self) -> Mapping[str, Any]:
        self._need("CREATE", "(")
        properties: dict[str, Any] = {}
        while not properties or self._match(TokenType.COMMA):
            name = self._name("expected the name of a property", "CREATE")
            word = name.text.upper()
            says = PROPERTIES.get(word, f"{name.text}: no property of a table; those that are read are {_READ}")
            if says is not None:
                raise self._text.error(name.start, says)
            if word in properties:
                raise self._text.error(name.start, f"{word} is there twice; take one out")
            self._need("CREATE", "=")
            value = self._parse_unary()
            if not isinstance(value, (exp.Literal, exp.Boolean, exp.Null)):
                raise self._text.error(
                    (self._prev or self._curr).start, f"{word}: must be a string, a number, TRUE or FALSE"
                )
            properties[word] = value.this if isinstance(value, exp.Boolean) else value.name or None
        self._need("CREATE", ")")
        return properties

    def _items(self) -> Sequence[Item]:
        return self._list(self._item, "an item of the SELECT list is missing; take out a comma")

    def _item(self) -> Item:
        tree = self._operand()
        if self._match(TokenType.ALIAS):
            if not self._curr or not is_name(self._curr):
                raise self._text.error(self._prev.start, "AS stands between an expression and one name: COUNT(*) AS n")
            return Item(tree, self._name("a name", "SELECT"))
        named = self._curr and self._curr.token_type.name in ("VAR", "IDENTIFIER") and self._clause() is None
        return Item(tree, self._name("a name", "SELECT") if named else None)

    def _source(self) -> Rows:
        if self._curr.token_type == TokenType.L_PAREN and self._next and self._next.token_type == TokenType.SELECT:
            raise self._text.error(self._next.start, REFUSED["SELECT"])
        name = self._name("expected the name of the source", "FROM").text
        while self._match(TokenType.DOT):
            name = self._name("expected a name", "FROM").text
        if self._match(TokenType.ALIAS) or (
            self._curr and self._curr.token_type.name in ("VAR", "IDENTIFIER") and self._clause() is None
        ):
            return Rows(name, self._name("expected a name after AS", "FROM").text)
        return Rows(name, name)

    def _windows(self) -> Windows:
        begins = self._prev
        if word_of(self._curr) not in _WINDOWS and not (self._next and self._next.token_type == TokenType.L_PAREN):
            self._name("expected TUMBLING, HOPPING or SESSION, or a name before it", "WINDOW")
            if self._curr and self._curr.token_type == TokenType.ALIAS:
                raise self._expected(
                    "a window of rows has no meaning in a stream: expected TUMBLING, HOPPING or SESSION", "WINDOW"
                )
        kind = next((kind for kind in _WINDOWS if self._match_text_seq(kind)), None)
        if kind is None:
            raise self._expected("expected TUMBLING, HOPPING or SESSION", "WINDOW")
        self._need("WINDOW", "(", *([] if kind == "SESSION" else ["SIZE"]))
        place = (self._curr or begins).start
        size = self._duration("the gap" if kind == "SESSION" else "SIZE", "WINDOW", least=1)
        with self._text.at(place):
            option: WindowOption = Sessions(size) if kind == "SESSION" else FixedWindows(size)
        if kind == "HOPPING":
            option = self._hopping(size)
        grace = retention = None
        while self._match(TokenType.COMMA):
            place = (self._curr or begins).start
            if retention is None and self._match_text_seq("RETENTION"):
                retention_place, retention = place, self._duration("RETENTION", "WINDOW", least=0)
            elif grace is None and self._match_text_seq("GRACE", "PERIOD"):
                grace = self._duration("GRACE PERIOD", "WINDOW", least=0)
            else:
                raise self._expected("expected RETENTION or GRACE PERIOD, each once", "WINDOW")
        self._need("WINDOW", ")")
        needed = size + (grace or Duration(0))
        if retention is not None and retention < needed:
            raise self._text.error(
                retention_place,
                f"RETENTION {retention} is below size plus grace, {needed}: rows would come for results that are gone; say at "
                f"least {needed}, or leave it out: it has no effect here",
            )
        return Windows(option, grace, retention)

    def _hopping(self, size: Duration) -> WindowOption:
        self._need("WINDOW", ",", "ADVANCE", "BY")
        place = (self._curr or self._prev).start
        advance = self._duration("ADVANCE BY", "WINDOW", least=1)
        if advance > size:
            raise self._text.error(
                place,
                f"ADVANCE BY {advance} is above SIZE {size}: rows between windows would be in none; say at most {size}",
            )
        return SlidingWindows(size, advance)

    def _group_by(self) -> Sequence[Tree]:
        made = self._list(self._operand, "an expression under GROUP BY is missing; take out a comma")
        return made[0].expressions if len(made) == 1 and isinstance(made[0], exp.Tuple) else made  # GROUP BY (a, b)

    def _emit(self) -> tuple[Token, bool, Duration | None]:
        """FINAL or CHANGES, whether RETRACTING is set, and EVERY."""
        word = self._curr
        if self._match_text_seq("FINAL"):
            return word, False, None
        if not self._match_text_seq("CHANGES"):
            raise self._expected("expected CHANGES or FINAL", "EMIT")
        retracting = self._match_text_seq("RETRACTING")
        every = self._duration("EVERY", "EMIT", least=1) if self._match_text_seq("EVERY") else None
        return word, bool(retracting), every

    def _emitted(self, said: tuple[Token, bool, Duration | None] | None, name: str | None, windowed: bool) -> Emit:
        if said is None:
            return Emit("pull", "final") if name is None else Emit("persistent", "changes")
        word, retracting, every = said
        kind: Kind = "push" if name is None else "persistent"
        if word_of(word) == "CHANGES":
            return Emit(kind, "changes", retracting, every)
        if not windowed:
            raise self._text.error(
                word.start,
                "EMIT FINAL without WINDOW: no row is final, since more may always come; say WINDOW TUMBLING (SIZE 5 MINUTES) "
                "after FROM, or EMIT CHANGES",
            )
        return Emit(kind, "final")

    _CLAUSES: Mapping[str, Callable[[Any], Any]] = {
        "SELECT": _items,
        "FROM": _source,
        "WINDOW": _windows,
        "WHERE": lambda self: self._operand(),
        "GROUP_BY": _group_by,
        "HAVING": lambda self: self._operand(),
        "EMIT": _emit,
    }

    # expressions

    def _operand(self) -> Tree:
        """An expression."""
        token = self._curr
        if token and token.token_type.name in _NO_OPERANDS:
            raise self._text.error(token.start, REFUSED[token.token_type.name])
        tree: Tree = self._parse_disjunction()
        if tree is None:
            says = "this is no expression; write one, such as region or price * amount"
            raise self._text.error(
                (token or self._prev).start, REFUSED.get(token.token_type.name, says) if token else says
            )
        for node in tree.walk():
            self._check(node, tree)
        return tree

    def _check(self, node: Tree, tree: Tree) -> None:
        start = span_of(node).start
        if isinstance(node, exp.In) and not node.expressions:
            raise self._text.error(start, "IN without values; write k IN (1, 2)")
        if isinstance(node, exp.Star) and node is not tree and call_of(node.parent) is None:
            span = span_of(node.parent if isinstance(node.parent, exp.Column) else node)
            raise self._text.error(span.start, f"{self._text[span]}: name the columns; only COUNT(*) takes all")
        if isinstance(node, exp.AggFunc):
            name = node.sql_name() if hasattr(node, "sql_name") else type(node).__name__.upper()
            raise self._text.error(
                start,
                f"{name}: no aggregate of bm.sql; give it an accumulation: bm.sql(..., aggregates={{{name!r}: lambda column: ...}})",
            )

    def _list(self, one: Callable[[], T], missing: str) -> list[T]:
        begins, made = self._prev, list[T]()
        while not made or self._match(TokenType.COMMA):
            if not self._curr or self._curr.token_type == TokenType.COMMA or self._curr.token_type.name in _RESERVED:
                raise self._text.error(begins.start, missing)
            made.append(one())
        return made

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
            this = kind(this=this, expression=self._needed(self._binary(level + 1)))
        return this

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
            if called and not dotted and self._function in FUNCTIONS:
                raise self._text.error(token.start, FUNCTIONS[self._function])
            if self._function == "MAP":  # MAP('a' := 1) as well as MAP('a', 1)
                options["anonymous"] = True
            return super()._parse_function_call(*args, **options)
        finally:
            self._function = outer

    def _parse_lambda(self, *args: Any, **options: Any) -> Any:
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
                    "what the first gives, or first.then(second)",
                )
        return tree

    # words

    def _need(self, clause: str, *words: str) -> None:
        for word in words:
            if not self._match_text_seq(word):
                raise self._expected(f"expected {word}", clause)

    def _name(self, what: str, clause: str) -> Name:
        token = self._curr
        if not token or not is_name(token) or token.token_type == TokenType.ALIAS:
            raise self._expected(what, clause)
        self._advance()
        return Name(token.text, token.start)

    def _duration(self, what: str, clause: str, *, least: int) -> Duration:
        number = self._curr
        if not number or number.token_type != TokenType.NUMBER or not number.text.isdecimal():
            raise self._expected(f"{what}: expected a whole number", clause)
        self._advance()
        word = word_of(self._curr).removesuffix("S") if self._curr else ""
        if word not in _UNITS:
            raise self._expected(f"{what}: expected a unit, one of {', '.join(_UNITS)}, with or without S", clause)
        self._advance()
        if int(number.text) < least:
            raise self._text.error(number.start, f"{what} {number.text}: must be at least {least}; {RULES[clause]}")
        with self._text.at(number.start):
            return duration(what, f"{number.text} {word.lower()}")

    def _expected(self, what: str, clause: str) -> SqlError:
        token, rule = self._curr, RULES.get(clause, f"the clauses are {ORDER}")
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
    if hasattr(Parser, f"_parse_{_name}"):
        setattr(Parser, f"_parse_{_name}", _placed(getattr(Parser, f"_parse_{_name}")))
