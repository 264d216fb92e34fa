"""A statement compiled: the pipeline, what is computed before and after it, and all of it in words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
from sqlglot import exp

from beamish.explain import Line, text_of
from beamish.modes import OnTimeBehavior
from beamish.pipeline import Pipeline
from beamish.statement.aggregates import NAMES, UserAggregates, aggregate_of, calls_in
from beamish.statement.clauses import Emit, Name, Rows, Statement, Windows
from beamish.statement.expressions import COLUMN, LITERAL, Expression, Node, over_rows
from beamish.statement.grammar import parsed
from beamish.statement.over_panes import Key, Panes, Shown, aliases_of, check_name, shown_of, without_brackets
from beamish.statement.text import Call, Text, Tree, normal, span_of
from beamish.triggers import AfterProcessingTime, Always, Never, Repeatedly
from beamish.windows import Sessions


@attrs.frozen
class Compiled:
    """A compiled statement.

    Attributes:
        name: what CREATE TABLE calls it.
        properties: those under WITH.
        rows: what the rows are called.
        windows: what the WINDOW clause says.
        emit: what the EMIT clause says.
        where: which rows go on; None: all.
        columns: the columns of the rows that the pipeline reads.
        computed: the columns that are computed for it.
        pipeline: what is between.
        having: which panes come out; None: all.
        shown: the items of the SELECT list.
        end: the end of the text.
    """

    name: str | None
    properties: Mapping[str, Any]
    rows: Rows
    windows: Windows
    emit: Emit
    where: Expression | None
    columns: Sequence[Expression]
    computed: Sequence[Expression]
    pipeline: Pipeline
    having: Expression | None
    shown: Sequence[Shown]
    end: int


def compiled(text: Text, source: Pipeline, aggregates: UserAggregates) -> Compiled:
    """Compile a statement.

    Args:
        text: the statement.
        source: where the rows come from, and what becomes of dropped rows.
        aggregates: the user's own.

    Raises:
        SqlError: it is not one, or its parts do not go together.
    """
    read = parsed(text, {*NAMES, *aggregates})
    owners = (read.rows.alias.lower(),)
    before = _Before(text, owners)
    if read.where is not None:
        _check_no_aggregate(text, read.where, "WHERE", "it is of rows; conditions on aggregates go under HAVING")
    kept = None if read.where is None else over_rows(text, read.where, "WHERE", owners)
    keys = _keys(text, read, before)
    calls = _calls(text, read)
    aggregates_ = {call.span: aggregate_of(text, call, aggregates, before, owners) for call in calls}
    accumulations = {name: one for aggregate in aggregates_.values() for name, one in aggregate.accumulations.items()}
    panes = Panes(text, keys, aggregates_, owners, "WINDOW" in read.begins, aliases_of(text, read.items))
    shown = shown_of(text, read.items, panes)
    having = None if read.having is None else panes.expression(read.having, bounds=False)
    with text.at(read.begins["GROUP_BY"]):
        pipeline = _windowed(source.key_by(*(key.name for key in keys)), read.windows, read.emit, having)
        pipeline = pipeline.accumulate(**accumulations)
        pipeline.flow.check()
    return Compiled(
        read.name,
        read.properties,
        read.rows,
        read.windows,
        read.emit,
        kept,
        before.columns,
        before.computed,
        pipeline,
        having,
        shown,
        read.end,
    )


def _windowed(pipeline: Pipeline, windows: Windows, emit: Emit, having: Expression | None) -> Pipeline:
    """Windows, lateness, trigger and mode."""
    pipeline = pipeline.window(windows.option)
    if windows.grace:
        pipeline = pipeline.allowed_lateness(windows.grace)
    if emit.refinement == "final":
        return pipeline.trigger(Never()).accumulating()
    trigger = Always() if emit.every is None else Repeatedly(AfterProcessingTime(emit.every))
    pipeline = pipeline.trigger(trigger).on_time_behavior(OnTimeBehavior.FIRE_IF_NON_EMPTY)
    vanishes = emit.retracting or having is not None or isinstance(windows.option, Sessions)
    return pipeline.accumulating_and_retracting() if vanishes else pipeline.accumulating()


class _Before:
    """The pipeline's input: columns of the rows, and computed columns."""

    def __init__(self, text: Text, owners: Sequence[str]) -> None:
        self._text, self._owners = text, owners
        self._columns: dict[str, Expression] = {}
        self._computed: dict[str, Expression] = {}

    @property
    def columns(self) -> tuple[Expression, ...]:
        """The columns of the rows, each once."""
        return tuple(self._columns.values())

    @property
    def computed(self) -> tuple[Expression, ...]:
        """The computed columns, each once."""
        return tuple(self._computed.values())

    def column(self, tree: Tree) -> str:
        """The name of the column that holds an expression."""
        made = over_rows(self._text, tree, "", self._owners)
        path: tuple[str, ...] = made.node.value if made.node.op == COLUMN else ()
        if len(path) == 1:
            name = next((name for name in self._columns if name.lower() == path[0].lower()), path[0])
            return self._columns.setdefault(name, attrs.evolve(made, name=name)).name
        name = normal(self._text, span_of(tree), self._owners)
        return self._computed.setdefault(name, attrs.evolve(made, name=name)).name

    def struct(self, of: str, fields: Mapping[str, Tree], present: Tree | None) -> str:
        """The name of the column that holds an aggregate's struct; null where an expression is, if one is given."""
        made = {name: over_rows(self._text, tree, "", self._owners) for name, tree in fields.items()}
        sql = "named_struct(" + ", ".join(f"'{name}', {one.sql}" for name, one in made.items()) + ")"
        node = Node("STRUCT", tuple(one.node for one in made.values()), tuple(made))
        if present is not None:
            needed = over_rows(self._text, present, "", self._owners)
            sql = f"IF({needed.sql} IS NULL, NULL, {sql})"
            node = Node("CASE", (Node("IS", (needed.node, Node(LITERAL))), Node(LITERAL), node))
        (first, *_) = made.values()
        said = ", ".join(normal(self._text, span_of(tree), self._owners) for tree in fields.values())
        name = f"{of} of ({said})"  # as no expression is called
        self._computed.setdefault(name, attrs.evolve(first, name=name, sql=sql, node=node, said=name))
        return name

    def is_column(self, name: str) -> bool:
        """Whether it is a column of the rows."""
        return name in self._columns


def _keys(text: Text, read: Statement, before: _Before) -> list[Key]:
    keys: list[Key] = []
    for tree in read.group_by:
        _check_no_aggregate(text, tree, "GROUP BY", "it is of groups; show it in the SELECT list")
        span = span_of(tree)
        constant = isinstance(tree, exp.Literal) and not tree.is_string
        if constant and not any(text[span_of(item.tree)] == text[span] for item in read.items):
            raise text.error(
                span.start,
                f"GROUP BY {text[span]} is the constant, not an item of the SELECT list: name the expressions that make a group, "
                "such as GROUP BY region",
            )
        called = re.match(r"(WINDOW|SESSION_WINDOW|WINDOW_TIME)\s*\(", text[span], re.IGNORECASE)
        if called:
            raise text.error(
                span.start, f"{called[1].upper()}(...) under GROUP BY: say WINDOW TUMBLING (SIZE 5 MINUTES) after FROM"
            )
        name = before.column(tree)
        if any(key.name.lower() == name.lower() for key in keys):
            raise text.error(span.start, f"{name} is under GROUP BY twice; take one out")
        check_name(text, Name(name, span.start), "rename the column in Spark first: df.withColumnRenamed(...)")
        keys.append(Key(name, without_brackets(tree), before.is_column(name)))
    return keys


def _calls(text: Text, read: Statement) -> list[Call]:
    trees = [item.tree for item in read.items] + ([] if read.having is None else [read.having])
    calls = [call for tree in trees for call in calls_in(tree)]
    if not calls:
        raise text.error(
            read.begins["GROUP_BY"],
            "GROUP BY without an aggregate: say what of a group is asked, such as COUNT(*) AS n; an aggregate of your own is given "
            "as bm.sql(..., aggregates={'NAME': lambda column: ...})",
        )
    return calls


def _check_no_aggregate(text: Text, tree: Tree, clause: str, why: str) -> None:
    for call in calls_in(tree):
        raise text.error(call.span.start, f"{call.name} under {clause}: {why}")


def explained(statement: Compiled, pipeline: str) -> str:
    """Explain a statement.

    Args:
        statement: the statement.
        pipeline: the explain text of its pipeline.
    """
    return "\n".join([text_of(_before(statement)), pipeline, text_of(_after(statement))])


def _before(statement: Compiled) -> Iterator[Line]:
    yield "query", _query_words(statement)
    yield "source", f"the rows of {statement.rows.name}, which are those of the DataFrame or the script"
    if statement.where is not None:
        yield (
            "where",
            f"rows for which {_one_line(statement.where.said)} is true go on; the others do not move the watermark",
        )
    if statement.computed:
        computed = ", ".join(_one_line(expression.said) for expression in statement.computed)
        yield "computed", f"for each row, before it is in a window: {computed}"


def _query_words(statement: Compiled) -> str:
    name = f" {statement.name}" if statement.name else ""
    kind = statement.emit.kind
    if kind == "pull":
        return "pull: asks a batch DataFrame once, one final row for each group and window"
    if statement.emit.refinement == "final":
        return f"{kind}{name}, final rows: one for each group and window, when the window expires"
    return f"{kind}{name}, changes: a PANE sets its group and window, a RETRACTION takes that back"


def _after(statement: Compiled) -> Iterator[Line]:
    if statement.having is not None:
        yield "having", f"panes and retractions for which {_one_line(statement.having.said)} is true come out"
    shown = (
        name if name.lower() == said.lower() else f"{said} as {name}"
        for name, said in ((item.expression.name, _one_line(item.expression.said)) for item in statement.shown)
    )
    yield "shown", f"{', '.join(shown)}; then window, pane and timestamp"
    windows = statement.windows
    unsaid = []
    if windows.grace is None and not windows.option.is_all_of_time:
        unsaid.append("GRACE PERIOD is not said, so it is 0: a row that comes after its window's end is dropped")
    if windows.retention is not None:
        unsaid.append(f"RETENTION {windows.retention} has no effect: results are kept by whoever takes them")
    if statement.properties:
        unsaid.append(f"WITH ({', '.join(statement.properties)}) has no effect: a DataFrame has no format")
    if unsaid:
        yield "note", "; ".join(unsaid)


def _one_line(said: str) -> str:
    return " ".join(said.split())
