"""The rows of a join that changed: pairs of rows, and rows without a match, whose number differs before and after some rows changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs
import numpy as np
import pyarrow as pa

from beamish.contract.keys import any_null
from beamish.contract.updates import PANE_KIND, RETRACTION_KIND, Updates, make_block
from beamish.kernels.buffers import NO_ENTRY, Flags, Ints, pick
from beamish.kernels.order import ranks, sort_order
from beamish.kinds.table_join.options import LEFT, RIGHT
from beamish.kinds.table_join.plan import TableJoinPlan
from beamish.kinds.table_join.rows import TableRows


@attrs.frozen(eq=False)
class Side:
    """The rows of an input that changed, then those that did not and may pair with changed ones.

    Attributes:
        rows: distinct rows.
        code: int64, one per row: the number of its join value.
        old, new: int64, one per row: how often it was there, and is.
        changed: how many changed.
        was, now: int64, one per join value: how many rows of this input it had, and has.
    """

    rows: TableRows
    code: Ints
    old: Ints
    new: Ints
    changed: int
    was: Ints
    now: Ints


@attrs.frozen(eq=False)
class Joined:
    """Joined rows.

    Attributes:
        left, right: int64, the index of a row of each side; NO_ENTRY: it has no match.
        more: int64, how many more of them there are; negative: fewer.
    """

    left: Ints
    right: Ints
    more: Ints


def changed_updates(plan: TableJoinPlan, keys: pa.Table, sides: Sequence[Side]) -> Updates:
    """The joined rows that are gone, retracted, and those that are new.

    Args:
        plan: the join's.
        keys: distinct join values.
        sides: of both inputs.
    """
    left, right = sides
    pairs = ~any_null(keys.columns, keys.num_rows)
    parts = list(_pairs(left, right, pairs))
    alone = [number for number in (LEFT, RIGHT) if plan.options.emits_unmatched(number)]
    parts += [_unmatched(number, sides[number], sides[1 - number], pairs) for number in alone]
    at = [np.concatenate([part.left for part in parts]), np.concatenate([part.right for part in parts])]
    more = np.concatenate([part.more for part in parts])
    times = np.abs(more)
    (of_left, of_right), gone = (np.repeat(one, times) for one in at), np.repeat(more < 0, times)
    kind = 2 * (of_left == NO_ENTRY) + (of_right == NO_ENTRY)
    by = [_of(ranks(side.rows.order()), one) for side, one in zip(sides, (of_left, of_right), strict=True)]
    order = sort_order([(~gone).astype(np.int64), kind.astype(np.int64), *by])
    return _rows(plan, keys, sides, of_left[order], of_right[order], gone[order])


def _of(values: Ints, at: Ints) -> Ints:
    """Values at indices; NO_ENTRY: less than all."""
    found: Ints = np.append(values, np.iinfo(np.int64).min)[at]
    return found


def _pairs(left: Side, right: Side, pairs: Flags) -> Iterator[Joined]:
    """Pairs of changed left rows with all right rows, and of the other left rows with changed right rows."""
    end = len(left.rows)
    for of_left, of_right in (
        (np.arange(left.changed), np.arange(len(right.rows))),
        (np.arange(left.changed, end), np.arange(right.changed)),
    ):
        lefts = of_left[pairs[left.code[of_left]]]
        rights = of_right[np.argsort(right.code[of_right], kind="stable")]
        sizes = np.bincount(right.code[rights], minlength=len(pairs))
        times = sizes[left.code[lefts]]
        first = (np.cumsum(sizes) - sizes)[left.code[lefts]]
        within = np.arange(int(times.sum())) - np.repeat(np.cumsum(times) - times, times)
        one, other = np.repeat(lefts, times), rights[np.repeat(first, times) + within]
        yield _differing(one, other, left.new[one] * right.new[other] - left.old[one] * right.old[other])


def _unmatched(number: int, own: Side, other: Side, pairs: Flags) -> Joined:
    """Rows of one input that have no match now, or had none."""
    was, now = (~pairs | (counts == 0) for counts in (other.was, other.now))
    more = own.new * now[own.code] - own.old * was[own.code]
    at, none = np.arange(len(own.rows)), np.full(len(own.rows), NO_ENTRY)
    return _differing(at, none, more) if number == LEFT else _differing(none, at, more)


def _differing(left: Ints, right: Ints, more: Ints) -> Joined:
    at = np.flatnonzero(more)
    return Joined(left[at], right[at], more[at])


def _rows(  # noqa: PLR0917 - of one table
    plan: TableJoinPlan, keys: pa.Table, sides: Sequence[Side], left: Ints, right: Ints, gone: Flags
) -> Updates:
    own = list(zip(sides, (left, right), strict=True))
    code = np.where(left == NO_ENTRY, _of(sides[RIGHT].code, right), _of(sides[LEFT].code, left))
    of = keys.take(pa.array(code))
    times = [_of(side.rows["time_us"], at) for side, at in own]
    block = make_block(
        len(gone),
        kind=np.where(gone, RETRACTION_KIND, PANE_KIND).astype(np.int8),
        windowless=True,
        is_first=True,
        is_last=plan.is_final,
        pane_time_us=np.maximum(*times),
    )
    values = {plan.names[number]: _structs(plan, number, of, side.rows, at) for number, (side, at) in enumerate(own)}
    return Updates(block, of.rename_columns(plan.key_schema.names), pa.table(values))


def _structs(plan: TableJoinPlan, number: int, keys: pa.Table, rows: TableRows, at: Ints) -> pa.Array:
    """Rows of an input as structs; null for NO_ENTRY."""
    joined = dict(zip(plan.takes[number].keys, keys.columns, strict=True))
    missing = pa.array(at == NO_ENTRY)
    columns = [
        joined[field.name].combine_chunks() if field.name in joined else pick(rows.cell(f"value.{field.name}"), at)
        for field in plan.row_types[number]
    ]
    return pa.StructArray.from_arrays(columns, fields=list(plan.row_types[number]), mask=missing)
