"""The grammar of Flink's SQL: it fills the same statement as that of ksqlDB (statement/grammar).

Its declarations come before the query: ``CREATE TABLE`` (declarations.py) and ``SET``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import attrs
from sqlglot import exp
from sqlglot.tokens import TokenType  # type: ignore[attr-defined]

from beamish.durations import Duration
from beamish.statement.flink.declarations import EMIT, FRACTION, KINDS, VIEW, WHOLE
from beamish.statement.flink.joins import Pending, joins_of
from beamish.statement.flink.times import milliseconds
from beamish.statement.flink.windows import ARGUMENTS, GroupWindow, WindowParser
from beamish.statement.grammar.aggregates import calls_in
from beamish.statement.grammar.clauses import (
    FLINK,
    REFUSED,
    Emit,
    How,
    Item,
    KeySets,
    Name,
    Over,
    Refinement,
    Rows,
    Statement,
    Windows,
)
from beamish.statement.grammar.statements import Inner
from beamish.statement.grammar.text import Span, Text, Tree, call_of, function_of, normal, span_of, word_of
from beamish.windows import Sessions

_AUXILIARY: Mapping[str, str] = {"START": "window_start", "END": "window_end", "ROWTIME": "window_time"}
_OUTER: Mapping[str, How] = {"LEFT": "left", "RIGHT": "right", "FULL": "full"}
_SAME_KIND = (exp.Neg, exp.Paren, exp.Abs)
_OF_BOTH = (exp.Add, exp.Sub, exp.Mul, exp.Mod)
_MEANS = ("AVG", "STDDEV", "STDDEV_SAMP", "STDDEV_POP", "VAR_POP", "VAR_SAMP", "VARIANCE")
"""Aggregates whose value in Flink has the type of their argument."""
_OTHERWISE: Mapping[str, str] = {
    "REGEXP_EXTRACT": "without a group Flink gives the whole match and Spark the first group; write the group: REGEXP_EXTRACT(s, regex, 0)",
    "SPLIT": "Flink splits at a text and Spark at a regular expression; compute it in the DataFrame",
    "TO_TIMESTAMP_LTZ": "Flink's is of a number; write TIMESTAMP_MILLIS(n) or TIMESTAMP_SECONDS(n)",
}


_ONLY_GROUPS = "EMITONLYONUPDATE is of a query with GROUP BY window_start, window_end alone; leave it out"
_LITERALS = re.compile(r"--[^\n]*|/\*.*?\*/|`[^`]*`|(?P<text>'(?:[^']|'')*')|(?P<quote>\")", re.DOTALL)


@attrs.frozen(eq=False)
class NamedOver:
    """OVER with the name of a window that a later clause defines."""

    name: Name
    start: int


class FlinkParser(WindowParser):
    """Parses Flink's statements; after ``parse`` the query is ``statement``."""

    clauses = ("SELECT", "FROM", "WHERE", "GROUP_BY", "HAVING", "WINDOW", "QUALIFY")

    def __init__(self, text: Text, aggregates: Collection[str]) -> None:
        super().__init__(text, {*aggregates, "STDDEV_SAMP"})
        self._bounds_of: list[tuple[str, str, int]] = []
        self._orders = False

    def check_literals(self) -> None:
        """Refuse a backslash within a literal, which Spark reads otherwise, and text in double quotes."""
        for found in _LITERALS.finditer(self._text.sql):
            if found["quote"]:
                raise self._text.error(
                    found.start(), "\": Flink quotes texts as 'x' and names as `x`; write one of the two"
                )
            if found["text"] and "\\" in found["text"]:
                raise self._text.error(
                    found.start() + found["text"].index("\\"),
                    "a backslash is itself in Flink, and an escape in Spark: write it as CONCAT('a', CHR(92), 'b')",
                )

    # The query.

    def _query(self, name: str | None, properties: Mapping[str, Any]) -> Statement:
        if not self._curr or self._curr.token_type != TokenType.SELECT:
            raise self._stray("") if self._curr else self._expected("expected SELECT", "SELECT")
        begins, parts, last = self._read_clauses()
        if "FROM" not in parts:
            raise self._text.error(last.start, f"FROM is missing: it names the source; the clauses are {self.order}")
        defined = parts.get("WINDOW", {})
        if "WINDOW" in begins:
            del begins["WINDOW"]
        outer: dict[str, Any] = {}
        if self.inner is not None:
            inner = attrs.evolve(self.inner, items=self._defined(self.inner.items, defined))
            outer = self._outer(inner, parts, begins)
        elif "QUALIFY" in begins:
            if all(item.over is None for item in parts["SELECT"]):
                raise self._text.error(
                    begins["QUALIFY"].start,
                    "QUALIFY without OVER: write conditions on rows under WHERE, those on groups under HAVING",
                )
            outer = {"outer": parts["QUALIFY"]}
            del begins["QUALIFY"]
        if "QUALIFY" in begins:
            raise self._text.error(begins["QUALIFY"].start, "QUALIFY around a SELECT: write WHERE")
        rows, pending = parts["FROM"]
        items = self._defined(parts["SELECT"], defined)
        emit_kind: Any = "push" if name is None else "persistent"
        read = Statement(
            name,
            properties,
            {clause: token.start for clause, token in begins.items()},
            items,
            rows,
            (),
            Windows(),
            parts.get("WHERE"),
            parts.get("GROUP_BY", ()),
            parts.get("HAVING"),
            Emit(emit_kind, "final"),
            last.start,
            schemas=self._schemas,
            dialect=FLINK,
            **outer,
        )
        if pending:
            self._check_settings(None)
            if any(one.updated_within is not None for one in (rows, *(join.rows for join in pending))):
                raise self._text.error(begins["SELECT"].start, _ONLY_GROUPS)
            rows, joins, filters = joins_of(self._text, read, pending)
            changes = all((join.within is not None and join.how == "inner") or join.unbounded for join in joins)
            emit = Emit(emit_kind, "changes" if changes else "final")
            return attrs.evolve(read, rows=rows, joins=joins, where=None, filters=filters, emit=emit)
        if read.is_over:
            self._check_settings(None)
            return self._over_windows(read)
        return self._grouped(read)

    def _view(self, start: int) -> Statement:
        begins, parts, last = self._read_clauses()
        if (
            not {"SELECT", "FROM", "GROUP_BY"} <= {*parts} <= {"SELECT", "FROM", "WHERE", "GROUP_BY"}
            or parts["FROM"][1]
        ):
            raise self._text.error(start, VIEW)
        groups = self._groups({clause: token.start for clause, token in begins.items()}, parts, last.start).groups
        assert groups is not None  # noqa: S101 - it has GROUP BY
        return groups

    def _grouped(self, read: Statement) -> Statement:
        """A query with GROUP BY, or over one group of all rows."""
        if read.rows.groups is not None and (read.rows.windows is None or "GROUP_BY" not in read.begins or read.where):
            raise self._text.error(
                read.begins["SELECT"],
                "groups of windows are numbered by ROW_NUMBER(), or grouped again in windows, without WHERE",
            )
        group = next((one for one in read.group_by if isinstance(one, GroupWindow)), None)
        keys = [one for one in read.group_by if not isinstance(one, GroupWindow)]
        if len(read.group_by) - len(keys) > 1:
            raise self._text.error(read.begins["GROUP_BY"], "GROUP BY has one window; write one statement for each")
        self._check_bounds_of(group)
        self._check_settings(group)
        kind = read.emit.kind
        if group is not None:
            if read.rows.windows is not None:
                raise self._text.error(group.start, f"{group.kind} under GROUP BY, over windows: take one of them out")
            rows = attrs.evolve(read.rows, time=group.time)
            emit, lateness = self._emit_settings(read.emit.kind)
            return attrs.evolve(read, rows=rows, group_by=keys, windows=Windows(group.option, lateness), emit=emit)
        windows = read.rows.windows
        if read.rows.updated_within is not None and "GROUP_BY" not in read.begins:
            raise self._text.error(read.begins["SELECT"], _ONLY_GROUPS)
        if windows is None:
            if "GROUP_BY" not in read.begins and not any(calls_in(item.tree) for item in read.items):
                raise self._text.error(
                    read.begins["SELECT"],
                    "neither GROUP BY, an aggregate, OVER nor a join: such a query is Spark's: df.select(...)",
                )
            return attrs.evolve(read, emit=Emit(kind, "changes", retracting=True))
        if "GROUP_BY" not in read.begins:
            for call in (call for item in read.items for call in calls_in(item.tree)):
                raise self._text.error(
                    call.span.start, f"{call.name} over windows: GROUP BY window_start, window_end is missing; add it"
                )
            items = [
                one
                for item in read.items
                for one in ([item, *self._bounds_beside(item)] if item.tree.is_star else [item])
            ]
            refinement: Refinement = "final" if windows.merging else "changes"
            return attrs.evolve(read, items=items, windows=Windows(windows), emit=Emit(kind, refinement))
        keys = self._without_bounds(read, keys, read.begins["GROUP_BY"], "GROUP BY")
        self._check_partition(read, keys)
        return attrs.evolve(read, group_by=keys, windows=Windows(windows))

    def _over_windows(self, read: Statement) -> Statement:
        """A query with OVER; of rows with windows the first ones of each."""
        if read.rows.updated_within is not None:
            raise self._text.error(read.begins["SELECT"], _ONLY_GROUPS)
        if read.rows.groups is not None and (
            read.outer is None or read.where is not None or read.rows.windows is not None
        ):
            raise self._text.error(
                read.begins["SELECT"],
                "around a GROUP BY rows are numbered by ROW_NUMBER() in one SELECT, and WHERE n <= 3 stands in another around it",
            )
        if read.rows.groups is not None and read.rows.windows is None:
            return read
        if read.rows.windows is None:
            first = read.outer is not None
            return attrs.evolve(read, emit=Emit(read.emit.kind, "changes" if first else "final"))
        items: list[Item] = []
        for item in read.items:
            if item.over is None:
                items += [item, *self._bounds_beside(item)] if item.tree.is_star else [item]
                continue
            partition = self._without_bounds(read, item.over.partition, item.over.start, "PARTITION BY")
            items.append(attrs.evolve(item, over=attrs.evolve(item.over, partition=partition)))
            self._check_partition(read, partition)
        if read.outer is None:
            raise self._text.error(
                read.begins["SELECT"],
                "OVER within windows: rows are numbered by ROW_NUMBER() in an inner SELECT, and WHERE n <= 3 stands around it",
            )
        return attrs.evolve(read, items=items, windows=Windows(read.rows.windows))

    def _bounds_beside(self, star: Item) -> Iterator[Item]:
        """The bounds of the window, which ``*`` has too."""
        for word in FLINK.bounds:
            column = exp.column(word.lower())
            for node in (column, column.this):
                node.meta["span"] = span_of(star.tree)
            yield Item(column, None)

    def _without_bounds(
        self, read: Statement, trees: Sequence[Tree | KeySets], at: int, clause: str
    ) -> list[Tree | KeySets]:
        """The expressions but the bounds of windows, both of which are needed, in each set."""
        owner = read.rows.alias.lower()
        named = {bound for tree in trees if (bound := self._bound(tree, owner)) is not None}
        for one in trees:
            if isinstance(one, KeySets):
                of_sets = [{self._bound(tree, owner) for tree in some} - {None} for some in one.sets]
                shared = set[str | None].intersection(*of_sets)
                if set[str | None].union(*of_sets) - shared - named:
                    raise self._text.error(
                        one.start,
                        f"{one.word} with a window's bounds in some of its sets: each group is of a window: write GROUP BY window_start, "
                        f"window_end, {one.word} (...)",
                    )
                named |= {bound for bound in shared if bound is not None}
        if not {"WINDOW_START", "WINDOW_END"} <= named:
            raise self._text.error(
                at, f"{clause} over a window function names its windows: {clause} window_start, window_end, ..."
            )
        return [
            attrs.evolve(one, sets=[[tree for tree in some if self._bound(tree, owner) is None] for some in one.sets])
            if isinstance(one, KeySets)
            else one
            for one in trees
            if self._bound(one, owner) is None
        ]

    def _bound(self, tree: Tree, owner: str) -> str | None:
        """The bound of the window that a column is; None: it is another."""
        if not isinstance(tree, exp.Column):
            return None
        *qualifier, name = (part.name for part in tree.parts)
        own = not qualifier or [one.lower() for one in qualifier] == [owner]
        return name.upper() if own and name.upper() in FLINK.bounds else None

    def _check_partition(self, read: Statement, keys: Sequence[Tree | KeySets]) -> None:
        """Check that sessions are of the groups (SqlError: a session has rows of several groups, or the other way round)."""
        if not isinstance(read.rows.windows, Sessions):
            return
        for one in keys:
            if isinstance(one, KeySets):
                raise self._text.error(
                    one.start,
                    f"{one.word} over SESSION: a session is of the columns after its PARTITION BY, and totals have others; write a statement "
                    "for each set",
                )
        owners = (read.rows.alias.lower(), read.rows.name.lower())
        both = (keys, read.rows.partition or ())
        ours, theirs = ({normal(self._text, span_of(tree), owners) for tree in trees} for trees in both)
        if ours != theirs:
            raise self._text.error(
                read.begins.get("GROUP_BY", read.begins["SELECT"]),
                f"groups of {sorted(ours)} in sessions of {sorted(theirs)}: a session is of a group; write the same columns after "
                "PARTITION BY as after window_start, window_end",
            )

    def _check_bounds_of(self, group: GroupWindow | None) -> None:
        """Check TUMBLE_START(...) and its like against the window under GROUP BY."""
        for kind, said, at in self._bounds_of:
            if group is None or (group.kind, group.said) != (kind, said):
                under = "missing" if group is None else f"{group.kind}({group.said})"
                raise self._text.error(
                    at, f"{kind}_...({said}): its arguments are those of the window under GROUP BY: {under}"
                )

    # SET.

    def _check_settings(self, group: GroupWindow | None) -> None:
        """Check that settings of the output have a window that they are of."""
        for key, (_, at) in self._settings.items():
            if group is None:
                raise self._text.error(
                    at,
                    f"{key}: in Flink it is of windows under GROUP BY alone: GROUP BY TUMBLE(ts, INTERVAL '1' HOUR); leave it out",
                )
            if isinstance(group.option, Sessions) and "-fire" in key:
                raise self._text.error(at, f"{key}: in Flink sessions do not fire early or late; leave it out")

    def _emit_settings(self, kind: Any) -> tuple[Emit, Duration | None]:
        """The output of a window under GROUP BY, and its allowed lateness."""
        lateness = self._setting_duration("allow-lateness")
        fires: dict[str, Duration | None] = {}
        for name in ("early", "late"):
            value, at = self._settings.get(f"{EMIT}{name}-fire.enabled", ("false", 0))
            if value.lower() not in ("true", "false"):
                raise self._text.error(at, f"{EMIT}{name}-fire.enabled = {value}: must be 'true' or 'false'")
            delay = self._setting_duration(f"{name}-fire.delay")
            fires[name] = (delay or Duration(0)) if value.lower() == "true" else None
            if fires[name] is not None and delay is None:
                raise self._text.error(
                    at, f"{EMIT}{name}-fire.enabled needs {EMIT}{name}-fire.delay: how often, '0 ms' for each row"
                )
        if fires["late"] is not None and not lateness:
            at = self._settings[f"{EMIT}late-fire.enabled"][1]
            raise self._text.error(at, f"{EMIT}late-fire.enabled needs {EMIT}allow-lateness: how late rows may be")
        if fires["late"] is None:
            lateness = None  # as in Flink, where a late row is emitted by a late trigger alone
        if fires["early"] is None and fires["late"] is None:
            return Emit(kind, "final"), None
        return Emit(kind, "changes", retracting=True, **fires), lateness

    def _setting_duration(self, name: str) -> Duration | None:
        value, at = self._settings.get(EMIT + name, (None, 0))
        if value is None:
            return None
        with self._text.at(at):
            return Duration(milliseconds(value) * 1000)

    # Clauses.

    def _items(self) -> Sequence[Item]:
        self._hint()
        return super()._items()

    def _sources(self) -> Any:
        rows, pending = self._one_source()[0], list[Pending]()
        while self._curr:
            start = self._curr.start
            if self._match(TokenType.COMMA):
                pending.append(Pending("inner", *self._one_source(), None, start))
                continue
            if word_of(self._curr) not in ("JOIN", "INNER", *_OUTER):
                break
            how = next((_OUTER[word] for word in _OUTER if self._match_text_seq(word)), None)
            self._match_text_seq("INNER" if how is None else "OUTER")
            self._need("JOIN", "JOIN")
            other = self._one_source()
            self._need("JOIN", "ON")
            pending.append(Pending(how or "inner", *other, self._operand(), start))
        return rows, pending

    def _one_source(self) -> tuple[Rows, Name | None]:
        """A source, and the column at whose time it is read, if it is."""
        if not self._curr:
            raise self._expected("expected the name of a source", "FROM")
        following = self._next.token_type if self._next else None
        if self._curr.token_type == TokenType.LATERAL:
            raise self._text.error(self._curr.start, REFUSED["LATERAL"])
        if self._curr.token_type == TokenType.L_PAREN and following == TokenType.SELECT:
            rows = self._sub_select()
        elif self._curr.token_type == TokenType.TABLE and following == TokenType.L_PAREN:
            self._advance(2)
            rows = self._windowed()
            self._need("FUNCTION", ")")
        elif word_of(self._curr) in ARGUMENTS and following == TokenType.L_PAREN:
            rows = self._windowed()
        else:
            name = self._path("expected the name of the source", "FROM").text
            self._hint()
            rows = Rows(name, name, groups=self._views.get(name.lower()))
        as_of = self._as_of()
        if self._curr and word_of(self._curr) == "MATCH_RECOGNIZE":
            raise self._text.error(
                self._curr.start, "MATCH_RECOGNIZE: rows are not matched against patterns here; leave it out"
            )
        named = self._curr and self._curr.token_type.name in ("VAR", "IDENTIFIER") and self._clause() is None
        if self._match(TokenType.ALIAS) or named:
            rows = attrs.evolve(rows, alias=self._name("expected a name after AS", "FROM").text)
        return rows, as_of

    def _as_of(self) -> Name | None:
        if not self._match_text_seq("FOR"):
            return None
        self._need("JOIN", "SYSTEM_TIME", "AS", "OF")
        name = self._name("FOR SYSTEM_TIME AS OF: expected the event time of the first source", "JOIN")
        while self._match(TokenType.DOT):
            name = self._name("expected a column", "JOIN")
        return name

    def _sub_select(self) -> Rows:
        """A query in brackets: one that numbers rows, or takes them all."""
        begins: dict[str, int] = {}
        parts: dict[str, Any] = {}
        self._advance()
        while not self._match(TokenType.R_PAREN):
            clause = self._clause() if self._curr else None
            if clause not in ("SELECT", "FROM", "WHERE", "GROUP_BY") or clause in begins:
                raise self._expected(
                    "a SELECT within another has SELECT, FROM, WHERE and GROUP BY, each once: expected ')'", "OVER"
                )
            begins[clause] = self._curr.start
            self._advance()
            parts[clause] = self._CLAUSES[clause](self)
        if "SELECT" not in parts or "FROM" not in parts or parts["FROM"][1]:
            raise self._text.error(next(iter(begins.values()), self._prev.start), REFUSED["SELECT"])
        rows: Rows = parts["FROM"][0]
        items = parts["SELECT"]
        if "GROUP_BY" in begins:
            return self._groups(begins, parts, self._prev.start)
        if len(items) == 1 and items[0].tree.is_star and items[0].over is None and "WHERE" not in parts:
            return rows
        if self.inner is not None:
            raise self._text.error(begins["SELECT"], REFUSED["SELECT"])
        self.inner = Inner(items, parts.get("WHERE"), begins)
        return rows

    def _groups(self, begins: Mapping[str, int], parts: Mapping[str, Any], end: int) -> Rows:
        """The groups of a query in brackets, or of a view."""
        rows, condition = parts["FROM"][0], parts.get("WHERE")
        emit = Emit("push", "final")
        read = Statement(
            None,
            {},
            begins,
            parts["SELECT"],
            rows,
            (),
            Windows(),
            condition,
            parts["GROUP_BY"],
            None,
            emit,
            end,
            dialect=FLINK,
        )
        groups = self._grouped(read)
        if rows.updated_within is not None:
            raise self._text.error(begins["SELECT"], _ONLY_GROUPS)
        if (
            rows.groups is not None
            or self.inner is not None
            or groups.windows.option.is_all_of_time
            or groups.emit.refinement != "final"
        ):
            raise self._text.error(begins["SELECT"], f"groups are numbered in windows alone: {REFUSED['SELECT']}")
        for item in groups.items:
            if item.alias is not None:
                self._is_of_kind(item.alias.text, self._kind(item.tree))
        made: Rows = attrs.evolve(rows, windows=None, groups=groups)
        return made

    def _parse_function_call(self, *args: Any, **options: Any) -> Any:
        word = word_of(self._curr) if self._curr else ""
        kind, _, which = word.rpartition("_")
        called = self._next and self._next.token_type == TokenType.L_PAREN
        if called and kind in ("TUMBLE", "HOP", "SESSION") and which in _AUXILIARY:
            start = self._curr.start
            self._advance()
            said = self._group_arguments()[2]
            self._bounds_of.append((kind, said, start))
            column = exp.column(_AUXILIARY[which])
            for node in (column, column.this):
                node.meta["span"] = Span(start, self._prev.end + 1)
            return column
        return super()._parse_function_call(*args, **options)

    def _named_windows(self) -> Mapping[str, Over]:
        """WINDOW w AS (...), ..."""
        found: dict[str, Over] = {}
        while not found or self._match(TokenType.COMMA):
            name = self._name("expected a name", "WINDOW").text
            if not self._match(TokenType.ALIAS):
                raise self._expected("expected AS", "WINDOW")
            found[name.lower()] = self._over_in_brackets(self._prev.start)
        return found

    def _over(self) -> Any:
        start = self._curr.start
        if self._next and self._next.token_type != TokenType.L_PAREN:
            self._advance()
            return NamedOver(self._name("expected the name of a window, or (", "OVER"), start)
        return super()._over()

    def _ordered(self) -> tuple[Tree, bool, int]:
        self._orders = True
        made = super()._ordered()
        self._orders = False
        return made

    def _defined(self, items: Sequence[Item], windows: Mapping[str, Over]) -> list[Item]:
        """The items with the windows that their OVER names."""
        made = []
        for item in items:
            over: Any = item.over
            if isinstance(over, NamedOver):
                if over.name.text.lower() not in windows:
                    raise self._text.error(
                        over.name.start, f"OVER {over.name.text}: no such window is defined; {self.rules['WINDOW']}"
                    )
                over = attrs.evolve(windows[over.name.text.lower()], start=over.start)
            made.append(attrs.evolve(item, over=over))
        return made

    _CLAUSES: Mapping[str, Callable[[Any], Any]] = {
        "SELECT": lambda self: self._items(),
        "FROM": _sources,
        "WHERE": lambda self: self._operand(),
        "GROUP_BY": lambda self: self._group_by(),
        "HAVING": lambda self: self._operand(),
        "WINDOW": _named_windows,
        "QUALIFY": lambda self: self._operand(),
    }

    # Expressions.

    def _combined(self, kind: type, this: Tree, other: Tree) -> Tree:
        if kind is not exp.Div:
            return super()._combined(kind, this, other)
        kinds = {self._kind(this), self._kind(other)}
        if kinds != {WHOLE} and FRACTION not in kinds:
            raise self._text.error(
                span_of(this).start,
                f"{self._text[span_of(this)]} / {self._text[span_of(other)]}: of whole numbers Flink's result is whole and Spark's is not: "
                "declare the columns in CREATE TABLE, CAST one to DOUBLE, or write a DIV b",
            )
        return super()._combined(exp.IntDiv if kinds == {WHOLE} else kind, this, other)

    def _kind(self, tree: Tree) -> str | None:
        """Whether numbers are whole or have a fraction; None: unknown."""
        call = call_of(tree)
        if call is not None:
            counts = call.name in ("COUNT", "WHOLE AVG") or not call.args
            return WHOLE if counts else self._kind(call.args[0])
        if isinstance(tree, exp.Column):
            return self._kinds.get(tree.name.lower())
        if isinstance(tree, exp.Literal):
            return None if tree.is_string else WHOLE if tree.name.isdecimal() else FRACTION
        if isinstance(tree, exp.Cast):
            return KINDS.get({"TEXT": ""}.get(tree.to.this.name, tree.to.this.name))
        if isinstance(tree, _SAME_KIND):
            return self._kind(tree.this)
        if isinstance(tree, exp.IntDiv):
            return WHOLE
        if isinstance(tree, exp.Div):
            return FRACTION
        if isinstance(tree, _OF_BOTH):
            kinds = {self._kind(tree.this), self._kind(tree.expression)}
            return FRACTION if FRACTION in kinds else WHOLE if kinds == {WHOLE} else None
        return None

    def _aggregate(self) -> Tree:
        tree = super()._aggregate()
        call = call_of(tree)
        if call is None or call.name not in _MEANS or not call.args:
            return tree
        kind = self._kind(call.args[0])
        whole = call.name == "AVG" and kind == WHOLE
        if kind != FRACTION and not whole:
            x = self._text[span_of(call.args[0])]
            raise self._text.error(
                call.span.start,
                f"{call.name}({x}): of whole numbers Flink's result is whole and Spark's is not: declare the column in CREATE TABLE, or "
                f"write {call.name}(CAST({x} AS DOUBLE))",
            )
        name = "WHOLE AVG" if whole else "STDDEV" if call.name == "STDDEV_SAMP" else call.name
        tree.meta["call"] = attrs.evolve(call, name=name)
        return tree

    def _check(self, node: Tree, tree: Tree) -> None:
        super()._check(node, tree)
        start = span_of(node).start
        if isinstance(node, exp.Column) and node.name.lower() in self._processing and not self._orders:
            raise self._text.error(
                start,
                f"{node.name} is processing time, which only ROW_NUMBER() OVER (PARTITION BY k ORDER BY {node.name}) has here, with "
                "WHERE n = 1 around it; take an event time",
            )
        if isinstance(node, exp.Bracket) and not any(one.is_string for one in node.expressions):
            raise self._text.error(
                start, f"{self._text[span_of(node)]}: Flink counts from 1 and Spark from 0: write ELEMENT_AT(a, 1)"
            )
        name = function_of(self._text, node) if isinstance(node, exp.Func) else ""
        commas = sum(token.token_type == TokenType.COMMA for token in self._text.words(span_of(node)))
        if name in _OTHERWISE and not (name == "REGEXP_EXTRACT" and commas > 1):
            raise self._text.error(start, f"{name}: {_OTHERWISE[name]}")
