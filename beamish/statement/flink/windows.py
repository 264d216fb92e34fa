"""Window functions and windows under GROUP BY of Flink's SQL, and hints."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
from sqlglot.tokens import TokenType  # type: ignore[attr-defined]

from beamish.durations import Duration
from beamish.statement.flink.declarations import Declarations
from beamish.statement.grammar.clauses import Name, Rows
from beamish.statement.grammar.text import Span, normal, word_of
from beamish.windows import CumulativeWindows, FixedWindows, Sessions, SlidingWindows, WindowOption

ARGUMENTS: Mapping[str, Sequence[str]] = {
    "TUMBLE": ("DATA", "TIMECOL", "SIZE", "OFFSET"),
    "HOP": ("DATA", "TIMECOL", "SLIDE", "SIZE", "OFFSET"),
    "CUMULATE": ("DATA", "TIMECOL", "STEP", "SIZE", "OFFSET", "EMITONLYONUPDATE"),
    "SESSION": ("DATA", "TIMECOL", "GAP"),
}
_OPTIONAL = ("OFFSET", "EMITONLYONUPDATE")
_HINTS = ("OPTIONS", "BROADCAST", "SHUFFLE_HASH", "SHUFFLE_MERGE", "NEST_LOOP")
"""Hints that change no result."""


@attrs.frozen
class GroupWindow:
    """A window under GROUP BY, as before Flink had table functions.

    Attributes:
        kind: its function.
        option: the windows.
        time: the event-time column.
        said: the normal form of its arguments, which the functions of its bounds repeat.
        start: its place.
    """

    kind: str
    option: WindowOption
    time: Name
    said: str
    start: int


class WindowParser(Declarations):
    """Parses windows; the rest of a query is parsed by its subclass."""

    def _windowed(self) -> Rows:
        """A table with windows: TUMBLE(TABLE t, DESCRIPTOR(ts), ...)."""
        start, kind = self._curr.start, word_of(self._curr)
        self._advance()
        self._need("FUNCTION", "(")
        given: dict[str, tuple[Any, int]] = {}
        names = ARGUMENTS[kind]
        while not given or self._match(TokenType.COMMA):
            at = (self._curr or self._prev).start
            name = names[min(len(given), len(names) - 1)]
            if self._next and self._next.token_type == TokenType.FARROW:
                name = self._curr.text.upper()
                self._advance(2)
            if name not in names or name in given:
                raise self._text.error(
                    at,
                    f"{kind}: {name} is not an argument of it, or is there twice; its arguments are {', '.join(names)}",
                )
            given[name] = (self._argument_of(name), at)
        self._need("FUNCTION", ")")
        missing = [name for name in names if name not in given and name not in _OPTIONAL]
        if missing:
            raise self._text.error(start, f"{kind}: {missing[0]} is missing; {self.rules['FUNCTION']}")
        (table, partition), time = given["DATA"][0], given["TIMECOL"][0]
        if kind != "SESSION" and partition:
            raise self._text.error(
                start, f"PARTITION BY within {kind}: only SESSION has it; name the columns under GROUP BY"
            )
        spans = {name: one for name, (one, _) in given.items() if name not in ("DATA", "TIMECOL", "EMITONLYONUPDATE")}
        with self._text.at(start):
            option = _windows_of(kind, spans)
        updated = spans["STEP"] if given.get("EMITONLYONUPDATE", (False, 0))[0] else None
        return Rows(table, table, option, time, partition, self._views.get(table.lower()), updated)

    def _argument_of(self, name: str) -> Any:
        """The value of an argument of a window function."""
        if name == "DATA":
            if not self._match(TokenType.TABLE):
                raise self._expected("expected TABLE and the name of the source", "FUNCTION")
            table = self._path("TABLE: expected the name of the source", "FUNCTION").text
            if not self._match(TokenType.PARTITION_BY):
                return table, None
            if self._match(TokenType.L_PAREN):
                keys = self._list(self._operand, "PARTITION BY is empty")
                self._need("FUNCTION", ")")
                return table, keys
            keys = [self._operand()]  # a comma ends it but before another column
            while self._curr.token_type == TokenType.COMMA and not self._begins_argument():
                self._advance()
                keys.append(self._operand())
            return table, keys
        if name == "TIMECOL":
            self._need("FUNCTION", "DESCRIPTOR", "(")
            time = self._name("DESCRIPTOR: expected the event-time column", "FUNCTION")
            self._need("FUNCTION", ")")
            return time
        if name == "EMITONLYONUPDATE":
            return not self._match_text_seq("FALSE") and bool(self._match_text_seq("TRUE"))
        return self._interval()

    def _begins_argument(self) -> bool:
        """Whether an argument of a window function stands after the comma."""
        following = self._tokens[self._index + 2] if self._index + 2 < len(self._tokens) else None
        named = following is not None and following.token_type == TokenType.FARROW
        return named or (self._next is not None and word_of(self._next) == "DESCRIPTOR")

    def _group(self) -> Any:
        """An expression that makes a group, or a window."""
        kind = word_of(self._curr)
        if kind not in ("TUMBLE", "HOP", "SESSION") or not self._next or self._next.token_type != TokenType.L_PAREN:
            return super()._group()
        start = self._curr.start
        self._advance()
        time, spans, said = self._group_arguments()
        names = [name for name in ARGUMENTS[kind] if name not in ("DATA", "TIMECOL", *_OPTIONAL)]
        if len(names) != len(spans):
            raise self._text.error(
                start, f"{kind} takes a time and {' and '.join(names).lower()}; {self.rules['GROUP_BY']}"
            )
        with self._text.at(start):
            return GroupWindow(kind, _windows_of(kind, dict(zip(names, spans, strict=True))), time, said, start)

    def _group_arguments(self) -> tuple[Name, Sequence[Duration], str]:
        """The event time and the intervals in brackets, and their normal form."""
        self._need("GROUP_BY", "(")
        first = self._curr or self._prev
        time = self._path("expected the event-time column", "GROUP_BY")
        spans = []
        while self._match(TokenType.COMMA):
            spans.append(self._interval())
        said = normal(self._text, Span(first.start, self._prev.end + 1))
        self._need("GROUP_BY", ")")
        return time, spans, said

    def _hint(self) -> None:
        """Skip a hint that changes no result."""
        while self._curr and self._curr.token_type == TokenType.HINT:
            for name in re.findall(r"(\w+)\s*\(", self._curr.text):
                if name.upper() not in _HINTS:
                    raise self._text.error(
                        self._curr.start,
                        f"the hint {name}: no such hint here; leave it out, or write one of {', '.join(_HINTS)}",
                    )
            self._advance()


def _windows_of(kind: str, spans: Mapping[str, Duration]) -> WindowOption:
    """The windows of a function (OptionError: they are invalid)."""
    offset = spans.get("OFFSET", Duration(0))
    if kind == "TUMBLE":
        return FixedWindows(spans["SIZE"], offset)
    if kind == "HOP":
        return SlidingWindows(spans["SIZE"], spans["SLIDE"], offset)
    if kind == "CUMULATE":
        return CumulativeWindows(spans["SIZE"], spans["STEP"], offset)
    return Sessions(spans["GAP"], late_rows="session")
