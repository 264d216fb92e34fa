"""Which windows of a key become one: groups of overlapping windows, on columns."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from beamish.errors import UserFunctionError
from beamish.kernels.order import sort_order
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
    order = sort_order([key, start_us])
    key, start, end = key[order], start_us[order], end_us[order]
    reached = _running_maximum(np.cumsum(np.diff(key, prepend=key[:1]) != 0), end)
    first = np.ones(len(end), dtype=bool)
    first[1:] = (key[1:] != key[:-1]) | (start[1:] >= reached[:-1])
    group = np.empty(len(end), dtype=np.int64)
    group[order] = np.cumsum(first) - 1
    last = np.append(first[1:], True) if len(end) else first
    return group, start[first], reached[last]


def _running_maximum(run: Ints, values: Ints) -> Ints:
    """The greatest value so far within a run; runs are numbered from 0 on, in order."""
    if not len(values):
        return values
    least = int(values.min())
    span = int(values.max()) - least + 1
    if span * (int(run[-1]) + 1) < 2**63:
        return np.maximum.accumulate(run * span + (values - least)) - run * span + least
    # Too wide for one number: the same over the values' ranks.
    by_value = np.argsort(values, kind="stable")
    rank = np.empty(len(values), dtype=np.int64)
    rank[by_value] = np.arange(len(values))
    furthest: Ints = np.maximum.accumulate(run * len(values) + rank) - run * len(values)
    return values[by_value][furthest]


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
