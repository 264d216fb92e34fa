"""Declarations before a query of Flink's: ``CREATE TABLE`` with a watermark and a key, and ``SET``."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import attrs
from sqlglot import exp
from sqlglot.tokens import TokenType  # type: ignore[attr-defined]

from beamish.durations import Duration
from beamish.statement.flink.times import interval_us, milliseconds
from beamish.statement.grammar.clauses import Name, Schema, Statement
from beamish.statement.grammar.statements import StatementParser
from beamish.statement.grammar.text import Span, Text, word_of
from beamish.watermarks import BoundedOutOfOrderness

ORDER = (
    "[CREATE TABLE ...;] [SET 'key' = 'value';] [INSERT INTO name] SELECT ... FROM ... [WHERE ...] [GROUP BY ...] [HAVING ...] "
    "[WINDOW ...] [QUALIFY ...]"
)
_FUNCTIONS = "TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '5' MINUTES))"
_INTERVALS = "AND o.ts BETWEEN p.ts - INTERVAL '1' HOUR AND p.ts"
RULES: Mapping[str, str] = {
    "FROM": f"write FROM t, FROM t AS a, FROM {_FUNCTIONS}, or a join",
    "FUNCTION": (
        "write TUMBLE(TABLE t, DESCRIPTOR(ts), size), HOP(TABLE t, DESCRIPTOR(ts), slide, size), CUMULATE(TABLE t, DESCRIPTOR(ts), "
        "step, size), each with an offset or not, or SESSION(TABLE t PARTITION BY k, DESCRIPTOR(ts), gap)"
    ),
    "JOIN": (
        f"write FROM orders o JOIN payments p ON o.id = p.id {_INTERVALS}; JOIN rates FOR SYSTEM_TIME AS OF o.ts AS r ON o.k = r.k; "
        f"or a join of two {_FUNCTIONS} ON ... AND a.window_start = b.window_start AND a.window_end = b.window_end"
    ),
    "OVER": (
        "write SUM(x) OVER (PARTITION BY k ORDER BY ts RANGE BETWEEN INTERVAL '1' HOUR PRECEDING AND CURRENT ROW), ROWS BETWEEN 10 "
        "PRECEDING AND CURRENT ROW, or neither for all rows so far"
    ),
    "CREATE": "write CREATE TABLE t (k STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (...)",
    "SET": "write SET 'table.exec.emit.early-fire.enabled' = 'true'",
    "INTERVAL": "write INTERVAL '5' MINUTES, INTERVAL '0.5' SECOND or INTERVAL '1:30' HOUR TO MINUTE",
    "GROUP_BY": "write GROUP BY TUMBLE(ts, size), HOP(ts, slide, size) or SESSION(ts, gap), and columns",
    "WINDOW": "write WINDOW w AS (PARTITION BY k ORDER BY ts), and SUM(x) OVER w",
}
EMIT = "table.exec.emit."
SETTINGS = tuple(
    EMIT + name
    for name in ("early-fire.enabled", "early-fire.delay", "late-fire.enabled", "late-fire.delay", "allow-lateness")
)
WHOLE, FRACTION = "whole", "fraction"
KINDS: Mapping[str, str] = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INT", "INTEGER", "BIGINT"), WHOLE),
    **dict.fromkeys(("FLOAT", "DOUBLE", "DECIMAL", "DEC", "NUMERIC", "REAL"), FRACTION),
}
VIEW = (
    "a view is a query with GROUP BY window_start, window_end; write other queries each by itself, and give the second one the first "
    "one's output: first.then(second) of their pipelines"
)


class Declarations(StatementParser):
    """Parses what declares sources and settings; a query is parsed by its subclass."""

    order, rules = ORDER, RULES
    several = True

    def __init__(self, text: Text, aggregates: Collection[str]) -> None:
        super().__init__(text, aggregates)
        self._schemas: dict[str, Schema] = {}
        self._kinds: dict[str, str | None] = {}
        self._settings: dict[str, tuple[str, int]] = {}
        self._views: dict[str, Statement] = {}
        self._processing: set[str] = set()

    def _query(self, name: str | None, properties: Mapping[str, Any]) -> Statement:
        """The query."""
        raise NotImplementedError

    def _view(self, start: int) -> Statement:
        """The query of a view."""
        raise NotImplementedError

    def _parse_statement(self) -> Any:
        if not self._curr or self._match(TokenType.SEMICOLON):
            return exp.Null()
        if "statement" in vars(self):
            raise self._text.error(self._curr.start, "a second query: bm.sql takes one; give each by itself")
        if self._match_text_seq("SET"):
            self._set()
            return exp.Null()
        name, properties, is_query = self._target()
        if is_query:
            self.statement = self._query(name, properties)
        return exp.Null()

    def _set(self) -> None:
        first, key = self._curr, ""
        while self._curr and self._curr.token_type != TokenType.EQ:
            key += self._curr.text
            self._advance()
        self._need("SET", "=")
        value = ""
        while self._curr:
            value += self._curr.text
            self._advance()
        if first is None or key not in SETTINGS:
            raise self._text.error(
                (first or self._prev).start,
                f"{key}: a setting of Flink's cluster or planner, which has no effect here; leave it out. Those that are read are "
                f"{', '.join(SETTINGS)}",
            )
        self._settings[key] = (value, first.start)

    def _target(self) -> tuple[str | None, Mapping[str, Any], bool]:
        """The table that is written, its properties, and whether a query follows: else a source is declared."""
        if self._match(TokenType.INSERT):
            self._need("INSERT", "INTO")
            name = self._path("expected the name of a table", "INSERT")
            if self._curr and self._curr.token_type == TokenType.L_PAREN:
                self._skip_brackets()
            return name.text, {}, True
        if not self._match_text_seq("CREATE"):
            return None, {}, True
        self._match_text_seq("TEMPORARY")
        start = (self._curr or self._prev).start
        if self._match_text_seq("VIEW"):
            name = self._path("CREATE VIEW: expected a name", "CREATE")
            if not self._match(TokenType.ALIAS):
                raise self._expected("CREATE VIEW: expected AS", "CREATE")
            self._views[name.text.lower()] = self._view(start)
            return None, {}, False
        self._need("CREATE", "TABLE")
        self._match_text_seq("IF", "NOT", "EXISTS")
        name = self._path("CREATE TABLE: expected a name", "CREATE")
        declares = self._curr is not None and self._curr.token_type == TokenType.L_PAREN
        columns = self._columns(name) if declares else Schema(name, None, None, ())
        if self._match_text_seq("COMMENT"):
            self._advance()
        if self._match_text_seq("PARTITIONED", "BY"):
            self._skip_brackets()
        options = self._options() if self._match(TokenType.WITH) else {}
        if self._match(TokenType.ALIAS):
            return name.text, options, True
        if self._curr or not declares:
            raise self._expected("expected the end of the declaration, or AS SELECT", "CREATE")
        idle = options.get("scan.watermark.idle-timeout")
        if idle is not None and isinstance(columns.watermark, BoundedOutOfOrderness):
            with self._text.at(name.start):
                timeout = Duration(milliseconds(idle) * 1000)
                columns = attrs.evolve(columns, watermark=attrs.evolve(columns.watermark, idle_timeout=timeout))
        if name.text.lower() in self._schemas:
            raise self._text.error(name.start, f"{name.text} is declared twice; take one out")
        self._schemas[name.text.lower()] = columns
        return None, {}, False

    def _options(self) -> Mapping[str, str]:
        """The properties under WITH, as far as they are written out."""
        first = self._curr
        self._skip_brackets()
        words = self._text.words(Span(first.start, self._prev.end + 1))
        found: dict[str, str] = {}
        for key, sign, value in zip(words, words[1:], words[2:], strict=False):
            if sign.token_type == TokenType.EQ:
                found[key.text] = value.text
        return found

    def _skip_brackets(self) -> None:
        depth = 0
        while self._curr:
            depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(self._curr.token_type, 0)
            self._advance()
            if depth == 0:
                return

    # CREATE TABLE.

    def _columns(self, name: Name) -> Schema:
        """The columns of a table, its watermark and its key."""
        self._need("CREATE", "(")
        schema = Schema(name, None, None, ())
        while self._curr and not self._match(TokenType.R_PAREN):
            if self._match_text_seq("WATERMARK"):
                schema = self._watermark(schema)
            elif word_of(self._curr) in ("PRIMARY KEY", "CONSTRAINT"):
                schema = attrs.evolve(schema, keys=self._primary_key())
            else:
                schema = self._column_declared(schema)
            self._match(TokenType.COMMA)
        return schema

    def _watermark(self, schema: Schema) -> Schema:
        self._need("CREATE", "FOR")
        time = self._name("WATERMARK FOR: expected the event-time column", "CREATE")
        if not self._match(TokenType.ALIAS):
            raise self._expected("WATERMARK FOR ts: expected AS", "CREATE")
        start = (self._curr or self._prev).start
        column = self._name("WATERMARK: expected the column, such as ts - INTERVAL '5' SECOND", "CREATE")
        delay = self._interval() if self._match(TokenType.DASH) else Duration(0)
        ends = self._curr is None or self._curr.token_type in (TokenType.COMMA, TokenType.R_PAREN)
        if column.text != time.text or not ends:
            raise self._text.error(
                start,
                f"WATERMARK FOR {time.text}: it is {time.text}, or {time.text} minus an interval; another policy is an argument: "
                "bm.sql(..., event_time=, watermark=)",
            )
        if schema.event_time is not None:
            raise self._text.error(time.start, "WATERMARK is there twice; take one out")
        with self._text.at(start):
            return attrs.evolve(schema, event_time=time.text, watermark=BoundedOutOfOrderness(delay))

    def _primary_key(self) -> Sequence[str]:
        if self._match_text_seq("CONSTRAINT"):
            self._name("CONSTRAINT: expected its name", "CREATE")
        if not self._match(TokenType.PRIMARY_KEY):
            raise self._expected("expected PRIMARY KEY", "CREATE")
        self._need("CREATE", "(")
        keys = self._list(lambda: self._name("PRIMARY KEY: expected a column", "CREATE").text, "PRIMARY KEY is empty")
        self._need("CREATE", ")")
        if self._match_text_seq("NOT"):
            self._need("CREATE", "ENFORCED")
        return keys

    def _is_of_kind(self, name: str, kind: str | None) -> None:
        """Note whether a column is of whole numbers; it is unknown if two sources differ."""
        known = self._kinds.setdefault(name.lower(), kind)
        self._kinds[name.lower()] = kind if known == kind else None

    def _column_declared(self, schema: Schema) -> Schema:
        if self._match(TokenType.DOT):  # (...) of an example
            return schema
        name = self._name("expected the name of a column", "CREATE")
        if self._match(TokenType.ALIAS):
            if not self._curr or word_of(self._curr) != "PROCTIME":
                raise self._text.error(
                    name.start,
                    f"{name.text} is computed: compute it in the DataFrame: df.withColumn({name.text!r}, ...)",
                )
            self._processing.add(name.text.lower())
            schema = attrs.evolve(schema, processing=(*schema.processing, name.text.lower()))
        self._is_of_kind(name.text, KINDS.get(self._curr.text.upper()) if self._curr else None)
        depth = 0
        while self._curr:
            sign = self._curr.token_type
            depth += {TokenType.L_PAREN: 1, TokenType.LT: 1, TokenType.R_PAREN: -1, TokenType.GT: -1}.get(sign, 0)
            if depth < 0 or (depth == 0 and sign == TokenType.COMMA):
                break
            if sign == TokenType.PRIMARY_KEY:
                schema = attrs.evolve(schema, keys=(name.text,))
            self._advance()
        return schema

    def _path(self, what: str, clause: str) -> Name:
        """The last of names with dots between them."""
        name = self._name(what, clause)
        while self._match(TokenType.DOT):
            name = self._name(what, clause)
        return name

    def _interval(self) -> Duration:
        """An interval of fixed length."""
        negative = self._match(TokenType.DASH)
        if not self._match_text_seq("INTERVAL"):
            raise self._expected("expected INTERVAL", "INTERVAL")
        negative = bool(self._match(TokenType.DASH)) != bool(negative)
        value, at = self._curr, (self._curr or self._prev).start
        if not value or value.token_type not in (TokenType.STRING, TokenType.NUMBER):
            raise self._expected("expected a value, such as '5'", "INTERVAL")
        self._advance()
        unit, last = self._unit(), None
        if self._match_text_seq("TO"):
            last = self._unit()
        found = interval_us(value.text, unit, last)
        if found is None:
            said = unit if last is None else f"{unit} TO {last}"
            raise self._text.error(
                at,
                f"INTERVAL '{value.text}' {said}: not of a fixed length, or not of this form; {self.rules['INTERVAL']}",
            )
        return Duration(-found if negative else found)

    def _unit(self) -> str:
        word = self._name("expected a unit", "INTERVAL").text.upper()
        if self._curr and self._curr.token_type == TokenType.L_PAREN:  # SECOND(3)
            self._skip_brackets()
        return word
