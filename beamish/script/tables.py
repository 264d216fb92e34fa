"""The rows of a test script as Arrow tables, so that every bundle of a source has the same columns and types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import pyarrow as pa

from beamish.contract.conditions import NO_ROWS
from beamish.errors import ColumnError, ScriptError
from beamish.flow import Flow
from beamish.forms import is_of_panes, not_as_rows
from beamish.instants import instant_us
from beamish.kernels.reserved import EVENT_TIME, PREFIX, SIGN, has_no_event_time, is_reserved
from beamish.kernels.spelling import respelled
from beamish.script.events import Bundle, Event, Row, Step, as_step, in_words
from beamish.source import Source


@attrs.frozen
class ScriptRows:
    """The rows of a script.

    Attributes:
        tables: the rows of each source, by its name: of each step that brings it some, in order, the rows' columns and
            ``EVENT_TIME``.
        initial: the rows that tables begin with, by the name of their source.
        schemas: the columns of each source.
    """

    tables: Mapping[str | None, Sequence[pa.Table]]
    initial: Mapping[str | None, pa.Table]
    schemas: Mapping[str | None, pa.Schema]

    @property
    def any(self) -> bool:
        """Whether there is a row at all."""
        return any(self.tables.values()) or bool(self.initial)


def check_script(flow: Flow, events: Sequence[Event]) -> None:
    """Check that a script is one for a flow.

    Raises:
        ScriptError: it names a source that is none, or none where it must, or moves a watermark that follows the clock.
    """
    names = [source.name for source in flow.sources if source.name is not None]
    for event in events:
        step, call = as_step(event), in_words(event)
        if names and step.input is None and (step.rows or isinstance(event, Bundle)):
            raise ScriptError(f"{call}: the pipeline merges {', '.join(names)}; say whose rows, by input={names[0]!r}")
        if step.input is not None and step.input not in names:
            known = f"the inputs are {', '.join(names)}" if names else "the pipeline is no merge; leave input= out"
            raise ScriptError(f"{call} with input={step.input!r}: {known}")
        for source in flow.sources:
            if watermark_of(source, step) is not None:
                _check_is_moved(source, call)


def _check_is_moved(source: Source, call: str) -> None:
    if source.watermark is not None and not source.watermark.moved_by_rows:
        raise ScriptError(
            f"{call} with {type(source.watermark).__name__}: the clock moves it; advance the clock, by "
            "advance_processing_time_to"
        )


def watermark_of(source: Source, step: Step) -> int | None:
    """Where a step moves the watermark of a source; None: nowhere."""
    return step.watermark_us if step.input in (None, source.name) else None


def script_rows(flow: Flow, events: Sequence[Event], initial: Any = None) -> ScriptRows:
    """The rows of a script, and those that tables begin with (as ``Flow.initial`` takes them).

    Raises:
        ColumnError: a column is missing, or has a name of beamish's own.
        ScriptError: a column holds values that cannot be of one type, or an event time that is no time.
        PipelineError: they are panes, which are not taken as such.
    """
    steps, tables, begins = [as_step(event) for event in events], {}, {}
    given = flow.initial(initial)
    named = {source.name: taker.stage.asks(taker.takes, number) for source, taker, number in flow.leaves}
    for source in flow.sources:
        arrived = [step.rows for step in steps if step.rows and step.input == source.name]
        bundles = _spelled(arrived, (*source.keys, source.event_time, *named[source.name]))
        if source.name in given:
            begin = _initial(given[source.name])
            _check_event_time(source.event_time, begin)
            begins[source.name], *tables[source.name] = _tables(source, [begin, *bundles])
        else:
            tables[source.name] = _tables(source, bundles)
    schemas: dict[str | None, pa.Schema] = {}
    for source, taker, number in flow.leaves:
        asked = taker.stage.asks(taker.takes, number)
        known = [*([begins[source.name]] if source.name in begins else []), *tables[source.name]]
        schemas[source.name] = _schema(source, asked, known)
    return ScriptRows(tables, begins, schemas)


def _tables(source: Source, bundles: Sequence[Sequence[Row]]) -> list[pa.Table]:
    """The bundles of a source as tables; of rows that say what they do the rows of data, with ``SIGN``."""
    form = source.form
    if form is None:
        tables = tables_of(bundles, source.event_time)
        _check_no_panes(source, tables)
        return tables
    unfolded = [[one for row in bundle for one in form.unfold(row)] for bundle in bundles]
    tables = tables_of([[row for row, _ in bundle] for bundle in unfolded], source.event_time)
    signs = [pa.array([sign for _, sign in bundle], pa.int8()) for bundle in unfolded]
    at = [table.schema.get_field_index(EVENT_TIME) for table in tables]
    return [table.add_column(i, SIGN, sign) for table, i, sign in zip(tables, at, signs, strict=True)]


def _check_no_panes(source: Source, tables: Sequence[pa.Table]) -> None:
    for field in tables[0].schema if tables else ():
        if field.name == "pane" and pa.types.is_struct(field.type) and is_of_panes([one.name for one in field.type]):
            raise not_as_rows(source.event_time)


def _spelled(bundles: Sequence[Sequence[Row]], asked: Sequence[Any]) -> list[Sequence[Row]]:
    """The rows with columns called as they are asked for, since Spark does not tell upper from lower case."""
    names = list(dict.fromkeys(name for bundle in bundles for row in bundle for name in row))
    new = respelled(names, [name for name in asked if isinstance(name, str)])
    if not new:
        return list(bundles)
    return [[{new.get(name, name): value for name, value in row.items()} for row in bundle] for bundle in bundles]


def _initial(rows: Any) -> Sequence[Row]:
    if not isinstance(rows, Sequence) or not all(isinstance(row, Mapping) for row in rows):
        raise ScriptError(
            f"run(initial={rows!r}): must be a list of rows, dicts of column name to value, such as initial=[{{'ts': 1}}]"
        )
    return rows


def _schema(source: Source, asked: Sequence[str], tables: Sequence[pa.Table]) -> pa.Schema:
    """The columns of a source; what is asked of one without rows is there, and null."""
    schema = tables[0].drop_columns([EVENT_TIME]).schema if tables else pa.schema([])
    if not tables:
        for name in dict.fromkeys([*source.keys, source.event_time, *asked]):
            if name not in schema.names and not has_no_event_time(name):
                schema = schema.append(pa.field(name, pa.null()))
        if source.form is not None:
            schema = schema.append(pa.field(SIGN, pa.int8()))
    return schema if tables else schema.with_metadata(NO_ROWS)


def tables_of(bundles: Sequence[Sequence[Row]], event_time: Any) -> list[pa.Table]:
    """Bundles as tables, one per bundle, with ``EVENT_TIME`` beside the rows' own columns.

    Raises:
        ColumnError: no row has the event time's column.
        ScriptError: a column holds values that cannot be of one type, or an event time that is no time.
    """
    if not isinstance(event_time, str):
        raise ColumnError(
            f"event_time({event_time}): a Column expression works on Spark only; give the name of a column"
        )
    rows = [row for bundle in bundles for row in bundle]
    untimed = has_no_event_time(event_time)
    names = list(dict.fromkeys(name for row in rows for name in row))
    if not untimed:
        _check_event_time(event_time, rows)
    for name in names:
        if is_reserved(name):
            raise ColumnError(f"column {name!r}: names that begin with {PREFIX!r} are beamish's own; rename it")
    columns = {name: _column(name, rows) for name in names}
    times = [_event_time_us(event_time, row.get(event_time)) for row in rows]
    table = pa.table({**columns, EVENT_TIME: pa.array(times, pa.int64())})
    tables, start = [], 0
    for bundle in bundles:
        tables.append(table.slice(start, len(bundle)))
        start += len(bundle)
    return tables


def _check_event_time(event_time: str, rows: Sequence[Row]) -> None:
    names = list(dict.fromkeys(name for row in rows for name in row))
    if rows and event_time not in names:
        raise ColumnError(f"event_time({event_time!r}): there is no column {event_time!r}; the rows have {names}")


def _column(name: str, rows: Sequence[Row]) -> pa.Array:
    values = [row.get(name) for row in rows]
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        kinds = sorted({type(value).__name__ for value in values if value is not None})
        raise ScriptError(f"column {name!r} holds values of {kinds}, which are not of one type: {error}") from error


def _event_time_us(name: str, value: Any) -> int | None:
    return None if value is None else instant_us(f"row[{name!r}]", value)
