"""Functions of dates and timestamps; in a script the session's time zone is UTC."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from beamish.statement.functions.types import TIMESTAMP, RefusedError, each

_UNITS = {
    "YEAR": "year", "YYYY": "year", "YY": "year", "QUARTER": "quarter", "MONTH": "month", "MON": "month", "MM": "month",
    "WEEK": "week", "DAY": "day", "DD": "day", "HOUR": "hour", "MINUTE": "minute", "SECOND": "second",
    "MILLISECOND": "millisecond",
}  # fmt: skip


def _time(name: str, columns: Sequence[pa.Array]) -> pa.Array:
    (column,) = columns
    if pa.types.is_null(column.type):
        return column.cast(TIMESTAMP)
    if column.type not in (pa.date32(), TIMESTAMP):
        raise RefusedError(f"{name} of {column.type}: must be a date or a timestamp; in a script give aware datetimes")
    return column


def _part(name: str, kernel: Callable[..., pa.Array]) -> Callable[[Sequence[pa.Array], Any], pa.Array]:
    return lambda columns, _: kernel(_time(name, columns).cast(TIMESTAMP)).cast(pa.int32())


def _truncated(columns: Sequence[pa.Array], unit: Any) -> pa.Array:
    if unit not in _UNITS:
        raise RefusedError(f"DATE_TRUNC({unit!r}, ...): in a script one of {', '.join(_UNITS)}")
    return pc.floor_temporal(_time("DATE_TRUNC", columns).cast(TIMESTAMP), unit=_UNITS[unit], week_starts_monday=True)


def _millis(columns: Sequence[pa.Array], _: Any) -> pa.Array:
    micros = _time("UNIX_MILLIS", columns).cast(TIMESTAMP).cast(pa.int64())
    return each(lambda value: value // 1000, pa.int64(), micros)


FUNCTIONS: Mapping[str, Callable[[Sequence[pa.Array], Any], pa.Array]] = {
    "YEAR": _part("YEAR", pc.year),
    "QUARTER": _part("QUARTER", pc.quarter),
    "MONTH": _part("MONTH", pc.month),
    "DAY": _part("DAY", pc.day),
    "DAYOFWEEK": _part("DAYOFWEEK", lambda time: pc.day_of_week(time, count_from_zero=False, week_start=7)),
    "HOUR": _part("HOUR", pc.hour),
    "MINUTE": _part("MINUTE", pc.minute),
    "SECOND": _part("SECOND", pc.second),
    "DATE_TRUNC": _truncated,
    "UNIX_MILLIS": _millis,
}
