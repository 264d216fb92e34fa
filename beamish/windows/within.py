"""Which rows of two streams meet: those at most a span apart (an interval join)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import attrs
import numpy as np

from beamish.durations import Duration, read_not_negative
from beamish.errors import OptionError
from beamish.kernels.reserved import INPUT
from beamish.windows.option import Bounds, Times, WindowOption


def _check_input(_: Any, __: Any, value: Any) -> None:
    if not isinstance(value, str) or not value:
        raise OptionError(f"Within(of={value!r}): must be the name of an input of bm.merge, such as 'impressions'")


@attrs.frozen
class Within(WindowOption):
    """Each row of a merge meets the rows of input ``of`` from ``before`` it to ``after`` it, bounds included; for joins.

    A new window begins every ``before`` and ``after`` together, and ends when all that its rows may meet has had its time: ``after``
    later than the next begins. A row is in the one that began last, a row of ``of`` in the two whose rows it may meet. So a pair is in
    one window: that of the row that is not of ``of``.

    Args:
        before: how far before a row those of ``of`` may be, at least 0.
        of: the name of an input of the merge.
        after: how far after it they may be, at least 0; one of both is above 0.

    Raises:
        OptionError: a duration that is negative, or both 0; ``of`` is no name.

    Example:
        >>> import beamish as bm
        >>> bm.Within("10 minutes", of="impressions").describe()
        'each row meets those of impressions from 10 minutes before it to 0 seconds after it; windows: 10 minutes, every 10 minutes'
    """

    before: Duration = attrs.field(default=Duration(0), converter=read_not_negative)
    of: str = attrs.field(kw_only=True, validator=_check_input)
    after: Duration = attrs.field(default=Duration(0), converter=read_not_negative, kw_only=True)

    def __attrs_post_init__(self) -> None:
        if not self.before and not self.after:
            raise OptionError(
                f"Within(before='0 seconds', of={self.of!r}): rows would meet at one instant only; say Within('10 minutes', "
                f"of={self.of!r}), or after='10 minutes'"
            )

    def describe(self) -> str:
        meets = f"each row meets those of {self.of} from {self.before} before it to {self.after} after it"
        return f"{meets}; windows: {self.period + self.after}, every {self.period}"

    @property
    def period(self) -> Duration:
        """From one window's start to the next."""
        return self.before + self.after

    @property
    def period_us(self) -> int:
        return self.period.us

    def assign(self, timestamp_us: int, *values: Any) -> Iterable[Bounds]:
        # Of a row that is not of ``of``; a merge says of which input it is (WithinInput).
        start = timestamp_us - timestamp_us % self.period_us
        yield start, start + self.period_us + self.after.us


@attrs.frozen(repr=False)
class WithinInput(Within):
    """The same, of a merge whose inputs are known.

    Args:
        number: that of input ``of``.
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
