"""A statement on a script, in process: rows before the pipeline, panes after it.

Expressions in process: the value of a tree for each row of a table.

Evaluation is as lazy as Spark's: a branch of CASE only for its rows, the second operand of AND and OR only where the first does
not decide, that of an arithmetic operator or a comparison only where the first is not null. So ``x <> 0 AND 10 / x > 1`` does not
fail.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from itertools import islice
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from beamish.contract.updates import TIMESTAMP
from beamish.errors import SqlError, check_memory
from beamish.flow import Flow
from beamish.instants import instant, instant_us
from beamish.kernels.column_names import EVENT_TIME
from beamish.pane import Pane, PaneKind
from beamish.script import Bundle, Event, MicroBatch, Row, Step, script_rows, steps_of, tables_of
from beamish.statement.compile import Compiled
from beamish.statement.functions import FUNCTIONS
from beamish.statement.functions.comparisons import as_boolean
from beamish.statement.functions.nested import field
from beamish.statement.functions.types import RefusedError, common, known, literal
from beamish.statement.grammar.expressions import COLUMN, LITERAL, UNKNOWN, Expression, Node
from beamish.statement.grammar.names import is_known, unknown
from beamish.statement.grammar.text import Text
from beamish.statement.inputs import Input
from beamish.statement.joins import Side
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
        if node.value.isidentifier() and not is_known(node.value.upper()):
            raise text.error(node.at, unknown(node.value.upper()))
        raise text.error(
            node.at,
            f"{' '.join(node.value.split())}: only Spark computes this, a script what docs/sql.md#in-process lists; apply the query to "
            "a batch DataFrame, or give the script the value as a column",
        )
    try:
        lazy = _LAZY.get(node.op)
        if lazy is not None:
            return lazy(node, rows, text)
        return FUNCTIONS[node.op]([evaluate(arg, rows, text) for arg in node.args], node.value)
    except SqlError:
        raise
    except (RefusedError, pa.ArrowException, OverflowError, TypeError) as error:
        check_memory(error)
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


@attrs.frozen
class ScriptedStatement:
    """A statement on a script.

    Attributes:
        statement: the statement.
        given: the script; of a pull query all rows, then the end of time.
        events: the input script of its pipeline.
        columns: the columns of each input's rows in the script, by the name of the input; none: it has no rows.
    """

    statement: Compiled
    given: tuple[Event, ...]
    events: tuple[Event, ...]
    columns: Mapping[str | None, Sequence[str]]

    @classmethod
    def of(cls, statement: Compiled, script: TestStream) -> ScriptedStatement:
        """Compute WHERE, and the columns that the pipeline needs.

        Raises:
            SqlError: as for ``evaluate``.
            ColumnError, ScriptError: as for ``Pipeline.run``.
        """
        given = script.events
        if statement.read.emit.kind == "pull":  # as in a batch: all rows, then the end of time
            bundles = [Bundle(step.rows, step.input) for event in given for step in steps_of(event) if step.rows]
            given = (*bundles, *TestStream().advance_watermark_to_infinity().events)
        columns: dict[str | None, dict[str, None]] = {}
        for step in (step for event in given for step in steps_of(event)):
            columns.setdefault(step.input, {}).update((column, None) for row in step.rows for column in row)
        times = {source.name: source.event_time for source in statement.pipeline.flow.completed.sources}
        events = given
        for one in statement.inputs:
            name = one.rows.name if statement.joined else None
            events = _before(one, events, name, times.get(name))
        return cls(statement, given, events, {name: list(names) for name, names in columns.items()})

    @property
    def flow(self) -> Flow:
        """That of its pipeline."""
        return self.statement.pipeline.flow.completed

    @property
    def keys(self) -> list[str]:
        """The items of the SELECT list that are keys."""
        return [item.expression.name for item in self.statement.shown(self._columns_of_sides()) if item.is_key]

    def shown(self, panes: Sequence[Pane]) -> list[Pane]:
        """The panes that satisfy HAVING, or WHERE over a join, with the SELECT list as values."""
        made: dict[int, Pane] = {}
        statement, having = self.statement, self.statement.having
        numbers = [at for at, pane in enumerate(panes) if pane.kind is not PaneKind.DROPPED]
        of_sides = self._columns_of_sides()
        items = statement.shown(of_sides)
        table = self._table([panes[at] for at in numbers], of_sides) if numbers else pa.table({})
        if having is not None and numbers:
            keeps = condition(having.node, table, having.text)
            numbers = [at for at, kept in zip(numbers, keeps, strict=True) if kept]
            table = table.filter(pa.array(keeps))
        shown = {
            item.expression.name: _values(evaluate(item.expression.node, table, item.expression.text))
            for item in (items if numbers else ())
        }
        keys = [item.expression.name for item in items if item.is_key]
        for row, at in enumerate(numbers):
            values = {name: column[row] for name, column in shown.items()}
            key = {name: values.pop(name) for name in keys}
            change = panes[at].change
            if having is not None and change is not None:  # the row before or after may be filtered out
                change = change.alone
            timestamp = self._time(panes[at])
            made[at] = attrs.evolve(panes[at], key=key, values=values, change=change, timestamp=timestamp)
        dropped = {at: self._dropped(pane) for at, pane in enumerate(panes) if pane.kind is PaneKind.DROPPED}
        return [(made | dropped)[at] for at in range(len(panes)) if at in made or at in dropped]

    def _time(self, pane: Pane) -> datetime | None:
        """The time of a row: of a joined one that of its later part, as in ksqlDB."""
        joined, times = self.statement.joined, list[int]()
        for side in () if joined is None else joined.sides:
            row = _row_of(side, pane) if side.time else None
            if side.time and row is not None:
                times.append(instant_us(side.time, row[side.time]))
        return instant(max(times)) if times else pane.timestamp

    def _dropped(self, pane: Pane) -> Pane:
        """A dropped row without computed columns."""
        names = {item.key: item.expression.name for item in self.statement.grouped if item.key is not None}
        key = {names[name]: value for name, value in pane.key.items() if name in names}
        if self.statement.joined is None:
            return attrs.evolve(pane, key=key, values=_without(pane.values, self.statement.inputs[0]))
        rows = dict(pane.values)
        for one in self.statement.inputs:
            rows[one.rows.name] = _without(rows[one.rows.name], one)
        return attrs.evolve(pane, key=key, values=rows)

    def _columns_of_sides(self) -> Mapping[str, Sequence[str]]:
        """The columns of each side of a join, by alias; of one without rows those that the statement names."""
        joined = self.statement.joined
        if joined is None:
            return {"": self.columns.get(None, ())}
        given = {side.alias: self.columns.get(side.name) for side in joined.sides}
        columns = {side.alias: side.columns(given[side.alias] or ()) for side in joined.sides}
        trees = [joined.expression(item.tree) for item in self.statement.read.items if not item.tree.is_star]
        paths = [
            node.value
            for one in (*trees, *filter(None, [self.statement.having]))
            for node in one.node.walk()
            if node.op == COLUMN
        ]
        for alias in [alias for alias, names in given.items() if not names]:
            columns[alias] = list(dict.fromkeys([*columns[alias], *(path[1] for path in paths if path[0] == alias)]))
        return columns

    @cached_property
    def _schema(self) -> pa.Schema:
        """The output of the pipeline."""
        bound = self.flow.bind(script_rows(self.flow, self.events).schemas, shards=1)
        schema: pa.Schema = bound.operator.gives.schema
        return schema

    def _table(self, panes: Sequence[Pane], columns: Mapping[str, Sequence[str]]) -> pa.Table:
        """Panes, at least one, as rows: of a join a struct for each side, and the columns that only one side has."""
        joined, schema = self.statement.joined, self._schema
        if joined is None:
            rows = [{**pane.key, **pane.values, "window": pane.window and pane.window._asdict()} for pane in panes]
            made = {name: pa.array([row[name] for row in rows], schema.field(name).type) for name in rows[0]}
            return pa.table({"timestamp": pa.array([pane.timestamp for pane in panes], TIMESTAMP), **made})
        sides = {
            side.alias: pa.array(
                [_row(side, pane, columns[side.alias]) for pane in panes], _type(side, schema, columns[side.alias])
            )
            for side in joined.sides
        }
        single = {name: field(sides[alias], name) for name, alias in joined.single(columns).items()}
        return pa.table({**single, **sides})


def _type(side: Side, schema: pa.Schema, columns: Sequence[str]) -> pa.StructType:
    """The type of a side's rows: of a column that no row has null."""
    held: pa.StructType = pa.struct(list(schema))
    for name in side.path:
        held = held.field(name).type
    types = {"timestamp": TIMESTAMP, **{one.name: one.type for one in held}, **dict.fromkeys(side.bounds, TIMESTAMP)}
    types |= {name: schema.field(key).type for name, key in side.keys.items()}
    return pa.struct([(name, types.get(name, pa.null())) for name in columns])


def _row(side: Side, pane: Pane, columns: Sequence[str]) -> Row | None:
    """The row of a side of a joined row with these columns; None: it has none."""
    row = _row_of(side, pane)
    return None if row is None else {name: row.get(name) for name in columns}


def _row_of(side: Side, pane: Pane) -> Row | None:
    """The row of a side of a joined row; None: it has none."""
    whole = {**pane.key, **pane.values}
    row: Any = whole
    for name in side.path:
        row = row[name]
    if row is None:
        return None
    keys = {name: whole[key] for name, key in side.keys.items()}
    bounds = {name: _bound(pane, which) for name, which in side.bounds.items()}
    return {"timestamp": pane.timestamp, **row, **keys, **bounds}


def _bound(pane: Pane, which: str) -> datetime | None:
    """A bound of a pane's window; its "time" is the last millisecond in it."""
    bound: Any = getattr(pane.window, "end" if which == "time" else which, None)
    found: datetime | None = bound - timedelta(milliseconds=1) if which == "time" and bound is not None else bound
    return found


def _without(row: Row | None, one: Input) -> Any:
    added = one.added
    return None if row is None else {name: value for name, value in row.items() if name not in added}


def _before(one: Input, events: Sequence[Event], name: str | None, event_time: Any) -> tuple[Event, ...]:
    """The events with the rows of an input as the pipeline reads them."""
    if one.where is None and not one.columns and not one.computed:
        return tuple(events)
    bundles = [step.rows for event in events for step in steps_of(event) if step.input == name]
    rows = [row for bundle in bundles for row in bundle]
    if not rows:
        return tuple(events)
    table = pa.concat_tables(tables_of(bundles, event_time)).drop_columns([EVENT_TIME]).combine_chunks()
    numbers = pa.array(range(len(rows)))
    if one.where is not None:
        keeps = condition(one.where.node, table, one.where.text)
        numbers = numbers.filter(pa.array(keeps))
        table = table.take(numbers)
    added = {expression.name: _added(expression, table) for expression in (*one.columns, *one.computed)}
    made = dict(zip(numbers.to_pylist(), _rows_of(rows, numbers.to_pylist(), added), strict=True))
    left = iter(range(len(rows)))

    def kept(step: Bundle | Step) -> tuple[Row, ...]:
        return tuple(made[at] for at in islice(left, len(step.rows)) if at in made)

    changed: list[Event] = []
    for event in events:
        if isinstance(event, MicroBatch):
            parts = (attrs.evolve(one, rows=kept(one)) if one.input == name else one for one in event.parts)
            changed.append(attrs.evolve(event, parts=tuple(parts)))
        elif isinstance(event, (Bundle, Step)) and event.input == name:
            changed.append(attrs.evolve(event, rows=kept(event)))
        else:
            changed.append(event)
    return tuple(changed)


def _added(expression: Expression, table: pa.Table) -> list[Any]:
    """A column of the rows in the statement's spelling, or a computed one."""
    if expression.node.op != COLUMN and expression.name.lower() in map(str.lower, table.column_names):
        raise expression.error(
            f"the rows have a column {expression.name!r}, as this expression is called on the way; rename the column"
        )
    return _values(evaluate(expression.node, table, expression.text))


def _values(column: pa.Array) -> list[Any]:
    """As the rows of a script have them: a map is a dict."""
    values: list[Any] = column.to_pylist(maps_as_pydicts="strict")
    return values


def _rows_of(rows: Sequence[Row], numbers: Sequence[int], added: dict[str, list[Any]]) -> list[Row]:
    return [
        {**rows[number], **{name: values[at] for name, values in added.items()}} for at, number in enumerate(numbers)
    ]
