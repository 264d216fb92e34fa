"""Cells of script rows: values of each family of Python types, values of numpy and pandas, nulls, and refused values."""

from __future__ import annotations

import datetime as dt
import enum
import uuid
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import attrs
import numpy as np
import pandas as pd
import pyarrow as pa

UTC = dt.UTC
BERLIN = ZoneInfo("Europe/Berlin")
NOON = dt.datetime(2024, 1, 1, 12, 30, 0, 1, tzinfo=UTC)
NAIVE = NOON.replace(tzinfo=None)
DAY = dt.date(2024, 1, 1)
SPAN = dt.timedelta(days=-1, microseconds=1)


class Colour(enum.IntEnum):
    RED = 7


class Word(str, enum.Enum):  # noqa: UP042 - its str() is not its value
    HI = "hi"


@attrs.frozen
class Family:
    """Python values that belong into one column.

    Attributes:
        type: the column's type.
        pairs: a value as given, and as the column has it.
    """

    type: pa.DataType
    pairs: Sequence[tuple[Any, Any]]


def _same(*values: Any) -> list[tuple[Any, Any]]:
    return [(value, value) for value in values]


FAMILIES: dict[str, Family] = {
    "bool": Family(pa.bool_(), [*_same(*(True, False)), (np.ones(1, bool)[0], *(True,))]),
    "int": Family(
        pa.int64(),
        [
            *_same(0, 1, -(2**63), 2**63 - 1),
            (np.int8(-1), -1),
            (np.uint64(5), 5),
            (Colour.RED, 7),
            (pa.scalar(3, pa.int16()), 3),
            (np.array(4), 4),
        ],
    ),
    "float": Family(
        pa.float64(), [*_same(1.5, 0.0, -0.0, float("inf"), 5e-324), (np.float32(0.5), 0.5), (np.float64(2), 2.0)]
    ),
    "Decimal": Family(
        pa.decimal128(24, 4),
        [*_same(Decimal("1.5000"), Decimal("-3E+19"), Decimal(0)), (pa.scalar(Decimal("2.5")), Decimal("2.5"))],
    ),
    "str": Family(pa.string(), [*_same("", "a\u0000", "é", "\U0010ffff"), (np.str_("b"), "b"), (Word.HI, "hi")]),
    "bytes": Family(pa.binary(), [*_same(b"", b"\xff\x00"), (bytearray(b"x"), b"x"), (np.bytes_(b"y"), b"y")]),
    "datetime": Family(
        pa.timestamp("us", tz="UTC"),
        [
            *_same(NOON, dt.datetime.min.replace(tzinfo=UTC), dt.datetime.max.replace(tzinfo=UTC)),
            (NOON.astimezone(BERLIN), NOON),
            (pd.Timestamp(NOON), NOON),
        ],
    ),
    "datetime without a time zone": Family(
        pa.timestamp("us"),
        [
            *_same(NAIVE, dt.datetime.min, dt.datetime.max),  # noqa: DTZ901
            (pd.Timestamp(NAIVE), NAIVE),
            (np.datetime64(NAIVE), NAIVE),
            (np.datetime64("2024-01-01T00:00:00", "ns"), dt.datetime(2024, 1, 1)),  # noqa: DTZ001
        ],
    ),
    "date": Family(pa.date32(), [*_same(DAY, dt.date.min, dt.date.max), (np.datetime64("2024-01-01"), DAY)]),
    "time": Family(pa.time64("us"), _same(dt.time(5), dt.time.max)),
    "timedelta": Family(
        pa.duration("us"),
        [
            *_same(SPAN, dt.timedelta(days=100_000_000)),
            (pd.Timedelta(SPAN), SPAN),
            (np.timedelta64(3, "s"), dt.timedelta(seconds=3)),
        ],
    ),
    "list": Family(
        pa.list_(pa.int64()),
        [*_same([], [1, None]), ((2, 3), [2, 3]), ({4}, [4]), (frozenset({5}), [5]), (np.array([6, 7]), [6, 7])],
    ),
    "dict": Family(
        pa.struct([("a", pa.int64()), ("b", pa.string())]),
        [
            ({"a": 1}, {"a": 1, "b": None}),
            ({"b": "x"}, {"a": None, "b": "x"}),
            ({"a": np.int8(2), "b": pd.NA}, {"a": 2, "b": None}),
        ],
    ),
}
TOGETHER = {frozenset({"int", "float"}), frozenset({"int", "Decimal"})}
"""The families that one column may hold: their values stay equal."""

NULLS = [None, pd.NaT, pd.NA, np.datetime64("NaT"), np.timedelta64("NaT"), pa.scalar(None), pa.scalar(None, pa.int64())]

TIMES = {
    "infinite": (float("inf"), "must be seconds since the epoch"),
    "NaN": (float("nan"), "must be seconds since the epoch"),
    "text": ("noon", "must be seconds since the epoch"),
    "date": (DAY, "must be seconds since the epoch"),
    "numpy's": (np.datetime64("2024-01-01T00:00:00"), "has no time zone"),
    "nanosecond": (pd.Timestamp(1, tz="UTC"), "finer than a microsecond"),
    "of 65 bits": (2**63, "beyond 292,000 years"),
    "huge": (10**400, "beyond 292,000 years"),
}
"""Invalid event times, and why."""

RECORDS = pd.DataFrame(
    {"ts": [pd.Timestamp(3, unit="s", tz="UTC"), pd.NaT], "at": [pd.NaT, pd.Timestamp(0, tz="UTC")]}
).to_dict("records")
"""Rows of which one has no time."""


def _itself() -> list[Any]:
    one: list[Any] = []
    one.append(one)
    return one


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "int of 65 bits": (lambda: 2**63, "does not fit into 64 bits"),
    "negative int of 65 bits": (lambda: -(2**63) - 1, "does not fit into 64 bits"),
    "unsigned int of 64 bits": (lambda: np.uint64(2**63), "does not fit into 64 bits"),
    "Decimal NaN": (lambda: Decimal("NaN"), "a decimal is a number"),
    "signaling NaN": (lambda: Decimal("sNaN"), "a decimal is a number"),
    "infinite Decimal": (lambda: Decimal("-Infinity"), "a decimal is a number"),
    "Decimal of 39 digits": (lambda: Decimal("1E+38"), "39 digits before the point"),
    "tiny Decimal": (lambda: Decimal("1E-39"), "39 after it"),
    "lone surrogate": (lambda: "a\ud800", "surrogate pair"),
    "instant before the year 1": (lambda: dt.datetime.min.replace(tzinfo=BERLIN), "outside the years 1 to 9999"),
    "instant after 9999": (
        lambda: dt.datetime.max.replace(tzinfo=dt.timezone(-dt.timedelta(hours=5))),
        "outside the years",
    ),
    "nanoseconds of pandas": (lambda: pd.Timestamp(1, tz="UTC"), "finer than a microsecond"),
    "nanoseconds of numpy": (lambda: np.datetime64(1, "ns"), "finer than a microsecond"),
    "time of numpy after 9999": (lambda: np.datetime64("10000-01-01T00:00:00"), "beyond Python's range"),
    "span of months": (lambda: np.timedelta64(1, "M"), "a span of months"),
    "span of nanoseconds": (lambda: pd.Timedelta(1), "finer than a microsecond"),
    "longest span": (lambda: dt.timedelta.max, "beyond 292,000 years"),
    "time of day in a zone": (lambda: dt.time(5, tzinfo=UTC), "no time zone here"),
    "complex": (lambda: 1j, "a builtins.complex"),
    "long double": (lambda: np.longdouble(1), "convert it"),
    "uuid": (lambda: uuid.UUID(int=1), "a uuid.UUID"),
    "object": (object, "a builtins.object"),
    "function": (lambda: max, "a builtins."),
    "range": (lambda: range(2), "a builtins.range"),
    "interval of Arrow": (lambda: pa.MonthDayNano([1, 2, 3]), "MonthDayNano"),
    "Series": (lambda: pd.Series([1]), "a pandas."),
    "number as field": (lambda: {1: 2}, "names are text"),
    "surrogate as field": (lambda: {"\ud800": 2}, "surrogate pair"),
    "list of itself": (_itself, "contains itself"),
}
