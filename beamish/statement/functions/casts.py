"""CAST between plain types, as in Spark's ANSI mode: invalid values fail."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
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
_WHOLE = re.compile(r"[+-]?\d+")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d:\d\d(\.\d{1,6})?)?")
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
        f"{text!r} AS {to.upper()}: in a script a text is a time as '2024-01-31' or '2024-01-31 12:30:00.5' only"
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
    if not _WHOLE.fullmatch(text.strip(" ")):
        raise _wrong(text, to)
    return int(text)


def _whole_of_double(number: float, to: str) -> int:
    if not math.isfinite(number):
        raise _wrong(number, to)
    return math.trunc(number)


def _double_of_text(text: str, to: str) -> float:
    if not _NUMBER.fullmatch(text.strip(" ")):
        raise _wrong(text, to)
    return float(text)


def _boolean_of_text(text: str, to: str) -> bool:
    word = text.strip(" ").lower()
    if word not in (*_TRUE, *_FALSE):
        raise _wrong(text, to)
    return word in _TRUE


def _date_of_text(text: str, to: str) -> date:
    try:
        if _DATE.fullmatch(text.strip(" ")):
            return date.fromisoformat(text.strip(" "))
    except ValueError:
        pass
    raise _wrong_time(text, to)


def _timestamp_of_text(text: str, to: str) -> datetime:
    stripped = text.strip(" ")
    try:
        if _TIMESTAMP.fullmatch(stripped):
            whole, _, part = stripped.partition(".")
            time = datetime.fromisoformat(whole).replace(tzinfo=UTC)
            return time.replace(microsecond=int(part.ljust(6, "0"))) if part else time
    except ValueError:
        pass
    raise _wrong_time(text, to)


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
