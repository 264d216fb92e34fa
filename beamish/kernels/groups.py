"""A partition of entries into groups, reductions of each group, and lists merged group by group.

Groups are numbered from 0, and a result is indexed by group number: no hash table is needed, and each reduction takes one or two
passes. Arguments have one value per entry, results one per group.

Accumulators that are lists: merged group by group, sorted, deduplicated, truncated. A list column is flattened to items with their groups;
the items are sorted by (group, keys), duplicates and surplus items dropped, and the rest regrouped. There is no loop over lists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beamish.kernels.buffers import Flags, Ints, column_of, flags, list_column, list_lengths, starts
from beamish.kernels.order import Key, Keys, run_starts, sort_order


@attrs.frozen(eq=False)
class Groups:
    """The group of each entry.

    Attributes:
        of: int64, the group number of each entry, 0 to ``count`` - 1, in any order.
        count: the number of groups; some may be empty.
    """

    of: Ints
    count: int

    @classmethod
    def each(cls, count: int) -> Groups:
        """One entry per group, in order."""
        return cls(np.arange(count, dtype=np.int64), count)

    def __len__(self) -> int:
        """Number of entries."""
        return len(self.of)

    def __getitem__(self, entries: Any) -> Groups:
        """A subset of the entries, by flags, indices or a slice, in the same groups."""
        return Groups(self.of[entries], self.count)

    def followed_by(self, other: Groups) -> Groups:
        """Append entries of the same groups."""
        return Groups(np.concatenate([self.of, other.of]), self.count)

    def repeat(self, times: Ints) -> Groups:
        """Repeat each entry."""
        return Groups(np.repeat(self.of, times), self.count)

    def sizes(self) -> Ints:
        """Number of entries per group."""
        return np.bincount(self.of, minlength=self.count)

    def occupied(self) -> Flags:
        """Whether a group is not empty."""
        found = np.zeros(self.count, dtype=bool)
        found[self.of] = True
        return found

    def sum(self, values: NDArray[Any]) -> NDArray[Any]:
        """The sum, in the values' dtype: integers wrap around, floats are added in entry order."""
        total = np.zeros(self.count, values.dtype)
        np.add.at(total, self.of, values)
        return total

    def least(self, values: NDArray[Any]) -> NDArray[Any]:
        """The least value; NaN is above all others. For an empty group: the maximum of the dtype."""
        if values.dtype.kind == "f":  # np.fmin skips NaN
            return self._extreme(np.fmin, values, np.nan)
        return self._extreme(np.minimum, values, np.iinfo(values.dtype).max)

    def greatest(self, values: NDArray[Any]) -> NDArray[Any]:
        """The greatest value; NaN is above all others. For an empty group: the minimum of the dtype."""
        if values.dtype.kind == "f":  # np.maximum propagates NaN
            return self._extreme(np.maximum, values, -np.inf)
        return self._extreme(np.maximum, values, np.iinfo(values.dtype).min)

    def _extreme(self, choose: np.ufunc, values: NDArray[Any], none: float) -> NDArray[Any]:
        result = np.full(self.count, none, values.dtype)
        with np.errstate(invalid="ignore"):
            choose.at(result, self.of, values)
        return result

    def any(self, flags: Flags) -> Flags:
        """Whether any flag is set."""
        return self[flags].occupied()

    def all(self, flags: Flags) -> Flags:
        """Whether the group is not empty and all flags are set."""
        return self.occupied() & ~self.any(~flags)

    def first(self, keys: Sequence[Key] = ()) -> Ints:
        """The entry with the least keys, the first among equals; -1 for an empty group.

        Args:
            keys: most significant first; empty: the first entry.
        """
        entries, of = np.arange(len(self.of), dtype=np.int64), self.of
        for key in keys:
            here = key if len(entries) == len(key) else key[entries]
            edge = here == Groups(of, self.count).least(here)[of]
            entries, of = entries[edge], of[edge]
        result = np.full(self.count, -1, np.int64)
        result[of[::-1]] = entries[::-1]
        return result

    def positions(self) -> Ints:
        """For entries ordered by group: the position of each within its group, from 0; one per entry."""
        return np.arange(len(self.of), dtype=np.int64) - starts(self.sizes())[self.of]

    def runs(self) -> Iterator[tuple[int, int, int]]:
        """For entries ordered by group: each non-empty group, and where it begins and ends."""
        sizes = self.sizes()
        numbers = np.flatnonzero(sizes)
        ends = np.cumsum(sizes[numbers])
        return zip(numbers.tolist(), (ends - sizes[numbers]).tolist(), ends.tolist(), strict=True)


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
    lists: pa.Array,
    groups: Groups,
    keys_of: KeysOf,
    *,
    distinct: int = 0,
    keep: int | None = None,
    ties_of: KeysOf | None = None,
) -> pa.Array:
    """Merge lists group by group.

    Args:
        lists: a list column.
        groups: of the lists; an empty group gets an empty list.
        keys_of: the sort keys of items.
        distinct: items that agree in this many leading keys are duplicates, and the first is kept; 0: all are kept.
        keep: maximum length of a list; None: unlimited.
        ties_of: the first sort keys of items: those that agree in them with the last of a list are in it too; None: they are not.

    Returns:
        a list column, one entry per group.
    """
    return gather_lists(*items_of(lists, groups), keys_of, distinct=distinct, keep=keep, ties_of=ties_of)


def gather_lists(
    items: pa.Array,
    groups: Groups,
    keys_of: KeysOf,
    *,
    distinct: int = 0,
    keep: int | None = None,
    ties_of: KeysOf | None = None,
) -> pa.Array:
    """Like ``merge_lists``, for single items."""
    keys = [groups.of, *keys_of(items)]
    order = sort_order(keys)
    if distinct:
        order = order[run_starts([key[order] for key in keys[: 1 + distinct]])]
    if keep is not None:
        positions = groups[order].positions()
        if ties_of is not None:  # that of the first item that agrees
            first = run_starts([key[order] for key in (groups.of, *ties_of(items))])
            positions = positions[first][np.cumsum(first) - 1]
        order = order[positions < keep]
    if len(order) != len(items) or bool((order[1:] < order[:-1]).any()):
        items = items.take(column_of(order))
    return list_column(items, groups[order].sizes())
