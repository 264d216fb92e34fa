"""Windows of panes in a later stage, kept as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import attrs
import numpy as np

from beamish.kernels.reserved import WINDOW_END, WINDOW_START
from beamish.windows.option import Times, WindowOption


@attrs.frozen
class InheritedWindows(WindowOption):
    """The default window option of a later stage: each pane stays in its window.

    Args:
        of: the window option of the stage before.
    """

    of: WindowOption

    columns: ClassVar[Sequence[str]] = (WINDOW_START, WINDOW_END)  # type: ignore[misc]

    def describe(self) -> str:
        return f"those of the panes it takes: {self.of.describe()}"

    @property
    def origin(self) -> WindowOption:
        return self.of.origin

    @property
    def overlaps(self) -> bool:
        return False

    @property
    def holds_its_rows(self) -> bool:
        return self.of.holds_its_rows

    @property
    def is_all_of_time(self) -> bool:
        return self.of.is_all_of_time

    @property
    def period_us(self) -> int | None:
        return self.of.period_us

    def assign_columns(self, timestamps_us: Times, *columns: Sequence[Any]) -> tuple[Times, Times, Times]:
        start, end = (np.asarray(column, dtype=np.int64) for column in columns)
        return np.arange(len(start), dtype=np.int64), start, end
