"""The trigger tree over the columns of the window table: windows as seen by triggers (triggers/trigger.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from beamish.kernels.groups import Groups
from beamish.triggers.trigger import Trigger
from beamish.watermarks import known_us

Columns = dict[str, Any]
ValuesOf = Callable[[str, NDArray[np.intp]], pa.Array]


class TriggerState:
    """The state of one trigger of the tree: a view of its columns in the window table, named by its position in the tree."""

    def __init__(self, trigger: Trigger, columns: Columns, place: str = "trigger") -> None:
        self._columns, self._place = columns, place
        self.parts = [TriggerState(part, columns, f"{place}.{i}") for i, part in enumerate(trigger.parts)]

    @property
    def finished(self) -> NDArray[np.bool_]:
        return self._columns[f"{self._place}/finished"]  # type: ignore[no-any-return]

    def __getitem__(self, column: str) -> Any:
        return self._columns[f"{self._place}/{column}"]


def trigger_columns(trigger: Trigger, place: str = "trigger") -> Iterator[tuple[str, tuple[str, Any]]]:
    """The columns of a trigger tree: name, (dtype, value in a new window)."""
    yield f"{place}/finished", ("bool", False)
    for name, column in trigger.columns.items():
        yield f"{place}/{name}", column
    for i, part in enumerate(trigger.parts):
        yield from trigger_columns(part, f"{place}.{i}")


class TriggerNow:
    """The clocks, for the current windows of the table.

    ``progress``: the watermark; for count windows the reach of each.
    ``values_of(name, windows)`` gives the values of an accumulation that panes of these windows would have.
    """

    def __init__(
        self,
        columns: Columns,
        progress: int | NDArray[np.int64],
        clock_us: int,
        merging: bool,
        values_of: ValuesOf | None = None,
    ) -> None:
        self._columns, self._progress, self._values_of = columns, progress, values_of
        self.clock_us, self.merging = clock_us, merging
        self.start_us, self.end_us = columns["start_us"], columns["end_us"]
        self.at_end = self.end_us <= progress

    def watermark_us(self, window: int) -> int | None:
        return known_us(self._progress if isinstance(self._progress, int) else int(self._progress[window]))

    def value_is_within(self, name: str, at: NDArray[np.intp], at_least: Any, at_most: Any) -> NDArray[np.bool_]:
        if self._values_of is None:
            raise AssertionError(f"the trigger asks for the value of {name!r}, and there are no values")
        values = self._values_of(name, at)
        within = pc.greater_equal(values, at_least) if at_most is None else pc.less_equal(values, at_most)
        if pa.types.is_floating(values.type) and at_most is None:  # NaN is above all others, as in Max
            within = pc.or_(within, pc.is_nan(values))
        return pc.fill_null(within, False).to_numpy(zero_copy_only=False).astype(bool)  # type: ignore[no-any-return] # noqa: FBT003

    def ask_at_end(self, at: NDArray[np.intp]) -> None:
        self._columns["asks_at_end"][at] |= ~self.at_end[at]


class TriggerMerge:
    """Merging windows.

    Attributes:
        part: intp[p], the parts' indices in the table.
        of: intp[p], for each part the number of its result.
        into: intp[r], the results' indices.
        groups: the parts by result.
        vanished: the parts that are gone, and for each its result.
    """

    def __init__(self, part: NDArray[np.intp], of: NDArray[np.intp], into: NDArray[np.intp]) -> None:
        self.part, self.of, self.into = part, of, into
        vanish = part != into[of]
        self.vanished = part[vanish], into[of][vanish]
        self.groups = Groups(of, len(into))

    def any(self, column: Any) -> Any:
        return self.groups.any(column[self.part])

    def all(self, column: Any) -> Any:
        return self.groups.all(column[self.part])

    def sum(self, column: Any) -> Any:
        return self.groups.sum(column[self.part].astype(np.int64, copy=False))

    def least(self, column: Any) -> Any:
        return self.groups.least(column[self.part].astype(np.int64, copy=False))

    def greatest(self, column: Any) -> Any:
        return self.groups.greatest(column[self.part].astype(np.int64, copy=False))

    def lists(self, column: Any) -> list[list[Any]]:
        lists: list[list[Any]] = [[] for _ in self.into]
        for part, of in zip(self.part.tolist(), self.of.tolist(), strict=True):
            lists[of].append(column[part])
        return lists

    def only(self, results: NDArray[np.bool_]) -> TriggerMerge:
        number = np.cumsum(results) - 1
        kept = results[self.of]
        return TriggerMerge(self.part[kept], number[self.of[kept]], self.into[results])
