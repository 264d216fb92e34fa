"""Plain values as keys of a SQLite table: keys equal in Python are stored equal, all others differ.

``1``, ``1.0``, ``True`` and ``Decimal("1.0")`` are one key, and so are ``0.0`` and ``-0.0``, and aware datetimes of one
instant; tuples and frozensets are equal if their items are. Unlike in Python, all NaN are one key, and two instants are two keys
even if they share a wall clock at the end of summer time.

Texts, ints and floats are stored natively, so that SQLite compares numbers by value; others as the codec's bytes of a canonical value.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, TypeAlias

from beamish.instants import EPOCH
from beamish.kernels.codec import decode, encode

ALLOWED = "str, int, bool, float, bytes, Decimal, date, datetime, timedelta, and tuples and frozensets of these"

StoredKey: TypeAlias = str | int | float | bytes

_MOST_DIGITS = 400
"""Integers with more digits are compared as Decimals: some of these are too long to be written out. No float has as many."""
_TOO_LONG = 10**_MOST_DIGITS


def stored_key(key: Any) -> StoredKey:
    """The stored form of a key; the key itself, if possible (TypeError: it is, or contains, something other than ``ALLOWED``)."""
    kind = type(key)
    if kind is str and key.isascii():
        return str(key)
    if kind is int and -(2**63) <= key < 2**63:
        return int(key)
    try:
        equal = _canonical(key)
    except RecursionError:
        raise TypeError("a key that is nested too deeply") from None
    if isinstance(equal, str) and _is_unicode(equal):
        return equal
    if isinstance(equal, int) and -(2**63) <= equal < 2**63:
        return equal
    if isinstance(equal, float) and equal == equal:  # noqa: PLR0124 - SQLite has no NaN
        return equal
    return encode(equal)


def key_as_written(key: Any, stored: StoredKey) -> bytes | None:
    """Additional data to restore the key as it was written, or None."""
    return None if stored is key else encode(key)


def written_key(stored: Any, written: bytes | None) -> Any:
    """The key as it was written."""
    return stored if written is None else decode(written)


def _canonical(key: Any) -> Any:
    """The canonical value among equal ones."""
    stands_for = _CANONICAL.get(type(key))
    if stands_for is None:
        raise TypeError(f"a {type(key).__module__}.{type(key).__qualname__}")
    return stands_for(key)


def _same(key: Any) -> Any:
    return key


def _is_unicode(text: str) -> bool:
    """Whether it has no lone surrogate."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _int(key: int) -> Any:
    return int(key) if -_TOO_LONG < key < _TOO_LONG else _shortest(Decimal(key))


def _float(key: float) -> Any:
    return int(key) if key.is_integer() else key  # neither NaN nor infinity is


def _decimal(key: Decimal) -> Any:
    if key.is_snan():
        raise TypeError("a signaling NaN")
    if not key.is_finite():
        return _float(float(key))
    shortest = _shortest(key)
    if shortest == 0 or (_exponent(shortest) >= 0 and shortest.adjusted() < _MOST_DIGITS):
        return int(shortest)
    return float(shortest) if float(shortest) == shortest else shortest


def _exponent(key: Decimal) -> int:
    return int(key.as_tuple().exponent)


def _shortest(key: Decimal) -> Decimal:
    """The same number without trailing zeros, of any length."""
    sign, digits, _ = key.as_tuple()
    kept = len(digits)
    while kept > 1 and digits[kept - 1] == 0:
        kept -= 1
    return Decimal((sign, digits[:kept], _exponent(key) + len(digits) - kept))


# No key is a dict, so a dict around a canonical value is unambiguous.


def _datetime(key: datetime) -> Any:
    return key.replace(fold=0) if key.utcoffset() is None else {"instant": key - EPOCH}


def _frozenset(key: frozenset[Any]) -> Any:
    return {"frozenset": sorted({encode(_canonical(item)) for item in key})}


_CANONICAL: dict[type, Callable[[Any], Any]] = {
    type(None): _same,
    bool: _int,
    int: _int,
    float: _float,
    str: _same,
    bytes: _same,
    Decimal: _decimal,
    date: _same,
    datetime: _datetime,
    timedelta: _same,
    tuple: lambda key: tuple(map(_canonical, key)),
    frozenset: _frozenset,
}
