"""Joins in SQL: two streams WITHIN a time of each other, as a merge; a stream with tables, as as-of joins."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any

import attrs
from sqlglot import exp

from beamish.accumulations import FullOuterJoin, InnerJoin, LeftOuterJoin, RightOuterJoin
from beamish.joining import as_of_join, merge
from beamish.kernels.column_names import quoted
from beamish.kernels.field_paths import parts_of
from beamish.kinds.versions.options import VALID_FROM
from beamish.pipeline import Pipeline
from beamish.statement.grammar.aggregates import calls_in
from beamish.statement.grammar.clauses import Dialect, Item, Join, Name, Rows, Statement
from beamish.statement.grammar.expressions import COLUMN, Expression, Node, columns_of, expression
from beamish.statement.grammar.text import Text, Tree, span_of
from beamish.statement.inputs import Before, Input, Sources, emitting
from beamish.statement.over_panes import Shown, check_deterministic, check_new_name, own_name, without_brackets
from beamish.windows import Within

PAIR = "pair"
"""The column of a merge that holds the joined rows."""
_JOINS = {"inner": InnerJoin, "left": LeftOuterJoin, "right": RightOuterJoin, "full": FullOuterJoin}


@attrs.frozen
class Side:
    """An input of a join, and where the output holds its row.

    Attributes:
        alias: the name by which its columns are qualified.
        name: the name of the input.
        keys: its columns that the output has beside the row, by the output's name.
        path: the column that holds the row; empty: the row's columns are columns of the output.
        table: the table that it is; None: it is a stream.
        time: the event-time column, whose latest value of all sides is the time of a joined row; None: it has the stream's.
        bounds: by their names the bounds of its row's window, which it has as columns.
    """

    alias: str
    name: str
    keys: Mapping[str, str]
    path: tuple[str, ...]
    table: Pipeline | None = None
    time: str | None = None
    bounds: Mapping[str, str] = attrs.Factory(dict)

    def columns(self, given: Iterable[str]) -> list[str]:
        """Its columns, if its rows are given with these."""
        if self.table is None:
            return [*given, *self.bounds]
        options = self.table.flow.stage.declared("versions")
        hidden = {*self.keys, options.deleted, options.sequence_by, self.table.flow.sources[0].event_time}
        values = [name for name in given if name not in hidden] if options.values is None else options.values
        return [*self.keys, *values, VALID_FROM]


@attrs.frozen
class Joined:
    """The join of a statement.

    Attributes:
        text: the statement.
        inputs: the streams.
        sides: the streams and tables.
        places: the place of each expression under ON, by the words that the pipeline's errors have for it.
        dialect: the dialect.
    """

    text: Text
    inputs: Sequence[Input]
    sides: Sequence[Side]
    places: Mapping[str, int]
    dialect: Dialect

    def expression(self, tree: Tree) -> Expression:
        """An expression over joined rows (SqlError: it has an aggregate, or is not deterministic)."""
        for call in calls_in(tree):
            raise self.text.error(
                call.span.start,
                f"{call.name} without GROUP BY: an aggregate is of a group; say what makes one: GROUP BY region",
            )
        check_deterministic(self.text, span_of(tree))
        paths = [(column, self._path(column)) for column in columns_of(tree)]
        known = {id(column): Node(COLUMN, value=path, at=span_of(column).start) for column, path in paths}
        parts = [(span_of(column), ".".join(map(quoted, path))) for column, path in paths]
        return expression(self.text, tree, "", known, parts)

    def _path(self, column: Tree) -> tuple[str, ...]:
        first, *rest = (part.name for part in column.parts)
        alias = next((side.alias for side in self.sides if rest and side.alias.lower() == first.lower()), first)
        return alias, *rest

    def single(self, columns: Mapping[str, Sequence[str]]) -> dict[str, str]:
        """The columns that only one input has, and its alias: these need no qualifier."""
        owners: dict[str, list[str]] = {}
        for alias, names in columns.items():
            for name in names:
                owners.setdefault(name, []).append(alias)
        taken = {side.alias.lower() for side in self.sides}
        return {name: of[0] for name, of in owners.items() if len(of) == 1 and name.lower() not in taken}

    def check_single(self, made: Expression, columns: Mapping[str, Sequence[str]]) -> None:
        """Check that no column of an expression is in two inputs (SqlError: it is, and is not qualified)."""
        for node in made.node.walk():
            if node.op == COLUMN and node.value[0] not in columns:
                name = node.value[0]
                of = [alias for alias, names in columns.items() if name.lower() in map(str.lower, names)]
                if len(of) > 1:
                    raise self.text.error(node.at, f"{name} is a column of {' and of '.join(of)}; write {of[0]}.{name}")

    def check(self, item: Item) -> None:
        """Check an item as far as columns do not matter (SqlError: as for ``expression``, or ``q.*`` of no source)."""
        if not item.tree.is_star:
            self.expression(item.tree)
        elif isinstance(item.tree, exp.Column) and item.tree.table.lower() not in (
            one.alias.lower() for one in self.sides
        ):
            of, known = item.tree.table, ", ".join(side.alias for side in self.sides)
            raise self.text.error(span_of(item.tree).start, f"{of}.*: no source is called so; there are {known}")

    def shown(self, items: Sequence[Item], columns: Mapping[str, Sequence[str]]) -> list[Shown]:
        """The items of the SELECT list over inputs with these columns (SqlError: one has a name that is taken)."""
        unnamed = count()
        made = [one for place, item in enumerate(items) for one in self._expressions(item, columns, place, unnamed)]
        plain = [name.text.lower() for name, _, _ in made]
        shown: list[Shown] = []
        for name, owner, one in made:
            self.check_single(one, columns)
            if owner and plain.count(name.text.lower()) > 1:
                name = attrs.evolve(name, text=f"{owner}_{name.text}")  # noqa: PLW2901
            check_new_name(self.text, name, shown)
            shown.append(Shown(attrs.evolve(one, name=name.text), is_key=False))
        return shown

    def _expressions(
        self, item: Item, columns: Mapping[str, Sequence[str]], place: int, unnamed: Iterator[int]
    ) -> Iterator[tuple[Name, str | None, Expression]]:
        """The expressions of an item, their names, and the alias that tells apart columns of one name."""
        at = span_of(item.tree).start
        if not item.tree.is_star:
            own = None if item.alias else own_name(item)
            owner = self._path(item.tree)[0] if own and isinstance(item.tree, exp.Column) else None
            named = item.alias or own or Name(self.dialect.unnamed_item(place, next(unnamed)), at)
            yield named, owner, self.expression(item.tree)
            return
        of = item.tree.table.lower() if isinstance(item.tree, exp.Column) else None
        for alias in [alias for alias in columns if of in (None, alias.lower())]:
            for name in columns[alias]:
                node = Node(COLUMN, value=(alias, name), at=at)
                sql = f"{quoted(alias)}.{quoted(name)}"
                yield Name(f"{alias}_{name}", at), None, Expression("", sql, node, f"{alias}.{name}", self.text, at)


def join_of(text: Text, read: Statement, sources: Sources) -> tuple[Pipeline, Joined]:
    """The pipeline of a FROM clause with joins, without what it emits of dropped rows.

    Args:
        text: the statement.
        read: the statement, read.
        sources: the streams and tables.

    Raises:
        SqlError: an invalid join.
    """
    _check_names(text, [read.rows, *(join.rows for join in read.joins)], read.joins[0].start)
    if read.rows.name in sources.tables:
        raise text.error(
            read.joins[0].start,
            f"{read.rows.name} is a table: only a stream is joined with tables; join two tables as streams of changes: "
            "bm.merge(...) of two pipelines with FullOuterJoin (docs/streams.md#aggregates-joined)",
        )
    for join in read.joins:
        _check(text, join, sources)
    (first, *others), aliases = read.joins, [read.rows.alias]
    if others and any(join.within is not None for join in read.joins):
        raise text.error(
            others[0].start,
            "a statement joins two streams, or a stream with tables; join its output in a second statement",
        )
    if first.within is not None or first.windows is not None:
        return _pairs(text, read, first, sources)
    before = Before(text, (read.rows.alias.lower(),))
    stream = attrs.evolve(read.rows, time=first.as_of)
    pipeline, sides = sources.stream(text, stream), [Side(read.rows.alias, read.rows.name, {}, ())]
    final = read.emit.refinement == "final"
    if read.emit.every is not None:
        raise text.error(
            read.begins["EMIT"], "EVERY of a join with a table: each row is emitted by itself; leave it out"
        )
    places: dict[str, int] = {}
    for join in read.joins:
        table = sources.tables[join.rows.name]
        keys_by_path = _by_path(table.flow.inputs[0].relation.keys)
        pairs = [*_on_table(text, join, aliases)]
        on = {before.column(mine): keys_by_path.get(_lower(theirs), ".".join(theirs)) for mine, theirs in pairs}
        with text.at(join.start):
            inputs: dict[str, Any] = {read.rows.name: pipeline, join.rows.name: table}
            waits = table.flow.stage.declared("versions").allowed_lateness if final and join.as_of is None else 0
            pipeline = as_of_join(**inputs, on=on, how=join.how, grace=waits, early=not final)
            pipeline = pipeline if final else pipeline.accumulating_and_retracting()
        keys = {theirs: mine for mine, theirs in on.items()}
        columns = zip(on, (span_of(mine).start for mine, _ in pairs), strict=False)
        places |= {f"{read.rows.name}'s {name!r}": at for name, at in columns}
        sides.append(Side(join.rows.alias, join.rows.name, keys, (join.rows.name,), table))
        aliases.append(join.rows.alias)
    return pipeline, Joined(text, [before.input(read.rows, None)], sides, places, read.dialect)


def _pairs(text: Text, read: Statement, join: Join, sources: Sources) -> tuple[Pipeline, Joined]:
    """Two streams."""
    rows = (read.rows, join.rows)
    befores = [Before(text, (one.alias.lower(),)) for one in rows]
    on = [*_on(text, join, [read.rows.alias])]
    keys = [[before.column(pair[at]) for pair in on] for at, before in enumerate(befores)]
    inputs, sides = [], []
    streams: dict[str, Pipeline] = {}
    bounds = {} if join.windows is None else {word.lower(): which for word, which in read.dialect.bounds.items()}
    for at, one in enumerate(rows):
        inputs.append(befores[at].input(one, None))
        streams[one.name] = sources.stream(text, one).key_by(*keys[at])
        time = streams[one.name].flow.sources[0].event_time
        if not isinstance(time, str):
            raise text.error(
                join.start,
                f"event_time of {one.name}: {time} must be the name of a column, since a joined row has the later of two times; "
                "add the column first: df.withColumn(...)",
            )
        path = (PAIR, one.name)
        sides.append(
            Side(one.alias, one.name, dict(zip(keys[at], keys[0], strict=True)), path, time=time, bounds=bounds)
        )
    left, right = (one.name for one in rows)
    is_outer, final = join.how != "inner", read.emit.refinement == "final"
    with text.at(join.start):
        window = _within(join, left, right) if join.windows is None else join.windows
        pipeline = merge(**streams).window(window).allowed_lateness(join.grace or 0)
        pipeline = emitting(pipeline, read.emit, vanishes=is_outer)
        pipeline = pipeline if is_outer or final else pipeline.discarding()
        pipeline = pipeline.accumulate(**{PAIR: _JOINS[join.how](left, right, once=not is_outer and not final)})
        pipeline.flow.check()
    places = {
        f"key_by({name!r})": span_of(pair[at]).start for at in (1, 0) for name, pair in zip(keys[at], on, strict=True)
    }
    return pipeline, Joined(text, inputs, sides, places, read.dialect)


def _within(join: Join, left: str, right: str) -> Within:
    assert join.within is not None  # noqa: S101 - the streams are in no windows
    before, after = join.within
    return Within(after, of=left, after=before) if join.how == "right" else Within(before, of=right, after=after)


def _check_names(text: Text, rows: Sequence[Rows], at: int) -> None:
    names, aliases = ([getattr(one, of).lower() for one in rows] for of in ("name", "alias"))
    if len(set(names)) < len(names) or len(set(aliases)) < len(aliases):
        raise text.error(
            at,
            "two sources of one name: DataFrames are given by name, so a join of one with itself has it twice: FROM orders AS o "
            "JOIN orders_again AS p ..., then .apply(orders=df, orders_again=df)",
        )


def _check(text: Text, join: Join, sources: Sources) -> None:
    name, is_table = join.rows.name, join.rows.name in sources.tables
    if join.as_of is not None and not is_table:
        raise text.error(
            join.start,
            f"FOR SYSTEM_TIME AS OF: {name} is not a versioned table: declare it, CREATE TABLE {name} (..., WATERMARK FOR ts AS ts, PRIMARY "
            f"KEY (k) NOT ENFORCED), or give bm.sql(..., tables={{{name!r}: bm.Pipeline().event_time(...).key_by(...).versions('1 day')}})",
        )
    if is_table and sources.tables[name].flow.stage.declared("versions") is None:
        raise text.error(
            join.start,
            f"JOIN {name}: its table ends in upserts, which stores the latest rows only, and a stream is joined with the version of its "
            f"time: end it in versions, bm.sql(..., tables={{{name!r}: bm.Pipeline().event_time(...).key_by(...).versions('1 day')}})",
        )
    if is_table and join.within is not None:
        raise text.error(join.start, f"WITHIN: {name} is a table, which has a version at any time; leave WITHIN out")
    if not is_table and join.within is None and join.windows is None:
        raise text.error(
            join.start,
            f"JOIN {name} without WITHIN: two streams are joined within a time: JOIN {name} WITHIN 10 MINUTES ON ...; a table is "
            f"declared: bm.sql(..., tables={{{name!r}: bm.Pipeline().event_time(...).key_by(...).versions('1 day')}})",
        )
    if is_table and join.how in ("right", "full"):
        raise text.error(join.start, f"{join.how.upper()} JOIN: a table emits no rows of its own; use LEFT or INNER")


def _by_path(keys: Sequence[Any]) -> dict[tuple[str, ...], str]:
    """Key columns by what a statement calls them: a column, or a path to a nested field."""
    paths = {_lower(path): str(key) for key in keys if (path := parts_of(key)) is not None}
    return paths | {_lower([str(key)]): str(key) for key in keys}


def _lower(path: Sequence[str]) -> tuple[str, ...]:
    return tuple(part.lower() for part in path)


def _on_table(text: Text, join: Join, aliases: Sequence[str]) -> Iterator[tuple[Tree, Sequence[str]]]:
    """The expressions over the stream, and the key columns of the table, as paths."""
    for mine, theirs in _on(text, join, aliases):
        if _owners(mine, aliases[1:]) or not isinstance(theirs, exp.Column):
            raise text.error(
                span_of(mine).start,
                f"ON: a table is joined by its key: an expression over {aliases[0]} = a column of {join.rows.alias}; compute "
                "other keys where the table is read",
            )
        path = [part.name for part in theirs.parts]
        yield mine, path[1:] if len(path) > 1 and path[0].lower() == join.rows.alias.lower() else path


def _on(text: Text, join: Join, aliases: Sequence[str]) -> Iterator[tuple[Tree, Tree]]:
    """The equal expressions: over the sources before, and over this one."""
    for tree in join.on:
        if not isinstance(tree, exp.EQ):
            raise text.error(
                span_of(tree).start,
                "ON takes equalities, with AND: ON o.id = p.order_id AND o.shop = p.shop; other conditions go under WHERE",
            )
        mine, theirs = tree.this, tree.expression
        if _owners(mine, [join.rows.alias]) or _owners(theirs, aliases):
            mine, theirs = theirs, mine
        if (
            _owners(mine, [join.rows.alias])
            or _owners(theirs, aliases)
            or not (any(columns_of(mine)) and any(columns_of(theirs)))
        ):
            raise text.error(
                span_of(tree).start,
                f"ON: each equality has an expression over {aliases[0]} and one over {join.rows.alias}, such as "
                f"{aliases[0]}.id = {join.rows.alias}.id",
            )
        yield without_brackets(mine), without_brackets(theirs)


def _owners(tree: Tree, aliases: Sequence[str]) -> bool:
    """Whether an expression has a column that is qualified by one of these names."""
    qualifiers = {column.parts[0].name.lower() for column in columns_of(tree) if len(column.parts) > 1}
    return bool(qualifiers & {alias.lower() for alias in aliases})
