"""Pairs of key and window, to group rows by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beamish.kernels.arrays import NO_ENTRY, Flags, Ints
from beamish.kernels.codes import factorize_rows, factorize_tuples, factorize_values
from beamish.kernels.groups import Groups


@attrs.frozen
class KeyedWindows:
    """Windows of keys, as columns."""

    key: Ints
    start_us: Ints
    end_us: Ints

    def __len__(self) -> int:
        return len(self.key)

    def __add__(self, other: KeyedWindows) -> KeyedWindows:
        """Concatenate."""
        return KeyedWindows(
            np.concatenate([self.key, other.key]),
            np.concatenate([self.start_us, other.start_us]),
            np.concatenate([self.end_us, other.end_us]),
        )

    def take(self, at: NDArray[Any]) -> KeyedWindows:
        """A subset: indices or flags."""
        return KeyedWindows(self.key[at], self.start_us[at], self.end_us[at])

    def groups(self) -> Groups:
        """Number equal windows from 0, in order of first appearance."""
        key = Groups(self.key, int(self.key.max(initial=-1)) + 1)
        return factorize_tuples([key, factorize_values(self.start_us), factorize_values(self.end_us)], len(self))

    def find_in(self, known: KeyedWindows) -> Ints:
        """The index of the equal known window for each, or NO_ENTRY; both are distinct."""
        code = (known + self).groups().of[len(known) :]
        return np.where(code < len(known), code, NO_ENTRY)


def keyed_windows(
    keys: Sequence[pa.Array | pa.ChunkedArray], start_us: Ints, end_us: Ints, windowless: Flags
) -> KeyedWindows:
    """Windows of keys; a row without a window has a unique marker window.

    Args:
        keys: key columns, normalised, n rows.
        start_us, end_us: int64[n], microseconds since the epoch.
        windowless: bool[n], whether there is no window.
    """
    code = factorize_rows(keys, len(windowless)).of
    return KeyedWindows(code, np.where(windowless, -1, start_us), np.where(windowless, -1, end_us))
