"""A statement compiled: the pipeline, and what is computed before and after it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from beamish.accumulations.base.accumulation import Accumulation
from beamish.modes import OnTimeBehavior
from beamish.pipeline import Pipeline
from beamish.statement.aggregates import GIVES_LIST_OF_ONE, Call, UserAggregates, accumulation_of, calls_in
from beamish.statement.clauses import Clauses, clauses_of
from beamish.statement.emit import Emit, emit_of
from beamish.statement.expressions import Expression, over_rows
from beamish.statement.nodes import COLUMN
from beamish.statement.normal import normal
from beamish.statement.over_panes import Aggregate, Key, Panes
from beamish.statement.shown import Shown, aliases_of, check_name, shown_of
from beamish.statement.source import Rows, rows_of
from beamish.statement.text import Text
from beamish.statement.tokens import Token, split, tokens_of
from beamish.statement.windows import Windows, windows_of
from beamish.triggers import AfterProcessingTime, Always, Never, Repeatedly
from beamish.windows import Sessions


@attrs.frozen
class Compiled:
    """What a statement comes to.

    Attributes:
        name: what CREATE TABLE calls it.
        rows: what the rows are called.
        windows: what the WINDOW clause says.
        emit: what the EMIT clause says.
        where: which rows go on; None: all.
        columns: the columns of the rows that the pipeline reads.
        computed: the columns that are computed for it.
        pipeline: what is between.
        having: which panes come out; None: all.
        shown: the items of the SELECT list.
        end: the last place of the text.
    """

    name: str | None
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
        source: where the rows come from, and what is said of those that are dropped.
        aggregates: the user's own.

    Raises:
        SqlError: it is none, or cannot be what it says.
    """
    clauses = clauses_of(text, tokens_of(text))
    rows, windows, emit = rows_of(text, clauses), windows_of(text, clauses), emit_of(text, clauses)
    owners = (rows.alias.lower(),)
    before = _Before(text, owners)
    where = clauses.words.get("WHERE")
    if where is not None:
        _check_no_aggregate(text, where, aggregates, "WHERE", "it is of rows; conditions on aggregates go under HAVING")
    kept = None if where is None else over_rows(text, where, "WHERE", owners)
    keys = _keys(text, clauses, aggregates, before)
    calls = _calls(text, clauses, aggregates)
    accumulations = _accumulations(text, calls, aggregates, before, owners)
    panes = Panes(
        text,
        keys,
        [Aggregate(normal(text, call.words, owners), call.words, call.name in GIVES_LIST_OF_ONE) for call in calls],
        owners,
        "WINDOW" in clauses.begins,
        aliases_of(text, clauses),
    )
    shown = shown_of(text, clauses, panes)
    having = panes.expression(clauses.words["HAVING"], "HAVING", bounds=False) if "HAVING" in clauses.words else None
    with text.at(clauses.begins["GROUP_BY"].start):
        pipeline = _windowed(source.key_by(*(key.name for key in keys)), windows, emit, having)
        pipeline = pipeline.accumulate(**accumulations)
        pipeline.flow.check()
    return Compiled(
        clauses.name,
        rows,
        windows,
        emit,
        kept,
        before.columns,
        before.computed,
        pipeline,
        having,
        shown,
        clauses.last.start,
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
    """What the pipeline reads: columns of the rows, and columns that are computed for it."""

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
        """The columns that are computed, each once."""
        return tuple(self._computed.values())

    def column(self, tokens: Sequence[Token]) -> str:
        """The name of the column that holds an expression."""
        return self.take(tokens).name

    def take(self, tokens: Sequence[Token]) -> Expression:
        """An expression under the name of the column that holds it."""
        made = over_rows(self._text, tokens, "", self._owners)
        path: tuple[str, ...] = made.node.value if made.node.op == COLUMN else ()
        if len(path) == 1:
            name = next((name for name in self._columns if name.lower() == path[0].lower()), path[0])
            return self._columns.setdefault(name, attrs.evolve(made, name=name))
        name = normal(self._text, tokens, self._owners)
        return self._computed.setdefault(name, attrs.evolve(made, name=name))

    def is_column(self, name: str) -> bool:
        """Whether it is a column of the rows."""
        return name in self._columns


def _keys(text: Text, clauses: Clauses, aggregates: UserAggregates, before: _Before) -> list[Key]:
    words = clauses.words["GROUP_BY"]
    _check_no_aggregate(text, words, aggregates, "GROUP BY", "it is of groups; show it in the SELECT list")
    keys: list[Key] = []
    for item in split(words, 0):
        if not item:
            raise text.error(
                clauses.begins["GROUP_BY"].start, "an expression under GROUP BY is missing; take out a comma"
            )
        first = item[0]
        if len(item) == 1 and (first.kind == "NUMBER" or first.word == "ALL"):
            raise text.error(
                first.start, f"GROUP BY {first.text}: name the expressions that make a group, such as GROUP BY region"
            )
        if len(item) > 1 and item[1].kind == "L_PAREN" and first.word in ("WINDOW", "SESSION_WINDOW", "WINDOW_TIME"):
            raise text.error(
                first.start, f"{first.word}(...) under GROUP BY: say WINDOW TUMBLING (SIZE 5 MINUTES) after FROM"
            )
        name = before.column(item)
        if any(key.name.lower() == name.lower() for key in keys):
            raise text.error(first.start, f"{name} is under GROUP BY twice; take one out")
        check_name(text, first, name, "rename the column in Spark first: df.withColumnRenamed(...)")
        keys.append(Key(name, item, before.is_column(name)))
    return keys


def _calls(text: Text, clauses: Clauses, aggregates: UserAggregates) -> list[Call]:
    calls = calls_in(text, clauses.words["SELECT"], aggregates)
    calls += calls_in(text, clauses.words.get("HAVING", ()), aggregates)
    if not calls:
        raise text.error(
            clauses.begins["GROUP_BY"].start,
            "GROUP BY without an aggregate: say what of a group is asked, such as COUNT(*) AS n",
        )
    return calls


def _accumulations(
    text: Text, calls: Sequence[Call], aggregates: UserAggregates, before: _Before, owners: Sequence[str]
) -> Mapping[str, Accumulation]:
    """Each aggregate once, under its normal form, in the order of the text."""
    return {normal(text, call.words, owners): accumulation_of(text, call, aggregates, before.column) for call in calls}


def _check_no_aggregate(text: Text, words: Sequence[Token], aggregates: UserAggregates, clause: str, why: str) -> None:
    for call in calls_in(text, words, aggregates):
        raise text.error(call.span.start, f"{call.name} under {clause}: {why}")
