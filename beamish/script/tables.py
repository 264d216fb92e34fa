"""The rows of a test script as one Arrow table, so that every bundle has the same columns and types."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from beamish.accumulations.adapters.one_input import OfInputs, merged_name
from beamish.errors import ColumnError, ScriptError
from beamish.instants import instant_us
from beamish.kernels.reserved import EVENT_TIME, INPUT
from beamish.options import Input, Options
from beamish.plan import merged_schema
from beamish.script.events import Bundle, ClockTo, Event, WatermarkTo
from beamish.watermarks import ProcessingTimeLag


def check_script(options: Options, events: Sequence[Event]) -> None:
    """Check that a script is one for a pipeline.

    Raises:
        ScriptError: it names an input that is none, or none where it must, or moves a watermark that follows the clock.
    """
    names = [one.name for one in options.inputs]
    for event in events:
        if isinstance(event, ClockTo):
            continue
        call = "add(rows)" if isinstance(event, Bundle) else f"advance_watermark_to({event.us / 1e6})"
        if event.input is None and names and isinstance(event, Bundle):
            raise ScriptError(
                f"{call}: the pipeline merges {', '.join(names)}; say whose rows: add(rows, input={names[0]!r})"
            )
        if event.input is not None and event.input not in names:
            known = f"the inputs are {', '.join(names)}" if names else "the pipeline is no merge; leave input= out"
            raise ScriptError(f"{call} with input={event.input!r}: {known}")
        if isinstance(event, WatermarkTo) and any(isinstance(one, ProcessingTimeLag) for one in _moved(options, event)):
            raise ScriptError("a watermark in a script with ProcessingTimeLag: the clock moves it; advance the clock")


def _moved(options: Options, event: WatermarkTo) -> Iterator[Any]:
    """The policies of the watermarks that an event moves."""
    if not options.inputs:
        yield options.watermark
    yield from (one.watermark for one in options.inputs if event.input in (None, one.name))


def input_watermarks(options: Options, event: Event) -> list[int | None]:
    """Where an event moves the watermark of each input of a merge; None: nowhere."""
    if not isinstance(event, WatermarkTo):
        return [None] * len(options.inputs)
    return [event.us if event.input in (None, one.name) else None for one in options.inputs]


def bundle_tables(options: Options, events: Sequence[Event]) -> list[pa.Table]:
    """The bundles of a script as tables, one a bundle, with ``EVENT_TIME`` beside the columns of the plan.

    Raises:
        ColumnError: a column is missing, or keys of inputs differ in type.
        ScriptError: a column holds values that cannot be of one type, or an event time that is no time.
    """
    if not options.inputs:
        return script_tables(events, options.event_time)
    own = [
        [event for event in events if isinstance(event, Bundle) and event.input == one.name] for one in options.inputs
    ]
    tables = [script_tables(bundles, one.event_time) or [] for one, bundles in zip(options.inputs, own, strict=True)]
    schemas = [_schema(options, one, of_one) for one, of_one in zip(options.inputs, tables, strict=True)]
    schema = merged_schema(options, schemas).append(pa.field(EVENT_TIME, pa.int64()))
    of_input = {
        one.name: iter([_widen(options, number, table, schema) for table in tables[number]])
        for number, one in enumerate(options.inputs)
    }
    return [next(of_input[str(event.input)]) for event in events if isinstance(event, Bundle)]


def _schema(options: Options, one: Input, tables: Sequence[pa.Table]) -> pa.Schema:
    """The columns of an input; what is asked of one without rows is there, and null."""
    rows = sum(table.num_rows for table in tables)
    schema = tables[0].drop_columns([EVENT_TIME]).schema if tables else pa.schema([])
    if not rows:
        asked = [accumulation for accumulation in options.accumulations.values() if isinstance(accumulation, OfInputs)]
        columns = [column for accumulation in asked for column in accumulation.columns_of(one.name)]
        for name in dict.fromkeys([*one.keys, one.event_time, *columns]):
            schema = schema.append(pa.field(name, pa.null()))
    return schema


def _widen(options: Options, number: int, table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows of one input with the columns of all."""
    one = options.inputs[number]
    columns = {merged_name(one.name, name): table[name] for name in table.schema.names if name != EVENT_TIME}
    for key, own in zip(options.keys, one.keys, strict=True):
        if own in table.schema.names:
            columns[key] = table[own].cast(schema.field(key).type)
    columns[INPUT] = pa.array(np.full(table.num_rows, number, dtype=np.int8))
    columns[EVENT_TIME] = table[EVENT_TIME]
    return pa.table([columns.get(field.name, pa.nulls(table.num_rows, field.type)) for field in schema], schema=schema)


def script_tables(events: Sequence[Event], event_time: str) -> list[pa.Table]:
    """The bundles of a script as tables, one a bundle, with ``EVENT_TIME`` beside the rows' own columns.

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
