"""The value of a pane of a merge: rows of one input accumulated, or rows of several inputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import beamish as bm
from beamish import accumulations as a
from beamish.accumulations import Accumulation
from beamish.accumulations.base.one_input import OfInput
from beamish.contract.relation import Relation
from tests.kinds.refine.strategy import meaning
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
    within = window if isinstance(window, bm.Within) else None
    return [*joined(accumulation, rows, inputs, within, start_us)]


def has_no_match(join: Join, row: Row, inputs: Sequence[Relation]) -> bool:
    """Whether it is a row of a side with a null in its key, or one that fails its condition."""
    return has_null_key(join, row, inputs) or fails(join, row)


def has_null_key(join: Join, row: Row, inputs: Sequence[Relation]) -> bool:
    """Whether it is a row of a side with a null in its key (rules/stages.md#null-keys)."""
    if join.null_keys == "pair" or row.input not in (join.left, join.right):
        return False
    (keys,) = (one.keys for one in inputs if one.name == row.input)
    return any(row.values.get(column) is None for column in keys)


def fails(join: Join, row: Row) -> bool:
    """Whether it does not fulfil the condition of its side (rules/joins.md#match-conditions)."""
    condition = join.match_if.get(str(row.input))
    return condition is not None and meaning(condition)(row.values) is not True


def is_dropped(accumulations: Mapping[str, Accumulation], row: Row, inputs: Sequence[Relation]) -> bool:
    """Whether its key is null, and its side emits no unmatched row."""
    return any(has_null_key(join, row, inputs) and not keeps for join, keeps in sides_of(accumulations, row))


def is_left_out(accumulations: Mapping[str, Accumulation], row: Row) -> bool:
    """Whether it fails the condition of its side, which emits no unmatched row."""
    return any(fails(join, row) and not keeps for join, keeps in sides_of(accumulations, row))


def sides_of(accumulations: Mapping[str, Accumulation], row: Row) -> Iterator[tuple[Join, bool]]:
    """The join that has a row, and whether it emits it if unmatched."""
    for join in accumulations.values():
        if isinstance(join, Join) and row.input in (join.left, join.right):
            yield join, dict(zip((join.left, join.right), JOINS[type(join)], strict=True))[str(row.input)]


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


def joined(
    join: Join, rows: Sequence[Row], inputs: Sequence[Relation], within: bm.Within | None, start_us: int
) -> Iterator[dict[str, Any]]:
    """Row by row: matches, then unmatched rows that are emitted (rules/stages.md#joins, #within)."""
    both = full_interval(within, {"": join}) is not None
    keeps_left, keeps_right = JOINS[type(join)]

    def is_own(row: Row) -> bool:
        return not both or within is None or is_in_own_window(within, str(row.input), row.time_us, start_us)

    def match(one: Row, other: Row) -> bool:
        if has_no_match(join, one, inputs) or has_no_match(join, other, inputs):
            return False
        if within is None:
            return True
        time, of = (other.time_us, one.time_us) if join.left == within.of else (one.time_us, other.time_us)
        since, until = interval_of(within)
        return since <= of - time <= until

    left, right = (in_order(name, rows, inputs) for name in (join.left, join.right))
    pairs = [(one, other) for one in left for other in right if match(one, other)]
    decides = within is None or join.right == within.of
    found: list[tuple[Row | None, Row | None]] = [pair for pair in pairs if is_own(pair[0 if decides else 1])]
    if keeps_left:
        found += [(one, None) for one in left if is_own(one) and not any(one is met for met, _ in pairs)]
    if keeps_right:
        found += [(None, one) for one in right if is_own(one) and not any(one is met for _, met in pairs)]
    keys = {one.name: one.keys for one in inputs}
    for pair in found:
        yield {
            name: row and row_without(keys[name], row) for name, row in zip((join.left, join.right), pair, strict=True)
        }


def rows_of(name: str, rows: Sequence[Row], inputs: Sequence[Relation]) -> list[dict[str, Any]]:
    """The rows of one input without its keys, by (event time, then the row in Spark's order)."""
    (keys,) = (one.keys for one in inputs if one.name == name)
    return [row_without(keys, row) for row in in_order(name, rows, inputs)]


def row_without(keys: Sequence[Any], row: Row) -> dict[str, Any]:
    """The columns of a row in a join: all except the keys."""
    return {column: value for column, value in row.values.items() if column not in keys}


def in_order(name: str, rows: Sequence[Row], inputs: Sequence[Relation]) -> list[Row]:
    """The rows of one input, by (event time, then the row in Spark's order)."""
    (keys,) = (one.keys for one in inputs if one.name == name)

    def place(row: Row) -> Any:
        return row.time_us, [spark_order(value) for value in row_without(keys, row).values()]

    return sorted((row for row in rows if row.input == name), key=place)
