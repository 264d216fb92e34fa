"""A partition of entries into groups, and reductions per group.

Groups are numbered from 0, and a result is indexed by group number: no hash table is needed, and each reduction takes one or two
passes. Arguments have one value per entry, results one per group.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from beamish.kernels.arrays import Flags, Ints
from beamish.kernels.buffers import starts
from beamish.kernels.order import Key


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
