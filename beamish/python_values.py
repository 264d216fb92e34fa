"""Values of numpy, pandas and Arrow as the Python values that they stand for; their nulls as None."""

from __future__ import annotations

import datetime as dt
import sys
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa


class NotPlainError(ValueError):
    """A value that stands for no Python value without loss; the message is the reason and the fix."""


_OWN = frozenset(
    {type(None), bool, int, float, str, bytes, Decimal, dt.date, dt.datetime, dt.time, dt.timedelta, list, tuple, dict}
)
_FINER = "is finer than a microsecond, the unit of times: round it"


def python_value(value: Any) -> Any:
    """The Python value that a value stands for.

    A scalar of numpy or Arrow is its Python value, ``pandas.Timestamp`` a datetime, ``pandas.Timedelta`` a timedelta. ``NaT`` (of
    pandas and numpy), ``pandas.NA`` and Arrow's nulls are None. All other values are unchanged.

    Raises:
        NotPlainError: a time finer than a microsecond or beyond Python's range, or a numpy scalar without a Python type.
    """
    if type(value) in _OWN:
        return value
    if isinstance(value, np.ndarray) and not value.ndim:
        value = value[()]
    if is_null(value):
        return None
    if isinstance(value, np.generic):
        return _of_numpy(value)
    if isinstance(value, pa.Scalar):
        return _of_arrow(value)
    pandas: Any = sys.modules.get("pandas")  # without it no value is of pandas
    if pandas is None:
        return value
    if isinstance(value, pandas.Timestamp):
        if value.nanosecond:
            raise NotPlainError(f"{_FINER}, value.floor('us')")
        return value.to_pydatetime()
    if isinstance(value, pandas.Timedelta):
        if value.nanoseconds:
            raise NotPlainError(f"{_FINER}, value.floor('us')")
        return value.to_pytimedelta()
    return value


def is_null(value: Any) -> bool:
    """Whether a value is None, ``NaT`` of pandas or numpy, ``pandas.NA``, or a null of Arrow."""
    if type(value) in _OWN:
        return value is None
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return bool(np.isnat(value))
    if isinstance(value, pa.Scalar):
        return not value.is_valid
    pandas: Any = sys.modules.get("pandas")
    return pandas is not None and (value is pandas.NaT or value is pandas.NA)


def _of_arrow(value: pa.Scalar) -> Any:
    try:
        return value.as_py()
    except (ValueError, OverflowError) as error:
        raise NotPlainError(f"has no Python value ({error}): cast it") from error


def _of_numpy(value: np.generic) -> Any:
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return _of_numpy_time(value)
    plain = value.item()
    if isinstance(plain, (np.generic, tuple)):
        raise NotPlainError(f"is a numpy.{type(value).__name__}, for which Python has no type: convert it")
    return plain


def _of_numpy_time(value: np.datetime64 | np.timedelta64) -> Any:
    unit, _ = np.datetime_data(value.dtype)
    kind = "M8" if isinstance(value, np.datetime64) else "m8"
    if unit in {"ns", "ps", "fs", "as"}:
        in_us = value.astype(f"{kind}[us]")
        if in_us != value:
            raise NotPlainError(f"{_FINER}, value.astype('{kind}[us]')")
        value = in_us
    plain = value.item()
    if not isinstance(plain, (dt.date, dt.timedelta)):
        raise NotPlainError("is beyond Python's range, or a span of months: convert it")
    return plain
