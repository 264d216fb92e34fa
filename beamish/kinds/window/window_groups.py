"""Grouping of merging windows of a key, on columns."""

from __future__ import annotations

import numpy as np

from beamish.contract.keyed_windows import KeyedWindows
from beamish.errors import UserFunctionError, cause, said
from beamish.kernels.arrays import Ints
from beamish.kernels.order import sort_order
from beamish.windows.option import Bounds, WindowOption, read_window


def group_windows(option: WindowOption, windows: KeyedWindows) -> tuple[Ints, KeyedWindows]:
    """Group merging windows, all at once.

    Args:
        option: a merging window option.
        windows: n windows.

    Returns:
        group: int64[n], for each window its group, numbered by (key, start).
        result: the merged window of each group.
    """
    return _by_overlap(windows) if option.merges_by_overlap else _by_option(option, windows)


def _by_overlap(windows: KeyedWindows) -> tuple[Ints, KeyedWindows]:
    order = sort_order([windows.key, windows.start_us])
    ordered = windows.take(order)
    key, start = ordered.key, ordered.start_us
    reached = _running_maximum(np.cumsum(np.diff(key, prepend=key[:1]) != 0), ordered.end_us)
    first = np.ones(len(key), dtype=bool)
    first[1:] = (key[1:] != key[:-1]) | (start[1:] >= reached[:-1])
    group = np.empty(len(key), dtype=np.int64)
    group[order] = np.cumsum(first) - 1
    last = np.append(first[1:], True) if len(key) else first
    return group, KeyedWindows(key[first], start[first], reached[last])


def _running_maximum(run: Ints, values: Ints) -> Ints:
    """The running maximum within each run; runs are numbered from 0 on, in order."""
    if not len(values):
        return values
    least = int(values.min())
    span = int(values.max()) - least + 1
    if span * (int(run[-1]) + 1) < 2**63:
        return np.maximum.accumulate(run * span + (values - least)) - run * span + least
    # Too wide for one number: the same over the ranks of the values.
    by_value = np.argsort(values, kind="stable")
    rank = np.empty(len(values), dtype=np.int64)
    rank[by_value] = np.arange(len(values))
    furthest: Ints = np.maximum.accumulate(run * len(values) + rank) - run * len(values)
    return values[by_value][furthest]


def _by_option(option: WindowOption, windows: KeyedWindows) -> tuple[Ints, KeyedWindows]:
    # A custom merge is called key by key.
    group = np.empty(len(windows), dtype=np.int64)
    results: list[tuple[int, int, int]] = []
    order = np.argsort(windows.key, kind="stable")
    for members in np.split(order, np.flatnonzero(np.diff(windows.key[order])) + 1):
        if not len(members):
            continue
        bounds = list(zip(windows.start_us[members].tolist(), windows.end_us[members].tolist(), strict=True))
        becomes = _merge_one_key(option, bounds)
        number = {result: len(results) + i for i, result in enumerate(sorted(set(becomes.values())))}
        results.extend((int(windows.key[members[0]]), *result) for result in number)
        group[members] = [number[becomes[window]] for window in bounds]
    table = np.array(results, dtype=np.int64).reshape(-1, 3)
    return group, KeyedWindows(*(table[:, i].copy() for i in range(3)))


def _merge_one_key(option: WindowOption, bounds: list[Bounds]) -> dict[Bounds, Bounds]:
    """The merged window of each window of a key."""
    becomes = {window: window for window in bounds}
    try:
        for parts, result in option.merge(sorted(becomes)):
            becomes.update(dict.fromkeys(parts, read_window(result)))
    except Exception as error:  # noqa: BLE001 - it is raised again
        raise UserFunctionError(
            f"{option!r}.merge({sorted(becomes)!r}) raised {said(error)}; fix it and restart from the "
            "checkpoint; no data was lost"
        ) from cause(error)
    return becomes
