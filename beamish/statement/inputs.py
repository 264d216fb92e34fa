"""The sources of a statement, what is computed of their rows, and when the pipeline emits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import attrs

from beamish.durations import Duration
from beamish.errors import OptionError
from beamish.kernels.key_sets import GROUPING_ID
from beamish.modes import OnTimeBehavior
from beamish.pipeline import Pipeline
from beamish.statement.grammar.clauses import Emit, Rows, Schema, Statement
from beamish.statement.grammar.expressions import COLUMN, LITERAL, Expression, Node, over_rows
from beamish.statement.grammar.text import Text, Tree, normal, span_of
from beamish.triggers import AfterProcessingTime, AfterWatermark, Always, Never, Repeatedly, Trigger


def _check_tables(_: Any, __: Any, tables: Any) -> None:
    if not isinstance(tables, Mapping):
        raise OptionError(f"sql(tables={tables!r}): must be a dict of names to pipelines")
    alike = {name.lower() for name in tables if isinstance(name, str)}
    if len(alike) < len(tables):
        raise OptionError(f"sql(tables={list(tables)!r}): must be names that differ not only in case, as in SQL")
    for name, table in tables.items():
        if not isinstance(table, Pipeline) or not any(map(table.flow.stage.declared, ("versions", "upserts"))):
            raise OptionError(
                f"sql(tables={{{name!r}: {table!r}}}): must be a pipeline that ends in versions or upserts: "
                "bm.Pipeline().event_time(...).key_by(...).versions('1 day')"
            )


def _check_offset(_: Any, __: Any, offset: Any) -> None:
    if offset is not None and (not isinstance(offset, str) or not offset):
        raise OptionError(f"sql(offset={offset!r}): must be the name of a column, such as Kafka's 'offset'")


@attrs.frozen
class Sources:
    """The streams and tables that a statement may name, and what becomes of rows that fail.

    Attributes:
        event_time: the event-time column of each stream, or by name.
        watermark: its policy, or by name.
        tables: by name, pipelines that end in versions or upserts.
        on_error: as for ``Pipeline.on_error``.
        with_dropped: whether dropped rows are emitted.
        offset: the column that orders the rows of a group as they came; None: not declared.
        schemas: those that the text declares, by their names in lower case.
    """

    event_time: Any
    watermark: Any
    tables: Mapping[str, Pipeline] = attrs.field(validator=_check_tables)
    on_error: Literal["fail", "drop"]
    with_dropped: bool
    offset: str | None = attrs.field(default=None, validator=_check_offset)
    schemas: Mapping[str, Schema] = attrs.Factory(dict)

    def declared(self, text: Text, read: Statement) -> Sources:
        """With the sources that the text declares; a versioned one, which is read as of a time, is a table.

        Args:
            text: the statement.
            read: the statement, read.

        Raises:
            SqlError: one is declared in an argument too.
        """
        tables = dict(self.tables)
        for schema in read.schemas.values():
            if schema.name.text.lower() in map(str.lower, tables):
                raise text.error(
                    schema.name.start, f"{schema.name.text} is also in bm.sql(..., tables=): leave one of the two out"
                )
            given = self.event_time is not None or self.watermark is not None
            if schema.event_time is not None and given:
                raise text.error(
                    schema.name.start,
                    f"{schema.name.text} declares a WATERMARK, and bm.sql(..., event_time=, watermark=) is given too: leave one of "
                    "the two out",
                )
        for join in read.joins:
            schema_ = read.schemas.get(join.rows.name.lower())
            if join.as_of is not None and schema_ is not None and schema_.event_time is not None and schema_.keys:
                with text.at(schema_.name.start):
                    assert schema_.watermark is not None  # noqa: S101 - declared with the event time
                    rows = Pipeline().event_time(schema_.event_time, schema_.watermark)
                    tables[join.rows.name] = rows.key_by(*schema_.keys).versions("1 day")
        return attrs.evolve(self, tables=tables, schemas=read.schemas)

    def named(self, read: Statement) -> Statement:
        """A statement that names the tables as they are declared: names of tables are case-insensitive."""
        declared = {name.lower(): name for name in self.tables}

        def rows(one: Rows) -> Rows:
            return attrs.evolve(one, name=declared.get(one.name.lower(), one.name))

        joins = [attrs.evolve(join, rows=rows(join.rows)) for join in read.joins]
        return attrs.evolve(read, rows=rows(read.rows), joins=joins)

    def stream(self, text: Text, rows: Rows, *, timed: bool = True) -> Pipeline:
        """The rows of a stream.

        Args:
            text: the statement.
            rows: the source.
            timed: whether it needs an event time.

        Raises:
            OptionError: the arguments do not name its event time or watermark.
            SqlError: the text does not, or names another.
        """
        schema, name = self.schemas.get(rows.name.lower()), rows.name
        event_time, watermark = self.event_time, self.watermark
        if schema is not None and schema.event_time is not None:
            event_time, watermark = schema.event_time, schema.watermark
        if rows.time is not None and event_time is None:
            event_time = rows.time.text
        if watermark is None or event_time is None:
            if not timed and event_time is None and watermark is None:
                return Pipeline()
            raise text.error(
                rows.time.start if rows.time is not None else 0,
                f"{name} has no event time with a watermark: declare both in the text before the SELECT, CREATE TABLE {name} (ts "
                "TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND); or give bm.sql(..., event_time='ts', watermark=...)",
            )
        event_time = _of("event_time", event_time, name)
        if rows.time is not None and (not isinstance(event_time, str) or event_time.lower() != rows.time.text.lower()):
            raise text.error(
                rows.time.start,
                f"{rows.time.text}: the event time of {name} is {event_time}, and windows are of it; name it here, or declare the other "
                "one as event time",
            )
        return Pipeline().event_time(event_time, _of("watermark", watermark, name))

    def finish(self, pipeline: Pipeline) -> Pipeline:
        """The pipeline with its handling of rows that fail."""
        pipeline = pipeline if self.on_error == "fail" else pipeline.on_error(self.on_error)
        return pipeline.with_dropped() if self.with_dropped else pipeline


def _of(argument: str, given: Any, name: str) -> Any:
    if isinstance(given, Mapping) and name not in given:
        raise OptionError(f"sql({argument}={dict(given)!r}): names no {name!r}, which the statement reads; add it")
    return given[name] if isinstance(given, Mapping) else given


def emitting(pipeline: Pipeline, emit: Emit, *, vanishes: bool) -> Pipeline:
    """The trigger and mode of an EMIT clause.

    Args:
        pipeline: the pipeline.
        emit: the clause.
        vanishes: whether emitted rows can vanish.
    """
    if emit.refinement == "final":
        return pipeline.trigger(Never()).accumulating()
    if emit.early is not None or emit.late is not None:
        trigger: Trigger = AfterWatermark(early=_each(emit.early), late=_each(emit.late))
        pipeline = pipeline.trigger(trigger).on_time_behavior(OnTimeBehavior.FIRE_IF_NON_EMPTY)
        return pipeline.accumulating_and_retracting()
    trigger = Always() if emit.every is None else Repeatedly(AfterProcessingTime(emit.every))
    pipeline = pipeline.trigger(trigger).on_time_behavior(OnTimeBehavior.FIRE_IF_NON_EMPTY)
    return pipeline.accumulating_and_retracting() if vanishes or emit.retracting else pipeline.accumulating()


def _each(delay: Duration | None) -> Trigger | None:
    """A trigger that fires so often; 0: with each row; None: none."""
    if delay is None:
        return None
    return Repeatedly(AfterProcessingTime(delay)) if delay else Always()


@attrs.frozen
class Input:
    """A source of the statement.

    Attributes:
        rows: what the rows are called.
        where: the condition on rows; None: all.
        columns: the columns of the rows that the pipeline reads.
        computed: the columns that are computed for it.
        in_sets: whether rows are in several key sets, and have the column of these.
    """

    rows: Rows
    where: Expression | None
    columns: Sequence[Expression]
    computed: Sequence[Expression]
    in_sets: bool = False

    @property
    def added(self) -> list[str]:
        """The columns that the pipeline's rows have besides their own."""
        return [*(one.name for one in self.computed), *([GROUPING_ID] if self.in_sets else [])]


class Before:
    """The pipeline's input: columns of the rows, and computed columns."""

    def __init__(
        self,
        text: Text,
        owners: Sequence[str],
        spelled: Mapping[str, str] | None = None,
        offset: str | None = None,
    ) -> None:
        self._text, self._owners, self._spelled, self.offset = text, owners, spelled or {}, offset
        self._columns: dict[str, Expression] = {}
        self._made: dict[str, Expression] = {}

    def column(self, tree: Tree) -> str:
        """The name of the column that holds an expression."""
        made = over_rows(self._text, tree, "", self._owners)
        path: tuple[str, ...] = made.node.value if made.node.op == COLUMN else ()
        if len(path) == 1:
            name = next((name for name in self._columns if name.lower() == path[0].lower()), path[0])
            name = self._spelled.get(name.lower(), name)
            return self._columns.setdefault(name, attrs.evolve(made, name=name)).name
        name = normal(self._text, span_of(tree), self._owners)
        return self._made.setdefault(name, attrs.evolve(made, name=name)).name

    def copy(self, tree: Tree) -> str:
        """The name of a column of its own that holds an expression: key sets null it in totals, and aggregates read the others."""
        made = over_rows(self._text, tree, "", self._owners)
        said = normal(self._text, span_of(tree), self._owners)
        name = f"key of ({said})".replace(".", "\N{MIDDLE DOT}")  # a dot would make it a path
        return self._made.setdefault(name, attrs.evolve(made, name=name)).name

    def computed(self, of: str, trees: Sequence[Tree], make: Callable[[Sequence[Expression]], tuple[str, Node]]) -> str:
        """The name of the column that an aggregate computes from expressions.

        Args:
            of: the aggregate.
            trees: the expressions.
            make: the column for Spark and in process, from theirs.
        """
        made = [over_rows(self._text, tree, "", self._owners) for tree in trees]
        said = ", ".join(normal(self._text, span_of(tree), self._owners) for tree in trees)
        name = f"{of} of ({said})"  # as no expression is called
        sql, node = make(made)
        self._made.setdefault(name, attrs.evolve(made[0], name=name, sql=sql, node=node, said=name))
        return name

    def struct(self, of: str, fields: Mapping[str, Tree], present: Tree | None) -> str:
        """The name of the column that holds an aggregate's struct; null where an expression is, if one is given."""

        def make(made: Sequence[Expression]) -> tuple[str, Node]:
            sql = (
                "named_struct("
                + ", ".join(f"'{name}', {one.sql}" for name, one in zip(fields, made, strict=True))
                + ")"
            )
            node = Node("STRUCT", tuple(one.node for one in made), tuple(fields))
            if present is None:
                return sql, node
            needed = over_rows(self._text, present, "", self._owners)
            absent = Node("IS", (needed.node, Node(LITERAL)))
            return f"IF({needed.sql} IS NULL, NULL, {sql})", Node("CASE", (absent, Node(LITERAL), node))

        return self.computed(of, [*fields.values()], make)

    def is_column(self, name: str) -> bool:
        """Whether it is a column of the rows."""
        return name in self._columns

    def input(self, rows: Rows, where: Expression | None) -> Input:
        """All of it, of one source."""
        return Input(rows, where, tuple(self._columns.values()), tuple(self._made.values()))
