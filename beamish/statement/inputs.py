"""The sources of a statement, what is computed of their rows, and when the pipeline emits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import attrs

from beamish.errors import OptionError
from beamish.modes import OnTimeBehavior
from beamish.pipeline import Pipeline
from beamish.statement.clauses import Emit, Rows, Statement
from beamish.statement.expressions import COLUMN, LITERAL, Expression, Node, over_rows
from beamish.statement.text import Text, Tree, normal, span_of
from beamish.triggers import AfterProcessingTime, Always, Never, Repeatedly


def _check_tables(_: Any, __: Any, tables: Any) -> None:
    if not isinstance(tables, Mapping):
        raise OptionError(f"sql(tables={tables!r}): must be a dict of names to pipelines")
    alike = {name.lower() for name in tables if isinstance(name, str)}
    if len(alike) < len(tables):
        raise OptionError(f"sql(tables={list(tables)!r}): must be names that differ not only in case, as in SQL")
    for name, table in tables.items():
        if not isinstance(table, Pipeline) or table.flow.stage.declared("versions") is None:
            raise OptionError(
                f"sql(tables={{{name!r}: {table!r}}}): must be a pipeline that ends in versions: "
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
        tables: by name, pipelines that end in versions.
        on_error: as for ``Pipeline.on_error``.
        with_dropped: whether dropped rows are emitted.
        offset: the column that orders the rows of a group as they came; None: not declared.
    """

    event_time: Any
    watermark: Any
    tables: Mapping[str, Pipeline] = attrs.field(validator=_check_tables)
    on_error: Literal["fail", "drop"]
    with_dropped: bool
    offset: str | None = attrs.field(default=None, validator=_check_offset)

    def named(self, read: Statement) -> Statement:
        """A statement that names the tables as they are declared: names of tables are case-insensitive."""
        declared = {name.lower(): name for name in self.tables}

        def rows(one: Rows) -> Rows:
            return attrs.evolve(one, name=declared.get(one.name.lower(), one.name))

        joins = [attrs.evolve(join, rows=rows(join.rows)) for join in read.joins]
        return attrs.evolve(read, rows=rows(read.rows), joins=joins)

    def stream(self, name: str) -> Pipeline:
        """The rows of a stream (OptionError: it has no event time or watermark)."""
        return Pipeline().event_time(_of("event_time", self.event_time, name), _of("watermark", self.watermark, name))

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
    trigger = Always() if emit.every is None else Repeatedly(AfterProcessingTime(emit.every))
    pipeline = pipeline.trigger(trigger).on_time_behavior(OnTimeBehavior.FIRE_IF_NON_EMPTY)
    return pipeline.accumulating_and_retracting() if vanishes or emit.retracting else pipeline.accumulating()


@attrs.frozen
class Input:
    """A source of the statement.

    Attributes:
        rows: what the rows are called.
        where: the condition on rows; None: all.
        columns: the columns of the rows that the pipeline reads.
        computed: the columns that are computed for it.
    """

    rows: Rows
    where: Expression | None
    columns: Sequence[Expression]
    computed: Sequence[Expression]


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
