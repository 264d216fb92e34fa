"""Python values as Arrow columns: the one place that decides the type of a column from its values.

A column has the values it was given, or is refused: Arrow's own inference would make a date of a datetime after a date, bytes of text
beside bytes, an instant of a datetime without a time zone, a time of a number.

    bool                            boolean
    int                             bigint; among floats a double, if that is exact; among Decimals a decimal
    float                           double
    Decimal                         decimal of the digits needed, at most 38
    str, bytes                      string, binary
    datetime                        timestamp in UTC; without a time zone a timestamp_ntz
    date, time, timedelta           date, time, interval
    list, tuple, set, numpy array   array, its items likewise
    dict of str                     struct, its fields likewise; a missing field is null
    None, NaT, NA                   null
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from beamish.errors import shown
from beamish.instants import EARLIEST_US, EPOCH, LATEST_US
from beamish.kernels.buffers import list_column
from beamish.python_values import NotPlainError, python_value

ALLOWED = (
    "None, bool, int, float, str, bytes, Decimal, date, datetime, time, timedelta, and lists and dicts of these (numpy's and "
    "pandas' values are converted)"
)

_MOST_NESTED = 50
_US = dt.timedelta(microseconds=1)
_MOST_DIGITS = 38
_LONGEST = 2**63


@attrs.frozen
class Place:
    """A value within a column.

    Attributes:
        row: its row, from 0.
        value: the value.
        path: from the row's value to it: ``['field']``, ``[item]``.
    """

    row: int
    value: Any
    path: str = ""


@attrs.frozen
class UnfitValueError(Exception):
    """A value that a column cannot have.

    Attributes:
        places: the value; or two, of different types.
        reason: why not, and the fix; of two, their types.
    """

    places: Sequence[Place]
    reason: str

    def said(self, label: Callable[[int], str]) -> str:
        """In words; ``label`` gives the name of a row."""
        at = [f"{label(place.row)}{f' at {place.path}' if place.path else ''}" for place in self.places]
        values = [shown(place.value)[:200] for place in self.places]
        if len(at) == 1:
            return f"{at[0]} is {values[0]}: {self.reason}"
        both = " and ".join(f"{value} ({where})" for value, where in zip(values, at, strict=True))
        return f"values of different types, {self.reason}: {both}; convert one of them"


def python_column(values: Sequence[Any]) -> pa.Array:
    """The column of Python values (UnfitValueError: one has no type here, or two have types that differ)."""
    quick = _quickly(values)
    return _column(values, 0) if quick is None else quick


def typed_value(value: Any, type_: pa.DataType) -> Any:
    """A value for a column of a declared type; only where Arrow's conversion keeps it.

    Raises:
        NotPlainError: Arrow would change it: a time of another kind, a number for a time, a fraction for a whole number.
    """
    value, kind = python_value(value), pa.types
    if value is None:
        return None
    if kind.is_map(type_):
        pairs = value.items() if isinstance(value, Mapping) else value
        return [(typed_value(key, type_.key_type), typed_value(item, type_.item_type)) for key, item in pairs]
    if kind.is_list(type_) and isinstance(value, (list, tuple, set, frozenset, np.ndarray)):
        return [typed_value(item, type_.value_type) for item in value]
    if kind.is_struct(type_) and isinstance(value, Mapping):
        return {field.name: typed_value(value.get(field.name), field.type) for field in type_}
    if not _keeps(value, type_):
        raise NotPlainError(f"is changed as {type_}")
    return value


def _keeps(value: Any, type_: pa.DataType) -> bool:
    kind = pa.types
    if kind.is_timestamp(type_):
        return isinstance(value, dt.datetime) and (value.utcoffset() is None) == (type_.tz is None)
    if kind.is_date(type_):
        return isinstance(value, dt.date) and not isinstance(value, dt.datetime)
    if kind.is_time(type_):
        return isinstance(value, dt.time) and value.tzinfo is None
    if kind.is_duration(type_):
        return isinstance(value, dt.timedelta)
    if kind.is_integer(type_):
        return not isinstance(value, float) and not (isinstance(value, Decimal) and value != value.to_integral_value())
    return True


_QUICK = {bool: pa.bool_(), int: pa.int64(), float: pa.float64(), str: pa.string(), bytes: pa.binary()}


def _quickly(values: Sequence[Any]) -> pa.Array | None:
    """The column of values of one plain type; None: they are not, or one is refused."""
    kinds = set(map(type, values)) - {type(None)}
    type_ = _QUICK.get(next(iter(kinds))) if len(kinds) == 1 else None
    if type_ is None:
        return None
    try:
        return pa.array(values, type_)
    except (pa.ArrowException, OverflowError, ValueError):
        return None


def _column(values: Sequence[Any], depth: int) -> pa.Array:
    plain = [_plain(row, value, depth) for row, value in enumerate(values)]
    families: dict[str, int] = {}
    for row, value in enumerate(plain):
        if value is not None:
            families.setdefault(_family(row, value), row)
    if not families:
        return pa.nulls(len(plain))
    family, *others = families
    if others:
        mixed = _MIXED.get(frozenset(families))
        if mixed is None:
            rows = [families[family], families[others[0]]]
            raise UnfitValueError([Place(row, values[row]) for row in rows], f"{family} and {others[0]}")
        return mixed(plain, depth)
    return _MAKE[family](plain, depth)


def _plain(row: int, value: Any, depth: int) -> Any:
    if depth > _MOST_NESTED:
        raise UnfitValueError([Place(row, value)], "is nested too deeply, or contains itself")
    try:
        return python_value(value)
    except NotPlainError as refused:
        raise UnfitValueError([Place(row, value)], str(refused)) from None


_FAMILIES: Sequence[tuple[str, tuple[type, ...]]] = (
    ("bool", (bool,)),
    ("int", (int,)),
    ("float", (float,)),
    ("Decimal", (Decimal,)),
    ("str", (str,)),
    ("bytes", (bytes, bytearray)),
    ("datetime", (dt.datetime,)),
    ("date", (dt.date,)),
    ("time", (dt.time,)),
    ("timedelta", (dt.timedelta,)),
    ("dict", (Mapping,)),
    ("list", (list, tuple, set, frozenset, np.ndarray)),
)
"""The first that holds: a bool is an int to Python, a datetime a date."""


def _family(row: int, value: Any) -> str:
    for name, kinds in _FAMILIES:
        if isinstance(value, kinds):
            if isinstance(value, dt.datetime):
                return name if value.utcoffset() is not None else "datetime without a time zone"
            if not isinstance(value, pa.MonthDayNano):  # a tuple
                return name
    kind = type(value)
    raise UnfitValueError(
        [Place(row, value)],
        f"a {kind.__module__}.{kind.__qualname__}; a value is {ALLOWED}: convert it to one of these",
    )


def _checked(values: Sequence[Any], convert: Callable[[Any], Any]) -> list[Any]:
    """The values converted; ``convert`` raises a ValueError with the reason."""
    result = []
    for row, value in enumerate(values):
        try:
            result.append(None if value is None else convert(value))
        except ValueError as refused:
            raise UnfitValueError([Place(row, value)], str(refused)) from None
    return result


def _int(value: int) -> int:
    if not -_LONGEST <= value < _LONGEST:
        raise ValueError("does not fit into 64 bits, -2**63 to 2**63 - 1: write it as a float or a Decimal")
    return int(value)


def _exact_float(value: float) -> float:
    try:
        exact = float(value)
    except OverflowError:
        exact = float("nan")
    if isinstance(value, int) and exact != value:
        raise ValueError("an int in a column of floats that no float equals: write it as a float or a Decimal")
    return exact


def _text(value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError(
            "has half of a surrogate pair, so it is not Unicode text: replace it, or write bytes"
        ) from None
    return str.__str__(value)


def _decimal(value: Decimal | int) -> Decimal:
    exact = Decimal(value)
    if not exact.is_finite():
        raise ValueError("a decimal is a number: write None, or a float")
    return exact


def _digits(value: Decimal) -> tuple[int, int]:
    """Its digits before and after the point."""
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)  # noqa: S101 - it is finite
    return max(len(digits) + exponent, 0), max(-exponent, 0)


def _decimals(values: Sequence[Any], _: int) -> pa.Array:
    numbers = _checked(values, _decimal)
    whole = scale = 0
    for row, number in enumerate(numbers):
        if number is not None:
            before, after = _digits(number)
            whole, scale = max(whole, before), max(scale, after)
            if whole + scale > _MOST_DIGITS:
                reason = (
                    f"the column would need {whole} digits before the point and {scale} after it; a decimal has "
                    f"{_MOST_DIGITS}: round it, or write floats"
                )
                raise UnfitValueError([Place(row, values[row])], reason)
    return pa.array(numbers, pa.decimal128(max(whole + scale, 1), scale))


def _instant_us(value: dt.datetime) -> int:
    us = (value - EPOCH) // _US
    if not EARLIEST_US <= us <= LATEST_US:
        raise ValueError("in UTC it is outside the years 1 to 9999")
    return us


def _time(value: dt.time) -> dt.time:
    if value.tzinfo is not None:
        raise ValueError("a time of day has no time zone here: write a datetime, or leave the zone out")
    return value


def _span_us(value: dt.timedelta) -> int:
    us = value // _US
    if not -_LONGEST <= us < _LONGEST:
        raise ValueError("beyond 292,000 years, so its microseconds do not fit into 64 bits")
    return us


def _simple(type_: pa.DataType, convert: Callable[[Any], Any]) -> Callable[[Sequence[Any], int], pa.Array]:
    return lambda values, _: pa.array(_checked(values, convert), type_)


def _lists(values: Sequence[Any], depth: int) -> pa.Array:
    given = [None if value is None else _items(value) for value in values]
    lengths = np.array([0 if items is None else len(items) for items in given], np.int64)
    try:
        items = _column([item for items in given for item in items or ()], depth + 1)
    except UnfitValueError as refused:
        ends = np.cumsum(lengths)

        def outer(place: Place) -> Place:
            row = int(np.searchsorted(ends, place.row, side="right"))
            item = place.row - int(ends[row] - lengths[row])
            return Place(row, place.value, f"[{item}]{place.path}")

        raise UnfitValueError([outer(place) for place in refused.places], refused.reason) from None
    return list_column(items, lengths, np.array([items is not None for items in given], bool))


def _items(value: Any) -> Sequence[Any]:
    return list(value) if not isinstance(value, (list, tuple)) else value


def _structs(values: Sequence[Any], depth: int) -> pa.Array:
    names: dict[str, None] = {}
    for row, value in enumerate(values):
        for name in value or ():
            if name not in names:
                _check_name(row, value, name)
                names[name] = None
    parts = []
    for name in names:
        try:
            parts.append(_column([None if value is None else value.get(name) for value in values], depth + 1))
        except UnfitValueError as refused:
            places = [attrs.evolve(place, path=f"[{name!r}]{place.path}") for place in refused.places]
            raise UnfitValueError(places, refused.reason) from None
    missing = pa.array([value is None for value in values], pa.bool_())
    if not names:
        return pa.array([None if value is None else {} for value in values], pa.struct([]))
    fields = [pa.field(name, part.type) for name, part in zip(names, parts, strict=True)]
    return pa.StructArray.from_arrays(parts, fields=fields, mask=missing)


def _check_name(row: int, value: Any, name: Any) -> None:
    refusal = name_refusal(name)
    if refusal is not None:
        raise UnfitValueError([Place(row, value)], f"a field is called {name!r}: {refusal}")


def name_refusal(name: Any) -> str | None:
    """Why a column or field cannot have this name; None: it can."""
    if not isinstance(name, str):
        return "names are text: rename it"
    try:
        _text(name)
    except ValueError as refused:
        return str(refused)
    return None


_FLOATS = _simple(pa.float64(), _exact_float)
_MAKE: Mapping[str, Callable[[Sequence[Any], int], pa.Array]] = {
    "bool": _simple(pa.bool_(), bool),
    "int": _simple(pa.int64(), _int),
    "float": _FLOATS,
    "Decimal": _decimals,
    "str": _simple(pa.string(), _text),
    "bytes": _simple(pa.binary(), bytes),
    "datetime": _simple(pa.timestamp("us", tz="UTC"), _instant_us),
    "datetime without a time zone": _simple(pa.timestamp("us"), lambda value: value),
    "date": _simple(pa.date32(), lambda value: value),
    "time": _simple(pa.time64("us"), _time),
    "timedelta": _simple(pa.duration("us"), _span_us),
    "dict": _structs,
    "list": _lists,
}
_MIXED = {frozenset({"int", "float"}): _FLOATS, frozenset({"int", "Decimal"}): _decimals}
"""The families that share a type without loss."""
