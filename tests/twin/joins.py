"""The value of a pane of a merge: rows of one input accumulated, or rows of several inputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import beamish as bm
from beamish import accumulations as a
from beamish.accumulations import Accumulation
from beamish.accumulations.base.one_input import OfInput
from beamish.contract.relation import Relation
from tests.twin.accumulations import Row, value_of
from tests.twin.order import spark_order
from tests.twin.windows import interval_of, interval_windows

Join: TypeAlias = a.InnerJoin | a.LeftOuterJoin | a.RightOuterJoin | a.FullOuterJoin

JOINS: dict[type[Accumulation], tuple[bool, bool]] = {
    a.InnerJoin: (False, False),
    a.LeftOuterJoin: (True, False),
    a.RightOuterJoin: (False, True),
    a.FullOuterJoin: (True, True),
}
"""Whether unmatched left rows are emitted, and unmatched right ones."""


def value_of_inputs(
    accumulation: Accumulation,
    rows: Sequence[Row],
    inputs: Sequence[Relation],
    window: bm.WindowOption | None = None,
    start_us: int = 0,
) -> Any:
    """The value of a pane; for a join the list of its pairs."""
    if isinstance(accumulation, OfInput):
        return value_of(accumulation.inner, [row for row in rows if row.input == accumulation.input])
    if isinstance(accumulation, a.CoGroup):
        return {name: rows_of(name, rows, inputs) for name in accumulation.names}
    if not isinstance(accumulation, Join):
        return value_of(accumulation, rows)
    keeps_left, keeps_right = JOINS[type(accumulation)]
    if isinstance(window, bm.Within):
        return [*meeting(accumulation, rows, inputs, window, start_us)]
    left, right = (rows_of(name, rows, inputs) for name in (accumulation.left, accumulation.right))
    apart = any(has_no_match(accumulation, row, inputs) for row in rows)
    pairs: list[tuple[Any, Any]] = [] if apart else [(one, other) for one in left for other in right]
    if keeps_left and (apart or not right):
        pairs += [(one, None) for one in left]
    if keeps_right and (apart or not left):
        pairs += [(None, other) for other in right]
    return [{accumulation.left: one, accumulation.right: other} for one, other in pairs]


def has_no_match(join: Join, row: Row, inputs: Sequence[Relation]) -> bool:
    """Whether it is a row of a side with a null in its key (rules/stages.md#null-keys)."""
    if join.null_keys == "pair" or row.input not in (join.left, join.right):
        return False
    (keys,) = (one.keys for one in inputs if one.name == row.input)
    return any(row.values.get(column) is None for column in keys)


def is_dropped(accumulations: Mapping[str, Accumulation], row: Row, inputs: Sequence[Relation]) -> bool:
    """Whether it has no match, and its side emits no unmatched row."""
    for join in accumulations.values():
        if isinstance(join, Join):
            keeps = dict(zip((join.left, join.right), JOINS[type(join)], strict=True))
            return has_no_match(join, row, inputs) and not keeps[str(row.input)]
    return False


def full_interval(window: bm.WindowOption | None, accumulations: Mapping[str, Accumulation]) -> Join | None:
    """The join, if it is an interval join that emits unmatched rows of both sides (rules/joins.md#full-interval-joins)."""
    (join,) = accumulations.values() if len(accumulations) == 1 else (None,)
    return join if isinstance(window, bm.Within) and isinstance(join, a.FullOuterJoin) else None


def windows_of_both(
    join: Join, window: bm.Within, row: Row, inputs: Sequence[Relation], own: Sequence[tuple[int, int]]
) -> Sequence[tuple[int, int]]:
    """The windows of a row of a full interval join: its own, and that of its other matches."""
    if row.input not in (join.left, join.right):
        return own
    since, until = interval_of(window)
    if row.input != window.of and not has_no_match(join, row, inputs):
        return interval_windows(window, row.time_us, row.time_us + until - since)
    return own[-1:] if has_no_match(join, row, inputs) else own


def is_in_own_window(window: bm.Within, name: str, time_us: int, start_us: int) -> bool:
    """Whether the window that starts there is the one that emits the row."""
    own_us = time_us - interval_of(window)[0] if name == window.of else time_us
    return interval_windows(window, own_us, own_us)[0][0] == start_us


def meeting(
    join: Join, rows: Sequence[Row], inputs: Sequence[Relation], window: bm.Within, start_us: int
) -> Iterator[dict[str, Any]]:
    """Row by row: matches, then unmatched rows that are stored (rules/stages.md#within)."""
    both = full_interval(window, {"": join}) is not None

    def is_own(name: str, time_us: int) -> bool:
        return not both or is_in_own_window(window, name, time_us, start_us)

    def meets(one: int, other: int) -> bool:
        time, of = (other, one) if join.left == window.of else (one, other)
        since, until = interval_of(window)
        return since <= of - time <= until

    keeps_left, keeps_right = JOINS[type(join)]
    left, right = (timed_rows_of(name, rows, inputs) for name in (join.left, join.right))
    apart = any(has_no_match(join, row, inputs) for row in rows)
    pairs = [(one, other) for one in left for other in right if meets(one[0], other[0]) and not apart]
    for (time, one), (at, other) in pairs:
        if is_own(join.left, time) if join.right == window.of else is_own(join.right, at):
            yield {join.left: one, join.right: other}
    if keeps_left:
        alone = [one for time, one in left if is_own(join.left, time) and not any(one is met for (_, met), _ in pairs)]
        yield from ({join.left: one, join.right: None} for one in alone)
    if keeps_right:
        alone = [
            other for at, other in right if is_own(join.right, at) and not any(other is met for _, (_, met) in pairs)
        ]
        yield from ({join.left: None, join.right: other} for other in alone)


def rows_of(name: str, rows: Sequence[Row], inputs: Sequence[Relation]) -> list[dict[str, Any]]:
    """The rows of one input without its keys, by (event time, then the row in Spark's order)."""
    return [row for _, row in timed_rows_of(name, rows, inputs)]


def row_without(keys: Sequence[Any], row: Row) -> dict[str, Any]:
    """The columns of a row in a join: all except the keys."""
    return {column: value for column, value in row.values.items() if column not in keys}


def timed_rows_of(name: str, rows: Sequence[Row], inputs: Sequence[Relation]) -> list[tuple[int, dict[str, Any]]]:
    """The rows of one input without its keys, each with its event time."""
    (keys,) = (one.keys for one in inputs if one.name == name)
    own = [(row.time_us, row_without(keys, row)) for row in rows if row.input == name]
    own.sort(key=lambda pair: (pair[0], [spark_order(value) for value in pair[1].values()]))
    return own
