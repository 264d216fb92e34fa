"""An interval join: rows of two streams at most a span apart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Literal, TypeAlias

import attrs
import numpy as np

from beamish.durations import LONGEST_US, Duration, read_duration
from beamish.errors import OptionError
from beamish.instants import END_OF_TIME_US
from beamish.kernels.buffers import Flags, starts
from beamish.kernels.column_names import INPUT
from beamish.windows.option import Bounds, Times, WindowOption


def _check_input(_: Any, __: Any, value: Any) -> None:
    if not isinstance(value, str) or not value:
        raise OptionError(f"Within(of={value!r}): must be the name of an input of bm.merge, such as 'impressions'")


Inclusive: TypeAlias = Literal["both", "left", "right", "neither"]
"""Which bounds of an interval belong to it; left: the earlier one."""
_INCLUDED = {"both": (True, True), "left": (True, False), "right": (False, True), "neither": (False, False)}
_SWAPPED: dict[Inclusive, Inclusive] = {"both": "both", "left": "right", "right": "left", "neither": "neither"}
_AT_ONE_TIME_US = 1_000_000
"""From one window's start to the next where the interval is a single instant."""


def _check_inclusive(_: Any, __: Any, value: Any) -> None:
    if value not in _INCLUDED:
        raise OptionError(
            f"Within(inclusive={value!r}): must be 'both', 'left' for the earlier bound only, 'right' for the later, or 'neither'"
        )


@attrs.frozen(repr=False)
class Within(WindowOption):
    """Each row of a merge is joined with the rows of input ``of`` from ``before`` it to ``after`` it.

    A negative duration is on the other side of the row: ``Within("-1 minute", of="clicks", after="1 hour")`` joins it with the
    clicks from a minute to an hour after it.

    A window starts every ``before`` plus ``after``, and ends when all matches of its rows have passed: ``after`` later than the
    next one starts. A row is in the window that started last, a row of ``of`` in the one or two whose rows it may match. So a pair
    is in one window: that of the row that is not from ``of``.

    Args:
        before: how far before a row its matches may be; negative: how far after it they begin.
        of: the name of an input of the merge.
        after: how far after it they may be; negative: how far before it they end.
        inclusive: which bounds belong to the interval: ``"both"``, ``"left"`` (the earlier), ``"right"``, ``"neither"``.

    Raises:
        OptionError: an interval that holds no time, or is only the row's own time; ``of`` is not a name.

    Example:
        >>> import beamish as bm
        >>> bm.Within("10 minutes", of="impressions").describe()
        'each row matches those of impressions from 10 minutes before it to 0 seconds after it; windows: 10 minutes, every 10 minutes'
        >>> bm.Within("-1 minute", of="clicks", after="1 hour", inclusive="left").describe()
        'each row matches those of clicks from 1 minute after it to 1 hour after it (excluded); windows: 119 minutes, every 59 minutes'
    """

    before: Duration = attrs.field(default=Duration(0), converter=read_duration)
    of: str = attrs.field(kw_only=True, validator=_check_input)
    after: Duration = attrs.field(default=Duration(0), converter=read_duration, kw_only=True)
    inclusive: Inclusive = attrs.field(default="both", validator=_check_inclusive, kw_only=True)

    def __attrs_post_init__(self) -> None:
        if not self.before and not self.after:
            raise OptionError(
                f"Within(before='0 seconds', of={self.of!r}): rows would match at equal times only; use Within('10 minutes', "
                f"of={self.of!r}), or after='10 minutes'"
            )
        earliest_us, latest_us = self.reach_us
        if earliest_us > latest_us:
            raise OptionError(
                f"{self!r}: no time is from {_in_words(-self.before)} to {_in_words(self.after)}, so no rows would match; the first "
                "must be earlier: before='-1 minute', after='1 hour' is from 1 minute to 1 hour after a row"
            )
        if latest_us - earliest_us > LONGEST_US:
            raise OptionError(f"{self!r}: longer than 146,000 years; join in a GlobalWindow() with once=True instead")

    def __repr__(self) -> str:
        inclusive = f", inclusive={self.inclusive!r}" if self.inclusive != "both" else ""
        return f"Within(before={self.before!r}, of={self.of!r}, after={self.after!r}{inclusive})"

    def describe(self) -> str:
        earliest, latest = (
            f"{words} it{'' if included else ' (excluded)'}"
            for words, included in zip(
                (_in_words(-self.before, "before"), _in_words(self.after)), _INCLUDED[self.inclusive], strict=True
            )
        )
        length = Duration(self.period_us + self._waits_us)
        return (
            f"each row matches those of {self.of} from {earliest} to {latest}; windows: {length}, every "
            f"{Duration(self.period_us)}"
        )

    @property
    def reach_us(self) -> tuple[int, int]:
        """How far after a row its earliest and latest matches are, bounds included, microseconds; negative: before it."""
        left, right = _INCLUDED[self.inclusive]
        return -self.before.us + (not left), self.after.us - (not right)

    def from_the_other(self, other: str) -> Within:
        """The same matches, as seen from a row of ``of``."""
        return Within(self.after, of=other, after=self.before, inclusive=_SWAPPED[self.inclusive])

    @property
    def holds_its_rows(self) -> bool:
        return False

    @property
    def period_us(self) -> int:
        """From one window's start to the next."""
        return (self.before + self.after).us or _AT_ONE_TIME_US

    @property
    def _waits_us(self) -> int:
        """How far after the next window's start the last match of a window's rows may be."""
        return max(self.after.us, 0)

    def assign(self, timestamp_us: int, *values: Any) -> Iterable[Bounds]:
        # A row that is not from ``of``; in a merge the input is known (WithinInput).
        start = timestamp_us - timestamp_us % self.period_us
        yield start, min(start + self.period_us + self._waits_us, END_OF_TIME_US)


def _in_words(after: Duration, at_once: str = "after") -> str:
    """A bound in words: "10 minutes before"."""
    side = at_once if not after else "after" if after.us > 0 else "before"
    return f"{Duration(abs(after.us))} {side}"


@attrs.frozen(repr=False)
class WithinInput(Within):
    """The same, in a merge with known inputs.

    Args:
        number: of input ``of``.
        beside: the number of the other input, if unmatched rows of both are emitted; None: they are not. Then both inputs' rows are
            in the windows of all rows that they may match, and each row has a window of its own, which emits it.
    """

    number: int = attrs.field(kw_only=True)
    beside: int | None = attrs.field(default=None, kw_only=True)

    columns: ClassVar[Sequence[str]] = (INPUT,)  # type: ignore[misc]

    @classmethod
    def of_merge(cls, within: Within, inputs: Sequence[str | None], beside: str | None) -> WithinInput:
        """An interval join of a merge of these inputs; ``beside``: the other one, if unmatched rows of both are emitted."""
        other = None if beside is None else inputs.index(beside)
        return cls(
            within.before,
            of=within.of,
            after=within.after,
            inclusive=within.inclusive,
            number=inputs.index(within.of),
            beside=other,
        )

    @property
    def origin(self) -> WindowOption:
        return Within(self.before, of=self.of, after=self.after, inclusive=self.inclusive)

    def assign(self, timestamp_us: int, *values: Any) -> Iterable[Bounds]:
        times = np.array([timestamp_us], dtype=np.int64)
        _, starts, ends = self.assign_columns(times, values[:1])
        return zip(starts.tolist(), ends.tolist(), strict=True)

    def assign_columns(self, timestamps_us: Times, *columns: Sequence[Any]) -> tuple[Times, Times, Times]:
        period, first, last = self.period_us, *self._first_and_last(timestamps_us, np.asarray(columns[0]))
        row = np.repeat(np.arange(len(first), dtype=np.int64), last - first + 1)
        start = (first[row] + np.arange(len(row)) - starts(last - first + 1)[row]) * period
        return row, start, np.minimum(start + period, END_OF_TIME_US - self._waits_us) + self._waits_us

    def visits(self, timestamps_us: Times, which: Times, start_us: Times) -> Flags:
        """Which rows are in a window that is not their own, only to be matched there; with ``beside``."""
        first, last = self._first_and_last(timestamps_us, which)
        return np.where(which == self.number, last, first) * self.period_us != start_us  # type: ignore[no-any-return]

    def whole(self, rows: Times, dropped: Flags) -> Flags:
        """With ``beside`` a row that is dropped from one of its windows is dropped from both; ``rows``: of entries."""
        if self.beside is None or not dropped.any():
            return dropped
        return np.isin(rows, rows[dropped])

    def _first_and_last(self, timestamps_us: Times, which: Times) -> tuple[Times, Times]:
        """The numbers of the first and the last window of each row."""
        (earliest_us, latest_us), is_of = self.reach_us, which == self.number
        in_several = is_of if self.beside is None else is_of | (which == self.beside)
        first_us = timestamps_us - latest_us * is_of
        return first_us // self.period_us, (first_us + (latest_us - earliest_us) * in_several) // self.period_us
