"""GROUP BY over a declared table, which ends in versions or upserts: its latest rows are grouped, by a stage after it.

Expressions are computed on the changes and become values of the table. WHERE is such a value too, by which the stage filters rows of the
table: to filter changes would keep the row before one that no longer satisfies it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import pyarrow.compute as pc

from beamish.kernels.column_names import quoted
from beamish.kinds.versions.options import VALID_FROM, VALID_TO
from beamish.pipeline import Pipeline
from beamish.source import Source
from beamish.statement.grammar.clauses import Rows, Statement
from beamish.statement.grammar.expressions import COLUMN, LITERAL, Expression, Node, columns_of, over_rows, path_of
from beamish.statement.grammar.text import Text, Tree, normal, span_of
from beamish.statement.inputs import Before, Input

_TRUE, _NULL = Node(LITERAL, value=True), Node(LITERAL)


@attrs.frozen
class Table:
    """A table that a statement groups.

    Attributes:
        text: the statement.
        rows: what the statement calls it.
        pipeline: its pipeline, which ends in versions or upserts.
    """

    text: Text
    rows: Rows
    pipeline: Pipeline

    @property
    def options(self) -> Any:
        """Its options."""
        return self.pipeline.flow.stage.declared("versions") or self.pipeline.flow.stage.declared("upserts")

    @property
    def values(self) -> Sequence[str] | None:
        """The value columns that it declares; None: all columns of its rows that are left."""
        values: Sequence[str] | None = getattr(self.options, "values", None)
        return values

    @property
    def _hidden(self) -> set[str]:
        """The columns of its changes that its rows do not have, in lower case."""
        time = getattr(self.pipeline.flow.inputs[0], "event_time", None)
        own = [time, VALID_FROM, VALID_TO] if self.pipeline.flow.stage.declared("versions") else ["timestamp"]
        return {one.lower() for one in (self.options.deleted, self.options.sequence_by, *own) if isinstance(one, str)}

    @property
    def spelled(self) -> Mapping[str, str]:
        """The columns whose spelling is known, by their name in lower case."""
        keys = [key for key in self.pipeline.flow.inputs[0].relation.keys if isinstance(key, str)]
        return {name.lower(): name for name in (*keys, *(self.values or ()))}

    def check(self, read: Statement, trees: Sequence[Tree]) -> None:
        """Check what the statement reads of it.

        Args:
            read: the statement.
            trees: its expressions over rows.

        Raises:
            SqlError: it has WINDOW, or names no column of the table.
        """
        name, hidden = self.rows.name, self._hidden
        if not read.windows.option.is_all_of_time:
            raise self.text.error(
                read.begins.get("WINDOW", read.begins["SELECT"]),
                f"WINDOW over the table {name}: a row is valid until the next of its key, and in no window; leave WINDOW out; to count its "
                f"changes in windows, take {name} out of bm.sql(..., tables=)",
            )
        for column in (column for tree in trees for column in columns_of(tree)):
            named = path_of(column, (self.rows.alias.lower(),))[0].lower()
            known = named in self.spelled or (self.values is None and named not in hidden)
            if not known:
                keys, values = list(self.pipeline.flow.inputs[0].relation.keys), self.values
                rest = f"the other columns of its changes, but {', '.join(sorted(hidden))}"
                others = rest if values is None else [*values]
                raise self.text.error(
                    span_of(column).start,
                    f"{column.name}: not a column of the table {name}, which has its keys {keys} and {others}; name one of these",
                )

    def of(self, before: Before, where: Tree | None) -> tuple[Input, Pipeline, Pipeline]:
        """Its changes with the columns that are computed, its latest rows, and a stage over those that WHERE keeps.

        Args:
            before: the columns that the statement reads.
            where: the condition on rows; None: all.

        Raises:
            SqlError: there is an expression, and the rows are not the changes.
        """
        given, source = before.input(self.rows, None), self.pipeline.flow.inputs[0]
        condition = None
        if where is not None:
            owners = (self.rows.alias.lower(),)
            name = f"WHERE of ({normal(self.text, span_of(where), owners)})"
            condition = over_rows(self.text, where, name, owners)
        computed = [*filter(None, [condition]), *given.computed]  # an error in WHERE is reported there
        exploded = self.pipeline.flow.stage.declared("explode") is not None
        if not isinstance(source, Source) or source.form is not None or exploded:
            if computed:
                raise self.text.error(
                    computed[0].at,
                    f"{computed[0].said}: an expression over the table {self.rows.name}, which is made of "
                    f"{'items' if exploded else 'panes' if source.flows else 'a changelog'}: only its columns may be named; compute it before the table, by "
                    "with_columns(...), or write the statement as a pipeline: table.then(bm.Pipeline()...)",
                )
            given = attrs.evolve(given, columns=())
        made = [self._of_version(one, condition) for one in computed]
        stage = Pipeline() if condition is None else Pipeline().where(pc.field(condition.name))
        return attrs.evolve(given, computed=made), self._latest([one.name for one in made]), stage

    def _of_version(self, one: Expression, condition: Expression | None) -> Expression:
        """A computed column, null for a delete and where WHERE is not true, which is itself true or null."""
        deleted = self.options.deleted
        sql, node = ("true", _TRUE) if one is condition else (one.sql, one.node)
        if condition is not None:
            sql, node = (
                f"CASE WHEN {condition.sql} THEN {sql} END",
                Node("CASE", (condition.node, node, _NULL), at=one.at),
            )
        if deleted is not None:
            sql = f"CASE WHEN {quoted(deleted)} THEN NULL ELSE {sql} END"
            node = Node("CASE", (Node(COLUMN, value=(deleted,), at=one.at), _NULL, node), at=one.at)
        return attrs.evolve(one, sql=sql, node=node)

    def _latest(self, computed: Sequence[str]) -> Pipeline:
        """Only its latest rows, with computed columns."""
        flow, values = self.pipeline.flow, self.values
        stage: Any = flow.stage
        options = attrs.evolve(self.options, with_dropped=False)
        if flow.stage.declared("versions") is not None:
            values = None if values is None else (*values, *computed)
            options = attrs.evolve(options, values=values, latest_only=True)
        return Pipeline(attrs.evolve(flow, stage=attrs.evolve(stage, options=options)))
