"""OVER: a statement whose rows have values over the rows around them, as Flink and Spark write it; Top-N by ROW_NUMBER."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import attrs
from sqlglot import exp

from beamish.accumulations import TopRows
from beamish.accumulations.base.accumulation import Accumulation
from beamish.kernels.column_names import quoted
from beamish.kinds.over.options import (
    DenseRank,
    FirstValue,
    Frame,
    Lag,
    LastValue,
    Lead,
    Rank,
    RowNumber,
    Unbounded,
)
from beamish.pipeline import Pipeline
from beamish.statement.grammar.aggregates import UserAggregates, aggregate_of, calls_in
from beamish.statement.grammar.clauses import KSQLDB, Dialect, Item, Name, Over, Statement
from beamish.statement.grammar.expressions import COLUMN, Expression, Node, columns_of, expression, over_rows, path_of
from beamish.statement.grammar.text import Call, Span, Text, Tree, call_of, normal, span_of
from beamish.statement.inputs import Before, Input, Sources
from beamish.statement.over_panes import Shown, check_name, check_new_name, own_name
from beamish.statement.top_rows import (
    ROWS,
    first_row,
    is_by_arrival,
    is_numbered,
    is_top,
    of_rows,
    shown_item,
    top_rows,
)
from beamish.triggers import AfterCount, AfterWatermark, Always
from beamish.windows import Sessions

_OF_FRAME = ("FIRST_VALUE", "LAST_VALUE")
_COUNTS: Mapping[str, Callable[[], Accumulation]] = {"ROW_NUMBER": RowNumber, "RANK": Rank, "DENSE_RANK": DenseRank}
_SHIFTS: Mapping[str, Callable[..., Accumulation]] = {"LAG": Lag, "LEAD": Lead}
_ENDS: Mapping[str, Callable[[str], Accumulation]] = {"FIRST_VALUE": FirstValue, "LAST_VALUE": LastValue}
_EVERY = 2**31
"""More rows than a window has."""
FUNCTIONS = frozenset({*_COUNTS, *_SHIFTS, *_ENDS})
"""Functions that stand before OVER alone."""


@attrs.frozen(eq=False)
class OverRows:
    """A compiled statement with OVER.

    Attributes:
        pipeline: the pipeline.
        rows: what is computed of the rows before it.
        items: the items of the SELECT list; None for the ``*`` of the rows' own columns.
        hidden: columns of the rows that ``*`` leaves out, in lower case.
        keys: the key columns.
        having: the condition of the outer statement; None: all.
        places: as of ``Compiled``.
        text: the statement.
        chosen: the items that the outer statement takes; empty: all.
        is_top: whether its rows are in a struct of first rows (top_rows.py).
    """

    pipeline: Pipeline
    rows: Input
    items: Sequence[Shown | None]
    hidden: frozenset[str]
    keys: Sequence[str]
    having: Expression | None
    places: Mapping[str, int]
    text: Text
    chosen: Sequence[Item]
    is_top: bool = False

    def shown(self, columns: Sequence[str]) -> list[Shown]:
        """The items over rows with these columns; without rows those that the statement names (SqlError: a name is there twice)."""
        shown: list[Shown] = []
        for item in self.items:
            for one in self._own(columns or self._named()) if item is None else [item]:
                check_new_name(self.text, Name(one.expression.name, one.expression.at), shown)
                shown.append(one)
        return [self._chosen(item, shown) for item in self.chosen] if self.chosen else shown

    def _chosen(self, item: Item, shown: Sequence[Shown]) -> Shown:
        """The inner item that one of the outer statement names."""
        name = item.tree.parts[-1].name
        found = next((one for one in shown if one.expression.name.lower() == name.lower()), None)
        if found is None:
            raise self.text.error(span_of(item.tree).start, f"{name} is not in the inner SELECT list; add it there")
        named = name if item.alias is None else item.alias.text
        return attrs.evolve(found, expression=attrs.evolve(found.expression, name=named))

    def _named(self) -> list[str]:
        """The rows' own columns that the statement names."""
        made = {item.expression.name.lower() for item in self.items if item is not None}
        names = [*(item.tree.parts[-1].name for item in self.chosen), *self.keys]
        by_lower = {name.lower(): name for name in names}
        return [name for lower, name in by_lower.items() if lower not in made]

    def _own(self, columns: Sequence[str]) -> Iterator[Shown]:
        for name in columns:
            if name.lower() not in self.hidden:
                own = Expression(name, quoted(name), Node(COLUMN, value=(name,)), name, self.text, 0)
                is_key = name in self.keys
                yield Shown(of_rows(own) if self.is_top and not is_key else own, is_key)


def compiled_over(text: Text, read: Statement, sources: Sources, aggregates: UserAggregates) -> OverRows:
    """Compile a statement with OVER (SqlError: its parts do not go together)."""
    start = next((item.over.start for item in read.items if item.over is not None), read.begins["SELECT"])
    for clause in ("WINDOW", "GROUP_BY", "HAVING"):
        if clause in read.begins:
            raise text.error(
                read.begins[clause],
                f"{clause.replace('_', ' ')} with OVER: a row has a frame, or its group a window; write one statement for each",
            )
    if read.joins or read.rows.name in sources.tables:
        raise text.error(
            start, "OVER is of the rows of one stream; join or group in a statement of its own, before or after"
        )
    owners = (read.rows.alias.lower(),)
    before = Before(text, owners, {}, sources.offset)
    kept = None if read.where is None else over_rows(text, read.where, "WHERE", owners)
    if read.is_of_windows:
        keys = [before.column(tree) for tree in read.rows.partition or ()]
        _check_sessions(text, read, owners, keys)
        assert read.rows.time is not None  # noqa: S101 - a window function names it
        every = TopRows(_EVERY, by=read.rows.time.text, least=True)
        return _compiled_rows(text, read, every, start, before, keys, kept, sources)
    over = one_over(text, read)
    keys = [before.column(tree) for tree in over.partition]
    numbered = is_numbered(read)
    if numbered and read.dialect is not KSQLDB:  # as Flink's, whose numbers are corrected however late a row is
        once = is_by_arrival(read, over)
        top = first_row(text, read, over, keys) if once else top_rows(text, read, over, before.column)
        return _compiled_rows(text, read, top, start, before, keys, kept, sources, once=once)
    stream = sources.stream(text, read.rows)
    event_time = stream.flow.sources[0].event_time
    if numbered and isinstance(event_time, str) and is_top(over, event_time):
        top = top_rows(text, read, over, before.column)
        return _compiled_rows(text, read, top, start, before, keys, kept, sources)
    by = _order_by(text, over, before, owners, stream.flow.sources[0].event_time)
    made = [_item(text, item, before, owners, aggregates) for item in read.items]
    names = names_of(text, read.items, made, read.dialect)
    accumulations: dict[str, Accumulation] = {}
    for one in made:
        accumulations |= {} if one is None else one.accumulations
    with text.at(start):
        stage = stream.key_by(*keys).over(_frame(text, read), order_by=by)
        stage = _emitting(text, read, sources.finish(stage)).accumulate(**accumulations)
        stage.flow.completed.check()
    shown = _shown(made, names, keys)
    having = None if read.outer is None else outer_condition(text, read.outer, shown, owners)
    rows = before.input(read.rows, kept)
    hidden = frozenset(map(str.lower, (*(one.name for one in rows.computed), "timestamp", "window", "pane", "dropped")))
    places = {f"accumulate({name}=": item.over.start for item in read.items if item.over for name in accumulations}
    return OverRows(stage, rows, shown, hidden, keys, having, places, text, read.chosen)


def _check_sessions(text: Text, read: Statement, owners: Sequence[str], keys: Sequence[str]) -> None:
    """Refuse WHERE on rows of sessions, which in Flink the rows that it leaves out belong to; on keys it leaves out whole sessions."""
    columns = () if read.where is None else columns_of(read.where)
    others = [column for column in columns if path_of(column, owners)[0].lower() not in map(str.lower, keys)]
    if others and isinstance(read.rows.windows, Sessions):
        raise text.error(
            read.begins["WHERE"],
            "WHERE over SESSION: in Flink the rows that it leaves out belong to sessions too; take it out, and filter what .apply(df) gives, "
            "or df for sessions of the others alone",
        )


def _compiled_rows(  # noqa: PLR0917 - the parts of a statement
    text: Text,
    read: Statement,
    top: TopRows,
    start: int,
    before: Before,
    keys: Sequence[str],
    kept: Expression | None,
    sources: Sources,
    *,
    once: bool = False,
) -> OverRows:
    """A statement that asks for the first rows of each key, or of each key and window; or for all rows of windows."""
    owners = (read.rows.alias.lower(),)
    if read.emit.every is not None:
        raise text.error(
            read.begins["EMIT"], "EVERY with OVER: rows are emitted at once, and corrected at once; take EVERY out"
        )
    made = [
        None if item.tree.is_star and item.over is None else _Made(shown_item(text, read, item, before, keys))
        for item in read.items
    ]
    with text.at(start):
        windows = read.windows.option
        stream = sources.stream(text, read.rows, timed=not windows.is_all_of_time)
        stage = sources.finish(stream).key_by(*keys).window(windows)
        if once:
            stage = stage.trigger(AfterCount(1), allow_data_loss=True).discarding()
        elif read.emit.refinement != "final":
            stage = stage.trigger(Always())
            stage = stage.accumulating_and_retracting().only_updated_panes() if read.is_over else stage.discarding()
        stage = stage.accumulate(**{ROWS: top})
        stage.flow.completed.check()
    shown = _shown(made, names_of(text, read.items, made, read.dialect), keys)
    having = None if read.outer is None else outer_condition(text, read.outer, shown, owners, within=(ROWS,))
    rows = before.input(read.rows, kept)
    hidden = frozenset(map(str.lower, (*(one.name for one in rows.computed), "window", "pane", "dropped")))
    return OverRows(
        stage, rows, shown, hidden, keys, having, {f"accumulate({ROWS}=": start}, text, read.chosen, is_top=True
    )


def _shown(made: Sequence[_Made | None], names: Sequence[Name], keys: Sequence[str]) -> list[Shown | None]:
    """The items with their names; which are keys."""
    is_key = {key.lower() for key in keys}

    def shown(expression: Expression, name: Name) -> Shown:
        path: tuple[Any, ...] = expression.node.value if expression.node.op == COLUMN else ()
        return Shown(attrs.evolve(expression, name=name.text), len(path) == 1 and path[0].lower() in is_key)

    return [None if one is None else shown(one.expression, name) for one, name in zip(made, names, strict=True)]


@attrs.frozen(eq=False)
class _Made:
    expression: Expression
    accumulations: Mapping[str, Accumulation] = attrs.Factory(dict)


def one_over(text: Text, read: Statement) -> Over:
    """The OVER of all items: rows have one key and one order."""
    first: tuple[str, Over] | None = None
    for item in read.items:
        if item.over is None:
            continue
        said = normal(text, item.over.rows, (read.rows.alias.lower(),))
        if first is not None and first[0] != said:
            raise text.error(
                item.over.start,
                f"OVER ({said}) beside OVER ({first[0]}): rows have one key and one order; write one statement for each",
            )
        first = first or (said, item.over)
    assert first is not None  # noqa: S101 - the statement has one
    return first[1]


def _order_by(text: Text, over: Over, before: Before, owners: Sequence[str], event_time: Any) -> str | None:
    """The column after the event time, which comes first."""
    (time, descends, at), *others = over.order
    path = path_of(time, owners) if isinstance(time, exp.Column) else ()
    if not isinstance(event_time, str) or len(path) != 1 or path[0].lower() != event_time.lower():
        raise text.error(
            at,
            f"ORDER BY {text[span_of(time)]}: rows are in the order of their event time, {event_time}; order by it first. For the "
            "first rows in another order write ROW_NUMBER() OVER (...) AS n in an inner SELECT, and WHERE n <= 3 around it",
        )
    for _, down, place in [(time, descends, at), *others]:
        if down:
            raise text.error(
                place,
                "DESC: each row would change the number of all rows before it, without end; for the last row of a key use "
                "LATEST_BY_OFFSET(x) or MAX with GROUP BY",
            )
    if len(others) > 1:
        raise text.error(others[1][2], "ORDER BY takes the event time and one column after it; take the others out")
    return before.column(others[0][0]) if others else None


def _frame(text: Text, read: Statement) -> Frame:
    """The frame of aggregates."""
    frames: dict[Frame, int] = {}
    for item in read.items:
        if item.over is None:
            continue
        call = call_of(item.tree)
        if call is not None and call.name in FUNCTIONS and call.name not in _OF_FRAME:
            if item.over.frame is not None:
                raise text.error(item.over.start, f"{call.name} is of all rows of its key; take ROWS or RANGE out")
            continue
        frames.setdefault(Unbounded() if item.over.frame is None else item.over.frame, item.over.start)
    if len(frames) > 1:
        raise text.error(
            [*frames.values()][1], "OVER with another frame: a statement has one; write one statement for each"
        )
    return next(iter(frames), Unbounded())


def _emitting(text: Text, read: Statement, pipeline: Pipeline) -> Pipeline:
    emit = read.emit
    if emit.every is not None:
        raise text.error(
            read.begins["EMIT"], "EVERY with OVER: a row is emitted at once, and corrected at once; take EVERY out"
        )
    if emit.refinement == "final":
        return pipeline
    return pipeline.trigger(AfterWatermark(early=Always())).accumulating_and_retracting()


def _item(text: Text, item: Item, before: Before, owners: Sequence[str], aggregates: UserAggregates) -> _Made | None:
    """An item over the rows of the pipeline; None for ``*``."""
    if item.over is None:
        if item.tree.is_star:
            return None
        for inner in calls_in(item.tree):
            raise text.error(inner.span.start, f"{inner.name} without OVER: rows are not grouped; write OVER after it")
        for column in columns_of(item.tree):
            before.column(column)
        return _Made(over_rows(text, item.tree, "", owners))
    call = call_of(item.tree)
    if call is None:
        raise text.error(
            item.over.start,
            "OVER stands after a call, which is an item of its own: SUM(x) OVER (...) AS s; compute with it where it is read",
        )
    if call.name not in FUNCTIONS:
        aggregate = aggregate_of(text, call, aggregates, before, owners)
        node = attrs.evolve(aggregate.node, at=call.span.start)
        made = Expression("", aggregate.sql, node, text[call.span], text, call.span.start)
        return _Made(made, aggregate.accumulations)
    name = f"{normal(text, call.span, owners)} over"
    node = Node(COLUMN, value=(name,), at=call.span.start)
    made = Expression("", quoted(name), node, text[call.span], text, call.span.start)
    with text.at(call.span.start):
        return _Made(made, {name: _function(text, call, before)})


def _function(text: Text, call: Call, before: Before) -> Accumulation:
    if call.name in _COUNTS:
        _check_arguments(text, call, 0, 0)
        return _COUNTS[call.name]()
    if call.name in _ENDS:
        _check_arguments(text, call, 1, 1)
        return _ENDS[call.name](before.column(call.args[0]))
    _check_arguments(text, call, 1, 3)
    column, *others = call.args
    values = [_literal(text, tree) for tree in others]
    return _SHIFTS[call.name](before.column(column), *values)


def _check_arguments(text: Text, call: Call, least: int, most: int) -> None:
    if call.distinct or not least <= len(call.args) <= most:
        takes = "no argument" if most == 0 else f"{least}" if least == most else f"{least} to {most} arguments"
        raise text.error(call.span.start, f"{call.name} takes {takes}; LAG(x, 2, 0) is the x two rows before, or 0")


def _literal(text: Text, tree: Tree) -> Any:
    negative = isinstance(tree, exp.Neg)
    one = tree.this if negative else tree
    if isinstance(one, exp.Null):
        return None
    if isinstance(one, exp.Boolean):
        return one.this
    if not isinstance(one, exp.Literal):
        raise text.error(span_of(tree).start, f"{text[span_of(tree)]}: write the value itself, a number or a text")
    if one.is_string:
        return one.this
    number = float(one.this) if not one.this.isdecimal() else int(one.this)
    return -number if negative else number


def names_of(text: Text, items: Sequence[Item], made: Sequence[object], dialect: Dialect) -> list[Name]:
    """The names of items; of those for which nothing is made they are not checked."""
    names: list[Name] = []
    for number, (item, one) in enumerate(zip(items, made, strict=True)):
        at = span_of(item.tree).start
        name = item.alias or (None if item.over else own_name(item)) or Name(dialect.unnamed_item(number, number), at)
        if one is not None:
            check_name(text, name, "choose another after AS")
        names.append(name)
    return names


def outer_condition(
    text: Text, tree: Tree, shown: Sequence[Shown | None], owners: Sequence[str], within: Sequence[str] = ()
) -> Expression:
    """The condition of the outer statement: over the items of the inner one; ``within``: where other columns of its rows are."""
    named = {one.expression.name.lower(): one.expression for one in shown if one is not None}
    known: dict[int, Node] = {}
    parts: list[tuple[Span, str]] = []
    for call in calls_in(tree):
        raise text.error(
            call.span.start, f"{call.name} under WHERE: name it in the inner SELECT: AS n, and write n here"
        )
    for column in columns_of(tree):
        path, span = path_of(column, owners), span_of(column)
        found = named.get(path[0].lower())
        if found is None and None not in shown:
            raise text.error(span.start, f"{path[0]} is not in the inner SELECT list; add it there")
        if found is None:
            known[id(column)] = Node(COLUMN, value=(*within, *path), at=span.start)
            if within:
                parts.append((span, ".".join(map(quoted, (*within, *path)))))
            continue
        known[id(column)] = Node(COLUMN, value=(*found.node.value, *path[1:])) if len(path) > 1 else found.node
        parts.append((span, f"({found.sql})" + "".join(f".{quoted(part)}" for part in path[1:])))
    return expression(text, tree, "", known, parts)
