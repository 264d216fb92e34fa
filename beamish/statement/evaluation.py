"""Expressions in process: the value of a tree for each row of a table.

Evaluation is as lazy as Spark's: a branch of CASE only for its rows, the second operand of AND and OR only where the first does
not decide, that of an arithmetic operator or a comparison only where the first is not null. So ``x <> 0 AND 10 / x > 1`` does not
fail.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from beamish.errors import SqlError
from beamish.statement.functions import FUNCTIONS
from beamish.statement.functions.comparisons import as_boolean
from beamish.statement.functions.nested import field
from beamish.statement.functions.types import RefusedError, common, known, literal
from beamish.statement.nodes import COLUMN, LITERAL, UNKNOWN, Node
from beamish.statement.text import Text


def evaluate(node: Node, rows: pa.Table, text: Text) -> pa.Array:
    """The values of an expression, one per row.

    Args:
        node: the expression.
        rows: the columns that it names.
        text: the statement, for errors.

    Raises:
        SqlError: a column is missing, only Spark can compute it, or it fails on a value.
    """
    if node.op == COLUMN:
        return _column(node, rows, text)
    if node.op == LITERAL:
        return literal(node.value, rows.num_rows)
    if node.op == UNKNOWN:
        raise text.error(
            node.at,
            f"{node.value}: only Spark computes this; a script knows what docs/sql.md lists: run it by .apply(df) on a batch "
            "DataFrame, or give the script the value as a column",
        )
    try:
        lazy = _LAZY.get(node.op)
        if lazy is not None:
            return lazy(node, rows, text)
        return FUNCTIONS[node.op]([evaluate(arg, rows, text) for arg in node.args], node.value)
    except SqlError:
        raise
    except (RefusedError, pa.ArrowException, OverflowError, TypeError) as error:
        words = str(error).partition("\n")[0]
        raise text.error(node.at, f"{node.op}: {words}") from error


def condition(node: Node, rows: pa.Table, text: Text) -> NDArray[np.bool_]:
    """Whether a condition is true, per row; null is false.

    Raises:
        SqlError: as for ``evaluate``, or it is not a condition.
    """
    values = evaluate(node, rows, text)
    try:
        return _true(as_boolean(values))
    except RefusedError as error:
        raise text.error(node.at, str(error)) from error


def _column(node: Node, rows: pa.Table, text: Text) -> pa.Array:
    first, *fields = node.value
    found = [name for name in rows.column_names if name == first]
    found = found or [name for name in rows.column_names if name.lower() == first.lower()]
    if len(found) != 1:
        raise text.error(node.at, f"there is no column {first!r}; the columns are {rows.column_names}")
    values = rows[found[0]].combine_chunks()
    for name in fields:
        try:
            values = field(values, name)
        except RefusedError as error:
            raise text.error(node.at, f"{'.'.join(node.value)}: {error}") from error
    return known(values)


def _true(values: pa.Array) -> NDArray[np.bool_]:
    return np.asarray(pc.fill_null(values, fill_value=False), dtype=bool)


def _case(node: Node, rows: pa.Table, text: Text) -> pa.Array:
    *pairs, otherwise = node.args
    left = np.arange(rows.num_rows)
    chosen, values = [], []
    for when, then in zip(pairs[::2], pairs[1::2], strict=True):
        holds = condition(when, rows.take(left), text)
        chosen.append(left[holds])
        values.append(evaluate(then, rows.take(chosen[-1]), text))
        left = left[~holds]
    return _together([*chosen, left], [*values, evaluate(otherwise, rows.take(left), text)])


def _coalesce(node: Node, rows: pa.Table, text: Text) -> pa.Array:
    left = np.arange(rows.num_rows)
    chosen, values = [], []
    for arg in node.args:
        found = evaluate(arg, rows.take(left), text)
        present = np.asarray(found.is_valid(), dtype=bool)
        chosen.append(left[present])
        values.append(found.filter(pa.array(present)))
        left = left[~present]
    return _together([*chosen, left], [*values, pa.nulls(len(left))])


def _together(chosen: Sequence[NDArray[np.int64]], values: Sequence[pa.Array]) -> pa.Array:
    """Combine the values of some rows each, in the order of the rows."""
    order = np.argsort(np.concatenate(chosen), kind="stable")
    return pa.concat_arrays(common(values)).take(pa.array(order))


def _settled(by: bool) -> Callable[[Node, pa.Table, Text], pa.Array]:
    def function(node: Node, rows: pa.Table, text: Text) -> pa.Array:
        first = as_boolean(evaluate(node.args[0], rows, text))
        open_ = np.flatnonzero(~_true(pc.equal(first, by)))
        second = as_boolean(evaluate(node.args[1], rows.take(open_), text))
        whole = np.full(rows.num_rows, -1)
        whole[open_] = np.arange(len(open_))
        spread = second.take(pa.array(whole, mask=whole < 0))
        return (pc.or_kleene if by else pc.and_kleene)(
            first, pc.if_else(pc.equal(first, by).fill_null(fill_value=False), by, spread)
        )

    return function


def _null_first(first: int) -> Callable[[Node, pa.Table, Text], pa.Array]:
    """Evaluate one operand only where the other is not null."""

    def function(node: Node, rows: pa.Table, text: Text) -> pa.Array:
        deciding = evaluate(node.args[first], rows, text)
        present = np.flatnonzero(deciding.is_valid())
        whole = np.full(rows.num_rows, -1)
        whole[present] = np.arange(len(present))
        other = evaluate(node.args[1 - first], rows.take(present), text).take(pa.array(whole, mask=whole < 0))
        return FUNCTIONS[node.op]([other, deciding] if first else [deciding, other], node.value)

    return function


_LAZY: Mapping[str, Callable[[Node, pa.Table, Text], pa.Array]] = {
    "CASE": _case,
    "COALESCE": _coalesce,
    "AND": _settled(by=False),
    "OR": _settled(by=True),
    **dict.fromkeys(("+", "-", "*", "=", "<>", "<", ">", "<=", ">="), _null_first(0)),
    **dict.fromkeys(("/", "DIV", "%"), _null_first(1)),  # Spark checks the divisor first
}
