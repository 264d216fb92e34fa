"""What a pane of a merge holds: the rows of one input accumulated, or the rows of several side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from beamish import accumulations as a
from beamish.accumulations import Accumulation
from beamish.accumulations.adapters.one_input import OfInput
from beamish.plan.relation import Relation
from tests.twin.accumulations import Row, value_of
from tests.twin.order import spark_order

Join: TypeAlias = a.InnerJoin | a.LeftOuterJoin | a.RightOuterJoin | a.FullOuterJoin

JOINS: dict[type[Accumulation], tuple[bool, bool]] = {
    a.InnerJoin: (False, False),
    a.LeftOuterJoin: (True, False),
    a.RightOuterJoin: (False, True),
    a.FullOuterJoin: (True, True),
}
"""Whether a left row without a match comes out, and whether a right one does."""


def value_of_inputs(accumulation: Accumulation, rows: Sequence[Row], inputs: Sequence[Relation]) -> Any:
    """The value of a pane; of a join the list of its pairs."""
    if isinstance(accumulation, OfInput):
        return value_of(accumulation.inner, [row for row in rows if row.input == accumulation.input])
    if isinstance(accumulation, a.CoGroup):
        return {name: rows_of(name, rows, inputs) for name in accumulation.names}
    if not isinstance(accumulation, Join):
        return value_of(accumulation, rows)
    keeps_left, keeps_right = JOINS[type(accumulation)]
    left, right = (rows_of(name, rows, inputs) for name in (accumulation.left, accumulation.right))
    pairs: list[tuple[Any, Any]] = [(one, other) for one in left for other in right]
    if keeps_left and not right:
        pairs += [(one, None) for one in left]
    if keeps_right and not left:
        pairs += [(None, other) for other in right]
    return [{accumulation.left: one, accumulation.right: other} for one, other in pairs]


def rows_of(name: str, rows: Sequence[Row], inputs: Sequence[Relation]) -> list[dict[str, Any]]:
    """The rows of one input without its keys, by (event time, then the row in Spark's order)."""
    (keys,) = (one.keys for one in inputs if one.name == name)
    own = [(row.time_us, {c: v for c, v in row.values.items() if c not in keys}) for row in rows if row.input == name]
    own.sort(key=lambda pair: (pair[0], [spark_order(value) for value in pair[1].values()]))
    return [row for _, row in own]
