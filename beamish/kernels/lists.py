"""Accumulators that are lists: merged group by group, kept in an order, without duplicates, cut.

A list column is taken apart into its items and the group of each; the items are sorted by (group, keys), rows that
repeat or are too many left out, and what is left put together again. Nothing is done list by list.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beamish.kernels.buffers import Groups, column_of, flags, list_column, list_lengths
from beamish.kernels.order import Keys, run_starts, sort_order

KeysOf = Callable[[pa.Array], Keys]
"""Sort keys of items; items of equal keys are alike."""


def lift_items(items: pa.Array, present: NDArray[np.bool_] | None = None) -> pa.Array:
    """Lists of one item a row, empty where ``present`` is False (None: nowhere)."""
    if present is None:
        return list_column(items, np.ones(len(items), np.int64))
    return list_column(items.filter(flags(present)), present.astype(np.int64))


def items_of(lists: pa.Array, group: Groups) -> tuple[pa.Array, Groups]:
    """The items of all lists and the group of each."""
    return lists.flatten(), np.repeat(group, list_lengths(lists))


def merge_lists(
    lists: pa.Array, group: Groups, groups: int, keys_of: KeysOf, *, distinct: int = 0, keep: int | None = None
) -> pa.Array:
    """Merge lists group by group.

    Args:
        lists: a list column.
        group: for each list its group, 0 to groups - 1, in any order.
        groups: how many there are; one without lists gets an empty list.
        keys_of: by what the items of a list are ordered.
        distinct: of items alike in so many of the first keys only the first is kept; 0: all are.
        keep: how many items a list may have at most; None: any number.

    Returns:
        a list column, one entry a group.
    """
    items, item_group = items_of(lists, group)
    return gather_lists(items, item_group, groups, keys_of, distinct=distinct, keep=keep)


def gather_lists(
    items: pa.Array, group: Groups, groups: int, keys_of: KeysOf, *, distinct: int = 0, keep: int | None = None
) -> pa.Array:
    """As ``merge_lists``, of single items: ``group`` has the group of each."""
    keys = [group, *keys_of(items)]
    order = sort_order(keys)
    if distinct:
        order = order[run_starts([key[order] for key in keys[: 1 + distinct]])]
    if keep is not None:
        order = order[positions(group[order], groups) < keep]
    if len(order) != len(items) or bool((order[1:] < order[:-1]).any()):
        items = items.take(column_of(order))
    return list_column(items, np.bincount(group[order], minlength=groups))


def positions(group: Groups, groups: int) -> NDArray[np.int64]:
    """For rows ordered by group: the place of each within its group, from 0."""
    counts = np.bincount(group, minlength=groups)
    starts: NDArray[np.int64] = np.cumsum(counts) - counts
    return np.arange(len(group), dtype=np.int64) - starts[group]
