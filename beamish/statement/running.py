"""A statement on a script, in process: rows before the pipeline, panes after it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import pyarrow as pa

from beamish.kernels.reserved import EVENT_TIME
from beamish.pane import Pane, PaneKind
from beamish.script.events import Bundle, Event, Row, Step, as_step
from beamish.script.tables import tables_of
from beamish.statement.compile import Compiled
from beamish.statement.evaluation import condition, evaluate
from beamish.statement.expressions import Expression
from beamish.statement.nodes import COLUMN
from beamish.testing import TestStream


def run(statement: Compiled, script: TestStream) -> list[Pane]:
    """The output of a statement on a script.

    Raises:
        SqlError: a missing column, an expression that only Spark can compute, or one that fails on a value.
        ColumnError, ScriptError, PipelineError: as for ``Pipeline.run``.
    """
    events = script.events
    if statement.emit.kind == "pull":  # as in a batch: all rows, then the end of time
        rows = tuple(row for event in events for row in as_step(event).rows)
        events = TestStream().add(rows).advance_watermark_to_infinity().events
    panes = statement.pipeline.run(TestStream(_before(statement, events)))
    return _after(statement, panes)


def _before(statement: Compiled, events: Sequence[Event]) -> tuple[Event, ...]:
    """The input script of the pipeline."""
    bundles = [as_step(event).rows for event in events]
    rows = [row for bundle in bundles for row in bundle]
    if not rows:
        return tuple(events)
    tables = tables_of(bundles, statement.pipeline.flow.sources[0].event_time)
    table = pa.concat_tables(tables).drop_columns([EVENT_TIME]).combine_chunks()
    numbers = pa.array(range(len(rows)))
    if statement.where is not None:
        keeps = condition(statement.where.node, table, statement.where.text)
        numbers = numbers.filter(pa.array(keeps))
        table = table.take(numbers)
    added = {expression.name: _added(expression, table) for expression in (*statement.columns, *statement.computed)}
    made = dict(zip(numbers.to_pylist(), _rows_of(rows, numbers.to_pylist(), added), strict=True))
    first = 0
    changed: list[Event] = []
    for event in events:
        if not isinstance(event, (Bundle, Step)):
            changed.append(event)
            continue
        kept = tuple(made[at] for at in range(first, first + len(event.rows)) if at in made)
        first += len(event.rows)
        changed.append(attrs.evolve(event, rows=kept))
    return tuple(changed)


def _added(expression: Expression, table: pa.Table) -> list[Any]:
    """A column of the rows in the statement's spelling, or a computed one."""
    if expression.node.op != COLUMN and expression.name.lower() in map(str.lower, table.column_names):
        raise expression.error(
            f"the rows have a column {expression.name!r}, as this expression is called on the way; rename the column"
        )
    values: list[Any] = evaluate(expression.node, table, expression.text).to_pylist()
    return values


def _rows_of(rows: Sequence[Row], numbers: Sequence[int], added: dict[str, list[Any]]) -> list[Row]:
    return [
        {**rows[number], **{name: values[at] for name, values in added.items()}} for at, number in enumerate(numbers)
    ]


def _after(statement: Compiled, panes: Sequence[Pane]) -> list[Pane]:
    """The panes that satisfy HAVING, with the SELECT list as values."""
    made: dict[int, Pane] = {}
    numbers = [at for at, pane in enumerate(panes) if pane.kind is not PaneKind.DROPPED]
    table = _table_of_panes([panes[at] for at in numbers])
    if statement.having is not None and numbers:
        keeps = condition(statement.having.node, table, statement.having.text)
        numbers = [at for at, kept in zip(numbers, keeps, strict=True) if kept]
        table = table.filter(pa.array(keeps))
    shown = {
        item.expression.name: evaluate(item.expression.node, table, item.expression.text).to_pylist()
        for item in (statement.shown if numbers else ())
    }
    keys = [item.expression.name for item in statement.shown if item.is_key]
    for row, at in enumerate(numbers):
        values = {name: column[row] for name, column in shown.items()}
        key = {name: values.pop(name) for name in keys}
        change = panes[at].change
        if statement.having is not None and change is not None:  # the row before or after may be filtered out
            change = change.alone
        made[at] = attrs.evolve(panes[at], key=key, values=values, change=change)
    dropped = {at: _dropped(statement, pane) for at, pane in enumerate(panes) if pane.kind is PaneKind.DROPPED}
    return [(made | dropped)[at] for at in range(len(panes)) if at in made or at in dropped]


def _dropped(statement: Compiled, pane: Pane) -> Pane:
    """A dropped row without computed columns."""
    computed = {expression.name for expression in statement.computed}
    names = {item.key: item.expression.name for item in statement.shown if item.key is not None}
    return attrs.evolve(
        pane,
        key={names[name]: value for name, value in pane.key.items()},
        values={name: value for name, value in pane.values.items() if name not in computed},
    )


def _table_of_panes(panes: Sequence[Pane]) -> pa.Table:
    names = [*panes[0].key, *panes[0].values] if panes else []
    columns = {name: pa.array([{**pane.key, **pane.values}[name] for pane in panes]) for name in names}
    bounds = [None if pane.window is None else pane.window._asdict() for pane in panes]
    type_ = pa.struct([("start", pa.timestamp("us", tz="UTC")), ("end", pa.timestamp("us", tz="UTC"))])
    return pa.table({**columns, "window": pa.array(bounds, type_)})
