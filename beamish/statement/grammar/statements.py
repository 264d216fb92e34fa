"""The grammar of a statement: the clauses of ksqlDB around expressions of Spark's; statement/flink has those of Flink."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, TypeVar

import attrs
from sqlglot import exp
from sqlglot.tokens import TokenType  # type: ignore[attr-defined]

from beamish.durations import Duration, duration
from beamish.errors import SqlError
from beamish.kinds.over.options import Frame, Preceding, PrecedingRows, Unbounded
from beamish.statement.grammar.clauses import (
    CLAUSES,
    CREATED,
    NEEDED,
    ORDER,
    PROPERTIES,
    REFUSED,
    RULES,
    STATEMENTS,
    Emit,
    How,
    Item,
    Join,
    KeySets,
    Kind,
    Name,
    Over,
    Rows,
    Statement,
    Windows,
)
from beamish.statement.grammar.parser import ExpressionParser, StuckError
from beamish.statement.grammar.text import Span, Text, Token, Tree, is_name, word_of
from beamish.windows import FixedWindows, Sessions, SlidingWindows, WindowOption

T = TypeVar("T")

_WINDOWS = ("TUMBLING", "HOPPING", "SESSION")
_RESERVED = frozenset(CLAUSES) - {"WINDOW", "EMIT"}
"""The words that cannot name a column."""
_READ = ", ".join(word for word, says in PROPERTIES.items() if says is None)
_OUTER: Mapping[str, How] = {"LEFT": "left", "RIGHT": "right", "FULL": "full"}
_UNITS = ("DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND")
_KEY_SETS = ("ROLLUP", "CUBE", "GROUPING_SETS")
_WIDEST_CUBE = 6
"""Columns of a cube, which has as many sets as all their combinations: 64."""


def parsed(parser: StatementParser, text: Text) -> Statement:
    """Read a statement.

    Args:
        parser: that of its dialect.
        text: the statement.

    Raises:
        SqlError: it is not one.
    """
    parser.check_literals()
    tokens = list(text.tokens)
    while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
        tokens.pop()
    if not tokens:
        raise text.error(0, "there is no statement; write SELECT ... FROM ... GROUP BY ...")
    for token in tokens:
        if token.token_type == TokenType.SEMICOLON and not parser.several:
            raise text.error(token.start, "';' within the text: bm.sql takes one statement; give it each by itself")
    try:
        parser.parse(tokens, text.sql)
    except SqlError:
        raise
    except StuckError as stuck:
        raise text.error(stuck.at, f"this cannot be read as an expression: {stuck}; mend it, or take it out") from None
    except Exception as error:  # whatever a text does to a parser, the text is wrong
        raise text.error(0, f"this cannot be read: {error}") from error
    if "statement" not in vars(parser):
        raise text.error(len(text.sql), f"a query is missing after the declarations; the clauses are {parser.order}")
    return parser.statement


def conjuncts(tree: Tree) -> Iterator[Tree]:
    """The conditions of a conjunction, without brackets around them."""
    while isinstance(tree, exp.Paren):
        tree = tree.this
    if isinstance(tree, exp.And):
        yield from conjuncts(tree.this)
        yield from conjuncts(tree.expression)
    else:
        yield tree


@attrs.frozen
class Inner:
    """A statement in brackets after FROM: its SELECT list, its source, its condition, and where its clauses begin."""

    items: Sequence[Item]
    where: Tree | None
    begins: Mapping[str, int]


class StatementParser(ExpressionParser):
    """Parses a statement; after ``parse`` it is ``statement``."""

    statement: Statement
    inner: Inner | None = None
    clauses: Sequence[str] = CLAUSES
    several = False
    """Whether statements that declare sources come before it."""

    def check_literals(self) -> None:
        """Check the literals of the text before it is cut into words."""

    def _parse_statement(self) -> Any:
        self.statement = self._statement()
        return exp.Null()

    def _read_clauses(self) -> tuple[dict[str, Token], dict[str, Any], Token]:
        """The clauses: the word that begins each, what is read of it, and the last word."""
        begins: dict[str, Token] = {}
        parts: dict[str, Any] = {}
        here = ""
        while self._curr:
            token, clause = self._curr, self._clause()
            if clause is None or (not begins and clause != "SELECT"):
                raise self._stray(here)
            if here and self.clauses.index(clause) <= self.clauses.index(here):
                twice = "is there twice" if clause in begins else f"comes before {word_of(begins[here])}"
                raise self._text.error(
                    token.start, f"{word_of(token)} {twice}; the clauses are {self.order}, each once, in this order"
                )
            self._advance()
            if not self._curr or self._curr.token_type.name in _RESERVED:
                raise self._text.error(token.start, f"{word_of(token)} is empty; the clauses are {self.order}")
            here, begins[clause] = clause, token
            parts[clause] = self._CLAUSES[clause](self)
        return begins, parts, self._prev

    def _statement(self) -> Statement:
        name, properties = self._created()
        begins, parts, last = self._read_clauses()
        rows, joins = parts.get("FROM", (None, ()))
        outer: dict[str, Any] = {}
        if self.inner is not None:
            outer = self._outer(self.inner, parts, begins)
        is_over = any(item.over is not None for item in parts.get("SELECT", ()))
        for kind, what in NEEDED.items():
            if kind not in begins and not ((joins or is_over) and kind == "GROUP_BY"):
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
            rows,
            joins,
            parts.get("WINDOW", Windows()),
            parts.get("WHERE"),
            parts.get("GROUP_BY", ()),
            parts.get("HAVING"),
            self._emitted(parts.get("EMIT"), name, "WINDOW" in begins or bool(joins) or is_over),
            last.start,
            **outer,
        )

    def _outer(self, inner: Inner, parts: dict[str, Any], begins: Mapping[str, Token]) -> dict[str, Any]:
        """The parts of a statement around another: its condition and items; the others become those of the inner one."""
        if not any(item.over is not None for item in inner.items):
            raise self._text.error(inner.begins["SELECT"], REFUSED["SELECT"])
        for clause in ("WINDOW", "GROUP_BY", "HAVING"):
            if clause in begins:
                raise self._text.error(
                    begins[clause].start,
                    f"{clause.replace('_', ' ')} around a SELECT: the outer statement only selects; {REFUSED['SELECT']}",
                )
        chosen = parts["SELECT"]
        for item in chosen:
            if item.over is not None or not (item.tree.is_star or isinstance(item.tree, exp.Column)):
                raise self._text.error(
                    begins["SELECT"].start,
                    "SELECT around a SELECT: * or names of its items; compute within the inner one",
                )
        taken = {} if any(item.tree.is_star for item in chosen) else {"chosen": chosen}
        outer = {"outer": parts.get("WHERE"), **taken}
        parts["SELECT"], parts["WHERE"] = inner.items, inner.where
        return outer

    def _clause(self) -> str | None:
        """The clause that the next word begins where no operand can stand; None: it begins none."""
        word = word_of(self._curr)
        clause = word.replace(" ", "_")
        return clause if clause in self.clauses and "_" not in word else None

    def _stray(self, here: str) -> SqlError:
        token = self._curr
        kind = token.token_type.name
        if not here:
            says = STATEMENTS.get(word_of(token)) or REFUSED.get(
                kind, f"{token.text!r}: a statement begins with SELECT or CREATE TABLE name AS SELECT"
            )
            return self._text.error(token.start, f"{says}; the clauses are {self.order}")
        if kind in REFUSED:
            return self._text.error(token.start, REFUSED[kind])
        if here in self.rules:
            return self._expected("expected the end of the clause", here)
        return self._text.error(
            token.start,
            f"this cannot be read as an expression: {token.text!r} does not continue it; mend it, or take it out",
        )

    def _created(self) -> tuple[str | None, Mapping[str, Any]]:
        """The name after CREATE TABLE, and the properties under WITH."""
        if not self._match_text_seq("CREATE"):
            return None, {}
        self._check_created()
        if not self._match_texts(("TABLE", "STREAM")):
            raise self._expected("only a table is created", "CREATE")
        self._check_created()
        parts: list[str] = []
        while not parts or self._match(TokenType.DOT):
            parts.append(self._name("CREATE TABLE has a name and a SELECT: expected a name", "CREATE").text)
        properties = self._properties() if self._match(TokenType.WITH) else {}
        if not self._match(TokenType.ALIAS):
            says = "CREATE TABLE has a name and a SELECT"
            if self._curr and self._curr.text == "(":
                says += (
                    f", without columns, which are the DataFrame's; to join {parts[-1]}, leave the statement out and give "
                    f"tables={{{parts[-1]!r}: bm.Pipeline().event_time(...).key_by(...).versions('1 day')}}"
                )
            raise self._expected(f"{says}: expected AS", "CREATE")
        return ".".join(parts), properties

    def _check_created(self) -> None:
        if self._curr and word_of(self._curr) in CREATED and not self._is_stream_of_joins():
            raise self._text.error(self._curr.start, f"{CREATED[word_of(self._curr)]}; {RULES['CREATE']}")

    def _is_stream_of_joins(self) -> bool:
        """Whether this is the STREAM of ``CREATE STREAM name AS SELECT ... JOIN ...`` without GROUP BY."""
        kinds = {token.token_type.name for token in self._tokens}
        return word_of(self._curr) == "STREAM" and "JOIN" in kinds and "GROUP_BY" not in kinds

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
        tree = self._operand(star=True)
        over = self._over() if self._curr and self._curr.token_type == TokenType.OVER else None
        if self._match(TokenType.ALIAS):
            if not self._curr or not is_name(self._curr):
                raise self._text.error(self._prev.start, "AS stands between an expression and one name: COUNT(*) AS n")
            return Item(tree, self._name("a name", "SELECT"), over)
        named = self._curr and self._curr.token_type.name in ("VAR", "IDENTIFIER") and self._clause() is None
        return Item(tree, self._name("a name", "SELECT") if named else None, over)

    def _over(self) -> Any:
        start = self._curr.start
        self._advance()
        return self._over_in_brackets(start)

    def _over_in_brackets(self, start: int) -> Over:
        self._need("OVER", "(")
        first, partition = self._curr or self._prev, list[Tree]()
        if self._match(TokenType.PARTITION_BY):
            partition = self._list(self._operand, "an expression under PARTITION BY is missing; take out a comma")
        if not self._match(TokenType.ORDER_BY):
            raise self._expected("expected ORDER BY and the event time", "OVER")
        order = self._list(self._ordered, "an expression under ORDER BY is missing; take out a comma")
        rows = Span(first.start, self._prev.end + 1)
        kind = next((word for word in ("ROWS", "RANGE") if self._match_text_seq(word)), None)
        frame = None if kind is None else self._frame(kind)
        self._need("OVER", ")")
        return Over(partition, order, rows, frame, start)

    def _ordered(self) -> tuple[Tree, bool, int]:
        start, tree = (self._curr or self._prev).start, self._operand()
        descends = self._match_text_seq("DESC")
        if not descends:
            self._match_text_seq("ASC")
        return tree, bool(descends), start

    def _frame(self, kind: str) -> Frame:
        between = self._match_text_seq("BETWEEN")
        frame = self._preceding(kind)
        if between:
            self._need("OVER", "AND", "CURRENT", "ROW")
        return frame

    def _preceding(self, kind: str) -> Frame:
        at = (self._curr or self._prev).start
        if self._match_text_seq("UNBOUNDED"):
            self._need("OVER", "PRECEDING")
            if kind == "ROWS":
                raise self._text.error(
                    at, "ROWS UNBOUNDED PRECEDING: rows of equal time count together; write RANGE, or no frame at all"
                )
            return Unbounded()
        if self._match_text_seq("CURRENT"):
            self._need("OVER", "ROW")
            return PrecedingRows(0) if kind == "ROWS" else Preceding(0)
        with self._text.at(at):
            frame = PrecedingRows(self._count()) if kind == "ROWS" else Preceding(self._interval())
        self._need("OVER", "PRECEDING")
        return frame

    def _count(self) -> int:
        token = self._curr
        if not token or token.token_type != TokenType.NUMBER or not token.text.isdecimal():
            raise self._expected("expected a whole number of rows", "OVER")
        self._advance()
        return int(token.text)

    def _interval(self) -> Duration:
        if not self._match_text_seq("INTERVAL"):
            raise self._expected("RANGE is a span of time: expected INTERVAL", "OVER")
        token = self._curr
        if not token or not token.text.isdecimal():
            raise self._expected("INTERVAL: expected a whole number, such as '10'", "OVER")
        self._advance()
        word = word_of(self._curr).removesuffix("S") if self._curr else ""
        if word not in _UNITS:
            raise self._expected(f"INTERVAL: expected a unit, one of {', '.join(_UNITS)}", "OVER")
        self._advance()
        return duration("INTERVAL", f"{token.text} {word.lower()}")

    def _nested(self) -> Rows:
        """A statement in brackets: SELECT, FROM and WHERE."""
        begins: dict[str, int] = {}
        parts: dict[str, Any] = {}
        self._advance()
        while not self._match(TokenType.R_PAREN):
            clause = self._clause() if self._curr else None
            if clause not in ("SELECT", "FROM", "WHERE") or clause in begins:
                raise self._expected(
                    "a SELECT within another has SELECT, FROM and WHERE, each once: expected ')'", "OVER"
                )
            begins[clause] = self._curr.start
            self._advance()
            parts[clause] = self._CLAUSES[clause](self)
        if "SELECT" not in parts or "FROM" not in parts or parts["FROM"][1]:
            raise self._text.error(next(iter(begins.values()), self._prev.start), REFUSED["SELECT"])
        self.inner = Inner(parts["SELECT"], parts.get("WHERE"), begins)
        rows: Rows = parts["FROM"][0]
        return rows

    def _sources(self) -> tuple[Rows, Sequence[Join]]:
        rows, joins = self._source(), list[Join]()
        while self._curr and word_of(self._curr) in ("JOIN", "INNER", *_OUTER):
            joins.append(self._join())
        return rows, joins

    def _join(self) -> Join:
        start = self._curr.start
        how = next((_OUTER[word] for word in _OUTER if self._match_text_seq(word)), None)
        self._match_text_seq("INNER" if how is None else "OUTER")
        self._need("JOIN", "JOIN")
        rows, within, grace = self._source(), None, None
        if self._match_text_seq("WITHIN"):
            within = self._within()
            if self._match_text_seq("GRACE"):
                self._need("JOIN", "PERIOD")
                grace = self._duration("GRACE PERIOD", "JOIN", least=0)
        self._need("JOIN", "ON")
        return Join(how or "inner", rows, within, grace, [*conjuncts(self._operand())], start)

    def _within(self) -> tuple[Duration, Duration]:
        if not self._match(TokenType.L_PAREN):
            both = self._duration("WITHIN", "JOIN", least=1)
            return both, both
        before = self._duration("WITHIN", "JOIN", least=0)
        self._need("JOIN", ",")
        after = self._duration("WITHIN", "JOIN", least=0)
        self._need("JOIN", ")")
        return before, after

    def _source(self) -> Rows:
        if self._curr.token_type == TokenType.L_PAREN and self._next and self._next.token_type == TokenType.SELECT:
            if self.inner is not None:
                raise self._text.error(self._next.start, REFUSED["SELECT"])
            rows = self._nested()
            self._match(TokenType.ALIAS)
            if self._curr and is_name(self._curr) and self._clause() is None:
                return Rows(rows.name, self._name("expected a name", "FROM").text)
            return rows
        name = self._name("expected the name of the source", "FROM").text
        while self._match(TokenType.DOT):
            name = self._name("expected a name", "FROM").text
        named = self._curr and self._curr.token_type.name in ("VAR", "IDENTIFIER") and self._clause() is None
        if self._match(TokenType.ALIAS) or (named and word_of(self._curr) != "WITHIN"):
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
            wanted = "expected TUMBLING, HOPPING or SESSION"
            if word_of(self._curr) == "SLIDING":
                wanted = f"windows anchored at rows are not in SQL, nor in ksqlDB: use .window(bm.AnchoredWindows('5 minutes')) of a pipeline; {wanted}"
            raise self._expected(wanted, "WINDOW")
        self._need("WINDOW", "(", *([] if kind == "SESSION" else ["SIZE"]))
        place = (self._curr or begins).start
        size = self._duration("the gap" if kind == "SESSION" else "SIZE", "WINDOW", least=1)
        with self._text.at(place):
            option: WindowOption = Sessions(size, late_rows="session") if kind == "SESSION" else FixedWindows(size)
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
                f"RETENTION {retention} is below size plus grace, {needed}: late rows would find no result; set at "
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
                f"ADVANCE BY {advance} is above SIZE {size}: rows between windows would be in no window; set at most {size}",
            )
        return SlidingWindows(size, advance)

    def _group_by(self) -> Sequence[Any]:
        made = self._list(self._group, "an expression under GROUP BY is missing; take out a comma")
        if self._curr and self._next and self._curr.token_type == TokenType.WITH:
            word = word_of(self._next)
            if word in _KEY_SETS:
                raise self._text.error(self._curr.start, f"WITH {word}: write GROUP BY {word} (region, city)")
        return made[0].expressions if len(made) == 1 and isinstance(made[0], exp.Tuple) else made  # GROUP BY (a, b)

    def _group(self) -> Any:
        """An expression that makes a group, or sets of them."""
        if self._curr.token_type.name not in _KEY_SETS:
            return self._operand()
        token = self._curr
        return KeySets(token.token_type.name.replace("_", " "), self._key_sets(), token.start)

    def _key_sets(self) -> Sequence[Sequence[Tree]]:
        """The sets of ROLLUP (...), CUBE (...) or GROUPING SETS (...)."""
        token, missing = self._curr, "an expression is missing; take out a comma"
        self._advance()
        self._need("GROUP_BY", "(")
        if token.token_type.name == "GROUPING_SETS":
            sets = [one for several in self._list(self._listed_sets, missing) for one in several]
        else:
            units = self._list(self._in_one_set, missing)
            if token.token_type.name == "CUBE" and len(units) > _WIDEST_CUBE:
                raise self._text.error(
                    token.start,
                    f"CUBE of {len(units)} has {2 ** len(units)} sets, and each row would be in a group of each; the most are 64: name "
                    "those that are read: GROUPING SETS ((a, b), (a), ())",
                )
            sizes = range(len(units), -1, -1)
            if token.token_type.name == "ROLLUP":
                chosen = [units[:size] for size in sizes]
            else:
                chosen = [[*some] for size in sizes for some in combinations(units, size)]
            sets = [[tree for unit in some for tree in unit] for some in chosen]
        self._need("GROUP_BY", ")")
        return sets

    def _listed_sets(self) -> Sequence[Sequence[Tree]]:
        """A set within GROUPING SETS, or those of ROLLUP and its like within it."""
        return self._key_sets() if self._curr.token_type.name in _KEY_SETS else [self._in_one_set()]

    def _in_one_set(self) -> Sequence[Tree]:
        """Expressions that are in a set together: (a, b), a or ()."""
        if self._curr.token_type == TokenType.L_PAREN and self._next and self._next.token_type == TokenType.R_PAREN:
            self._advance(2)
            return []
        tree = self._operand()
        while isinstance(tree, exp.Paren):
            tree = tree.this
        return tree.expressions if isinstance(tree, exp.Tuple) else [tree]

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
                "EMIT FINAL without WINDOW: no row is ever final; add WINDOW TUMBLING (SIZE 5 MINUTES) "
                "after FROM, or EMIT CHANGES",
            )
        return Emit(kind, "final")

    _CLAUSES: Mapping[str, Callable[[Any], Any]] = {
        "SELECT": _items,
        "FROM": _sources,
        "WINDOW": _windows,
        "WHERE": lambda self: self._operand(),
        "GROUP_BY": _group_by,
        "HAVING": lambda self: self._operand(),
        "EMIT": _emit,
    }

    def _list(self, one: Callable[[], T], missing: str) -> list[T]:
        begins, made = self._prev, list[T]()
        while not made or self._match(TokenType.COMMA):
            if not self._curr or self._curr.token_type == TokenType.COMMA or self._curr.token_type.name in _RESERVED:
                raise self._text.error(begins.start, missing)
            made.append(one())
        return made

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
