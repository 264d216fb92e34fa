"""A cursor over the words of a clause that is read word by word."""

from __future__ import annotations

from collections.abc import Sequence

from beamish.durations import Duration, duration
from beamish.errors import SqlError
from beamish.statement.text import Text
from beamish.statement.tokens import Token

_UNITS = ("DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND")


class Cursor:
    """The words of a clause, and how many of them have been read."""

    def __init__(self, text: Text, begins: Token, words: Sequence[Token], rule: str) -> None:
        """Begin.

        Args:
            text: the statement.
            begins: the word that begins the clause.
            words: those after it.
            rule: how the clause is written, for what is refused.
        """
        self._text, self._begins, self._words, self._rule = text, begins, words, rule
        self._at = 0

    @property
    def next(self) -> Token | None:
        """The next word; None at the end."""
        return self._words[self._at] if self._at < len(self._words) else None

    def take(self, *words: str) -> bool:
        """Read these words, if they come next."""
        coming = self._words[self._at : self._at + len(words)]
        if [token.word for token in coming] != list(words):
            return False
        self._at += len(words)
        return True

    def need(self, *words: str) -> None:
        """Read these words.

        Raises:
            SqlError: something else comes next.
        """
        for word in words:
            if not self.take(word):
                raise self.error(f"expected {word}")

    def name(self, what: str) -> str:
        """Read a name.

        Raises:
            SqlError: something else comes next.
        """
        token = self.next
        if token is None or not token.is_name:
            raise self.error(f"expected {what}")
        self._at += 1
        return token.text

    def duration(self, what: str, *, least: int) -> Duration:
        """Read a number and a unit.

        Args:
            what: whose it is.
            least: the least number that it may be.

        Raises:
            SqlError: something else comes next, or the number is too small or too great.
        """
        number = self.next
        if number is None or not number.text.isdecimal() or number.kind != "NUMBER":
            raise self.error(f"{what}: expected a whole number")
        self._at += 1
        unit = self.next
        word = "" if unit is None else unit.word.removesuffix("S")
        if word not in _UNITS:
            raise self.error(f"{what}: expected a unit, one of {', '.join(_UNITS)}, with or without S")
        self._at += 1
        if int(number.text) < least:
            raise self._text.error(number.start, f"{what} {number.text}: must be at least {least}; {self._rule}")
        with self._text.at(number.start):
            return duration(what, f"{number.text} {word.lower()}")

    def end(self) -> None:
        """Check that nothing is left.

        Raises:
            SqlError: something is.
        """
        if self.next is not None:
            raise self.error("expected the end of the clause")

    def error(self, expected: str) -> SqlError:
        """What is wrong with the next word, or with the end."""
        token = self.next
        if token is None:
            last = self._words[-1] if self._words else self._begins
            return self._text.error(last.start, f"{expected} after {last.text!r}; {self._rule}")
        return self._text.error(token.start, f"{expected}, not {token.text!r}; {self._rule}")
