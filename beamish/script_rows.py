"""The rows of a test script as one Arrow table, so that every bundle has the same columns and types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from beamish.engine.packing import EVENT_TIME
from beamish.errors import ColumnError, ScriptError
from beamish.instants import instant_us
from beamish.testing import Bundle, Event


def script_tables(events: Sequence[Event], event_time: str) -> list[pa.Table]:
    """The bundles of a script as tables, one a bundle, with ``__event_time_us`` beside the rows' own columns.

    Raises:
        ColumnError: no row has the event time's column.
        ScriptError: a column holds values that cannot be of one type, or an event time that is no time.
    """
    bundles = [event.rows for event in events if isinstance(event, Bundle)]
    rows = [row for bundle in bundles for row in bundle]
    names = list(dict.fromkeys(name for row in rows for name in row))
    if rows and event_time not in names:
        raise ColumnError(f"event_time({event_time!r}): there is no column {event_time!r}; the rows have {names}")
    columns = {name: _column(name, rows) for name in names}
    times = [_event_time_us(event_time, row.get(event_time)) for row in rows]
    table = pa.table({**columns, EVENT_TIME: pa.array(times, pa.int64())})
    tables, start = [], 0
    for bundle in bundles:
        tables.append(table.slice(start, len(bundle)))
        start += len(bundle)
    return tables


def _column(name: str, rows: Sequence[Mapping[str, Any]]) -> pa.Array:
    values = [row.get(name) for row in rows]
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        kinds = sorted({type(value).__name__ for value in values if value is not None})
        raise ScriptError(f"column {name!r} holds values of {kinds}, which are not of one type: {error}") from error


def _event_time_us(name: str, value: Any) -> int | None:
    return None if value is None else instant_us(f"row[{name!r}]", value)
