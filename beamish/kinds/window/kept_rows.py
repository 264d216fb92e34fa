"""The rows that a shard keeps in its windows, to look at (docs/rules/running.md#kept-rows)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from beamish.contract.schemas import TIMESTAMP
from beamish.contract.store import Store
from beamish.errors import PipelineError
from beamish.kernels.arrays import Ints
from beamish.kernels.buffers import cast, pick, plain
from beamish.kernels.codes import factorize_values
from beamish.kernels.groups import Groups
from beamish.kernels.order import ranks, sort_keys, sort_order
from beamish.kinds.window.binding import BoundAccumulation
from beamish.kinds.window.kept_windows import of_each_windowing, open_windows
from beamish.kinds.window.plan import WindowPlan

TIME, NUMBER, ROW = "time", "number", "row"


def keeper(plan: WindowPlan, of: str | None) -> tuple[BoundAccumulation, str]:
    """The accumulation that keeps the rows that are meant, and what it calls them.

    Raises:
        PipelineError: nothing keeps rows, or several do and none is named, or it does not.
    """
    plan = next(iter(plan.windowings.values()), plan)
    named = [(name, bound) for bound in plan.accumulations for name in _names(bound)]
    known = {name: (bound, name) for name, bound in named}
    if not known:
        raise PipelineError(
            "rows(): no accumulation keeps rows; Collect('column') keeps a column of each, CoGroup and the joins whole rows of inputs"
        )
    if of is None and len(known) == 1:
        return next(iter(known.values()))
    if of not in known:
        raise PipelineError(
            f"rows(of={of!r}): rows are kept of {list(known)}; name one: rows(of={next(iter(known))!r})"
        )
    if sum(name == of for name, _ in named) > 1:
        raise PipelineError(
            f"rows(of={of!r}): an accumulation and an input are called so; call the accumulation otherwise"
        )
    return known[of]


def _names(bound: BoundAccumulation) -> list[str]:
    """What an accumulation calls the rows that it keeps: by inputs, or by the name of its column."""
    return [name or bound.name for name in bound.accumulation.kept(bound.types)]


def rows_schema(plan: WindowPlan, of: str | None) -> pa.Schema:
    """The columns of kept rows: keys, ``windowing``, ``time`` or ``number``, ``row``."""
    bound, name = keeper(plan, of)
    kept = bound.accumulation.kept(bound.types)
    of_rows = next(iter(plan.windowings.values()), plan).counts_rows
    place = (NUMBER, pa.int64()) if of_rows else (TIME, TIMESTAMP)
    for key in plan.output_key_schema.names:
        if key in (place[0], ROW):
            raise PipelineError(
                f"rows(): {key!r} is a key column, and what rows() calls one of its own; rename it before"
            )
    return pa.schema([*plan.output_key_schema, place, (ROW, kept["" if "" in kept else name])])


def kept_rows(plan: WindowPlan, store: Store, span: tuple[int, int], of: str | None) -> pa.Table:
    """The rows of a shard in a span of times or numbers, by key, place and row; each once, in however many windows it is.

    Args:
        plan: the stage's plan.
        store: the shard's.
        span: microseconds since the epoch, or numbers.
        of: what keeps them; None: the only thing that does.

    Returns:
        rows in ``rows_schema``.

    Raises:
        StateError: the state was written by another stage or format, or cannot be read.
    """
    return of_each_windowing(plan, store, lambda own, under: _kept(own, under, span, of))


def _kept(plan: WindowPlan, store: Store, span: tuple[int, int], of: str | None) -> pa.Table:
    schema = rows_schema(plan, of)
    bound, name = keeper(plan, of)
    # A window of one's own may lie elsewhere than its rows.
    table = open_windows(
        plan, store, span if plan.window.holds_its_rows else (np.iinfo(np.int64).min, np.iinfo(np.int64).max)
    )
    at = np.flatnonzero(~table["closed"])
    state = table.state.take(table["state_at"][at])
    lists, row_type = bound.state_of(state.columns), schema.field(ROW).type
    place, rows, window = bound.accumulation.kept_rows([column.combine_chunks() for column in lists], bound.types, name)
    inside = np.flatnonzero((place >= span[0]) & (place < span[1]))
    place, rows, window = place[inside], pick(rows, inside), window[inside]
    keys = table.keys.take(table["key_at"][at][window])
    once = _once(keys, place, rows, window)
    place, rows, keys = place[once], pick(rows, once), keys.take(pa.array(once)) if keys.schema.names else keys
    where = pa.array(place) if plan.counts_rows else pa.array(place).cast(TIMESTAMP)
    return pa.table([*keys.columns, where, cast(rows, row_type)], schema=schema)


def _once(keys: pa.Table, place: Ints, rows: pa.Array, window: Ints) -> Ints:
    """Which of rows in windows are shown, in order: equal rows as often as the window has them that has most of them."""
    by_key = [key for column in keys.columns for key in sort_keys(plain(column.combine_chunks()))]
    rank = ranks([*by_key, place, *sort_keys(plain(rows))])
    in_window = factorize_values(rank * (int(window.max(initial=0)) + 1) + window)
    order = sort_order([in_window.of])
    copy = np.empty(len(rank), dtype=np.int64)
    copy[order] = Groups(in_window.of[order], in_window.count).positions()
    alike = factorize_values(rank * (int(copy.max(initial=0)) + 1) + copy)
    shown = alike.first()
    return shown[sort_order([rank[shown]])]
