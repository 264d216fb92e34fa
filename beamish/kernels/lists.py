"""Accumulators that are lists: merged group by group, sorted, deduplicated, truncated.

A list column is flattened to items with their groups; the items are sorted by (group, keys), duplicates and surplus items
dropped, and the rest regrouped. There is no loop over lists.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beamish.kernels.buffers import column_of, flags, list_column, list_lengths
from beamish.kernels.groups import Groups
from beamish.kernels.order import Keys, run_starts, sort_order

KeysOf = Callable[[pa.Array], Keys]
"""Sort keys of items; items with equal keys are equal."""


def lift_items(items: pa.Array, present: NDArray[np.bool_] | None = None) -> pa.Array:
    """Lists of one item per row, empty where ``present`` is False (None: all present)."""
    if present is None:
        return list_column(items, np.ones(len(items), np.int64))
    return list_column(items.filter(flags(present)), present.astype(np.int64))


def items_of(lists: pa.Array, groups: Groups) -> tuple[pa.Array, Groups]:
    """Flatten lists to items, in the groups of their lists."""
    return lists.flatten(), groups.repeat(list_lengths(lists))


def merge_lists(
    lists: pa.Array, groups: Groups, keys_of: KeysOf, *, distinct: int = 0, keep: int | None = None
) -> pa.Array:
    """Merge lists group by group.

    Args:
        lists: a list column.
        groups: of the lists; an empty group gets an empty list.
        keys_of: the sort keys of items.
        distinct: items that agree in this many leading keys are duplicates, and the first is kept; 0: all are kept.
        keep: maximum length of a list; None: unlimited.

    Returns:
        a list column, one entry per group.
    """
    return gather_lists(*items_of(lists, groups), keys_of, distinct=distinct, keep=keep)


def gather_lists(
    items: pa.Array, groups: Groups, keys_of: KeysOf, *, distinct: int = 0, keep: int | None = None
) -> pa.Array:
    """Like ``merge_lists``, for single items."""
    keys = [groups.of, *keys_of(items)]
    order = sort_order(keys)
    if distinct:
        order = order[run_starts([key[order] for key in keys[: 1 + distinct]])]
    if keep is not None:
        order = order[groups[order].positions() < keep]
    if len(order) != len(items) or bool((order[1:] < order[:-1]).any()):
        items = items.take(column_of(order))
    return list_column(items, groups[order].sizes())
