"""An interval join: rows of two streams at most a span apart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import attrs
import numpy as np

from beamish.durations import Duration, read_not_negative
from beamish.errors import OptionError
from beamish.kernels.column_names import INPUT
from beamish.windows.option import Bounds, Times, WindowOption


def _check_input(_: Any, __: Any, value: Any) -> None:
    if not isinstance(value, str) or not value:
        raise OptionError(f"Within(of={value!r}): must be the name of an input of bm.merge, such as 'impressions'")


@attrs.frozen
class Within(WindowOption):
    """Each row of a merge is joined with the rows of input ``of`` from ``before`` it to ``after`` it, bounds included.

    A window starts every ``before`` plus ``after``, and ends when all matches of its rows have passed: ``after`` later than the
    next one starts. A row is in the window that started last, a row of ``of`` in the two whose rows it may match. So a pair is in
    one window: that of the row that is not from ``of``.

    Args:
        before: how far before a row its matches may be, at least 0.
        of: the name of an input of the merge.
        after: how far after it they may be, at least 0; at least one of them is above 0.

    Raises:
        OptionError: a negative duration, or both 0; ``of`` is not a name.

    Example:
        >>> import beamish as bm
        >>> bm.Within("10 minutes", of="impressions").describe()
        'each row matches those of impressions from 10 minutes before it to 0 seconds after it; windows: 10 minutes, every 10 minutes'
    """

    before: Duration = attrs.field(default=Duration(0), converter=read_not_negative)
    of: str = attrs.field(kw_only=True, validator=_check_input)
    after: Duration = attrs.field(default=Duration(0), converter=read_not_negative, kw_only=True)

    def __attrs_post_init__(self) -> None:
        if not self.before and not self.after:
            raise OptionError(
                f"Within(before='0 seconds', of={self.of!r}): rows would match at equal times only; use Within('10 minutes', "
                f"of={self.of!r}), or after='10 minutes'"
            )

    def describe(self) -> str:
        meets = f"each row matches those of {self.of} from {self.before} before it to {self.after} after it"
        return f"{meets}; windows: {self.period + self.after}, every {self.period}"

    @property
    def period(self) -> Duration:
        """From one window's start to the next."""
        return self.before + self.after

    @property
    def period_us(self) -> int:
        return self.period.us

    def assign(self, timestamp_us: int, *values: Any) -> Iterable[Bounds]:
        # A row that is not from ``of``; in a merge the input is known (WithinInput).
        start = timestamp_us - timestamp_us % self.period_us
        yield start, start + self.period_us + self.after.us


@attrs.frozen(repr=False)
class WithinInput(Within):
    """The same, in a merge with known inputs.

    Args:
        number: of input ``of``.
    """

    number: int = attrs.field(kw_only=True)

    columns: ClassVar[Sequence[str]] = (INPUT,)  # type: ignore[misc]

    def __repr__(self) -> str:
        return repr(self.origin)

    @property
    def origin(self) -> WindowOption:
        return Within(self.before, of=self.of, after=self.after)

    def assign(self, timestamp_us: int, *values: Any) -> Iterable[Bounds]:
        times = np.array([timestamp_us], dtype=np.int64)
        _, starts, ends = self.assign_columns(times, values[:1])
        return zip(starts.tolist(), ends.tolist(), strict=True)

    def assign_columns(self, timestamps_us: Times, *columns: Sequence[Any]) -> tuple[Times, Times, Times]:
        period, reaches = self.period_us, np.asarray(columns[0]) == self.number
        first = (timestamps_us - self.after.us * reaches) // period * period
        row = np.repeat(np.arange(len(first), dtype=np.int64), 1 + reaches)
        is_second = np.append(False, row[1:] == row[:-1]) if len(row) else row
        start = first[row] + is_second * period
        return row, start, start + period + self.after.us
