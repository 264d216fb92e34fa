"""A statement on a script, in process: rows before the pipeline, panes after it.

Expressions in process: the value of a tree for each row of a table.

Evaluation is as lazy as Spark's: a branch of CASE only for its rows, the second operand of AND and OR only where the first does
not decide, that of an arithmetic operator or a comparison only where the first is not null. So ``x <> 0 AND 10 / x > 1`` does not
fail.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from beamish.errors import SqlError
from beamish.kernels.column_names import EVENT_TIME
from beamish.pane import Pane, PaneKind
from beamish.script import Bundle, Event, Row, Step, as_step, tables_of
from beamish.statement.compile import Compiled
from beamish.statement.expressions import COLUMN, LITERAL, UNKNOWN, Expression, Node
from beamish.statement.functions import FUNCTIONS
from beamish.statement.functions.comparisons import as_boolean
from beamish.statement.functions.nested import field
from beamish.statement.functions.types import RefusedError, common, known, literal
from beamish.statement.text import Text
from beamish.testing import TestStream


def evaluate(node: Node, rows: pa.Table, text: Text) -> pa.Array:
    """The values of an expression, one per row.

    Args:
        node: the expression.
        rows: the columns that it names.
        text: the statement, for errors.

    Raises:
        SqlError: a column is missing, only Spark can compute it, or it fails on a value.
    """
    if node.op == COLUMN:
        return _column(node, rows, text)
    if node.op == LITERAL:
        return literal(node.value, rows.num_rows)
    if node.op == UNKNOWN:
        raise text.error(
            node.at,
            f"{node.value}: only Spark computes this; a script knows what docs/sql.md lists: run it by .apply(df) on a batch "
            "DataFrame, or give the script the value as a column",
        )
    try:
        lazy = _LAZY.get(node.op)
        if lazy is not None:
            return lazy(node, rows, text)
        return FUNCTIONS[node.op]([evaluate(arg, rows, text) for arg in node.args], node.value)
    except SqlError:
        raise
    except (RefusedError, pa.ArrowException, OverflowError, TypeError) as error:
        words = str(error).partition("\n")[0]
        raise text.error(node.at, f"{node.op}: {words}") from error


def condition(node: Node, rows: pa.Table, text: Text) -> NDArray[np.bool_]:
    """Whether a condition is true, per row; null is false (SqlError: as for ``evaluate``, or it is not a condition)."""
    values = evaluate(node, rows, text)
    try:
        return _true(as_boolean(values))
    except RefusedError as error:
        raise text.error(node.at, str(error)) from error


def _column(node: Node, rows: pa.Table, text: Text) -> pa.Array:
    first, *fields = node.value
    found = [name for name in rows.column_names if name == first]
    found = found or [name for name in rows.column_names if name.lower() == first.lower()]
    if len(found) != 1:
        raise text.error(node.at, f"there is no column {first!r}; the columns are {rows.column_names}")
    values = rows[found[0]].combine_chunks()
    for name in fields:
        try:
            values = field(values, name)
        except RefusedError as error:
            raise text.error(node.at, f"{'.'.join(node.value)}: {error}") from error
    return known(values)


def _true(values: pa.Array) -> NDArray[np.bool_]:
    return np.asarray(pc.fill_null(values, fill_value=False), dtype=bool)


def _case(node: Node, rows: pa.Table, text: Text) -> pa.Array:
    *pairs, otherwise = node.args
    left = np.arange(rows.num_rows)
    chosen, values = [], []
    for when, then in zip(pairs[::2], pairs[1::2], strict=True):
        holds = condition(when, rows.take(left), text)
        chosen.append(left[holds])
        values.append(evaluate(then, rows.take(chosen[-1]), text))
        left = left[~holds]
    return _together([*chosen, left], [*values, evaluate(otherwise, rows.take(left), text)])


def _coalesce(node: Node, rows: pa.Table, text: Text) -> pa.Array:
    left = np.arange(rows.num_rows)
    chosen, values = [], []
    for arg in node.args:
        found = evaluate(arg, rows.take(left), text)
        present = np.asarray(found.is_valid(), dtype=bool)
        chosen.append(left[present])
        values.append(found.filter(pa.array(present)))
        left = left[~present]
    return _together([*chosen, left], [*values, pa.nulls(len(left))])


def _together(chosen: Sequence[NDArray[np.int64]], values: Sequence[pa.Array]) -> pa.Array:
    """Combine the values of some rows each, in the order of the rows."""
    order = np.argsort(np.concatenate(chosen), kind="stable")
    return pa.concat_arrays(common(values)).take(pa.array(order))


def _settled(by: bool) -> Callable[[Node, pa.Table, Text], pa.Array]:
    def function(node: Node, rows: pa.Table, text: Text) -> pa.Array:
        first = as_boolean(evaluate(node.args[0], rows, text))
        open_ = np.flatnonzero(~_true(pc.equal(first, by)))
        second = as_boolean(evaluate(node.args[1], rows.take(open_), text))
        whole = np.full(rows.num_rows, -1)
        whole[open_] = np.arange(len(open_))
        spread = second.take(pa.array(whole, mask=whole < 0))
        return (pc.or_kleene if by else pc.and_kleene)(
            first, pc.if_else(pc.equal(first, by).fill_null(fill_value=False), by, spread)
        )

    return function


def _null_first(first: int) -> Callable[[Node, pa.Table, Text], pa.Array]:
    """Evaluate one operand only where the other is not null."""

    def function(node: Node, rows: pa.Table, text: Text) -> pa.Array:
        deciding = evaluate(node.args[first], rows, text)
        present = np.flatnonzero(deciding.is_valid())
        whole = np.full(rows.num_rows, -1)
        whole[present] = np.arange(len(present))
        other = evaluate(node.args[1 - first], rows.take(present), text).take(pa.array(whole, mask=whole < 0))
        return FUNCTIONS[node.op]([other, deciding] if first else [deciding, other], node.value)

    return function


_LAZY: Mapping[str, Callable[[Node, pa.Table, Text], pa.Array]] = {
    "CASE": _case,
    "COALESCE": _coalesce,
    "AND": _settled(by=False),
    "OR": _settled(by=True),
    **dict.fromkeys(("+", "-", "*", "=", "<>", "<", ">", "<=", ">="), _null_first(0)),
    **dict.fromkeys(("/", "DIV", "%"), _null_first(1)),  # Spark checks the divisor first
}


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
