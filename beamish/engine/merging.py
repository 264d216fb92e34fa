"""Which windows of a key become one: groups of overlapping windows, on columns."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from beamish.errors import UserFunctionError
from beamish.windows.option import WindowOption

Ints = NDArray[np.int64]


def group_windows(option: WindowOption, key: Ints, start_us: Ints, end_us: Ints) -> tuple[Ints, Ints, Ints]:
    """Group windows that merge, all at once.

    Args:
        option: a merging window option.
        key: codes of the windows' keys.
        start_us, end_us: the windows, as long.

    Returns:
        group: for each window its group, numbered by (key, start).
        start, end: for each group the window it becomes.
    """
    if option.merges_by_overlap:
        return _group_by_overlap(key, start_us, end_us)
    return _group_by_option(option, key, start_us, end_us)


def _group_by_overlap(key: Ints, start_us: Ints, end_us: Ints) -> tuple[Ints, Ints, Ints]:
    order = np.lexsort((end_us, start_us, key))
    key, start, end = key[order], start_us[order], end_us[order]
    # The greatest end so far within a key, as a running maximum over (key, rank of the end).
    by_end = np.argsort(end, kind="stable")
    rank = np.empty(len(end), dtype=np.int64)
    rank[by_end] = np.arange(len(end))
    key_number = np.cumsum(np.diff(key, prepend=key[:1]) != 0)
    furthest = np.maximum.accumulate(key_number * len(end) + rank) - key_number * len(end)
    reached = end[by_end][furthest]
    first = np.ones(len(end), dtype=bool)
    first[1:] = (key[1:] != key[:-1]) | (start[1:] >= reached[:-1])
    number = np.cumsum(first) - 1
    group = np.empty(len(end), dtype=np.int64)
    group[order] = number
    last = np.append(first[1:], True) if len(end) else first
    return group, start[first], reached[last]


def _group_by_option(option: WindowOption, key: Ints, start_us: Ints, end_us: Ints) -> tuple[Ints, Ints, Ints]:
    # A user's own merge is called key by key.
    group = np.empty(len(key), dtype=np.int64)
    bounds: list[tuple[int, int]] = []
    order = np.argsort(key, kind="stable")
    for members in np.split(order, np.flatnonzero(np.diff(key[order])) + 1):
        if not len(members):
            continue
        windows = list(zip(start_us[members].tolist(), end_us[members].tolist(), strict=True))
        becomes = {window: window for window in windows}
        try:
            for parts, result in option.merge(sorted(becomes)):
                becomes.update((part, (int(result[0]), int(result[1]))) for part in parts)
        except Exception as error:
            raise UserFunctionError(
                f"{option!r}.merge({sorted(becomes)!r}) raised {type(error).__name__}: {error}; mend it and start again "
                "from the checkpoint, nothing was lost"
            ) from error
        number = {result: len(bounds) + i for i, result in enumerate(sorted(set(becomes.values())))}
        bounds.extend(number)
        group[members] = [number[becomes[window]] for window in windows]
    table = np.array(bounds, dtype=np.int64).reshape(-1, 2)
    return group, table[:, 0].copy(), table[:, 1].copy()
