"""A test script: its events, its rows as tables, its panes as objects."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

import attrs
import pyarrow as pa

from beamish.contract.inputs import NO_ROWS
from beamish.contract.relation import Relation
from beamish.contract.updates import ROW_WINDOW
from beamish.errors import ColumnError, ScriptError
from beamish.flow import Flow
from beamish.forms import InputForm, Unfolded, is_of_panes, not_as_rows
from beamish.instants import instant, instant_in_words, instant_us
from beamish.kernels.column_names import EVENT_TIME, PREFIX, SIGN, has_no_event_time, is_reserved, respelled
from beamish.kernels.field_paths import parts_of, spelled, value_of
from beamish.kernels.python_columns import UnfitValueError, name_refusal, python_column
from beamish.markup import html_table
from beamish.pane import DropReason, Pane, PaneChange, PaneKind, PaneList, PaneTiming, RowWindow, Window
from beamish.python_values import is_null
from beamish.source import Source

Row = Mapping[str, Any]


@attrs.frozen
class Bundle:
    """Rows that arrive together; in a merge, those of one input."""

    rows: tuple[Row, ...]
    input: str | None = None


@attrs.frozen
class WatermarkTo:
    """The watermark advances to ``us``, microseconds since the epoch; END_OF_TIME_US is the end of time.

    In a merge, that of one input, or (None) those of all.
    """

    us: int
    input: str | None = None


@attrs.frozen
class ClockTo:
    """The processing-time clock, which begins at 0, advances to ``us``."""

    us: int


@attrs.frozen
class Step:
    """One micro-batch: the watermark advances, then the clock, then rows arrive. The other events are steps with one of these parts.

    Attributes:
        rows: as in ``Bundle``; empty: no rows.
        input: in a merge, the input of the rows and the watermark; None: the watermarks of all, and no rows.
        watermark_us: as in ``WatermarkTo``; None: unchanged.
        clock_us: as in ``ClockTo``; None: unchanged.
    """

    rows: tuple[Row, ...] = ()
    input: str | None = None
    watermark_us: int | None = None
    clock_us: int | None = None


@attrs.frozen
class MicroBatch:
    """One micro-batch of several inputs: a step with rows or watermarks of each.

    Attributes:
        parts: for each input its rows and watermark; without an input: the watermark of all. None has a clock.
        clock_us: as in ``ClockTo``; None: unchanged.
    """

    parts: tuple[Step, ...]
    clock_us: int | None = None


Event = Bundle | WatermarkTo | ClockTo | Step | MicroBatch


def steps_of(event: Event) -> tuple[Step, ...]:
    """The rows and watermarks of each input."""
    return event.parts if isinstance(event, MicroBatch) else (as_step(event),)


def of_inputs(event: Event, names: Collection[str | None]) -> Event:
    """An event without the rows and watermarks of other inputs."""
    if isinstance(event, MicroBatch):
        return attrs.evolve(event, parts=tuple(step for step in event.parts if step.input in {None, *names}))
    step = as_step(event)
    return event if step.input in {None, *names} else Step(clock_us=step.clock_us)


def clock_of(event: Event) -> int | None:
    """The clock that an event advances to; None: unchanged."""
    return event.clock_us if isinstance(event, MicroBatch) else as_step(event).clock_us


def as_step(event: Event) -> Step:
    """An event as a step of one input.

    Raises:
        ScriptError: it is one of several inputs.
    """
    match event:
        case Bundle(rows, of):
            return Step(rows, of)
        case WatermarkTo(us, of):
            return Step(input=of, watermark_us=us)
        case ClockTo(us):
            return Step(clock_us=us)
        case Step():
            return event
        case MicroBatch():
            raise ScriptError(
                "a step of several inputs at once works in pipeline.run(script), trace, on_spark and timeline only; here write a step for each "
                "input: step(rows, input=...)"
            )


def in_words(event: Event) -> str:
    """The call that created an event, for messages."""
    match event:
        case Bundle():
            return "add(rows)"
        case WatermarkTo(us):
            return f"advance_watermark_to({us / 1e6})"
        case ClockTo(us):
            return f"advance_processing_time_to({us / 1e6})"
        case Step(watermark_us=us):
            return "step(rows)" if us is None else f"step(watermark={us / 1e6})"
        case MicroBatch():
            return "step({...})"


def shown(event: Event) -> str:
    """An event in words, for traces."""
    words = []
    for step in steps_of(event):
        own = [] if step.watermark_us is None else [f"watermark: {instant_in_words(step.watermark_us)}"]
        own += [] if step.clock_us is None else [f"clock: {instant_in_words(step.clock_us)}"]
        own += [str(dict(row)) for row in step.rows]
        words += [", ".join(filter(None, [step.input and f"{step.input}:", *own]))]
    if isinstance(event, MicroBatch) and event.clock_us is not None:
        words.insert(0, f"clock: {instant_in_words(event.clock_us)}")
    return ", ".join(filter(None, words)) or "nothing"


@attrs.frozen
class ScriptRows:
    """The rows of a script.

    Attributes:
        tables: the rows of each source, by name: a table for each step with rows, in order, with the rows' columns and ``EVENT_TIME``.
        initial: the initial rows of tables, by the name of their source.
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
    """Check a script against a flow.

    Raises:
        ScriptError: an unknown or missing input, or an update of a watermark that follows the clock.
    """
    names = [source.name for source in flow.sources if source.name is not None]
    for event, step in ((one, step) for one in events for step in steps_of(one)):
        call = in_words(event)
        if names and step.input is None and (step.rows or isinstance(event, Bundle)):
            raise ScriptError(
                f"{call}: the pipeline merges {', '.join(names)}; name the input of the rows: input={names[0]!r}"
            )
        if step.input is not None and step.input not in names:
            known = f"the inputs are {', '.join(names)}" if names else "the pipeline is not a merge; leave input= out"
            raise ScriptError(f"{call} with input={step.input!r}: {known}")
        for source in flow.sources:
            if watermark_of(source, step) is not None:
                _check_is_moved(source, call)


def _check_is_moved(source: Source, call: str) -> None:
    if source.watermark is not None and not source.watermark.moved_by_rows:
        raise ScriptError(
            f"{call} with {type(source.watermark).__name__}: it follows the clock; use advance_processing_time_to"
        )


def watermark_of(source: Source, step: Step) -> int | None:
    """The watermark that a step advances a source to; None: unchanged."""
    return step.watermark_us if step.input in (None, source.name) else None


def moved_to(source: Source, event: Event) -> int | None:
    """The watermark that an event advances a source to; None: unchanged."""
    moves = [us for step in steps_of(event) if (us := watermark_of(source, step)) is not None]
    return max(moves, default=None)


def script_rows(flow: Flow, events: Sequence[Event], initial: Any = None) -> ScriptRows:
    """The rows of a script, and the initial rows of tables (as for ``Flow.initial``).

    Raises:
        ColumnError: a column is missing, or has a reserved name.
        ScriptError: a column has values of different types, or an invalid event time.
        PipelineError: they are panes, used as plain rows.
    """
    steps, tables, begins = [step for event in events for step in steps_of(event)], {}, {}
    given = flow.initial(initial)
    named = {source.name: taker.stage.asks(taker.takes, number) for source, taker, number in flow.leaves}
    for source in flow.sources:
        arrived = [step.rows for step in steps if step.rows and step.input == source.name]
        bundles = _spelled(arrived, (*source.keys, source.event_time, *named[source.name]))
        if source.name in given:
            begin = _initial(given[source.name])
            _check_event_time(source.event_time, begin)
            row_names = RowNames(source.name, len(begin))
            begins[source.name], *tables[source.name] = _tables(source, [begin, *bundles], row_names)
        else:
            tables[source.name] = _tables(source, bundles, RowNames(source.name))
        if (sets := source.key_sets) is not None:
            tables[source.name] = [
                sets.expand(table, table.schema.get_field_index(EVENT_TIME)) for table in tables[source.name]
            ]
    schemas: dict[str | None, pa.Schema] = {}
    for source, taker, number in flow.leaves:
        asked = taker.stage.asks(taker.takes, number)
        known = [*([begins[source.name]] if source.name in begins else []), *tables[source.name]]
        schemas[source.name] = _schema(source, asked, known)
    return ScriptRows(tables, begins, schemas)


def _tables(source: Source, bundles: Sequence[Sequence[Row]], names: RowNames) -> list[pa.Table]:
    """The bundles of a source as tables; with an input form as data rows, with ``SIGN``."""
    form = source.form
    if form is None:
        tables = tables_of(bundles, source.event_time, names)
        _check_no_panes(source, tables)
        return tables
    unfolded: list[list[Unfolded]] = []
    numbers: list[int] = []
    first = 0
    for bundle in bundles:
        parts = [
            (number, one) for number, row in enumerate(bundle, first) for one in _unfolded(form, row, names(number))
        ]
        numbers += [number for number, _ in parts]
        unfolded.append([one for _, one in parts])
        first += len(bundle)
    names = attrs.evolve(names, numbers=numbers)
    tables = tables_of([[row for row, _ in bundle] for bundle in unfolded], source.event_time, names)
    signs = [pa.array([sign for _, sign in bundle], pa.int8()) for bundle in unfolded]
    at = [table.schema.get_field_index(EVENT_TIME) for table in tables]
    return [table.add_column(i, SIGN, sign) for table, i, sign in zip(tables, at, signs, strict=True)]


def _unfolded(form: InputForm, row: Row, name: str) -> list[Unfolded]:
    """The data rows of a row; its null-like values are null."""
    try:
        return list(form.unfold({column: None if is_null(value) else value for column, value in row.items()}))
    except ScriptError as error:
        raise ScriptError(f"{name}: {error}") from None


def _check_no_panes(source: Source, tables: Sequence[pa.Table]) -> None:
    for field in tables[0].schema if tables else ():
        if field.name == "pane" and pa.types.is_struct(field.type) and is_of_panes([one.name for one in field.type]):
            raise not_as_rows(source.event_time)


def _spelled(bundles: Sequence[Sequence[Row]], asked: Sequence[Any]) -> list[Sequence[Row]]:
    """Rename columns to the requested spelling, since Spark ignores case."""
    names = list(dict.fromkeys(name for bundle in bundles for row in bundle for name in row))
    new = respelled(names, [name for name in asked if isinstance(name, str)])
    if not new:
        return list(bundles)
    return [[{new.get(name, name): value for name, value in row.items()} for row in bundle] for bundle in bundles]


def check_names(where: str, rows: Sequence[Row]) -> None:
    """Check that the columns of rows have names (ScriptError: a name is not text)."""
    for name in dict.fromkeys(name for row in rows for name in row):
        refusal = name_refusal(name)
        if refusal is not None:
            raise ScriptError(f"{where}: a row has a column {name!r}: {refusal}")


def _initial(rows: Any) -> Sequence[Row]:
    if not isinstance(rows, Sequence) or not all(isinstance(row, Mapping) for row in rows):
        raise ScriptError(
            f"run(initial={rows!r}): must be a list of rows, dicts of column name to value, such as initial=[{{'ts': 1}}]"
        )
    check_names("run(initial=...)", rows)
    return rows


def _schema(source: Source, asked: Sequence[str], tables: Sequence[pa.Table]) -> pa.Schema:
    """The schema of a source; requested columns are null without rows."""
    schema = tables[0].drop_columns([EVENT_TIME]).schema if tables else pa.schema([])
    if not tables:
        named = [(parts_of(name) or [name])[0] for name in (*source.keys, source.event_time, *asked)]
        for name in dict.fromkeys(named):
            if name not in schema.names and not has_no_event_time(name):
                schema = schema.append(pa.field(name, pa.null()))
        if source.form is not None:
            schema = schema.append(pa.field(SIGN, pa.int8()))
    return schema if tables else schema.with_metadata(NO_ROWS)


@attrs.frozen
class RowNames:
    """How messages name the rows of a source, from 1 over all bundles.

    Attributes:
        input: the name of the source.
        initial: how many initial rows of a table there are, which come first.
        numbers: the number of each row, from 0, where a row stands for several, or for none; None: as they are.
    """

    input: str | None = None
    initial: int = 0
    numbers: Sequence[int] | None = None

    def __call__(self, row: int) -> str:
        number = row if self.numbers is None else self.numbers[row]
        begins = number < self.initial
        words = f"initial row {number + 1}" if begins else f"row {number - self.initial + 1}"
        return words if self.input is None else f"{words} of {self.input}"


def tables_of(bundles: Sequence[Sequence[Row]], event_time: Any, row_names: RowNames | None = None) -> list[pa.Table]:
    """Bundles as tables, one per bundle, with ``EVENT_TIME`` beside the rows' own columns.

    Args:
        bundles: the rows.
        event_time: their column.
        row_names: how messages name them.

    Raises:
        ColumnError: no row has the event time's column.
        ScriptError: a column has values of different types, or an invalid event time.
    """
    if not isinstance(event_time, str):
        raise ColumnError(f"event_time({event_time}): a Column expression works on Spark only; give a column name")
    rows = [row for bundle in bundles for row in bundle]
    untimed = has_no_event_time(event_time)
    names = list(dict.fromkeys(name for row in rows for name in row))
    if not untimed:
        _check_event_time(event_time, rows)
    for name in names:
        if is_reserved(name):
            raise ColumnError(f"column {name!r}: names that begin with {PREFIX!r} are reserved; rename it")
    shown_as = row_names or RowNames()
    times = [_event_time_us(shown_as(i), event_time, value_of(row, event_time)) for i, row in enumerate(rows)]
    columns = {name: _column(name, rows, shown_as) for name in names}
    table = pa.table({**columns, EVENT_TIME: pa.array(times, pa.int64())})
    tables, start = [], 0
    for bundle in bundles:
        tables.append(table.slice(start, len(bundle)))
        start += len(bundle)
    return tables


def _check_event_time(event_time: str, rows: Sequence[Row]) -> None:
    names = list(dict.fromkeys(name for row in rows for name in row))
    parts = parts_of(event_time) or ()
    root = spelled(names, parts[0]) if parts else None
    if rows and event_time not in names and (root is None or not _has_field(rows, root, parts[1:])):
        raise ColumnError(f"event_time({event_time!r}): there is no column {event_time!r}; the rows have {names}")


def _has_field(rows: Sequence[Row], root: str, parts: Sequence[str]) -> bool:
    """Whether a path leads to a field in some row, or the structs on it are null in all rows."""
    values = [row.get(root) for row in rows]
    for part in parts:
        values = [value for value in values if not is_null(value)]
        if not values:
            return True
        found = [(value, spelled(value, part)) for value in values if isinstance(value, Mapping)]
        values = [value[name] for value, name in found if name is not None]
        if not values:
            return False
    return True


def _column(name: str, rows: Sequence[Row], row_names: RowNames) -> pa.Array:
    try:
        return python_column([row.get(name) for row in rows])
    except UnfitValueError as unfit:
        raise ScriptError(f"column {name!r}: {unfit.said(row_names)}") from None


def _event_time_us(row: str, name: str, value: Any) -> int | None:
    return None if is_null(value) else instant_us(f"{row}: row[{name!r}]", value)


class Trace(list[tuple[Event, list[Pane]]]):
    """The events of a script with their output: a list that is shown in a notebook as a table."""

    def _repr_html_(self) -> str:
        rows = []
        for number, (event, panes) in enumerate(self):
            first, *others = [str(pane) for pane in panes] or [""]
            rows += [(number, shown(event), first), *(("", "", pane) for pane in others)]
        return html_table(("", "event", "output"), rows)


def panes_from_table(table: pa.Table, gives: Relation) -> PaneList:
    """The rows of a stage's output, in order; ``gives`` has the key columns."""
    windows, timestamps = windows_of(table), table["timestamp"].cast(pa.int64()).to_pylist()
    rows, values = table.drop_columns(["window", "timestamp"]).to_pylist(), gives.values
    return PaneList(
        _pane(row, gives.keys, values, own, _instant(time))
        for row, own, time in zip(rows, windows, timestamps, strict=True)
    )


def windows_of(table: pa.Table) -> list[Window | RowWindow | None]:
    """The windows of output rows; None: no window."""
    window = table["window"].combine_chunks()
    if window.type == ROW_WINDOW:
        return [None if row is None else RowWindow(row["start"], row["end"]) for row in window.to_pylist()]
    starts, ends = (window.field(name).cast(pa.int64()).to_pylist() for name in ("start", "end"))
    return [
        Window(_instant(start), _instant(end)) if known else None
        for known, start, end in zip(window.is_valid().to_pylist(), starts, ends, strict=True)
    ]


def _pane(
    row: Mapping[str, Any],
    keys: Sequence[str],
    values: Sequence[str],
    window: Window | RowWindow | None,
    timestamp: datetime | None,
) -> Pane:
    info, dropped = row["pane"], row.get("dropped")
    return Pane(
        key={name: row[name] for name in keys},
        window=window,
        values=dict(dropped["row"]) if dropped else {name: row[name] for name in values},
        kind=PaneKind(info["kind"]),
        timing=PaneTiming(info["timing"]),
        index=info["index"],
        on_time_index=info["on_time_index"],
        is_first=info["is_first"],
        is_last=info["is_last"],
        timestamp=timestamp,
        change=info["change"] and PaneChange(info["change"]),
        sequence=info["sequence"],
        watermark=info["watermark"],
        reason=DropReason(dropped["reason"]) if dropped else None,
        **({"late_by_rows" if isinstance(window, RowWindow) else "late_by_us": dropped["late_by"]} if dropped else {}),
        message=dropped.get("message") if dropped else None,
    )


def _instant(us: int | None) -> datetime | None:
    return None if us is None else instant(us)
