"""CAST between plain types, as in Spark's ANSI mode: invalid values fail."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from beamish.statement.functions.types import TIMESTAMP, RefusedError, as_double, each

_TYPES: Mapping[str, pa.DataType] = {
    "int": pa.int32(), "bigint": pa.int64(), "double": pa.float64(), "boolean": pa.bool_(), "string": pa.string(),
    "date": pa.date32(), "timestamp": TIMESTAMP,
}  # fmt: skip
_RANGES = {"int": 2**31, "bigint": 2**63}
_BLANKS = "".join(map(chr, range(33))) + "\x7f"
"""Blanks and control characters of ASCII, which Spark strips from a text; of others it strips none."""
_WHOLE = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_HEXADECIMAL = re.compile(r"[+-]?0[xX]([0-9a-fA-F]+\.?|[0-9a-fA-F]*\.[0-9a-fA-F]+)[pP][+-]?[0-9]+")
_WORDS = {"nan": math.nan, "inf": math.inf, "infinity": math.inf}
_DATE = r"(?P<year>\+?[0-9]{4,%s})(-(?P<month>[0-9]{1,2})(-(?P<day>[0-9]{1,2})%s)?)?"
_OF_DATE = re.compile(_DATE % (7, "([ T].*)?"), re.DOTALL)
_OF_TIMESTAMP = re.compile(
    _DATE
    % (
        6,
        r"([ T](?P<hour>[0-9]{1,2})(:(?P<minute>[0-9]{1,2})(:(?P<second>[0-9]{1,2})(\.(?P<fraction>[0-9]*))?(?P<zone>[^0-9.].*)?)?)?)?",
    ),
    re.DOTALL,
)
_OFFSETS = [
    re.compile(f"(?:UTC|GMT|UT)?([+-]){digits}")
    for digits in (
        r"([0-9]{1,2})(?::([0-9]{1,2}))?()",
        r"([0-9]{1,2}):([0-9]{2}):([0-9]{2})",
        r"([0-9]{2})([0-9]{2})([0-9]{2})?",
    )
]
_UTC = ("Z", "UTC", "GMT", "UT")
_TRUE, _FALSE = ("t", "true", "y", "yes", "1"), ("f", "false", "n", "no", "0")


def cast(column: pa.Array, to: str) -> pa.Array:
    """Cast a column (RefusedError: an invalid value, or unsupported types)."""
    type_, from_ = _TYPES[to], column.type
    if from_ == type_:
        return column
    if pa.types.is_null(from_):
        return column.cast(type_)
    make = _FROM.get((_kind(from_), to))
    if make is None:
        raise RefusedError(f"CAST of {from_} AS {to.upper()}: not in a script")
    return make(column, to)


def _kind(type_: pa.DataType) -> str:
    if pa.types.is_decimal128(type_):
        return "decimal"
    return next((name for name, known in _TYPES.items() if known == type_), str(type_))


def _wrong_time(text: str, to: str) -> RefusedError:
    return RefusedError(
        f"{text!r} AS {to.upper()}: in a script a text is a time as '2024-01-31' or '2024-01-31 12:30:00.5+01:00', of the years 1 to 9999; "
        "time zones by name, and times without a date, are Spark's only"
    )


def _wrong(value: Any, to: str) -> RefusedError:
    return RefusedError(f"{value!r} cannot be CAST AS {to.upper()} (Spark: CAST_INVALID_INPUT or CAST_OVERFLOW)")


def _whole(read: Callable[[Any, str], int]) -> Callable[[pa.Array, str], pa.Array]:
    """Cast to an integer within the range of its type."""

    def make(column: pa.Array, to: str) -> pa.Array:
        def value(from_: Any) -> int:
            made = read(from_, to)
            if not -_RANGES[to] <= made < _RANGES[to]:
                raise _wrong(from_, to)
            return made

        return each(value, _TYPES[to], column)

    return make


def _each(read: Callable[[Any, str], Any]) -> Callable[[pa.Array, str], pa.Array]:
    return lambda column, to: each(lambda value: read(value, to), _TYPES[to], column)


def _whole_of_text(text: str, to: str) -> int:
    stripped = text.strip(_BLANKS)
    if not _WHOLE.fullmatch(stripped):
        raise _wrong(text, to)
    return int(stripped)


def _whole_of_double(number: float, to: str) -> int:
    if not math.isfinite(number):
        raise _wrong(number, to)
    return 2**63 - 1 if to == "bigint" and number == 2.0**63 else math.trunc(number)  # 2^63 - 1 as a double is 2^63


def _double_of_text(text: str, to: str) -> float:
    stripped = text.strip(_BLANKS[:-1])
    sign, word = (-1, stripped[1:]) if stripped.startswith("-") else (1, stripped.removeprefix("+"))
    if word == "NaN" or (word.lower() in _WORDS and (word.lower() != "nan" or word == stripped)):
        return sign * _WORDS[word.lower()]
    digits = stripped[:-1] if stripped[-1:] in tuple("dDfF") else stripped
    if _NUMBER.fullmatch(digits):
        return float(digits)
    if not _HEXADECIMAL.fullmatch(stripped) and not _HEXADECIMAL.fullmatch(digits):
        raise _wrong(text, to)
    return _of_hexadecimal(digits)


def _of_hexadecimal(digits: str) -> float:
    try:
        return float.fromhex(digits)
    except OverflowError:
        return -math.inf if digits.startswith("-") else math.inf


def _boolean_of_text(text: str, to: str) -> bool:
    word = text.strip(_BLANKS).lower()
    if word not in (*_TRUE, *_FALSE):
        raise _wrong(text, to)
    return word in _TRUE


def _date_of_text(text: str, to: str) -> date:
    found = _OF_DATE.fullmatch(text.strip(_BLANKS))
    if found is None:
        raise _wrong_time(text, to)
    return _day(found, text, to)


def _day(found: re.Match[str], text: str, to: str) -> date:
    try:
        return date(int(found["year"]), int(found["month"] or 1), int(found["day"] or 1))
    except ValueError:
        raise _wrong_time(text, to) from None


def _timestamp_of_text(text: str, to: str) -> datetime:
    found = _OF_TIMESTAMP.fullmatch(text.strip(_BLANKS))
    if found is None:
        raise _wrong_time(text, to)
    day = _day(found, text, to)
    hour, minute, second = (int(found[name] or 0) for name in ("hour", "minute", "second"))
    micros = int((found["fraction"] or "")[:6].ljust(6, "0"))
    try:
        return datetime(day.year, day.month, day.day, hour, minute, second, micros, UTC) - _offset(found["zone"])
    except (ValueError, OverflowError):
        raise _wrong_time(text, to) from None


def _offset(zone: str | None) -> timedelta:
    """The offset of a time zone from UTC (ValueError: another zone)."""
    name = (zone or "Z").strip(_BLANKS)
    found = next(filter(None, (one.fullmatch(name) for one in _OFFSETS)), None)
    if found is None:
        if name in _UTC:
            return timedelta()
        raise ValueError(name)
    hours, minutes, seconds = (int(digits or 0) for digits in found.groups()[1:])
    offset = timedelta(hours=hours, minutes=minutes, seconds=seconds)
    if max(minutes, seconds) > 59 or offset > timedelta(hours=18):
        raise ValueError(name)
    return -offset if found[1] == "-" else offset


def _text_of_timestamp(time: datetime, _: str) -> str:
    said = f"{time:%Y-%m-%d %H:%M:%S}".rjust(19, "0")
    return said + (f".{time.microsecond:06}".rstrip("0") if time.microsecond else "")


def _boolean_of_number(column: pa.Array, _: str) -> pa.Array:
    return pc.not_equal(column, 0)


def _by_arrow(column: pa.Array, to: str) -> pa.Array:
    return column.cast(_TYPES[to])


_INTEGERS = ("int", "bigint")
_FROM: Mapping[tuple[str, str], Callable[[pa.Array, str], pa.Array]] = {
    **{(a, b): _whole(lambda value, _: value) for a in _INTEGERS for b in _INTEGERS},
    **{(a, "double"): lambda column, _: as_double(column) for a in (*_INTEGERS, "decimal")},
    **{(a, "boolean"): _boolean_of_number for a in _INTEGERS},
    **{(a, "string"): _by_arrow for a in _INTEGERS},
    **{("string", b): _whole(_whole_of_text) for b in _INTEGERS},
    **{("double", b): _whole(_whole_of_double) for b in _INTEGERS},
    **{("decimal", b): _whole(lambda value, _: int(Decimal(value))) for b in _INTEGERS},
    **{("boolean", b): _whole(lambda value, _: int(value)) for b in _INTEGERS},
    ("boolean", "double"): _each(lambda value, _: float(value)),
    ("boolean", "string"): _by_arrow,
    ("double", "boolean"): _boolean_of_number,
    ("string", "double"): _each(_double_of_text),
    ("string", "boolean"): _each(_boolean_of_text),
    ("string", "date"): _each(_date_of_text),
    ("string", "timestamp"): _each(_timestamp_of_text),
    ("date", "string"): _by_arrow,
    ("date", "timestamp"): lambda column, _: column.cast(TIMESTAMP),
    ("timestamp", "date"): lambda column, _: pc.floor_temporal(column, unit="day").cast(pa.date32()),
    ("timestamp", "string"): _each(_text_of_timestamp),
}

FUNCTIONS: Mapping[str, Callable[[Sequence[pa.Array], Any], pa.Array]] = {
    "CAST": lambda columns, to: cast(columns[0], to),
}
