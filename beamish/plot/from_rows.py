"""The picture of panes written by a query."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs
import pyarrow as pa

from beamish.contract.relation import PANE_COLUMNS, Relation
from beamish.costs import warn
from beamish.errors import BeamishError, ColumnError, OptionError, PipelineError
from beamish.instants import EARLIEST_US, END_OF_TIME_US, LATEST_US, instant_us
from beamish.pane import Pane, PaneKind, RowWindow
from beamish.plot.picture import (
    Chosen,
    Panel,
    Picture,
    Point,
    Watermark,
    boxes_of,
    judged,
    key_name,
    key_of,
    value_label,
)
from beamish.script import panes_from_table

_PaneAt = tuple[float, Pane]


@attrs.frozen
class Columns:
    """The meaning of columns of stored rows and panes.

    Attributes:
        event_time: of rows, and of dropped rows; None: neither are shown.
        processing_time: of rows and panes; None: panes are shown in their order.
        label: of rows, the label column; None: their only other column, if there is one.
    """

    event_time: str | None
    processing_time: str | None
    label: str | None


def picture_of_panes(panes: Any, rows: Any, columns: Columns, *, key: Any, title: str | None, ideal: bool) -> Picture:
    """The picture of a query's rows and panes.

    Args:
        panes: a DataFrame or Arrow table of them, or a list of ``Pane``.
        rows: a DataFrame or Arrow table of the input rows, or a list of dicts; None: not shown.
        columns: the meaning of columns.
        key, title, ideal: as for ``timeline``.

    Raises:
        ColumnError: not panes, or a column is missing.
        OptionError: rows without time columns; no such key, or too many keys.
        PipelineError: count windows.
    """
    names, given = _panes(panes, columns.processing_time, warns=rows is None)
    by_clock = bool(given) and all(time is not None for time, _ in given)
    at = [(time, pane) for time, pane in given if time is not None] if by_clock else _in_order(given)
    if rows is not None and not (by_clock and columns.event_time):
        raise OptionError(
            "timeline(panes, rows=...): name the time columns, and add one to the panes: panes.withColumn('written_at', "
            "F.current_timestamp()), then timeline(panes, rows=rows, event_time='ts', processing_time='written_at'); or leave rows= out"
        )
    points = _points(rows, names, columns, [one for one in at if one[1].kind is PaneKind.DROPPED])
    chosen = Chosen(key, [names])
    keys = chosen.keys(0, [*points, *(key_of(pane.key.values()) for _, pane in at)])
    panels = [_panel(dict(zip(names, of, strict=True)), points.get(of, []), at, by_clock=by_clock) for of in keys]
    chosen.check(panels)
    return Picture(tuple(panels), title, by_clock, ideal and by_clock)


def _panel(key: Mapping[str, Any], points: Sequence[Point], panes: Sequence[_PaneAt], *, by_clock: bool) -> Panel:
    of_key = [(time, pane) for time, pane in panes if key_of(pane.key.values()) == key_of(key.values())]
    boxes = boxes_of(of_key, points, by_clock=by_clock)
    watermark = _watermark(of_key)
    points = [attrs.evolve(point, watermark_us=watermark.at(point.time)) for point in points]
    return Panel(key_name(key), 0, key, judged(points, boxes), (watermark,), boxes)


def _panes(
    panes: Any, processing_time: str | None, *, warns: bool
) -> tuple[list[str], list[tuple[float | None, Pane]]]:
    """The key columns, and each pane with its processing time if present; in the order of emission."""
    if isinstance(panes, Sequence) and all(isinstance(pane, Pane) for pane in panes):
        return list(panes[0].key) if panes else [], [(None, pane) for pane in panes]
    table = _table("panes", panes)
    missing = [name for name in ("window", "pane", "timestamp") if name not in table.column_names]
    if missing:
        raise ColumnError(
            f"timeline({_kind(panes)}): there is no column {missing[0]!r}; give panes, as pipeline.apply writes them, with all their columns"
        )
    times: list[float | None] = [None] * table.num_rows
    if processing_time is not None:
        times = [float(_us(processing_time, at)) for at in _column("panes", table, processing_time)]
        table = table.drop_columns([processing_time])
    table = _own_columns(table, warns=warns and processing_time is None)
    names = [name for name in table.column_names[: table.column_names.index("window")] if name not in PANE_COLUMNS]
    read = panes_from_table(table, Relation(tuple(names), schema=table.schema))
    given = list(zip(times, read, strict=True))
    for pane in read:
        if isinstance(pane.window, RowWindow):
            raise PipelineError(
                f"timeline: {pane} is in a count window; a timeline shows event-time windows, such as "
                "bm.FixedWindows('2 minutes')"
            )
    return names, sorted(given, key=lambda one: (one[0] or 0, _stood_us(one[1]), one[1].sequence))


def _own_columns(table: pa.Table, *, warns: bool) -> pa.Table:
    """The columns from the pipeline; columns added by the query, such as a write time, follow them."""
    ends = max(table.column_names.index(name) for name in ("timestamp", "dropped") if name in table.column_names)
    added = table.schema.names[ends + 1 :]
    times = [name for name in added if pa.types.is_timestamp(table.schema.field(name).type)]
    if times and warns:
        warn(
            f"timeline(panes): column {times[0]!r} is a time added by the query; to show panes at it use processing_time={times[0]!r}; now they are numbered in their order"
        )
    return table.drop_columns(added) if added else table


def _in_order(panes: Iterable[tuple[float | None, Pane]]) -> list[_PaneAt]:
    """Panes as steps: a step ends when the watermark moves, or when a window with a pane in it fires again."""
    steps: list[_PaneAt] = []
    number, stood_us = 1, -END_OF_TIME_US
    gave: set[str] = set()
    for _, pane in panes:
        slot = repr((pane.key, pane.window))
        if steps and (slot in gave or _stood_us(pane) != stood_us):
            number, gave = number + 1, set()
        stood_us = _stood_us(pane)
        if pane.kind is PaneKind.PANE:
            gave.add(slot)
        steps.append((float(number), pane))
    return steps


def _stood_us(pane: Pane) -> int:
    return -END_OF_TIME_US if pane.watermark is None else instant_us("pane.watermark", pane.watermark)


def _watermark(panes: Iterable[_PaneAt]) -> Watermark:
    """The watermark when panes were emitted; unknown in between."""
    steps: list[tuple[float, int]] = []
    for time, pane in panes:
        us = _stood_us(pane)
        if us == -END_OF_TIME_US or (steps and us <= steps[-1][1]):
            continue
        us = END_OF_TIME_US if us >= LATEST_US else us
        if us > EARLIEST_US:
            steps.append((time, us))
    return Watermark(None, tuple(steps))


def _points(
    rows: Any, names: Sequence[str], columns: Columns, dropped: Sequence[_PaneAt]
) -> dict[tuple[Any, ...], list[Point]]:
    """The rows by key, including dropped ones."""
    found: dict[tuple[Any, ...], list[Point]] = {}
    gone = list(dropped)
    event_time, processing_time = columns.event_time, columns.processing_time
    if event_time is None:
        return found
    for row in () if rows is None else _rows(rows, [event_time, str(processing_time), *names]):
        at = next((one for one in gone if _is_row(one[1].values, row)), None)
        if at is not None:
            gone.remove(at)
        time = float(_us(str(processing_time), row[str(processing_time)]))
        point = _point(row, time, columns, names)
        point = attrs.evolve(point, dropped=at[1].reason if at else None)
        found.setdefault(key_of(row[name] for name in names), []).append(point)
    for time, pane in gone:
        point = attrs.evolve(_point(pane.values, time, columns, names), dropped=pane.reason)
        found.setdefault(key_of(pane.key.values()), []).append(point)
    return {key: sorted(points, key=lambda point: point.time) for key, points in found.items()}


def _is_row(dropped: Mapping[str, Any], row: Mapping[str, Any]) -> bool:
    shared = dropped.keys() & row.keys()
    return bool(shared) and all(dropped[name] == row[name] for name in shared)


def _point(row: Mapping[str, Any], time: float, columns: Columns, names: Sequence[str]) -> Point:
    at = row.get(str(columns.event_time))
    others = [name for name in row if name not in (*names, columns.event_time, columns.processing_time)]
    label = columns.label or (others[0] if len(others) == 1 else None)
    us = None if at is None else _us(str(columns.event_time), at)
    return Point(us, time, "" if label is None else value_label(row.get(label)))


def _rows(rows: Any, needed: Iterable[str]) -> list[Mapping[str, Any]]:
    if isinstance(rows, Sequence) and all(isinstance(row, Mapping) for row in rows):
        listed = list(rows)
    else:
        listed = _table("rows", rows).to_pylist()
    for name in needed:
        if listed and name not in listed[0]:
            raise ColumnError(f"timeline(rows={_kind(rows)}): there is no column {name!r}; there are {list(listed[0])}")
    return listed


def _table(what: str, given: Any) -> pa.Table:
    """A DataFrame of any kind as Arrow."""
    if isinstance(given, pa.Table):
        return _in_utc(given)
    if getattr(given, "isStreaming", False):
        raise OptionError(
            f"timeline({what}=a streaming DataFrame): it has no rows yet; write it to a table, and plot that: spark.read.table(...)"
        )
    if hasattr(given, "toArrow"):
        return _in_utc(given.toArrow())
    if hasattr(given, "__arrow_c_stream__"):
        return _in_utc(pa.table(given))
    raise OptionError(
        f"timeline({_kind(given)}): must be a pipeline with a script, or {what} as a DataFrame, an Arrow table or a list: "
        "timeline(pipeline, script), timeline(panes)"
    )


def _in_utc(table: pa.Table) -> pa.Table:
    """A table whose timestamps without a zone are in UTC: Spark writes Parquet this way, and Arrow and pandas read it so."""
    schema = pa.schema([pa.field(field.name, _type_in_utc(field.type)) for field in table.schema])
    return table if table.schema.equals(schema) else table.cast(schema, safe=False)


def _type_in_utc(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(type_) and type_.tz is None:
        return pa.timestamp("us", "UTC")
    if pa.types.is_struct(type_):
        return pa.struct([pa.field(field.name, _type_in_utc(field.type)) for field in type_])
    return type_


def _column(what: str, table: pa.Table, name: str) -> list[Any]:
    if name not in table.column_names:
        raise ColumnError(f"timeline({what}): there is no column {name!r}; there are {table.column_names}")
    return table[name].to_pylist()  # type: ignore[no-any-return]


def _us(name: str, at: Any) -> int:
    error: type[BeamishError] = ColumnError
    return instant_us(name, at, error)


def _kind(given: Any) -> str:
    return f"a {type(given).__name__}"
