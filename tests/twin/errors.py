"""Rows that cause errors, where they are dropped (rules/output.md#errors)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from beamish import DropReason, WindowOption
from beamish.windows.option import END_OF_TIME_US
from tests.kinds.deduplicate.twin_ids import FirstCome, columns_read
from tests.twin.accumulations import Row
from tests.twin.joins import value_of_inputs
from tests.twin.windows import Bounds, assign

if TYPE_CHECKING:
    from tests.twin.run import Key, Live, Twin

Pair = tuple[Bounds, Row]


def without_errors(twin: Twin, key: Key, pairs: Sequence[Pair]) -> list[Pair]:
    """The rows of a bundle that can be added to the windows of a key; the others are dropped."""
    if twin.options.on_error == "fail" or not pairs:
        return list(pairs)
    first = FirstCome(columns_read(twin.options.accumulations), [row.values for _, row in pairs])
    by_unit: dict[Any, list[Pair]] = {}
    for pair in pairs:  # windows are independent, unless they merge
        by_unit.setdefault(None if twin.merging else pair[0], []).append(pair)
    lost: list[Pair] = []
    for unit in by_unit.values():
        in_order = sorted(unit, key=lambda pair: (_removes(pair[1]), first.place(pair[1].time_us, pair[1].values)))
        lost += left_out(in_order, lambda some: raises(twin, key, some))
    for bounds, row in lost:
        twin.drop(key, bounds, DropReason.ERROR, row)
    return [pair for pair in pairs if not any(pair is one for one in lost)]


def windows_of(option: WindowOption, row: Row) -> list[Bounds]:
    """A row's windows, validated."""
    windows = assign(option, row.time_us, row.values, row.input)
    for start, end in windows:
        if not -END_OF_TIME_US <= start < end <= END_OF_TIME_US:
            raise ValueError(f"({start}, {end})")
    return windows


def left_out(things: Sequence[Pair], raise_together: Callable[[list[Pair]], bool]) -> list[Pair]:
    """The rows to leave out: by bisection, the earlier half first; one that raises together with those before it."""
    taken: list[Pair] = []

    def added(part: Sequence[Pair]) -> Iterator[Pair]:
        if not part:
            return
        if not raise_together([*taken, *part]):
            taken.extend(part)
        elif len(part) == 1:
            yield part[0]
        else:
            yield from added(part[: len(part) // 2])
            yield from added(part[len(part) // 2 :])

    return list(added(things))


def raises(twin: Twin, key: Key, pairs: list[Pair]) -> bool:
    """Whether adding these rows raises: a function, or an overflow, in an affected window."""
    undone = [(told, len(told)) for told in (twin.out, getattr(twin, "updates", []))]
    trial = deepcopy(key)
    try:
        for window in twin.put_into_windows(trial, pairs):
            check_accumulators(twin, window)
    except Exception:  # noqa: BLE001 - whatever a user's function raises
        return True
    else:
        return False
    finally:
        for told, before in undone:
            del told[before:]


def check_accumulators(twin: Twin, window: Live) -> None:
    """Raise the errors of accumulations; also of merging windows, before the rows that merge them."""
    if twin.options.on_error != "fail":
        for accumulation in twin.options.accumulations.values():
            value_of_inputs(accumulation, window.rows, twin.takes, twin.meets)


def _removes(row: Row) -> bool:
    return bool(getattr(row.values, "removes", False))
