"""A statement compiled: the pipeline, what is computed before and after it, and all of it in words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, product
from math import prod

import attrs
from sqlglot import exp

from beamish.errors import ColumnError
from beamish.explain import Line, text_of
from beamish.kernels.key_sets import GROUPING_ID, MOST, GroupingSets
from beamish.modes import TimestampCombiner
from beamish.pipeline import Pipeline
from beamish.statement.flink.grammar import FlinkParser
from beamish.statement.grammar.aggregates import NAMES, UserAggregates, aggregate_of, calls_in
from beamish.statement.grammar.clauses import KSQLDB, DialectName, KeySets, Name, Statement
from beamish.statement.grammar.expressions import Expression, all_of, over_rows, path_of
from beamish.statement.grammar.statements import StatementParser, parsed
from beamish.statement.grammar.text import Call, Text, Tree, span_of
from beamish.statement.groups import Groups
from beamish.statement.inputs import Before, Input, Sources, emitting
from beamish.statement.joins import Joined, join_of
from beamish.statement.over import FUNCTIONS, OverRows, compiled_over
from beamish.statement.over_panes import (
    Key,
    Panes,
    Shown,
    aliases_of,
    check_known,
    check_name,
    shown_of,
    updated_panes,
    without_brackets,
)
from beamish.statement.tables import Table
from beamish.statement.top_panes import numbered_panes
from beamish.statement.top_rows import ROWS
from beamish.windows import Sessions


@attrs.frozen
class Compiled:
    """A compiled statement.

    Attributes:
        text: the statement.
        read: the statement, read.
        inputs: what is computed of the rows of each stream before the pipeline.
        pipeline: what is between.
        joined: the join whose rows it shows; None: it groups.
        having: the condition on panes; None: all.
        grouped: the items of the SELECT list, of a statement that groups.
        places: the place in the text of each key and accumulation, by the words that the pipeline's errors have for it.
        over: the statement with OVER; None: it groups or joins.
    """

    text: Text
    read: Statement
    inputs: Sequence[Input]
    pipeline: Pipeline
    joined: Joined | None
    having: Expression | None
    grouped: Sequence[Shown]
    places: Mapping[str, int]
    over: OverRows | None = None

    @property
    def rows_within(self) -> str | None:
        """The struct column of panes with the columns of rows; None: the panes have them."""
        return ROWS if self.over is not None and self.over.is_top else None

    @contextmanager
    def placed(self) -> Iterator[None]:
        """Report a column of the wrong type, which the pipeline refuses meanwhile, at its place (SqlError)."""
        try:
            yield
        except ColumnError as error:
            for words, at in self.places.items():
                if words in str(error):
                    raise self.text.error(at, str(error)) from error
            raise

    def shown(self, columns: Mapping[str, Sequence[str]]) -> Sequence[Shown]:
        """The items of the SELECT list; of a join, over inputs with these columns, by alias; with OVER, over rows with those of ''.

        Raises:
            SqlError: a column is in several inputs, or a name is taken.
        """
        if self.over is not None:
            return self.over.shown(columns[""])
        if self.joined is None:
            return self.grouped
        if self.having is not None:
            self.joined.check_single(self.having, columns)
        return self.joined.shown(self.read.items, columns)


_PARSERS: Mapping[DialectName, type[StatementParser]] = {"ksqldb": StatementParser, "flink": FlinkParser}


def compiled(text: Text, sources: Sources, aggregates: UserAggregates, dialect: DialectName) -> Compiled:
    """Compile a statement.

    Args:
        text: the statement.
        sources: the streams and tables.
        aggregates: the user's own.
        dialect: its dialect.

    Raises:
        SqlError: it is not one, or its parts do not go together.
    """
    read = parsed(_PARSERS[dialect](text, {*NAMES, *FUNCTIONS, *aggregates}), text)
    sources = sources.declared(text, read)
    read = sources.named(read)
    if read.rows.groups is not None:
        return _of_groups(text, read, read.rows.groups, sources, aggregates)
    if read.is_over or read.is_of_windows:
        over = compiled_over(text, read, sources, aggregates)
        items = [item for item in over.items if item is not None]
        return Compiled(text, read, [over.rows], over.pipeline, None, over.having, items, over.places, over)
    if read.joins:
        return _joined(text, read, sources)
    return _grouped(text, read, sources, aggregates)


def _grouped(
    text: Text, read: Statement, sources: Sources, aggregates: UserAggregates, of: Compiled | None = None
) -> Compiled:
    """Compile a statement with GROUP BY; ``of``: over the groups of another."""
    owners = (read.rows.alias.lower(),)
    table = Table(text, read.rows, sources.tables[read.rows.name]) if read.rows.name in sources.tables else None
    rows_of = Before(text, owners, {} if table is None else table.spelled, sources.offset)
    before: Before | Groups = rows_of if of is None else Groups.of(text, of.grouped)
    if read.where is not None:
        _check_no_aggregate(text, read.where, "WHERE", "WHERE is over rows; put conditions on aggregates under HAVING")
    kept = None if read.where is None else over_rows(text, read.where, "WHERE", owners)
    key_sets = next((one for one in read.group_by if isinstance(one, KeySets)), None)
    if key_sets is None:
        keys, sets = _keys(text, read, before), None
    elif table is None and of is None:
        keys, sets = _keys_of_sets(text, read, rows_of, key_sets, owners)
    else:
        raise text.error(
            key_sets.start,
            f"{key_sets.word} over {'the table' if of is None else 'the groups of'} {read.rows.name}: only rows of a stream are in several sets; "
            "write a statement for each set",
        )
    calls = _calls(text, read)
    if table is not None:
        trees = [*read.grouped_by, *(tree for call in calls for tree in call.args), read.where]
        table.check(read, [tree for tree in trees if tree is not None])
    aggregates_ = {call.span: aggregate_of(text, call, aggregates, before, owners) for call in calls}
    accumulations = {name: one for aggregate in aggregates_.values() for name, one in aggregate.accumulations.items()}
    windowed = not read.windows.option.is_all_of_time
    panes = Panes(text, keys, aggregates_, owners, windowed, aliases_of(text, read.items), read.dialect, sets)
    shown = shown_of(text, read.items, panes)
    having = None if read.having is None else panes.expression(read.having, bounds=False)
    if isinstance(before, Groups):
        assert of is not None  # noqa: S101 - they are its groups
        before.check_time(read.rows)
        rows, latest, stage = of.inputs[0], of.pipeline, Pipeline()
    elif table is None:
        rows, latest, stage = before.input(read.rows, kept), None, sources.stream(text, read.rows, timed=windowed)
    else:
        rows, latest, stage = table.of(before, read.where)
    rows, stage = attrs.evolve(rows, in_sets=sets is not None), sources.finish(stage)
    with text.at(_begins(read)):
        stage = stage.key_by(*([key.name for key in keys] if sets is None else [sets])).window(read.windows.option)
        stage = stage.allowed_lateness(read.windows.grace or 0).accumulate(**accumulations)
        if read.rows.updated_within is not None:
            stage = stage.timestamp_combiner(TimestampCombiner.LATEST)
            updated = updated_panes(text, read.rows.updated_within, read.begins["SELECT"])
            having = updated if having is None else all_of([updated, having])
        vanishes = having is not None or table is not None or isinstance(read.windows.option, Sessions)
        vanishes |= sets is not None and GROUPING_ID not in {
            item.key for item in shown
        }  # a total looks like a group of nulls
        stage = emitting(stage, read.emit, vanishes=vanishes)
        pipeline = stage if latest is None else latest.then(stage)
        pipeline.flow.completed.check()
    places = {f"key_by({key.name!r})": span_of(key.tree).start for key in keys}
    places |= {f"accumulate({name}=": span.start for span, one in aggregates_.items() for name in one.accumulations}
    if sets is not None and key_sets is not None:
        places[f"key_by({sets!r})"] = key_sets.start
    return Compiled(text, read, [rows], pipeline, None, having, shown, places)


def _of_groups(
    text: Text, read: Statement, groups: Statement, sources: Sources, aggregates: UserAggregates
) -> Compiled:
    """Compile a statement that numbers the groups of another, or groups them again."""
    plain = attrs.evolve(sources, on_error="fail", with_dropped=False)
    inner = _grouped(text, plain.named(groups), plain, aggregates)
    if not read.is_over:
        return _grouped(text, read, sources, aggregates, inner)
    over = numbered_panes(text, read, inner.grouped, inner.inputs, inner.pipeline)
    over = attrs.evolve(over, pipeline=sources.finish(over.pipeline))
    items = [item for item in over.items if item is not None]
    return Compiled(
        text, read, inner.inputs, over.pipeline, None, over.having, items, {**inner.places, **over.places}, over
    )


def _joined(text: Text, read: Statement, sources: Sources) -> Compiled:
    """Compile a join."""
    pipeline, joined = join_of(text, read, sources)
    for clause in ("WINDOW", "GROUP_BY", "HAVING"):
        if clause in read.begins:
            raise text.error(
                read.begins[clause],
                f"{clause.replace('_', ' ')} over a join: a statement joins or groups; group the joined rows in a second one",
            )
    conditions = [joined.expression(tree) for tree in (read.where, *read.filters) if tree is not None]
    having = all_of(conditions) if conditions else None
    for item in read.items:
        joined.check(item)
    with text.at(read.joins[0].start):
        pipeline = sources.finish(pipeline)
    return Compiled(text, read, joined.inputs, pipeline, joined, having, (), joined.places)


def _keys(text: Text, read: Statement, before: Before | Groups) -> list[Key]:
    keys: list[Key] = []
    for tree in read.grouped_by:
        _check_key(text, read, tree)
        span, name = span_of(tree), before.column(tree)
        if any(key.name.lower() == name.lower() for key in keys):
            raise text.error(span.start, f"{name} is under GROUP BY twice; take one out")
        check_name(text, Name(name, span.start), "rename the column in Spark first: df.withColumnRenamed(...)")
        keys.append(Key(name, without_brackets(tree), name if before.is_column(name) else None))
    return keys


def _keys_of_sets(
    text: Text, read: Statement, before: Before, first: KeySets, owners: Sequence[str]
) -> tuple[list[Key], GroupingSets | None]:
    """The keys of all sets, and the sets; None: the only one has no columns."""
    keys: dict[str, Key] = {}
    names: dict[int, str] = {}
    for tree in read.grouped_by:
        _check_key(text, read, tree)
        bare = without_brackets(tree)
        names[id(tree)] = name = before.copy(bare)
        path = path_of(bare, owners) if isinstance(bare, exp.Column) else ()
        keys.setdefault(name, Key(name, bare, path[0] if len(path) == 1 else None))
    each = [one.sets if isinstance(one, KeySets) else [[one]] for one in read.group_by]
    if (count := prod(map(len, each))) > MOST:
        raise text.error(
            first.start,
            f"{count} sets, and each row would be in a group of each; the most are {MOST}: name those that are read: GROUPING SETS "
            "((a, b), (a), ())",
        )
    sets = [tuple(dict.fromkeys(names[id(tree)] for tree in chain(*chosen))) for chosen in product(*each)]
    for number, one in enumerate(sets):
        if set(one) in map(set, sets[:number]):
            said = ", ".join(text[span_of(keys[name].tree)] for name in one)
            raise text.error(
                first.start,
                f"the set ({said}) is there twice, so each of its groups would be emitted twice; leave one out",
            )
    if sets == [()]:
        return [], None
    if not keys:
        raise text.error(first.start, f"{first.word} without columns: name the expressions that make a group")
    with text.at(first.start):
        return [*keys.values()], GroupingSets(*sets)


def _check_key(text: Text, read: Statement, tree: Tree) -> None:
    """Check an expression under GROUP BY (SqlError: an aggregate, a place in the SELECT list, or a window)."""
    _check_no_aggregate(text, tree, "GROUP BY", "it is computed per group; put it in the SELECT list")
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


def _begins(read: Statement) -> int:
    """The place of GROUP BY; that of SELECT if all rows are one group."""
    return read.begins.get("GROUP_BY", read.begins["SELECT"])


def _calls(text: Text, read: Statement) -> list[Call]:
    trees = [item.tree for item in read.items] + ([] if read.having is None else [read.having])
    calls = [call for tree in trees for call in calls_in(tree)]
    for call in calls:
        if call.name in FUNCTIONS:
            raise text.error(
                call.span.start, f"{call.name} without OVER: write {text[call.span]} OVER (ORDER BY ts) AS n"
            )
    if not calls:
        check_known(text, (node for tree in trees for node in tree.walk()))
        raise text.error(
            _begins(read),
            "GROUP BY without an aggregate: add one, such as COUNT(*) AS n; an aggregate of your own is declared: "
            "bm.sql(..., aggregates={'NAME': lambda column: ...})",
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
    for one in statement.inputs:
        of = f"of {one.rows.name}, " if statement.joined else ""
        given = f"those of the DataFrame {one.rows.name}" if of else "those of the DataFrame or the script"
        yield "source", f"the rows of {one.rows.name}, which are {given}"
        if one.where is not None:
            yield (
                "where",
                f"{of}rows for which {_one_line(one.where.said)} is true are kept; the others do not move the watermark",
            )
        if one.computed:
            computed = ", ".join(_one_line(expression.said) for expression in one.computed)
            yield (
                "computed",
                f"{of}for each row, before it is {'emitted' if statement.over else 'in a window'}: {computed}",
            )


def _query_words(statement: Compiled) -> str:
    name = f" {statement.read.name}" if statement.read.name else ""
    kind = statement.read.emit.kind
    if kind == "pull":
        return f"pull: asks a batch DataFrame once, one final row for each {_slot(statement)}"
    if statement.read.emit.refinement == "final":
        read = statement.read
        windowed = not read.windows.option.is_all_of_time or read.rows.groups is not None
        when = "the window expires" if windowed or not statement.over else "its time is passed"
        when = "all rows are there, as in a batch" if statement.rows_within and not windowed else when
        return f"{kind}{name}, final rows: one for each {_slot(statement)}, when {when}"
    return f"{kind}{name}, changes: a PANE sets its {_slot(statement)}, a RETRACTION takes that back"


def _slot(statement: Compiled) -> str:
    return "row" if statement.over else "group and window"


def _after(statement: Compiled) -> Iterator[Line]:
    if statement.having is not None:
        clause = "where" if statement.joined else "having"
        yield clause, f"panes and retractions for which {_one_line(statement.having.said)} is true are emitted"
    yield "shown", f"{', '.join(map(_one_line, _shown(statement)))}; then window, pane and timestamp"
    windows = statement.read.windows
    unsaid = []
    if windows.grace is None and not windows.option.is_all_of_time and statement.read.rows.windows is None:
        lateness = "GRACE PERIOD" if statement.read.dialect is KSQLDB else "table.exec.emit.allow-lateness"
        unsaid.append(f"{lateness} is not set, so it is 0: a row after its window's end is dropped")
    if windows.retention is not None:
        unsaid.append(f"RETENTION {windows.retention} has no effect: the sink keeps the results")
    if statement.read.properties:
        unsaid.append(f"WITH ({', '.join(statement.read.properties)}) has no effect: a DataFrame has no format")
    if unsaid:
        yield "note", "; ".join(unsaid)


def _shown(statement: Compiled) -> Iterator[str]:
    for item in statement.read.items if statement.joined else ():
        said = statement.text[span_of(item.tree)]
        yield said if item.alias is None else f"{said} as {item.alias.text}"
    for one in statement.grouped:
        name, said = one.expression.name, one.expression.said
        yield name if _one_line(said).lower() in (name.lower(), "*") else f"{said} as {name}"


def _one_line(said: str) -> str:
    return " ".join(said.split())
